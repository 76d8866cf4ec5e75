"""Two customers share a fleet: one reads nothing of the other, nor how the other is called, whatever happens.

The same history is played in fleets that differ in nothing but the other customer's names: every answer of every route
and the stream of events are the same, byte for byte.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, cast
from urllib.parse import quote, unquote

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from litestar import Litestar
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, Input, IntentAsked, Replied
from hostler.controller.step_output import StepOutput
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.grid_names import Colouring, Grouping
from hostler.core.state.intent import Bounds
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Assignment, CheckResult, Observation, Verdict
from hostler.journal.memory import MemoryJournal
from hostler.ports import Batch
from hostler.runtime.cell_controllers import ControllerHealth
from hostler.runtime.subscribers import Subscribers, Subscription
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.app import create_app
from hostler.server.cell_view import CellView
from hostler.server.event_stream import keeper
from hostler.server.server_settings import Settings
from hostler.server.tokens import Grant, Identity, Role, TokenStore
from tests.drawing import examples
from tests.kit import GPUS, NOW, Drive, a_node, configuration, gpu_part, intent_of, pool_document

OWN, FOREIGN = ("a", "b"), ("x", "y", "z")
ALL = (*OWN, *FOREIGN)
WORDS = ("qzxw", "warpqzxw2")
"""By which the other customer is called, in the one fleet and in the other."""
ADDRESS = "bmc.example"
"""In the address of every BMC."""
VERBS = (
    "reboot", "cordon", "uncordon", "hold", "return-for-maintenance", "power-cycle", "request-replacement", "release",
    "schedule-maintenance", "start-work", "pause", "resume", "approve", "close-ticket", "call-off", "clear-condition",
)  # fmt: skip


def parts(node: str) -> dict[str, Any]:
    """Parts: GPUs; a serial is nobody's name."""
    serials = [f"{node}-G{gpu}" for gpu in range(GPUS)]
    slots = tuple((f"gpu{gpu}", serial) for gpu, serial in enumerate(serials))
    return {"slots": slots, "addresses": tuple((f"pci:0000:{n:02x}:00", serial) for n, serial in enumerate(serials))}


class Told(Drive):
    """A cell in which everybody who says something names the other customer, and drivers name addresses."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.observations: list[Observation] = []
        pools = {
            "train": pool_document(target=2),
            f"pool-{word}": pool_document(target=3, tenant=f"tenant-{word}", cluster=f"cluster-{word}", owner=word),
        }
        own = [self.a_node(n) for n in OWN]
        theirs = Assignment(f"pool-{word}", f"tenant-{word}", f"cluster-{word}", own[0].registered_at)
        others = [self.a_node(self.name(n), **parts(n), assignment=theirs, tags=(("note", word),)) for n in FOREIGN]
        super().__init__(configuration(pools), [*own, *others])
        self.step(FellowsSeen((Fellow("this", Release().reads),)))

    @staticmethod
    def a_node(name: str, **fields: Any) -> Any:
        made = a_node(name, domains=("rack:r1", "leaf:l1"), **fields)
        bmc = Binding("bmc", f"https://{name}.{ADDRESS}", made.registered_at)
        return replace(made, bindings=(*(b for b in made.bindings if b.kind != "bmc"), bmc))

    def name(self, node: str) -> str:
        return f"{node}-{self.word}" if node in FOREIGN else node

    def step(self, *inputs: Input) -> StepOutput:
        ready = super().step(*(self._retold(one) for one in inputs))
        self.observations.extend(ready.batch.observations)
        return ready

    def _retold(self, one: Input) -> Input:
        if isinstance(one, Replied) and one.outcome.result != "done":
            detail = f"https://{one.outcome.node}.{ADDRESS} said {self.word}"
            return Replied(replace(one.outcome, detail=detail))
        return one

    def speaks(self, verb: str, node: str, tenant: bool, now: bool) -> None:
        """An operator asks, who names the other customer, or somebody of the customer whose node it is."""
        self._token += 1
        bounds = Bounds(tenant="acme" if node in OWN else f"tenant-{self.word}") if tenant else Bounds()
        person = f"of-{self.word}" if tenant and node in FOREIGN else "ann"
        reason = "we ask" if tenant and node in OWN else f"for {self.word} on {ADDRESS}"
        args = {"now": "true"} if now else {}
        target = self.name(node)
        intent = intent_of(f"i{self._token}", verb, target, person, reason, self.now, args, bounds=bounds)
        self.step(IntentAsked(self._token, intent))

    def answers(self, scope: str, nodes: tuple[str, ...]) -> None:
        """An operator sets a window, and the customers of these nodes answer it, the other one with its own words."""
        starts, ends = (str(self.now + timedelta(days=days)) for days in (2, 3))
        target = scope if scope in (*OWN, *FOREIGN) else scope.replace("WORD", self.word)
        self.ask("schedule-maintenance", self.name(target), starts=starts, ends=ends)
        for window in list(self.fleet.windows):
            for node in nodes:
                self._token += 1
                tenant, person = ("acme", "alice") if node in OWN else (f"tenant-{self.word}", f"of-{self.word}")
                args = {"rather": str(self.now + timedelta(days=4))} if node in FOREIGN else {}
                intent = intent_of(
                    f"i{self._token}", "answer-maintenance", window, person, f"{person} says so", self.now, args,
                    bounds=Bounds(tenant=tenant),
                )  # fmt: skip
                self.step(IntentAsked(self._token, intent))

    def works(self, node: str, whose: str) -> None:
        tenant = "acme" if whose == "acme" else f"tenant-{self.word}"
        work = Workload(f"{tenant}/w", tenant, WorkClass.uninterruptible, job=f"{tenant}-job", owner=f"{tenant}-ann")
        self.see_work(self.name(node), work)

    def goes_dark(self, nodes: tuple[str, ...]) -> None:
        for node in nodes:
            self.observe(self.name(node), "power", facts={"power": "off"})

    def claims(self, node: str, of: str) -> None:
        """The node shows a part of the other one."""
        mine = tuple(gpu_part(node, gpu) for gpu in range(GPUS - 1))
        self.observe(self.name(node), "inventory", parts=(*mine, gpu_part(of, GPUS - 1)))


nodes = st.sampled_from(ALL)
actions = st.one_of(
    st.tuples(st.just("fault"), nodes, st.sampled_from(("off_bus", "ecc"))),
    st.tuples(st.just("leak"), nodes),
    st.tuples(st.just("dark"), st.sampled_from((ALL, OWN, FOREIGN, ("b", "x", "y")))),
    st.tuples(st.just("speaks"), st.sampled_from(VERBS), nodes, st.booleans(), st.booleans()),
    st.tuples(st.just("answers"), st.sampled_from(("rack:r1", "fleet", "pool:pool-WORD", "pool:train", "a", "x")),
              st.sampled_from((("a", "x"), ("x",), ("a",)))),
    st.tuples(st.just("works"), nodes, st.sampled_from(("acme", "other"))),
    st.tuples(st.just("claims"), nodes, nodes),
    st.tuples(st.just("script"), st.sampled_from(("cordon", "evict", "power_off", "run_checks", "reboot")),
              st.lists(st.sampled_from(("failed", "refused", "unknown", "mute", "held")), min_size=1, max_size=3)),
    st.tuples(st.just("wait"), st.sampled_from((31, 301, 3_600, 90_000))),
    st.tuples(st.just("silent"), nodes),
)  # fmt: skip


FULL: list[Any] = [
    ("answers", "rack:r1", ("a", "x")), ("answers", "x", ("x",)),
    ("works", "b", "other"), ("speaks", "hold", "b", False, False), ("fault", "b", "off_bus"),
    ("speaks", "cordon", "a", False, False), ("speaks", "reboot", "a", False, False), ("claims", "a", "z"),
    ("claims", "x", "b"), ("script", "power_off", ["failed", "refused"]), ("wait", 3_600),
    ("speaks", "reboot", "b", True, True),
    ("fault", "a", "ecc"), ("leak", "b"), ("dark", ("b", "x", "y")), ("wait", 90_301), ("silent", "a"),
    ("wait", 3_600),
]  # fmt: skip
"""In which everybody says something to be shown to nobody else."""


def play(word: str, script: list[Any]) -> Told:
    drive = Told(word)
    acts: dict[str, Callable[..., Any]] = {
        "fault": lambda node, what: drive.fault(drive.name(node), what),
        "leak": lambda node: drive.leak(drive.name(node)),
        "dark": drive.goes_dark,
        "speaks": drive.speaks,
        "works": drive.works,
        "answers": drive.answers,
        "claims": drive.claims,
        "script": lambda kind, answers: drive.script(kind, *answers),
        "silent": lambda node: drive.silence(drive.name(node)),
        "wait": lambda seconds: drive.wait(seconds=seconds),
    }
    for what, *how in script:
        acts[what](*how)
    return drive


class Still:
    """The cell as it stood when the history ended, as the server asks for it."""

    name, version, role, epoch, elsewhere = "cell", "1", "active", 1, ""

    def __init__(self, drive: Told) -> None:
        self.view, self.live = drive.fleet, drive.controller.live
        self.records = drive.journal
        self.journal = MemoryJournal()
        epoch = 0
        for record in drive.journal:
            while epoch < record.epoch:
                epoch = self.journal.acquire("test")
            self.journal.append(Batch((record,)), epoch)
        self.journal.append(Batch(observations=tuple(drive.observations)), epoch)
        self.heartbeats = self

    def last(self, _node: str) -> None:
        return None

    def health(self) -> ControllerHealth:
        return ControllerHealth("active", 1, len(self.records), 0, 0.0, "", ok=True)

    def subscribe(self, after: int, quiet_s: float | None = None) -> Subscription:
        return Subscribers(lambda seen: iter(self.records[seen:])).follow(after, quiet_s)


class Answers:
    """Collects one token's answers from a server over that cell."""

    def __init__(self, cell: Still, tokens: TokenStore, token: str, now: datetime) -> None:
        mailboxes = AgentMailboxes(lambda: 1)
        self.cell = cell
        self.app = create_app(cast("CellView", cell), tokens, mailboxes, Settings(clock=lambda: now))
        self._headers = [(b"authorization", f"Bearer {token}".encode()), (b"host", b"127.0.0.1")]

    async def get(self, path: str) -> tuple[int, bytes]:
        where, _, query = path.partition("?")
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        scope: Any = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": unquote(where), "raw_path": where.encode(), "query_string": query.encode(), "root_path": "",
            "headers": self._headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        await self.app(scope, receive, send)
        return said[0]["status"], b"".join(m.get("body", b"") for m in said[1:])

    async def stream(self, who: Identity) -> bytes:
        room = self.app.state["app_state"]
        lines = room.streams.lines(who, 0, keeper(room.cell, who, ""), self.cell.records[-1].seq)
        return b"".join([line async for line in lines])


_OTHER = ("/v1/agent/", "/v1/events")


def routes(app: Litestar) -> list[str]:
    """Every path that can be read without a place in it, and every one about a node, as the customer asks for them."""
    found = [route.path_format for route in app.routes if "GET" in getattr(route, "methods", ())]
    return sorted(path for path in found if path.startswith("/v1/") and not path.startswith(_OTHER))


def asked(app: Litestar, cell: Still) -> list[str]:
    """The questions: all routes with what the customer can name, by pages of one too, and searches for a guess."""
    names: dict[str, Iterable[str]] = {
        "node_id": OWN, "serial": ("a-G0", "b-G7"), "name": ("train", "rack:r1"), "incident_id": cell.view.incidents,
        "approval": cell.view.approvals, "rollout": ("r1",), "operation": ("op1",), "intent": intents_of(cell),
        "case_id": cell.view.rma_cases, "golden_id": cell.view.goldens,
        "backtest": ("b-20260101T000000000-000000000000",), "rack": ("r1", "r2"),
        "ticket": [ticket.id for ticket in cell.view.tickets.values() if ticket.node in OWN],
    }  # fmt: skip
    found: list[str] = []
    for path in (route.replace("{digest}", "0" * 64) for route in routes(app)):
        hole = re.search(r"\{(\w+)\}", path)
        if hole is not None:
            found += [path.replace(hole[0], quote(name, safe="")) for name in names[hole[1]]]
        else:
            found += [path, f"{path}?limit=1", f"{path}?q={ADDRESS}", f"{path}?tag=note={WORDS[0]}"]
    maps = [*(f"colour={colouring}" for colouring in Colouring), *(f"by={grouping}" for grouping in Grouping)]
    drawn = (f"/v1/map?{how}" for how in maps)
    hours = ("/v1/statement?tenant=acme", *(f"/v1/statement?tenant=tenant-{word}" for word in WORDS))
    return [*found, *(f"/v1/maintenance?node={name}" for name in OWN), *drawn, *hours]


def intents_of(cell: Still) -> list[str]:
    """Every intent that was asked, by its id: the customer's own, and those of others."""
    return [r.event.intent.id for r in cell.journal.records() if isinstance(r.event, e.IntentRecorded)]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenStore]:
    made = TokenStore(tmp_path_factory.mktemp("veil") / "tokens.sqlite")
    yield made
    made.close()


async def told(drive: Told, tokens: TokenStore, token: str) -> dict[str, bytes]:
    """Every answer by its question, and the stream."""
    cell = Still(drive)
    answers = Answers(cell, tokens, token, drive.now)
    found: dict[str, bytes] = {}
    for path in asked(answers.app, cell):
        status, body = await answers.get(path)
        assert status in (200, 400, 403, 404, 410, 501), (path, status, body)
        found[path] = b"%d " % status + body
    who = await tokens.recognise(token)
    assert who is not None
    found["events"] = await answers.stream(who)
    return found


@settings(
    deadline=None,
    max_examples=examples(8, quick=1),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@example(script=FULL)
@example(script=FULL[:9])
@given(script=st.lists(actions, max_size=10))
def test_a_customer_reads_nothing_of_another_and_not_how_they_are_called(tokens: TokenStore, script: list[Any]) -> None:
    """Mutants: a row of the redaction's table shows its field; a route makes its text of nouns as they are; a
    search looks at what is not shown; a page's cursor names a node of others."""
    token = tokens.create(Grant("alice", Role.tenant, tenant="acme"))
    one, other = (asyncio.run(told(play(word, script), tokens, token)) for word in WORDS)
    for path, body in one.items():
        shown = body.decode().lower()
        assert WORDS[0] not in shown, (path, _around(shown, WORDS[0]))
        assert ADDRESS not in shown, (path, _around(shown, ADDRESS))
        assert body == other.get(path), (path, body, other.get(path))
    assert one.keys() == other.keys()


def _around(text: str, word: str) -> str:
    at = text.index(word)
    return text[max(0, at - 300) : at + 100]


NARROWED = (Grant("nina", Role.viewer, pool="train"), Grant("oli", Role.operator, pool="train"))


@pytest.mark.parametrize("grant", NARROWED, ids=lambda grant: grant.role)
def test_a_token_narrowed_to_a_pool_reads_no_name_of_another_pools_nodes(tokens: TokenStore, grant: Grant) -> None:
    """Every route and the stream. Mutants: the answer is not redacted; a sentence that names such a node is shown."""
    drive = play(WORDS[0], FULL)
    names = [drive.name(node) for node in FOREIGN]
    for path, body in asyncio.run(told(drive, tokens, tokens.create(grant))).items():
        shown = body.decode()
        named = [name for name in (*names, f"pool-{WORDS[0]}") if name in shown]
        assert named == [], (path, _around(shown, named[0]))


class Checked(Told):
    """The same cell, whose nodes were found bad before anybody had them."""

    @staticmethod
    def a_node(name: str, **fields: Any) -> Any:
        made = Told.a_node(name, **fields)
        found = CheckResult("full", Verdict.failed, made.registered_at - timedelta(days=1))
        return replace(made, checks=(found,))


def test_the_map_colours_a_customers_nodes_by_what_it_is_shown_of_them(tokens: TokenStore) -> None:
    """Mutant: the words are of the nodes as they are; a customer then reads checks of a time before its own."""
    cell = Still(Checked(WORDS[0]))
    for grant, words in (
        (Grant("opal", Role.operator), ["failed"]),
        (Grant("alma", Role.tenant, tenant="acme"), ["unknown"]),
    ):
        answers = Answers(cell, tokens, tokens.create(grant), NOW)
        status, body = asyncio.run(answers.get("/v1/map?colour=check"))
        assert (status, msgspec.json.decode(body)["words"]) == (200, words)
