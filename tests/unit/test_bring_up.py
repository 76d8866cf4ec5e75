"""The bring-up report, exactly: cohorts by SKU and way, who counts as arrived, and what a person does next."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.person_waits import ways_on
from hostler.core.policy.holds_and_pauses import held
from hostler.core.report.bring_up import Journeys, Stay, arrival, cohort_of, journeys, next_act, row_of, stage_rows
from hostler.core.report.flow import NodeMove
from hostler.core.state.model import Blocker, Hold, HoldKind, Node, Phase, Waiting
from hostler.core.state.scopes import Scope
from hostler.core.state.verbs.holds import Resume
from hostler.core.state.verbs.nodes import Adopt, Vouch
from hostler.core.state.ways_out import by_act, by_time, observed
from tests.kit import a_node

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
H = 3600.0


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def way(node: str, *steps: tuple[float, str]) -> list[NodeMove]:
    """Moves through the phases, each so many hours ago."""
    before = ""
    found = []
    for hours, after in steps:
        found.append(NodeMove(node, ago(hours), before, after))
        before = after
    return found


def seen(*ways: list[NodeMove], sku: str = "h100") -> Journeys:
    moves = sorted((move for each in ways for move in each), key=lambda move: move.at)
    return journeys(moves, dict.fromkeys({move.node for move in moves}, sku))


FIRST = way("a", (50, "registered"), (49, "initializing"), (48, "onboard"), (40, "test"), (10, "production"))


def test_a_way_gives_each_of_its_stays_with_the_time_until_service() -> None:
    """Mutant: the time to service is counted from the way's begin, or from the stage's end."""
    found = seen(FIRST).stays
    assert found["h100", False, Phase.test] == [Stay(30 * H, on=True, to_service_s=30 * H)]
    assert found["h100", False, Phase.onboard] == [Stay(8 * H, on=True, to_service_s=38 * H)]
    assert found["h100", False, Phase.registered] == [Stay(1 * H, on=True, to_service_s=40 * H)]


def test_who_failed_in_a_stage_did_not_go_on_and_never_arrived() -> None:
    """Mutant: a stay that ended in triage counts among those that went on, and makes the median look short."""
    found = seen(way("b", (20, "registered"), (19, "test"), (18, "triage"))).stays
    assert found["h100", False, Phase.registered] == [Stay(1 * H, on=True)]
    assert found["h100", False, Phase.test] == [Stay(1 * H, on=False)]


def test_back_from_repair_is_another_cohort() -> None:
    """Mutant: a requalification of an hour tells a new node that it will be there in an hour."""
    again = [NodeMove("a", ago(8), "production", "triage"), NodeMove("a", ago(7), "triage", "test")]
    found = seen(FIRST, [*again, NodeMove("a", ago(6), "test", "production")])
    assert found.stays["h100", True, Phase.test] == [Stay(1 * H, on=True, to_service_s=1 * H)]
    assert len(found.stays["h100", False, Phase.test]) == 1


def test_a_way_whose_begin_is_not_known_and_an_adoption_tell_nothing() -> None:
    """Mutants: a way from before the records counts with half of it; an adopted node was brought up in a minute."""
    cut = [NodeMove("c", ago(5), "zap", "test"), NodeMove("c", ago(1), "test", "production")]
    assert not seen(cut, way("d", (3, "registered"), (2.9, "production"))).stays


def test_a_node_under_way_counts_where_it_has_been_and_tells_of_no_arrival() -> None:
    found = seen(way("e", (9, "registered"), (8, "test")))
    assert dict(found.stays) == {("h100", False, Phase.registered): [Stay(1 * H, on=True)]}
    assert dict(found.returns) == {"e": False}


def test_a_retired_stranger_is_left_out() -> None:
    assert not journeys(FIRST, {}).stays


def test_an_arrival_is_told_by_those_that_stayed_as_long() -> None:
    """Mutant: the median of all; a node that has been in burn-in for longer than most "arrives" in the past."""
    stays = [Stay(h * H, on=True, to_service_s=(h + 1) * H) for h in (1, 2, 3, 10, 20)]
    early = arrival(stays, ago(0.5), NOW)
    assert early is not None
    assert (early.median, early.p90, early.of) == (ago(0.5) + timedelta(hours=4), ago(0.5) + timedelta(hours=21), 5)
    late = arrival(stays, ago(5), NOW)
    assert late is not None
    assert (late.median, late.of) == (ago(5) + timedelta(hours=11), 2)
    assert late.median > NOW
    assert arrival(stays, ago(20), NOW) is None, "nobody stayed longer"
    assert arrival([Stay(9 * H, on=True)], ago(1), NOW) is None, "nobody of these arrived"


def test_a_cohort_is_told_in_numbers() -> None:
    """Mutant: 0 % for a cohort that nobody has been in."""
    assert cohort_of([], 1.0).passed_by is None
    found = cohort_of([Stay(h * H, on=h < 5) for h in (1, 2, 3, 4, 9)], 2 * H)
    assert (found.stays, found.went_on, found.median_s, found.p90_s, found.passed_by) == (5, 4, 2 * H, 4 * H, 0.5)


def test_stages_come_in_their_order_with_nodes_and_cohorts_that_nobody_is_in_now() -> None:
    nodes = [
        bringing_up("x", Phase.test),
        bringing_up("y", Phase.onboard, waits=Blocker("person", "t", "x", observed("y"))),
    ]
    rows = stage_rows(nodes, seen(FIRST))
    assert [(row.phase, row.nodes, row.waiting, row.cohort.stays) for row in rows] == [
        (Phase.registered, 0, 0, 1), (Phase.initializing, 0, 0, 1), (Phase.onboard, 1, 1, 1), (Phase.test, 1, 0, 1),
    ]  # fmt: skip


def bringing_up(name: str, phase: Phase, waits: Blocker | None = None, **fields: Any) -> Node:
    waiting = Waiting("x", ago(1), (waits,)) if waits else None
    return a_node(name, "", phase=phase, phase_since=ago(2), waiting=waiting, handover=None, **fields)


@pytest.mark.parametrize(
    ("phase", "blocker", "wanted"),
    [
        (
            Phase.onboard,
            Blocker("person", "technician", "", ways_on(bringing_up("n", Phase.onboard))),
            "node certify n",
        ),
        (Phase.onboard, held(Hold("h-1", Scope.of("n"), HoldKind.operator, "pat", "why", NOW)), "hold release h-1"),
        (Phase.zap, held(Hold("h-2", Scope.of("n"), HoldKind.physical_work, "pat", "why", NOW)), "node end-work n"),
        (Phase.zap_fail, None, "node zap-again n"),
        (Phase.registered, Blocker("pause", "fleet", "", by_act(Resume(), "fleet")), "resume fleet"),
        (Phase.registered, Blocker("person", "operator", "", by_act(Adopt(), "fleet")), "adopt FILE"),
        (
            Phase.test,
            Blocker("check", "burn_in", "", (by_time("soon"), by_act(Vouch("burn_in"), "n"))),
            "node vouch n --profile burn_in",
        ),
        (Phase.test, Blocker("confirmation", "n", "", (observed("it"), by_act(Vouch("burn_in"), "n"))), ""),
        (Phase.test, Blocker("budget", "bring_up", "", observed("it ends")), ""),
        (Phase.test, None, ""),
    ],
)
def test_what_a_person_does_next_is_a_command(phase: Phase, blocker: Blocker | None, wanted: str) -> None:
    """Mutant: `hold release` for work that somebody has the hands in."""
    assert next_act(bringing_up("n", phase, blocker)) == (f'hostler {wanted} --reason "…"' if wanted else "")


def test_a_row_says_unknown_where_nobody_was_before() -> None:
    row = row_of(bringing_up("n", Phase.test), Journeys({}, {}), NOW, "run 3 of 40")
    assert (row.arrives, row.cohort.stays, row.returns, row.doing) == (None, 0, False, "run 3 of 40")
    served = row_of(replace(bringing_up("n", Phase.test), handover=ago(900)), Journeys({}, {}), NOW, "")
    assert served.returns, "who has served comes back, where the records do not say"
