"""The agent's reports: an outcome counts as told only when the controller has taken it."""

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from hostler.agent.boot_clock import boottime
from hostler.agent.controller_client import OperationOrder, RejectedError, UnavailableError
from hostler.agent.local_observation import LocalObservation, Rank
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.agent.operation_worker import Operator
from hostler.core.state.model import Operation, Outcome
from tests.acts import an_act

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_S = 60.0
Mode = Literal["perform", "observe", "revoke"]


def operation(number: int, kind: str = "sanitise") -> Operation:
    return Operation(f"op{number}", an_act(kind), "n1", "plan1", 0, NOW, NOW)


class Far:
    """A controller that is away as often as it is told to be."""

    def __init__(self) -> None:
        self.taken: list[Outcome] = []
        self.away: list[Exception] = []
        self.orders: asyncio.Queue[tuple[OperationOrder, ...]] = asyncio.Queue()
        self.came = asyncio.Event()
        self.offers = 0

    async def outcomes(self, outcomes: list[Outcome]) -> None:
        if self.away:
            raise self.away.pop(0)
        self.taken.extend(outcomes)
        self.came.set()

    async def operations(self) -> tuple[OperationOrder, ...]:
        return await self.orders.get()

    async def joining(self) -> None:
        self.offers += 1
        raise self.away.pop(0)


class Upward:
    """The agent's spool and uploader as far as its operator uses them. `drained` waits until the test lets it go."""

    def __init__(self) -> None:
        self.seen: list[LocalObservation] = []
        self.woken = self.drains = 0
        self.empty = asyncio.Event()

    def now_s(self) -> float:
        return 7.0

    def append(self, observations: list[LocalObservation]) -> None:
        self.seen += observations

    def wake(self) -> None:
        self.woken += 1

    async def drained(self) -> None:
        self.drains += 1
        await self.empty.wait()


class World:
    """One node's operator, which can be restarted; its marks are on disk."""

    def __init__(self, directory: Path) -> None:
        self.far, self.upward = Far(), Upward()
        self.body = EmulatedHostMachine("n1")
        self._directory = directory
        self.begin()

    def begin(self) -> None:
        self.operation_log = OperationLog(self._directory / "marks.sqlite")
        self.operations = NodeOperations("n1", self.body, self.operation_log)
        upward: Any = self.upward
        far: Any = self.far
        self.operator = Operator(self.operations, self.operation_log, upward, upward, far)

    def restart(self) -> None:
        self.operation_log.close()
        self.begin()

    async def act(
        self, asked: Operation, mode: Mode = "perform", left_s: float | None = None, age_s: float = 0
    ) -> None:
        """An order that `take_orders` hands on, so long after it has asked for orders."""
        await self.operator._handle(OperationOrder(asked, 1, mode, left_s), boottime() - age_s)  # noqa: SLF001

    def told(self) -> list[tuple[str, str]]:
        return [(outcome.operation, outcome.result) for outcome in self.far.taken]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.operation_log.close()


@pytest.mark.parametrize("error", [UnavailableError("away"), RejectedError(409, "no")])
async def test_an_outcome_that_did_not_arrive_is_sent_again_by_the_next_process_too(
    world: World, error: Exception
) -> None:
    """Mutant: it is marked sent before it is."""
    await world.act(operation(1))
    world.far.away = [error]
    with pytest.raises(type(error)):
        await world.operator.report_all()
    assert world.told() == []
    world.restart()
    await world.operator.report_all()
    assert world.told() == [("op1", "done")]


class Strict(Far):
    """A controller that takes no answer with this text, and none of another node, as its API does."""

    async def outcomes(self, outcomes: list[Outcome]) -> None:
        if any(one.node != "n1" for one in outcomes):
            raise RejectedError(403, "is not the node of this token")
        if any("odd" in one.detail for one in outcomes):
            raise RejectedError(422, "detail, facts or parts are too many")
        await super().outcomes(outcomes)


async def test_an_outcome_that_the_controller_does_not_take_stops_no_other(world: World) -> None:
    """Mutants: it is sent as it is for ever, and nothing behind it arrives; without its answer it counts as done."""
    strict: Any = Strict()
    world.far = world.operator._controller = strict  # noqa: SLF001
    for number in range(4):
        await world.act(operation(number))
    world.operation_log.finish(Outcome("op1", "n1", "done", "odd", facts={"verdict": "passed"}, attempt=1))
    world.operation_log.finish(Outcome("op2", "n1", "failed", "odd too", attempt=1))
    await world.operator.report_all()
    assert world.told() == [("op0", "done"), ("op1", "refused"), ("op2", "failed"), ("op3", "done")]
    bare = world.far.taken[1]
    assert (bare.facts, bare.attempt) == ({}, 1)
    assert "it ended with 'done', and the controller did not take its answer: 422" in bare.detail
    await world.operator.report_all()
    assert len(world.told()) == 4


async def test_a_refused_order_that_the_controller_does_not_take_stops_no_other(world: World) -> None:
    strict: Any = Strict()
    world.far = world.operator._controller = strict  # noqa: SLF001
    world.operator._transient.extend(  # noqa: SLF001
        [Outcome("op7", "n1", "refused", "odd"), Outcome("op8", "n1", "refused", "fair")]
    )
    await world.operator.report_all()
    assert world.told() == [("op7", "refused"), ("op8", "refused")]


async def test_outcomes_of_the_machine_from_which_the_disk_came_are_let_go(world: World) -> None:
    """Mutant: they are sent, refused by who this node is, and nothing of its own arrives."""
    strict: Any = Strict()
    world.far = world.operator._controller = strict  # noqa: SLF001
    world.operation_log.start(replace(operation(1), node="n9"), 1, "b1")
    world.operation_log.finish(Outcome("op1", "n9", "done", attempt=1))
    await world.act(operation(2))
    await world.operator.report_all()
    assert world.told() == [("op2", "done")]
    assert world.operation_log.unsent(9) == []


async def test_an_outcome_that_arrived_is_not_sent_again(world: World) -> None:
    """Mutant: it is never marked sent, and the agent reports for ever."""
    await world.act(operation(1))
    await world.operator.report_all()
    world.restart()
    await world.operator.report_all()
    assert world.told() == [("op1", "done")]
    await world.act(operation(1), "observe")
    await world.operator.report_all()
    assert world.told() == [("op1", "done")] * 2, "who asks is told once more"


async def test_a_refusal_that_did_not_arrive_is_sent_with_the_next_report(world: World) -> None:
    """A refused order has no entry in the operation log. Mutant: it is forgotten before it is sent."""
    await world.act(replace(operation(1), node="n2"))
    world.far.away = [UnavailableError("away")]
    with pytest.raises(UnavailableError):
        await world.operator.report_all()
    await world.operator.report_all()
    assert world.told() == [("op1", "refused")]
    await world.operator.report_all()
    assert len(world.told()) == 1


async def test_more_outcomes_than_one_message_takes_all_arrive_in_their_order(world: World) -> None:
    """Mutant: what is beyond the first message is forgotten."""
    for number in range(120):
        await world.act(operation(number) if number % 2 else replace(operation(number), node="n2"))
    await world.operator.report_all()
    assert len(world.told()) == 120
    assert [int(name[2:]) for name, result in world.told() if result == "refused"] == list(range(0, 120, 2))
    assert [int(name[2:]) for name, result in world.told() if result == "done"] == list(range(1, 120, 2))


async def test_no_order_is_taken_while_nobody_knows_what_was_begun(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk refuses the marks; that is told once, and so is that it takes them again.

    Mutants: the error ends the task, and with it the agent; orders are taken all the same; it is told with each try.
    """
    told: list[LocalObservation] = []
    spool: Any = SimpleNamespace(now_s=lambda: 1.0, append=told.extend)
    uploader: Any = SimpleNamespace(wake=lambda: None)
    far: Any = world.far
    operator = Operator(world.operations, world.operation_log, spool, uploader, far)
    refusals = [sqlite3.OperationalError("full")] * 3

    def settle() -> list[Outcome]:
        if refusals:
            raise refusals.pop()
        return []

    monkeypatch.setattr(world.operations, "settle", settle)
    monkeypatch.setattr("hostler.agent.operation_worker.backoff_s", lambda *_: 0.0)
    await asyncio.wait_for(operator._settled(lambda: 0.0), 10.0)  # noqa: SLF001 - what `take_orders` begins with
    assert [one.facts["collector"] for one in told] == ["marks", "marks"]
    assert "no order is taken" in told[0].text
    assert not refusals


# what an order is


@pytest.mark.parametrize(
    ("left_s", "age_s", "result"), [(None, 3600, "done"), (60, 0, "done"), (60, 61, "refused"), (0, 1, "refused")]
)
async def test_an_order_is_begun_only_in_the_time_it_had_left_when_it_was_asked_for(
    world: World, left_s: float | None, age_s: float, result: str
) -> None:
    """The controller counts it as over then. Mutants: its time begins with its arrival; it is not looked at."""
    await world.act(operation(1), left_s=left_s, age_s=age_s)
    await world.operator.report_all()
    assert world.told() == [("op1", result)]
    assert world.body.asked == (["sanitise"] if result == "done" else [])


@pytest.mark.parametrize(("mode", "result"), [("observe", "not_done"), ("revoke", "revoked"), ("perform", "done")])
async def test_only_an_order_to_perform_acts(world: World, mode: Mode, result: str) -> None:
    """Mutants: who only asks whether it was done, or takes it back, has it done."""
    await world.act(operation(1), mode)
    await world.operator.report_all()
    assert world.told() == [("op1", result)]
    assert world.body.asked == (["sanitise"] if mode == "perform" else [])


@pytest.mark.parametrize(("kind", "mode"), [("start_kubelet", "observe"), ("sanitise", "perform")])
async def test_what_lets_a_kubelet_in_is_asked_for_by_nothing_but_its_joining(
    world: World, kind: str, mode: Mode
) -> None:
    await world.act(operation(1, kind), mode)
    assert not world.far.offers


async def test_without_what_it_needs_an_act_is_not_begun_and_nothing_is_said(world: World) -> None:
    """The controller asks for it again. Mutant: a controller that does not answer this moment makes it a refusal."""
    world.far.away = [UnavailableError("away")]
    await world.act(operation(1, "start_kubelet"))
    await world.operator.report_all()
    assert (world.far.offers, world.told(), world.body.asked) == (1, [], [])


async def test_where_nothing_is_offered_the_act_is_refused_and_its_plan_goes_on(world: World) -> None:
    """Mutant: the agent is silent, and each such plan waits for its step's deadline."""
    world.far.away = [RejectedError(404, "no offer")]
    await world.act(operation(1, "start_kubelet"))
    await world.operator.report_all()
    assert (world.told(), world.body.asked) == ([("op1", "refused")], [])


async def test_a_verdict_is_also_an_urgent_observation(world: World) -> None:
    """Mutants: it waits for the next batch; any outcome is one."""
    await world.act(operation(1, "run_checks"))
    await world.act(operation(2))
    (seen,) = world.upward.seen
    assert (seen.kind, seen.rank, seen.facts["operation"], world.upward.woken) == ("verdict", Rank.urgent, "op1", 1)
    assert {"profile", "verdict"} < seen.facts.keys()


async def test_evidence_is_on_its_way_before_its_outcome_is_told(world: World) -> None:
    """Power may go right after. Mutants: the outcome does not wait; so does the answer to a question about it."""
    async with asyncio.timeout(PATIENCE_S):
        await world.act(operation(1, "collect_evidence"), "observe")
        assert not world.upward.drains
        acting = asyncio.create_task(world.act(operation(1, "collect_evidence")))
        while not world.body.asked:  # noqa: ASYNC110 - a thread rings no bell
            await asyncio.sleep(0.001)
        assert not acting.done()
        world.upward.empty.set()
        await acting


async def test_reports_go_as_soon_as_there_is_something_to_tell(world: World) -> None:
    """Mutants: nobody is told that there is an outcome, marked or not; what an earlier process began is not told."""
    world.operation_log.start(operation(9, "gpu_reset"), 1, world.body.boot_id())
    world.restart()
    tasks = [
        asyncio.create_task(world.operator.report(lambda: 0.0)),
        asyncio.create_task(world.operator.take_orders(lambda: 0.0)),
    ]
    try:
        for number, asked in enumerate((None, operation(1), replace(operation(2), node="n2"))):
            if asked is not None:
                world.far.orders.put_nowait((OperationOrder(asked, 1, "perform"),))
            async with asyncio.timeout(PATIENCE_S):
                while len({name for name, _ in world.told()}) <= number:
                    world.far.came.clear()
                    await world.far.came.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert dict(world.told()) == {"op9": "unknown", "op1": "done", "op2": "refused"}
