"""A running controller whose wall clock leaps: nobody falls silent by it, and its time never goes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Observation
from hostler.journal.opening import open_journal
from hostler.ports import Batch
from hostler.runtime.cell_controllers import ControllerIdentity
from hostler.runtime.lease_validity import LeaseTerms
from hostler.runtime.runner import Cell
from tests.contract.kubernetes_world import running as beside
from tests.end_to_end.kill_world import until
from tests.kit import BAD_LINES, a_node, configuration, intent_of

NODES = ["n0", "n1", "n2"]
SEAT = ControllerIdentity(terms=LeaseTerms(lease_s=600.0))
"""However slow the machine is, the term of office is one: each more would count a gap of its own."""
BEAT_S = 5.0


class Wall:
    """A wall clock that may be pushed."""

    def __init__(self) -> None:
        self.leap = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.leap


@asynccontextmanager
async def running(place: Path, wall: Wall) -> AsyncIterator[Cell]:
    journal = open_journal(str(place))
    if not journal.latest_seq():
        epoch, now = journal.acquire("seed"), wall()
        seed: list[e.Event] = [e.ConfigActivated(configuration(), {}, "ann")]
        seed += [e.NodeRegistered(a_node(node)) for node in NODES]
        records = tuple(e.Record(seq, now, epoch, "seed", event) for seq, event in enumerate(seed, 1))
        journal.append(Batch(records=records), epoch)
        journal.resign(epoch)
    cell = Cell(journal, {}, seat=SEAT, clock=wall)
    try:
        await cell.start()
        async with beside(beating(cell)):
            yield cell
    finally:
        await cell.stop()
        journal.close()


async def beating(cell: Cell) -> None:
    """The agents are heard all the time: on a slow machine a test may take longer than they may be silent."""
    while True:
        for node in NODES:
            cell.heartbeat(node, f"{node}-b1")
        await asyncio.sleep(BEAT_S)


def gaps(cell: Cell) -> list[timedelta]:
    """For how long, each time, nobody attended."""
    events = [record.event for record in cell.journal.records()]
    return [timedelta(seconds=event.unattended_s) for event in events if isinstance(event, e.ClockGap)]


def doubt(cell: Cell) -> str:
    found = cell.view.cell.doubt
    return found.text if found is not None else ""


@pytest.mark.parametrize("days", [365, -365])
async def test_a_leap_of_the_wall_clock_is_doubted_and_loses_nobody(tmp_path: Path, days: int) -> None:
    """Mutants: heartbeats are measured by the wall clock; what arrives keeps the wall's stamp."""
    wall = Wall()
    async with running(tmp_path / "journal", wall) as cell:
        before = cell.now()
        wall.leap = timedelta(days=days)
        await until(lambda: doubt(cell), "the leap is seen")
        assert "jumped" in doubt(cell)
        assert timedelta() <= cell.now() - before < timedelta(minutes=2)
        line = BAD_LINES["off_bus"].format(gpu=0)
        seen = Observation("n0", "kernel_log", "agent", "s", 1, "n0-b1", text=line, facility=0, received=wall())
        await cell.observe("n0", (seen,))
        raised = [r.event.condition for r in cell.journal.records() if isinstance(r.event, e.ConditionRaised)]
        assert [c.type for c in raised] == ["gpu.fallen_off_bus"], "no agent is lost by it"
        assert abs(raised[0].since - cell.now()) < timedelta(minutes=2)
        moments = [record.at for record in cell.journal.records()]
        assert moments == sorted(moments)
        intent = intent_of("i", "confirm-clock", "fleet", "ann", "it was set", wall())
        assert (await cell.ask(intent)).granted
        if days > 0:
            await until(lambda: abs(cell.now() - wall()) < timedelta(seconds=5), "the wall clock is followed")
            await until(lambda: max(gaps(cell)) > timedelta(days=days - 1), "and the year counts against nothing")
        assert (await cell.ask(intent_of("j", "hold", "n1", "ann", "after it all", wall()))).granted
        assert not any("agent.lost" in c.type for n in NODES for c in cell.view.nodes[n].conditions)


async def test_a_start_with_a_clock_that_is_years_behind_goes_on_from_the_journal(tmp_path: Path) -> None:
    wall = Wall()
    async with running(tmp_path / "journal", wall) as cell:
        last = cell.now()
    wall.leap = timedelta(days=-3650)
    async with running(tmp_path / "journal", wall) as cell:
        assert cell.now() >= last - timedelta(seconds=1)
        assert "the last record is of" in doubt(cell)
        wall.leap = timedelta()
        await until(lambda: not doubt(cell), "the clocks agree again")
