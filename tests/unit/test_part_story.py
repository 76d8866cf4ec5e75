"""Parts as they are told by serial number: stays in nodes, whether recorded or shown, and returns that name them."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from hostler.core.report.part_story import cases, is_named, places
from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.model import Part
from hostler.core.state.rma_cases import CaseKind, CaseResult, CaseStep, RmaCase, TakenStep

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def hour(number: int) -> datetime:
    return NOW + timedelta(hours=number)


def record(seq: int, event: e.Event) -> Record:
    return Record(seq, hour(seq), 1, "clock", event)


def a_case(serial: str = "G1", **more: object) -> RmaCase:
    steps = (TakenStep(CaseStep.requested, NOW, "ada"),)
    case = RmaCase("rma-1", "n1", CaseKind.on_site_swap, serial, "gpu", NOW, steps, fault="falls off the bus")
    return replace(case, **more)


def test_stays_follow_each_other_the_latest_first() -> None:
    """Mutants: the node it was in first is left out, for no record says that it came; a stay that ended goes on."""
    moves = [record(2, e.PartMoved("G1", "n1", "n2", "gpu3")), record(5, e.PartMoved("G1", "n2", "", ""))]
    part = Part("G1", "gpu", node="", since=hour(5))
    told = [(one.node, one.slot, one.since, one.until, one.here) for one in places("G1", part, reversed(moves))]
    assert told == [
        ("", "", hour(5), None, True),
        ("n2", "gpu3", hour(2), hour(5), False),
        ("n1", "", None, hour(2), False),
    ]


def test_a_part_that_came_from_a_shelf_is_where_its_node_shows_it() -> None:
    """No move is recorded then. Mutants: it lies on the shelf still; the stay in between is lost."""
    away = record(2, e.PartMoved("G1", "n1", "", ""))
    back = Part("G1", "gpu", slot="gpu0", node="n2", since=hour(4))
    assert [(one.node, one.since, one.here) for one in places("G1", back, [away])] == [
        ("n2", hour(4), True), ("", hour(2), False), ("n1", None, False),
    ]  # fmt: skip
    again = record(6, e.PartMoved("G1", "n2", "n3", "gpu1"))
    there = replace(back, node="n3", slot="gpu1", since=hour(6))
    assert [(one.node, one.since, one.until) for one in places("G1", there, [away, again])] == [
        ("n3", hour(6), None), ("n2", None, hour(6)), ("", hour(2), None), ("n1", None, hour(2)),
    ]  # fmt: skip


def test_a_part_that_never_moved_is_where_it_is_and_one_that_was_forgotten_is_nowhere_now() -> None:
    """Mutants: another part's move between the same nodes counts; what is forgotten is "here"."""
    part = Part("G1", "gpu", slot="gpu0", node="n1", since=NOW)
    others = [record(3, e.PartMoved("G9", "n1", "n2", "gpu0"))]
    assert [(one.node, one.slot, one.since, one.here) for one in places("G1", part, others)] == [
        ("n1", "gpu0", NOW, True)
    ]
    assert places("G1", None, others) == ()
    assert [one.here for one in places("G9", None, others)] == [False, False]


def test_returns_are_told_as_they_stand_or_as_they_ended_with_the_parts_role() -> None:
    """Mutants: an open case is told as an old record has it; who was fitted is told to be returned."""
    closed = a_case("G0", id="rma-0", fitted="G1", opened=NOW - timedelta(days=9))
    records = [
        record(1, e.RmaCaseClosed(closed, CaseResult.confirmed, "ada", "report")),
        record(2, e.RmaCaseOpened(a_case(), "ada", "third time")),
    ]
    standing = a_case(vendor_case="RMA-88")
    first, second = cases("G1", [standing], records)
    assert (first.id, first.part_is, first.vendor_case, first.result) == ("rma-1", "returned", "RMA-88", None)
    assert (second.id, second.part_is, second.result, second.closed) == ("rma-0", "fitted", "confirmed", hour(1))
    (announced,) = cases("G7", [a_case(replacement="G7")], [])
    assert announced.part_is == "announced"
    assert cases("G8", [standing], records) == ()


def test_a_name_of_something_else_is_no_part() -> None:
    """Mutant: a node's history is shown as that of a part which is called like it."""
    move = e.PartMoved("G1", "n1", "n2", "gpu3")
    assert is_named(move, "G1")
    assert not is_named(move, "n1")
    opened = e.RmaCaseOpened(a_case(fitted="G2"), "ada", "why")
    assert [is_named(opened, name) for name in ("G1", "G2", "rma-1", "n1")] == [True, True, False, False]
