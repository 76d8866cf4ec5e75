"""Traces of intents, read by a collector that decodes what is really sent; and a collector that is dead, or hangs."""

import asyncio
import gzip
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry, generate_latest

from hostler.app import trace_export
from hostler.app.trace_export import BoundedSpans, CountedExporter, endpoint_of, sending
from hostler.core.state import events as e
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import ActClass, Condition, Node, Operation, Outcome, Plan, Radius, Severity
from hostler.core.state.operations import PowerOn
from hostler.drivers.redfish.http_exchange import Access, HttpExchange
from hostler.logs import traces
from hostler.logs.structured import formatter
from hostler.runtime.intent_traces import IntentTraces
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from tests.contract.api_world import House, house
from tests.kit import NOW, intent_of

PASSWORD = "correct-horse-battery"
REASON = "the-reason-is-nobodys"
SLOW_S = 3.0
ROOM = 64
CALLERS = "0af7651916cd43dd8448eb211c80319c"


class Collector:
    """An OTLP receiver: `spans` as they came, decoded. `hangs` never answers, `slow` late, `refuses` by 500."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.hangs = self.slow = self.refuses = False
        self.asked = 0

    async def take(self, request: web.Request) -> web.Response:
        self.asked += 1
        body = await request.read()
        if self.hangs:
            await asyncio.Event().wait()
        if self.slow:
            await asyncio.sleep(SLOW_S)
        if self.refuses:
            return web.Response(status=500)
        if request.headers.get("Content-Encoding") == "gzip" and body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        told = ExportTraceServiceRequest.FromString(body)
        for of in told.resource_spans:
            self.resources.append({a.key: a.value.string_value for a in of.resource.attributes})
            self.spans.extend(span for scope in of.scope_spans for span in scope.spans)
        return web.Response(body=b"", content_type="application/x-protobuf")

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@asynccontextmanager
async def listening(*routes: tuple[str, str, Any]) -> AsyncIterator[str]:
    app = web.Application()
    for method, path, take in routes:
        app.router.add_route(method, path, take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spans leave at once, and no test waits long for what never comes."""
    monkeypatch.setattr(BoundedSpans.__init__, "__defaults__", (trace_export.QUEUE_MOST, 20.0))
    monkeypatch.setattr(trace_export, "LEAVE_S", 0.5)
    yield
    assert not traces.on()


def facts(span: Any) -> dict[str, Any]:
    return {a.key: a.value.string_value or a.value.int_value or a.value.bool_value for a in span.attributes}


def result(registry: CollectorRegistry, name: str) -> float:
    return registry.get_sample_value("hostler_trace_spans_total", {"result": name}) or 0.0


async def soon_so(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - the exporter's thread has no event to wait for
            await asyncio.sleep(0.01)


def asks_a_bmc(world: House, exchange: HttpExchange) -> None:
    """Every operation asks a BMC first, by the exchange that the Redfish driver uses."""
    within = world.driver.perform

    async def perform(operation: Operation, node: Node) -> Outcome:
        await exchange("GET", "/redfish/v1/Systems/1?token=in-the-query", None, {})
        return await within(operation, node)

    world.driver.perform = perform  # type: ignore[method-assign]


async def test_an_intent_is_one_trace_from_its_request_to_what_the_bmc_answered(tmp_path: Path) -> None:
    """Mutants: an operation begins a trace of its own; the BMC's call hangs on nothing; the caller's trace is left."""
    collector = Collector()

    async def bmc(_: web.Request) -> web.Response:
        return web.json_response({}, status=404)

    async with (
        listening(("POST", "/v1/traces", collector.take)) as address,
        listening(("GET", "/{any:.*}", bmc)) as origin,
        house(tmp_path) as world,
        aiohttp.ClientSession() as session,
    ):
        asks_a_bmc(world, HttpExchange(session, origin, Access(username="root", password=PASSWORD)))
        await world.adopt(1)
        with sending(address, "1.2.3", "controller-a") as counts:
            bearer = f"Bearer {world.operator.token}"
            headers = {"traceparent": f"00-{CALLERS}-b7ad6b7169203331-01", "Authorization": bearer}
            url = f"{world.url}/v1/nodes/n0/reboot"
            async with session.post(url, json={"reason": REASON}, headers=headers) as answer:
                assert (answer.status, answer.headers["x-trace-id"]) == (200, CALLERS)
            await soon_so(lambda: any(span.name == "perform reboot" for span in collector.spans))
            world.app_state.outside = type(world.app_state.outside)(traces=counts)
            metrics = await world.operator.get("/metrics")
            assert 'hostler_trace_spans_total{result="sent"}' in metrics
        assert result(counts, "failed") == result(counts, "dropped") == 0
    (request,) = collector.named("POST /v1/nodes/{node_id}/{verb}")
    (decided,) = collector.named("decide reboot")
    (performed,) = collector.named("perform reboot")
    assert {span.trace_id.hex() for span in collector.spans} == {CALLERS}
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert decided.parent_span_id == request.span_id
    assert performed.parent_span_id == decided.span_id
    (call,) = (span for span in collector.named("BMC GET") if span.parent_span_id == performed.span_id)
    assert (facts(call)["http.response.status_code"], call.status.code, facts(call)["error.type"]) == (404, 2, "404")
    assert facts(performed) | {"hostler.kind": "reboot", "hostler.outcome": "done"} == facts(performed)
    assert facts(decided)["hostler.granted"] is True
    assert collector.resources[0]["service.instance.id"] == "controller-a"
    everything = " ".join(str(span) for span in collector.spans)
    for secret in (PASSWORD, REASON, world.operator.token, "in-the-query", "Basic "):
        assert secret not in everything


async def test_nothing_is_traced_until_it_is_begun_and_no_read_or_agent_is(tmp_path: Path) -> None:
    """Mutants: every poll of an agent is a trace; the header names a trace that nobody keeps."""
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        await world.adopt(1)
        asked: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {world.operator.token}"},
            "json": {"reason": "x"},
        }
        async with world.session.post(f"{world.url}/v1/nodes/n0/hold", **asked) as answer:
            assert "x-trace-id" not in answer.headers
        with sending(address, "1", "a"):
            await world.operator.get("/v1/nodes")
            await world.inventory("n0", "first-n0")
            async with world.session.post(f"{world.url}/v1/nodes/n0/cordon", **asked) as answer:
                assert len(answer.headers["x-trace-id"]) == 32
            await soon_so(lambda: bool(collector.named("decide cordon")))
    assert {span.name.partition(" ")[0] for span in collector.spans} <= {"POST", "decide", "perform"}
    assert all("agent/" not in span.name for span in collector.spans)


@pytest.mark.parametrize("how", ["dead", "hangs", "slow", "refuses"])
async def test_a_collector_that_is_down_costs_spans_and_nothing_else(tmp_path: Path, how: str) -> None:
    """Mutants: an intent, or who stops, waits for the collector; spans that were not taken are counted as sent."""
    collector = Collector()
    setattr(collector, how, True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
            await world.adopt(1)
            nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
            with sending(nobody if how == "dead" else address, "1", "a") as counts:
                for number in range(30):
                    status, said = await world.operator.post("/v1/nodes/n0/hold", {"reason": f"try {number}"})
                    assert status == 200, said
                    assert result(counts, "sent") == 0, "each was answered and durable before any span was taken"
                if how in ("dead", "refuses"):
                    await soon_so(lambda: result(counts, "failed") > 0)
                began = time.monotonic()
            assert time.monotonic() - began < SLOW_S / 2, "who stops waits for no collector"
            assert result(counts, "sent") == 0


async def test_strangers_and_agents_begin_no_trace_and_take_no_room_from_an_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood without a valid token, then an intent: its trace is whole. Mutant: spans begin before sign-in."""
    monkeypatch.setattr(BoundedSpans.__init__, "__defaults__", (ROOM, 3_600_000.0))
    monkeypatch.setattr(CountedExporter.__init__, "__defaults__", (ROOM,))
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        await world.adopt(1)
        world.app_state.outside = type(world.app_state.outside)()

        async def ask(token: str, parent: str = "") -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"} | ({"traceparent": parent} if parent else {})
            url = f"{world.url}/v1/nodes/n0/reboot"
            async with world.session.post(url, json={"reason": "x"}, headers=headers) as answer:
                return answer.status, answer.headers.get("x-trace-id", "")

        async with left_in_a_thread(sending(address, "1", "a")) as counts:
            for _ in range(0, 4 * ROOM, 16):
                theirs = (ask("hst_nobody_nothing", f"00-{CALLERS}-b7ad6b7169203331-01") for _ in range(16))
                assert set(await asyncio.gather(*theirs)) == {(401, "")}
            assert {await ask(world.agent("n0").token) for _ in range(ROOM)} == {(403, "")}
            status, name = await ask(world.operator.token)
            assert (status, len(name)) == (200, 32)
            await world.until(lambda: world.cell.view.nodes["n0"].boot_id != "first-n0")
            await world.until(lambda: world.cell.view.nodes["n0"].phase == "production")
        assert result(counts, "dropped") == result(counts, "failed") == 0
    assert {span.trace_id.hex() for span in collector.spans} == {name}
    for part in ("POST /v1/nodes/{node_id}/{verb}", "decide reboot", "perform reboot"):
        assert len(collector.named(part)) == 1


@pytest.mark.parametrize(
    ("came", "status"), [("done", 0), ("unknown", 0), ("not_done", 0), ("failed", 2), ("refused", 2)]
)
async def test_an_operations_span_is_an_error_where_it_failed_alone(tmp_path: Path, came: str, status: int) -> None:
    """Mutant: what may have worked is an error."""
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        await world.adopt(1)

        async def ends(operation: Operation, node: Node) -> Outcome:
            return Outcome(operation.id, node.id, came, attempt=operation.attempt)

        world.driver.perform = ends  # type: ignore[method-assign]
        with sending(address, "1", "a"):
            assert (await world.operator.post("/v1/nodes/n0/reboot", {"reason": "x"}))[0] == 200
            await soon_so(lambda: bool(collector.named("perform cordon")))
    span = collector.named("perform cordon")[0]
    assert (facts(span)["hostler.outcome"], span.status.code) == (came, status)


async def test_a_caller_who_does_not_sample_has_no_trace_named(tmp_path: Path) -> None:
    """Mutant: the answer has an empty header."""
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        with sending(address, "1", "a"):
            headers = {
                "traceparent": f"00-{CALLERS}-b7ad6b7169203331-00",
                "Authorization": f"Bearer {world.operator.token}",
            }
            url = f"{world.url}/v1/intents"
            data = {"act": {"verb": "pause"}, "target": "fleet", "reason": "x"}
            async with world.session.post(url, json=data, headers=headers) as answer:
                assert (answer.status, "x-trace-id" in answer.headers) == (200, False)
    assert collector.spans == []


async def test_log_lines_of_a_request_and_of_its_operations_carry_the_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: `trace` is bound in a task that writes no line; an operation's lines have none."""
    caplog.handler.setFormatter(formatter(json=False))
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        await world.adopt(1)

        async def breaks(operation: Operation, _: Node) -> Outcome:
            raise ZeroDivisionError(operation.kind)

        world.driver.perform = breaks  # type: ignore[method-assign, assignment]
        with sending(address, "1", "a"):
            headers = {"Authorization": f"Bearer {world.operator.token}"}
            url = f"{world.url}/v1/nodes/n0/reboot"
            async with world.session.post(url, json={"reason": "x"}, headers=headers) as answer:
                name = answer.headers["x-trace-id"]
            await world.until(lambda: "driver_failed" in caplog.text)

            async def bug(*_: object) -> None:
                raise RuntimeError("a bug")

            world.cell.ask = bug  # type: ignore[method-assign, assignment]
            async with world.session.post(url, json={"reason": "x"}, headers=headers) as answer:
                failed = answer.headers["x-trace-id"]
                assert answer.status == 500
            await soon_so(lambda: len(collector.named("POST /v1/nodes/{node_id}/{verb}")) == 2)
    drivers = [line for line in caplog.text.splitlines() if "event=driver_failed" in line]
    assert drivers
    assert all(f" trace={name}" in line for line in drivers)
    (request,) = (line for line in caplog.text.splitlines() if "event=request_failed" in line)
    assert f" trace={failed}" in request
    assert failed != name
    (span,) = (span for span in collector.named("POST /v1/nodes/{node_id}/{verb}") if span.trace_id.hex() == failed)
    assert span.status.code == 2


class StandsBy:
    """A cell's view, of one that stands by while another decides."""

    role = "standby"

    def __init__(self, cell: Any, elsewhere: str) -> None:
        self._cell = cell
        self.elsewhere = elsewhere

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)


async def test_what_a_standby_carries_goes_on_as_the_same_trace(tmp_path: Path) -> None:
    """Mutants: the hop drops the parent; it hands on the caller's beside its own; a stranger's is handed on."""
    collector = Collector()
    async with (
        listening(("POST", "/v1/traces", collector.take)) as address,
        house(tmp_path) as active,
        house(tmp_path) as other,
    ):
        await active.adopt(1)
        other.app_state.cell = StandsBy(other.cell, active.url)
        with sending(address, "1", "a"):
            parent = {"traceparent": f"00-{CALLERS}-b7ad6b7169203331-01"}
            url = f"{other.url}/v1/nodes/n0/reboot"
            async with other.session.post(url, json={"reason": "x"}, headers=parent) as answer:
                assert (answer.status, "x-trace-id" in answer.headers) == (401, False)
            bearer = {"Authorization": f"Bearer {active.operator.token}"}
            async with other.session.post(url, json={"reason": "x"}, headers=parent | bearer) as answer:
                assert answer.status == 200, await answer.text()
                assert answer.headers["hostler-role"] == "active"
                assert answer.headers.getall("x-trace-id") == [CALLERS]
            await soon_so(lambda: bool(collector.named("perform reboot")))
            await soon_so(lambda: sum(span.name.startswith("POST") for span in collector.spans) == 2)
    assert {span.trace_id.hex() for span in collector.spans} == {CALLERS}
    (decided,) = collector.named("decide reboot")
    spans = {span.span_id: span for span in collector.spans}
    at_active = spans[decided.parent_span_id]
    at_standby = spans[at_active.parent_span_id]
    assert at_standby.parent_span_id.hex() == "b7ad6b7169203331"
    assert at_standby.name.startswith("POST")


@asynccontextmanager
async def left_in_a_thread(within: AbstractContextManager[CollectorRegistry]) -> AsyncIterator[CollectorRegistry]:
    """Leaves it beside this loop, in which the collector runs: what still waits is sent, and is taken."""
    with ExitStack() as stack:
        yield stack.enter_context(within)
        await asyncio.to_thread(stack.pop_all().close)


class Stuck(SpanExporter):
    """Exports nothing until it is let go."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.batches.append(len(spans))
        if self.fails:
            raise OSError("gone")
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


def test_what_the_queue_has_no_room_for_is_dropped_and_counted() -> None:
    """Mutants: the queue grows; the oldest spans leave it uncounted; room that a batch gave back stays taken."""
    stuck = Stuck()
    exporter = CountedExporter(stuck, 8)
    waiting = BoundedSpans(exporter, 8, 3_600_000.0)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(waiting)
    tracer = provider.get_tracer("t")
    for turn in (1, 2):
        for _ in range(12):
            tracer.start_span("one").end()
        assert result(exporter.registry, "dropped") == 4 * turn
        waiting.force_flush()
        assert result(exporter.registry, "sent") == 8 * turn
    provider.shutdown()


def test_an_exporter_that_raises_gives_its_room_back() -> None:
    stuck = Stuck()
    stuck.fails = True
    exporter = CountedExporter(stuck, 1)
    assert exporter.takes()
    assert not exporter.takes()
    with pytest.raises(OSError, match="gone"):
        exporter.export([ReadableSpan("one")])
    assert exporter.takes()
    assert (result(exporter.registry, "failed"), result(exporter.registry, "dropped")) == (1, 1)
    assert b"hostler_trace_spans_total" in generate_latest(exporter.registry)


@pytest.mark.parametrize("address", ["collector:4318", "ftp://collector", "http://", "http://u:p@collector", "x" * 999])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidInputError, match="no collector's address"):
        endpoint_of(address)


def test_an_address_without_a_path_is_completed() -> None:
    assert endpoint_of("http://collector:4318") == "http://collector:4318/v1/traces"
    assert endpoint_of("https://c/otlp/v1/traces") == "https://c/otlp/v1/traces"


async def test_another_controller_goes_on_with_the_intents_trace(tmp_path: Path) -> None:
    """A request is answered, its reboot hangs, and the next controller observes it: one trace, by the intent's id.

    Mutants: the new controller makes none, or one of its own.
    """
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        await world.adopt(2)
        world.driver.stuck = {"reboot"}
        with sending(address, "1", "a"):
            headers = {"Authorization": f"Bearer {world.operator.token}"}
            url = f"{world.url}/v1/nodes/n0/reboot"
            async with world.session.post(url, json={"reason": REASON}, headers=headers) as answer:
                name, said = answer.headers["x-trace-id"], await answer.json()
            assert said["detail"]["intent"] == name, "the intent is named by its trace"
            await world.until(lambda: any(o.kind == "reboot" for o in world.cell.view.nodes["n0"].under_way))
            await world.cell.stop()
        collector.spans.clear()
        world.driver.stuck = set()
        with sending(address, "1", "b"):
            other = Cell(world.cell.journal, performers(Wiring((world.driver,))))
            world.driver.cell = other
            await other.start()
            try:
                await soon_so(lambda: bool(collector.named("observe reboot")))
            finally:
                await other.stop()
    assert {span.trace_id.hex() for span in collector.spans} == {name}
    assert facts(collector.named("observe reboot")[0])["hostler.node"] == "n0"


async def test_an_intent_that_no_request_brought_has_a_trace_of_its_own(tmp_path: Path) -> None:
    """As by an annotation of a Kubernetes node. Mutant: only requests are traced."""
    collector = Collector()
    async with listening(("POST", "/v1/traces", collector.take)) as address, house(tmp_path) as world:
        await world.adopt(1)
        with sending(address, "1", "a"):
            asked = intent_of("by-annotation", "reboot", "n0", "k1", REASON, world.cell.now())
            assert (await world.cell.ask(asked)).granted
            await soon_so(lambda: bool(collector.named("perform reboot")))
    assert {span.trace_id.hex() for span in collector.spans} == {f"{traces.of_intent('by-annotation'):032x}"}
    assert len(collector.named("decide reboot")) == 1


async def test_the_sampler_decides_about_traces_that_go_on_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: what another controller's sampler left out is traced by the next one."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    kept = {}
    with sending("http://127.0.0.1:1", "1", "a"):
        for identity in (f"{0:031x}1", f"{2**128 - 1:032x}"):
            with traces.after(traces.of_intent(identity), "perform reboot", {}) as span:
                kept[identity] = span.is_recording()
    assert list(kept.values()) == [True, False]


def test_a_callers_trace_names_no_intent_and_ours_names_one() -> None:
    """Mutants: a caller chooses the intent's id; two intents of one request get one id."""
    end = traces.begin(TracerProvider(shutdown_on_exit=False).get_tracer("t"))
    try:
        with traces.root("POST", {"traceparent": f"00-{CALLERS}-b7ad6b7169203331-01"}, {}):
            assert traces.name_of_intent() == ""
        with traces.root("POST", {}, {}):
            name = traces.trace_id()
            assert (traces.name_of_intent(), traces.name_of_intent()) == (name, "")
            assert traces.of_intent(name) == int(name, 16)
    finally:
        end()
    assert traces.of_intent("0" * 32) > 0
    assert traces.of_intent("i1") != traces.of_intent("i2")


def of_plan(identity: str, *causes: str) -> e.PlanRecorded:
    return e.PlanRecorded(Plan(identity, "n", "reboot", ActClass.pending, (), (), causes, "", "", Radius((), 0), NOW))


async def test_a_history_names_the_intent_of_a_plan_and_only_of_that_plan() -> None:
    """Mutants: an earlier request for the same is taken; a fault's plan is somebody's."""
    asked_for = Condition("n/operator.reboot", "operator.reboot", "n", Severity.warning, NOW, NOW, "remedy", "ann")
    raised = e.ConditionRaised(asked_for)
    history = [
        e.Record(9, NOW, 1, "sweep", of_plan("p9", "n/gpu.fallen_off_bus")),
        e.Record(8, NOW, 1, "sweep", of_plan("p8", "n/operator.reboot")),
        e.Record(7, NOW, 1, "intent:i2", raised),
        e.Record(6, NOW, 1, "intent:i3", of_plan("p6")),
        e.Record(5, NOW, 1, "sweep", of_plan("p5", "n/operator.reboot")),
        e.Record(4, NOW, 1, "intent:i1", raised),
    ]
    followed = IntentTraces(lambda _: history)
    asked = {p: Operation(f"o-{p}", PowerOn(), "n", p, 0, NOW, NOW) for p in ("p5", "p6", "p8", "p9", "")}
    assert await followed.of(asked["p8"]) is None, "nothing is looked up while no trace is made"
    end = traces.begin(TracerProvider(shutdown_on_exit=False).get_tracer("t"))
    try:
        found = {plan: await followed.of(operation) for plan, operation in asked.items()}
    finally:
        end()
    named = {"p5": "i1", "p6": "i3", "p8": "i2"}
    assert found == {p: traces.of_intent(named[p]) if p in named else None for p in asked}


async def test_no_more_is_followed_than_has_room() -> None:
    """Mutant: what ended long ago is kept for ever."""
    provider = TracerProvider(shutdown_on_exit=False)
    followed = IntentTraces(kept=4)
    end = traces.begin(provider.get_tracer("t"))
    try:
        with traces.root("POST", {}, {}):
            for number in range(9):
                followed.asked(f"i{number}")
        made = [Operation(f"o{number}", PowerOn(), "n", "", 0, NOW, NOW + timedelta(hours=1)) for number in range(9)]
        for number, operation in enumerate(made):
            followed.follow([e.Record(number, NOW, 1, f"intent:i{number}", e.OperationStarted(operation))])
        known = [number for number, operation in enumerate(made) if await followed.of(operation) is not None]
    finally:
        end()
    assert 0 < len(known) <= 4
    assert 0 not in known
