"""Idle checks of a node without a scheduler: a real cell and mailboxes, and the agent's own operations on a disk."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostler.agent.checks.host_stress import StressResult
from hostler.agent.machine import EmulatedHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state import events as e
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.live_state import AgentAbilities
from hostler.core.state.model import Assignment, CheckResult, Node, Operation, Outcome, Verdict
from hostler.core.state.operations import RunChecks
from hostler.core.state.pass_rules import PassRules
from hostler.core.tables.operations import IDLE_CHECK
from hostler.drivers.standalone.scheduler import StandaloneScheduler, StandaloneWork
from hostler.journal.memory import MemoryJournal
from hostler.ports import Batch
from hostler.runtime.merged_schedulers import SchedulerDriver
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server import agent_mailbox
from hostler.server.agent_mailbox import AgentMailboxes, AgentOrder
from tests.contract.kubernetes_world import running, until
from tests.kit import NOW, a_node, configuration, intent_of, pool_document, seen

TURN_S = 0.05
BARE = Assignment("bare", "acme", "", NOW)
SLOTS = {"period_s": 8, "quiet_s": 0.2, "limit_s": 7, "count": 4, "percent": 100}


class Machine(EmulatedHostMachine):
    """A machine whose check goes on until the test ends it, or somebody calls it off."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.begun: list[str] = []
        self.end = threading.Event()
        self.is_over = False
        self.answer = StressResult(Verdict.passed, "twenty minutes under load")

    def check(self, profile: str, expects: Expected, run: str = "", rules: PassRules | None = None) -> StressResult:
        self.begun.append(f"{profile} {run}")
        while not self.end.wait(0.05) and not self.is_over:
            pass
        self.end.clear()
        return self.answer

    def call_off(self) -> None:
        super().call_off()
        self.answer = StressResult(Verdict.inconclusive, "the suite: called off")
        self.end.set()


class Agent:
    """The node's agent: asks the mailboxes that answer now, and is as deaf, mute or old as the test says."""

    def __init__(self, folder: Path) -> None:
        self.machine = Machine("n1")
        self.log = OperationLog(folder / "marks.sqlite")
        self.operations = NodeOperations("n1", self.machine, self.log)
        self.mailboxes: AgentMailboxes | None = None
        self.is_deaf = self.is_mute = False
        self.replies = 1

    async def run(self) -> None:
        acts = set[asyncio.Task[None]]()
        while True:
            found = await self.mailboxes.collect("n1", TURN_S) if self.mailboxes and not self.is_deaf else ()
            acts |= {asyncio.create_task(self._act(order)) for order in found}
            await asyncio.sleep(TURN_S)

    async def _act(self, order: AgentOrder) -> None:
        ask: Any = getattr(self.operations, order.mode)
        outcome: Outcome = await asyncio.to_thread(ask, order.operation, order.epoch)
        for _ in range(0 if self.is_mute else self.replies):
            if self.mailboxes is not None:
                self.mailboxes.answer(outcome)


class World:
    """A journal and an agent that outlive every controller."""

    def __init__(self, folder: Path) -> None:
        modes = {"*": "act", IDLE_CHECK: "act"}
        pools = {"bare": pool_document(target=1, cluster="", modes=modes)}
        config = configuration(pools, lambda policy: policy["slots"].update(SLOTS))
        self.journal = MemoryJournal()
        events = [e.ConfigActivated(config, {}, "ann"), *seen(a_node("n1", assignment=BARE))]
        records = tuple(e.Record(i + 1, datetime.now(UTC), 1, "seed", event) for i, event in enumerate(events))
        self.journal.append(Batch(records), self.journal.acquire("seed"))
        self.agent = Agent(folder)
        self.cell: Cell | None = None

    @property
    def node(self) -> Node:
        assert self.cell is not None
        return self.cell.view.nodes["n1"]

    @property
    def last(self) -> CheckResult | None:
        return next((check for check in self.node.checks if check.profile == "idle"), None)

    def started(self) -> int:
        return sum(
            isinstance(r.event, e.OperationStarted) and r.event.operation.kind == IDLE_CHECK
            for r in self.journal.records()
        )

    @asynccontextmanager
    async def controller(self) -> AsyncIterator[Cell]:
        """A controller, as `serve` wires one for a cell without clusters."""
        mailboxes = AgentMailboxes(lambda: cell.epoch)
        placing = SchedulerDriver({}, StandaloneScheduler(lambda: mailboxes), lambda _node, _cluster: None)
        cell = self.cell = Cell(self.journal, performers(Wiring((placing, mailboxes))))
        self.agent.mailboxes = mailboxes
        await cell.start()

        async def look() -> None:
            work = StandaloneWork()
            while True:
                cell.heartbeat("n1", self.agent.machine.boot_id(), AgentAbilities(("gate", "idle")))
                for news in work.news(cell.view, cell.live):
                    cell.tell(news)
                await asyncio.sleep(TURN_S)

        try:
            async with running(look()):
                yield cell
        finally:
            self.agent.mailboxes = None
            await cell.stop()
            mailboxes.close()


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(agent_mailbox, "REPEAT_S", 0.3)
    found = World(tmp_path)
    agent = asyncio.create_task(found.agent.run())
    yield found
    found.agent.machine.is_over = True
    agent.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await agent


async def begun(world: World, times: int = 1) -> None:
    await until(lambda: len(world.agent.machine.begun) >= times, f"check {times} to begin")


async def test_the_agent_checks_a_node_that_nobody_uses_and_again_in_its_next_slot(world: World) -> None:
    """The agent answers twice, as for a lost reply. Mutants: one answer is two checks; it ends the next check."""
    world.agent.replies = 2
    async with world.controller():
        for turn in (1, 2):
            await begun(world, turn)
            assert world.agent.machine.begun[-1].startswith("idle n1-idle-")
            world.agent.machine.end.set()
            await until(lambda: world.node.operation is None, "its end")
            assert world.last is not None
            assert (world.last.verdict, world.last.detail) == (Verdict.passed, "twenty minutes under load")
        assert world.started() == 2


async def test_a_node_that_is_taken_is_neither_failed_nor_tried_again_in_its_slot(world: World) -> None:
    world.agent.machine.answer = StressResult(Verdict.inconclusive, "the suite: the node was taken: bash (pid 7) runs")
    async with world.controller():
        await begun(world)
        world.agent.machine.end.set()
        await until(lambda: world.last, "a verdict")
        assert world.last is not None
        assert (world.last.verdict, "was taken: bash" in world.last.detail) == (Verdict.inconclusive, True)
        assert (world.node.conditions, len(world.agent.machine.begun)) == ((), 1)


async def test_a_check_that_fails_raises_a_condition(world: World) -> None:
    """Mutant: an agent's failed is lost on its way through the scheduler's port."""
    world.agent.machine.answer = StressResult(Verdict.failed, "gpu3 computes otherwise")
    async with world.controller() as cell:
        await begun(world)
        world.agent.machine.end.set()
        await until(lambda: [c.type for c in cell.view.nodes["n1"].conditions] == ["check.failed"], "the condition")


async def test_whoever_wants_the_node_has_its_agent_end_the_check(world: World) -> None:
    """Mutant: the check is over in the journal and goes on on the node."""
    async with world.controller() as cell:
        await begun(world)
        said = await cell.ask(a_hold_of("n1"))
        assert said.granted, said.text
        await until(lambda: "call_off" in world.agent.machine.asked, "the agent to be told")
        await until(lambda: world.node.operation is None, "its end")
        assert world.last is not None
        assert (world.last.verdict, "called off: " in world.last.detail) == (Verdict.inconclusive, True)


async def test_an_agent_that_is_deaf_is_given_up_and_convicts_nobody(world: World, tmp_path: Path) -> None:
    """Never, and late: what it says after its time changes nothing. Mutant: no answer is a failure."""
    world.agent.is_deaf = True
    async with world.controller() as cell:
        await until(lambda: world.node.operation, "an order")
        said = await cell.ask(a_hold_of("n1"))
        assert said.granted, said.text
        await until(lambda: world.node.operation is None, "its end")
        assert world.last is not None
        assert world.last.verdict is Verdict.inconclusive
        world.agent.is_deaf = False
        await asyncio.sleep(1.0)
        assert (world.agent.machine.begun, world.node.conditions) == ([], ())


async def test_another_controller_takes_the_answer_of_a_check_that_went_on(world: World) -> None:
    """The first is stopped in the middle. Mutants: it is begun again; it is called off; its answer is lost."""
    async with world.controller():
        await begun(world)
    async with world.controller():
        await asyncio.sleep(1.0)
        assert world.node.operation is not None
        world.agent.machine.end.set()
        await until(lambda: world.last, "a verdict")
        assert world.last is not None
        assert (world.last.verdict, world.started()) == (Verdict.passed, 1)
        assert len(set(world.agent.machine.begun)) == 1


async def test_an_answer_that_was_never_sent_is_observed_by_the_next_controller(world: World) -> None:
    """The agent ended while nobody listened, and keeps its outcome on disk."""
    async with world.controller():
        await begun(world)
        world.agent.is_mute = True
        world.agent.machine.end.set()
        await until(lambda: world.agent.log.latest(str(world.node.operation and world.node.operation.id)), "its mark")
    world.agent.is_mute = False
    async with world.controller():
        await until(lambda: world.last, "a verdict")
        assert world.last is not None
        assert (world.last.verdict, len(world.agent.machine.begun)) == (Verdict.passed, 1)


async def test_a_busy_agent_is_asked_again_until_it_answers(world: World) -> None:
    """Another program runs on it: its busy is no verdict."""
    now = datetime.now(UTC)
    other = Operation("other", RunChecks("gate"), "n1", "p1", 0, now, now)
    running_on = asyncio.create_task(asyncio.to_thread(world.agent.operations.perform, other, 1))
    await begun(world)
    async with world.controller():
        await until(lambda: world.node.operation, "an order")
        await asyncio.sleep(0.5)  # it is looked at again after a second
        assert (world.last, world.agent.machine.begun) == (None, ["gate other"])
        world.agent.machine.end.set()
        await running_on
        await until(lambda: world.last, "an end")
        assert world.last is not None
        assert world.last.verdict is Verdict.inconclusive
        assert world.node.conditions == ()


def a_hold_of(node: str) -> Any:
    return intent_of("i-hold", "hold", node, "ann", "because", datetime.now(UTC), {})
