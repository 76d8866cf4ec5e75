"""Events of tests that people run by hand on a network."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows
from hostler.core.state.fleet import Fleet
from hostler.core.state.manual_tests import RUNS_KEPT, ManualRun, ManualTest


class ManualTestScheduled(Struct, frozen=True, tag="manual_test_scheduled"):
    """A network is tested by hand from now on, or otherwise than before; earlier runs are kept."""

    test: ManualTest
    person: str


class ManualTestEntered(Struct, frozen=True, tag="manual_test_entered"):
    """A person entered the results of a run."""

    fabric: str
    run: ManualRun


class ManualTestSigned(Struct, frozen=True, tag="manual_test_signed"):
    """A person took the last run as done."""

    fabric: str
    person: str
    reason: str


def _schedule(fleet: Fleet, event: ManualTestScheduled, _at: datetime) -> None:
    known = fleet.manual_tests.get(event.test.fabric)
    fleet.manual_tests.put(event.test.fabric, replace(event.test, runs=known.runs if known else ()))


def _enter(fleet: Fleet, event: ManualTestEntered, _at: datetime) -> None:
    if (known := fleet.manual_tests.get(event.fabric)) is not None:
        fleet.manual_tests.put(event.fabric, replace(known, runs=(*known.runs, event.run)[-RUNS_KEPT:]))


def _sign(fleet: Fleet, event: ManualTestSigned, at: datetime) -> None:
    known = fleet.manual_tests.get(event.fabric)
    if known is not None and known.runs:
        signed = replace(known.runs[-1], signed=at, signed_by=event.person)
        fleet.manual_tests.put(event.fabric, replace(known, runs=(*known.runs[:-1], signed)))


ROWS: EventRows = (
    EventRow(ManualTestScheduled, lambda e: (f"fabric:{e.test.fabric}",), _schedule),
    EventRow(ManualTestEntered, lambda e: (f"fabric:{e.fabric}",), _enter),
    EventRow(ManualTestSigned, lambda e: (f"fabric:{e.fabric}",), _sign),
)
