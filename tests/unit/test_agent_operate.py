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

from hostler.agent.body import EmulatedBody
from hostler.agent.client import Order, RejectedError, UnavailableError
from hostler.agent.marks import Marks
from hostler.agent.operate import Operator
from hostler.agent.sighting import Sighting
from hostler.agent.verbs import Hands
from hostler.core.model import Operation, Outcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def operation(number: int, kind: str = "sanitise") -> Operation:
    return Operation(f"op{number}", kind, "n1", "plan1", 0, NOW, NOW)


class Far:
    """A controller that is away as often as it is told to be."""

    def __init__(self) -> None:
        self.taken: list[Outcome] = []
        self.away: list[Exception] = []

    async def outcomes(self, outcomes: list[Outcome]) -> None:
        if self.away:
            raise self.away.pop(0)
        self.taken.extend(outcomes)


class World:
    """One node's operator, which can be restarted; its marks are on disk."""

    def __init__(self, directory: Path) -> None:
        self.far = Far()
        self.body = EmulatedBody("n1")
        self._directory = directory
        self.begin()

    def begin(self) -> None:
        self.marks = Marks(self._directory / "marks.sqlite")
        self.hands = Hands("n1", self.body, self.marks)
        nothing: Any = None
        far: Any = self.far
        self.operator = Operator(self.hands, self.marks, nothing, nothing, far)

    def restart(self) -> None:
        self.marks.close()
        self.begin()

    async def act(self, asked: Operation, mode: Literal["perform", "observe"] = "perform") -> None:
        await self.operator._handle(Order(asked, 1, mode), 0.0)  # noqa: SLF001 - an order, as `take_orders` hands it on

    def told(self) -> list[tuple[str, str]]:
        return [(outcome.operation, outcome.result) for outcome in self.far.taken]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.marks.close()


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
    """It has no mark. Mutant: it is forgotten before it is sent."""
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
    told: list[Sighting] = []
    spool: Any = SimpleNamespace(now_s=lambda: 1.0, append=told.extend)
    uploader: Any = SimpleNamespace(wake=lambda: None)
    far: Any = world.far
    operator = Operator(world.hands, world.marks, spool, uploader, far)
    refusals = [sqlite3.OperationalError("full")] * 3

    def settle() -> list[Outcome]:
        if refusals:
            raise refusals.pop()
        return []

    monkeypatch.setattr(world.hands, "settle", settle)
    monkeypatch.setattr("hostler.agent.operate.backoff_s", lambda *_: 0.0)
    await asyncio.wait_for(operator._settled(lambda: 0.0), 10.0)  # noqa: SLF001 - what `take_orders` begins with
    assert [one.facts["collector"] for one in told] == ["marks", "marks"]
    assert "no order is taken" in told[0].text
    assert not refusals
