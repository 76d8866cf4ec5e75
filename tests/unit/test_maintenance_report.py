"""Deeds and repairs of a node: each kind within its own bound, and since when all are told."""

from datetime import UTC, datetime, timedelta

import pytest

from hostler.core.state import events as e
from hostler.server.maintenance_report import DEEDS_MAX, deeds_of

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def at(minutes: int) -> datetime:
    """So many minutes ago."""
    return NOW - timedelta(minutes=minutes)


def moved(count: int) -> list[e.Record]:
    """A part that goes and comes once a minute, the latest first."""
    return [
        e.Record(10_000 - n, at(n), 1, "", e.PartMoved("S1", *(("a", "") if n % 2 else ("", "a")), "gpu0"))
        for n in range(count)
    ]


CYCLE = e.Record(5, at(900), 1, "", e.OperationFinished("a", "o1", "power_off", "done"))
GATE = e.Record(6, at(800), 1, "", e.OperationFinished("a", "o2", "run_checks", "done"))


def test_parts_that_come_and_go_hide_no_power_off() -> None:
    """Mutants: one bound for both kinds; the newest is told last; a check is a deed."""
    told = deeds_of("a", [GATE, CYCLE], moved(DEEDS_MAX + 1), None)
    assert (told.rows[-1].action, len(told.rows)) == ("power_off", DEEDS_MAX + 1)
    assert [row.at for row in told.rows] == sorted((row.at for row in told.rows), reverse=True)
    assert told.since == at(DEEDS_MAX - 1), "before that, moves are left out"


@pytest.mark.parametrize(
    ("count", "known", "since"),
    [
        (3, None, None),
        (DEEDS_MAX, None, None),
        (DEEDS_MAX, at(950), at(950)),
        (DEEDS_MAX + 1, at(950), at(DEEDS_MAX - 1)),
        (DEEDS_MAX + 1, at(7), at(7)),
    ],
)
def test_it_is_said_since_when_all_are_told(count: int, known: datetime | None, since: datetime | None) -> None:
    """Mutants: a list that is whole says that it is cut; the earlier of two bounds is told."""
    assert deeds_of("a", [GATE, CYCLE], moved(count), known).since == since


def test_another_nodes_move_is_no_deed() -> None:
    """Mutant: whatever the journal has under the node's name is one."""
    other = e.Record(9, at(1), 1, "", e.PartMoved("S1", "b", "c", "gpu0"))
    assert deeds_of("a", [], [other], None).rows == ()
