"""Events of tests that people run by hand on a network."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.events.row import EventRow, EventRows
from hostler.core.state.fleet import Fleet
from hostler.core.state.manual_tests import RUNS_KEPT, ChecklistTick, ManualRun, ManualTest


class ManualTestScheduled(Struct, frozen=True, tag="manual_test_scheduled"):
    """A network is tested by hand from now on, or otherwise than before; earlier runs are kept."""

    test: ManualTest
    person: str


class ManualTestTicked(Struct, frozen=True, tag="manual_test_ticked"):
    """A person did a step of the checklist, or says why not; a later tick of the same step takes its place."""

    fabric: str
    tick: ChecklistTick


class ManualTestFileAdded(Struct, frozen=True, tag="manual_test_file_added"):
    """A photo or file belongs to the run that is under way; its bytes are kept under its digest."""

    fabric: str
    file: AttachedFile


class ManualTestEntered(Struct, frozen=True, tag="manual_test_entered"):
    """A person entered the results of a run."""

    fabric: str
    run: ManualRun


class ManualTestSigned(Struct, frozen=True, tag="manual_test_signed"):
    """A person took the last run as done; ticks and files since the run before are its own."""

    fabric: str
    person: str
    reason: str


class ManualTestOverdue(Struct, frozen=True, tag="manual_test_overdue"):
    """No run was signed off by the moment that it was due."""

    fabric: str
    owner: str
    due: datetime


ManualTestEvent = (
    ManualTestScheduled
    | ManualTestTicked
    | ManualTestFileAdded
    | ManualTestEntered
    | ManualTestSigned
    | ManualTestOverdue
)


def _schedule(fleet: Fleet, event: ManualTestScheduled, _at: datetime) -> None:
    """Take the schedule over. Ticks are of steps: of another checklist they are over."""
    test, known = event.test, fleet.manual_tests.get(event.test.fabric)
    if known is not None:
        ticks = known.ticks if known.checklist == test.checklist else ()
        test = replace(test, runs=known.runs, files=known.files, ticks=ticks)
    fleet.manual_tests.put(test.fabric, test)


def _tick(fleet: Fleet, event: ManualTestTicked, _at: datetime) -> None:
    if (known := fleet.manual_tests.get(event.fabric)) is not None:
        others = (tick for tick in known.ticks if tick.step != event.tick.step)
        ticks = tuple(sorted((*others, event.tick), key=lambda tick: tick.step))
        fleet.manual_tests.put(event.fabric, replace(known, ticks=ticks))


def _add_file(fleet: Fleet, event: ManualTestFileAdded, _at: datetime) -> None:
    if (known := fleet.manual_tests.get(event.fabric)) is not None:
        fleet.manual_tests.put(event.fabric, replace(known, files=(*known.files, event.file)))


def _enter(fleet: Fleet, event: ManualTestEntered, _at: datetime) -> None:
    if (known := fleet.manual_tests.get(event.fabric)) is not None:
        fleet.manual_tests.put(event.fabric, replace(known, runs=(*known.runs, event.run)[-RUNS_KEPT:]))


def _sign(fleet: Fleet, event: ManualTestSigned, at: datetime) -> None:
    known = fleet.manual_tests.get(event.fabric)
    if known is not None and known.runs:
        signed = replace(known.runs[-1], signed=at, signed_by=event.person, ticks=known.ticks, files=known.files)
        fleet.manual_tests.put(event.fabric, replace(known, runs=(*known.runs[:-1], signed), ticks=(), files=()))


def _tell(fleet: Fleet, event: ManualTestOverdue, _at: datetime) -> None:
    if (known := fleet.manual_tests.get(event.fabric)) is not None:
        fleet.manual_tests.put(event.fabric, replace(known, told=event.due))


ROWS: EventRows = (
    EventRow(ManualTestScheduled, lambda e: (f"fabric:{e.test.fabric}",), _schedule),
    EventRow(ManualTestTicked, lambda e: (f"fabric:{e.fabric}",), _tick),
    EventRow(ManualTestFileAdded, lambda e: (f"fabric:{e.fabric}",), _add_file),
    EventRow(ManualTestEntered, lambda e: (f"fabric:{e.fabric}",), _enter),
    EventRow(ManualTestSigned, lambda e: (f"fabric:{e.fabric}",), _sign),
    EventRow(ManualTestOverdue, lambda e: (f"fabric:{e.fabric}",), _tell),
)
