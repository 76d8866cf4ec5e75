"""When readings are judged: in a process of its own, whose failure is logged and tried again."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hostler.app.trend_schedule import TrendSchedule
from hostler.controller.inputs import TrendsSeen
from hostler.journal.readings import Reading
from hostler.journal.sqlite import SqliteJournal
from hostler.runtime.runner import Cell
from hostler.server.trend_archive import TrendArchive
from hostler.sim.degrading.readings import Degradation, ReadingWorld
from hostler.sim.degrading.written_readings import write

WORLD = ReadingWorld(nodes=40, days=30, runs_a_day=4, faulty=1, onset=(8, 12))


class Told:
    """The part of a cell that a schedule asks."""

    def __init__(self, share: float = 0.003) -> None:
        self.seen: list[Any] = []
        self.heard = asyncio.Event()
        trends = SimpleNamespace(healthy_share_a_month=share)
        self.view = SimpleNamespace(policy=SimpleNamespace(trends=trends))

    def tell(self, seen: object) -> None:
        self.seen.append(seen)
        self.heard.set()


def a_schedule(folder: Path, cell: Told, **times: float) -> TrendSchedule:
    SqliteJournal(folder / "journal.db").close()
    archive = TrendArchive(folder / "readings")
    return TrendSchedule(archive, cast("Cell", cell), str(folder / "journal.db"), **times)


async def test_readings_are_judged_and_the_controller_is_told(tmp_path: Path) -> None:
    """Mutant: the report is kept and nobody is told, or told and not kept for the API."""
    fleet = write(tmp_path / "readings", WORLD, Degradation.step_4, 3, datetime.now(UTC))
    cell = Told()
    schedule = a_schedule(tmp_path, cell)
    await schedule.judge()
    (told,) = cell.seen
    assert isinstance(told, TrendsSeen)
    assert {one.node for one in told.report.drifts} == {f"n{row:04d}" for row in fleet.faulty.nonzero()[0]}
    assert schedule.archive.report == told.report
    now = datetime.now(UTC)
    scores = {name: schedule.archive.drift_score(name, now) for name in (f"n{row:04d}" for row in range(WORLD.nodes))}
    assert {name for name, one in scores.items() if one is not None and one.hundredths == 100} == {
        one.node for one in told.report.drifts
    }
    assert None not in scores.values()
    assert schedule.archive.drift_score("n0001", now + timedelta(hours=25)) is None, "nobody has judged for a day"
    assert TrendArchive(tmp_path / "readings").drift_score("n0001", now) == scores["n0001"], "it outlives the process"
    assert [score.metric for score in told.report.scores] == [one.metric for one in told.report.metrics]


async def test_a_folder_that_cannot_be_judged_tells_nothing(tmp_path: Path) -> None:
    """Mutant: what the process printed is read whatever it ended with."""
    cell = Told()
    schedule = a_schedule(tmp_path, cell)
    await schedule.judge()
    assert cell.seen == []
    assert schedule.archive.report is None


async def test_a_budget_that_is_none_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path / "readings", WORLD, Degradation.none, 3, datetime.now(UTC))
    cell = Told(share=-1.0)
    await a_schedule(tmp_path, cell).judge()
    assert cell.seen == []


async def test_it_writes_and_judges_again_and_again_and_writes_at_its_end(tmp_path: Path) -> None:
    """Mutant: what waits when it is cancelled is lost."""
    write(tmp_path / "readings", WORLD, Degradation.none, 3, datetime.now(UTC))
    cell = Told()
    schedule = a_schedule(tmp_path, cell, flush_s=0.01, period_s=0.01)
    running = asyncio.create_task(schedule.run())
    for _ in range(2):
        cell.heard.clear()
        await asyncio.wait_for(cell.heard.wait(), 120)
    schedule.archive.store.add([Reading(datetime.now(UTC), "last", "op", "m", "", 1.0)])
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    text = "".join(path.read_text() for path in (tmp_path / "readings").glob("*.jsonl"))
    assert '"node":"last"' in text


async def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    cell = Told()
    schedule = a_schedule(tmp_path, cell, flush_s=0.01, period_s=3600.0)
    (tmp_path / "readings").write_text("in the way")
    schedule.archive.store.add([Reading(datetime.now(UTC), "n1", "op", "m", "", 1.0)])
    running = asyncio.create_task(schedule.run())
    done, _ = await asyncio.wait((running,), timeout=0.5)
    assert not done
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
