"""The flow report, exactly: counts backwards from now, moves, stays against limits."""

from datetime import UTC, datetime, timedelta

import pytest

from hostler.core.report.flow import POINTS, NodeMove, PhaseStanding, flow, moves_of
from hostler.core.state import events as e
from hostler.core.state.model import Phase
from tests.kit import a_node

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


MOVES = (
    NodeMove("a", ago(20), "", "registered"),
    NodeMove("a", ago(18), "registered", "initializing"),
    NodeMove("b", ago(12), "production", "triage"),
    NodeMove("a", ago(17), "initializing", "triage"),
    NodeMove("b", ago(2), "triage", "rma"),
)
STANDING = {
    "a": PhaseStanding(Phase.triage, ago(17)),
    "b": PhaseStanding(Phase.rma, ago(2)),
    "c": PhaseStanding(Phase.production, ago(9000)),
}


def ordered() -> tuple[NodeMove, ...]:
    return tuple(sorted(MOVES, key=lambda move: move.at))


def test_counts_go_backwards_from_what_stands() -> None:
    """Mutants: a node that became known counts before; a move counts at the wrong side of its moment."""
    found = flow(STANDING, ordered(), NOW - DAY, NOW, partial=False)
    assert len(found.points) == POINTS + 1
    assert found.points[0].counts == {"production": 2}
    assert found.points[0].at == NOW - DAY
    assert found.points[-1].counts == {"production": 1, "triage": 1, "rma": 1}
    at = {point.at: point.counts for point in found.points}
    assert at[ago(20)] == {"registered": 1, "production": 2}, "a move counts from its moment on"
    assert at[ago(18.5)] == {"registered": 1, "production": 2}
    assert at[ago(18)] == {"initializing": 1, "production": 2}
    assert at[ago(12.25)] == {"triage": 1, "production": 2}
    assert at[ago(12)] == {"triage": 2, "production": 1}
    assert all(sum(point.counts.values()) == 3 for point in found.points if point.at >= ago(20))


def test_moves_are_counted_by_their_edge() -> None:
    found = flow(STANDING, ordered(), NOW - DAY, NOW, partial=False)
    assert [(edge.before, edge.after, edge.moves) for edge in found.edges] == [
        ("", "registered", 1), ("initializing", "triage", 1), ("production", "triage", 1),
        ("registered", "initializing", 1), ("triage", "rma", 1),
    ]  # fmt: skip


def test_stays_are_held_against_the_limit_and_what_began_before_is_unknown() -> None:
    """Mutants: the first stay of a node counts from `since`; a limit that nobody set is 0."""
    times = {one.phase: one for one in flow(STANDING, ordered(), NOW - DAY, NOW, partial=False).times}
    initializing = times["initializing"]
    assert (initializing.median_s, initializing.limit_s, initializing.over, initializing.left) == (3600, 1800, 1, 1)
    production = times["production"]
    assert (production.unknown, production.median_s, production.limit_s, production.nodes) == (1, None, None, 1)
    assert (production.now_over, production.oldest_s) == (0, 9000 * 3600)
    assert (times["triage"].median_s, times["triage"].entered, times["triage"].left) == (36000, 2, 1)
    assert times["triage"].usual
    assert (times["retired"].nodes, times["retired"].oldest_s) == (0, None)


def test_what_stands_beyond_its_limit_is_counted_now() -> None:
    found = flow(
        {"a": PhaseStanding(Phase.zap, ago(7)), "b": PhaseStanding(Phase.zap, ago(5))}, (), NOW - DAY, NOW, partial=True
    )
    zap = next(one for one in found.times if one.phase == "zap")
    assert (zap.now_over, zap.nodes, zap.oldest_s, found.partial) == (1, 2, 7 * 3600, True)


def test_moves_of_others_and_of_another_time_count_nowhere() -> None:
    """Mutant: a tenant or pool is shown the moves of nodes that are not its own."""
    moves = (NodeMove("a", ago(30), "", "registered"), NodeMove("x", ago(1), "test", "production"))
    found = flow({"a": STANDING["a"]}, moves, NOW - DAY, NOW, partial=False)
    assert found.edges == ()
    assert {tuple(point.counts.items()) for point in found.points} == {(("triage", 1),)}


@pytest.mark.parametrize(("stays", "median", "p90"), [([1], 1, 1), ([1, 2], 1, 2), (list(range(1, 11)), 5, 9)])
def test_ranks_are_nearest_and_never_invented(stays: list[int], median: int, p90: int) -> None:
    moves = [
        move
        for number, stay in enumerate(stays)
        for move in (NodeMove(f"n{number}", ago(20), "onboard", "seatrial"),
                     NodeMove(f"n{number}", ago(20) + timedelta(seconds=stay), "seatrial", "zap"))
    ]  # fmt: skip
    standing = {f"n{number}": PhaseStanding(Phase.zap, ago(1)) for number in range(len(stays))}
    times = flow(standing, sorted(moves, key=lambda m: m.at), NOW - DAY, NOW, partial=False).times
    seatrial = next(one for one in times if one.phase == "seatrial")
    assert (seatrial.median_s, seatrial.p90_s, seatrial.longest_s) == (median, p90, stays[-1])


def test_no_node_is_no_error() -> None:
    found = flow({}, (), NOW - DAY, NOW, partial=False)
    assert all(point.counts == {} for point in found.points)


def test_records_that_are_no_move_are_none() -> None:
    records = [
        e.Record(3, NOW, 1, "", e.PhaseChanged("n1", Phase.test, Phase.production, "passed")),
        e.Record(2, ago(1), 1, "", e.BrakeLatched("storm")),
        e.Record(1, ago(2), 1, "", e.NodeRegistered(a_node("n1"))),
    ]
    assert [(m.node, m.before, m.after) for m in moves_of(records)] == [
        ("n1", "", a_node("n1").phase.value), ("n1", "test", "production"),
    ]  # fmt: skip
