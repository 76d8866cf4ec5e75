"""Conclusions of Hostler's own: a node makes no progress for too long; its cluster knows nobody of its name."""

import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen, Tick, WorkSeen
from hostler.core.conditions.own_conditions import UNLISTED_S
from hostler.core.state import events as e
from hostler.core.state.configuration import LAB_PHASE_FLOOR_S
from hostler.core.state.fold import evolve
from hostler.core.state.model import Assignment, Phase
from hostler.core.tables.phases import PHASES
from hostler.ports import WorkloadView
from tests.kit import CLUSTER, NOW, Drive, a_node, a_workload, configuration, pool_document

WAITING = [row for row in PHASES.values() if row.usual_s is not None]


def standing_at(phase: Phase, **fields: Any) -> Drive:
    return Drive(configuration(), [a_node("a", "", phase=phase, phase_since=NOW, **fields)])


def stands(drive: Drive, kind: str, node: str = "a") -> bool:
    return any(c.type == kind for c in drive.node(node).conditions)


# --- listed where it has left


def test_who_is_listed_again_in_the_cluster_that_it_left_is_told_of_until_it_is_gone() -> None:
    """Mutants: every Node of a spare counts; another cluster's counts; the silence of the cluster ends it."""
    drive = standing_at(Phase.debug, left_cluster=CLUSTER)

    def seen(*, listed: bool, lost: str = "", cluster: str = CLUSTER) -> bool:
        views = () if lost else (WorkloadView("a", (), listed=listed),)
        drive.step(WorkSeen(views, whole=not lost, cluster=cluster, lost=lost))
        return stands(drive, "node.uninvited")

    assert not seen(listed=False)
    assert not seen(listed=True, cluster="another")
    assert seen(listed=True)
    assert seen(listed=True, lost="silent")
    assert not seen(listed=False)


def test_who_has_left_a_cluster_is_known_until_it_is_back() -> None:
    """Mutant: the first assignment of all forgets it."""
    fleet = Drive(configuration(), [a_node("a")]).controller.fleet
    said: tuple[tuple[e.Event, str], ...] = (
        (e.NodeReleased("a", NOW, "test"), CLUSTER),
        (e.NodeAssigned("a", Assignment("train", "acme", "another", NOW)), CLUSTER),
        (e.NodeAssigned("a", Assignment("train", "acme", CLUSTER, NOW)), ""),
    )
    for number, (event, left) in enumerate(said):
        evolve(fleet, e.Record(number + 1, NOW, 1, "", event))
        assert fleet.nodes["a"].left_cluster == left


# --- standing still


@pytest.mark.parametrize("row", WAITING, ids=lambda row: row.phase.value)
def test_who_waits_longer_than_usual_is_stuck_and_its_page_says_for_what(row: Any) -> None:
    """Mutants: `next_moment` without it; `<` for `<=`; the text without the blocker."""
    drive = standing_at(row.phase, provisioner="none", certified_by="")
    drive.ask("pause", "fleet")  # nothing moves by itself
    drive.now = NOW + timedelta(seconds=row.usual_s - 1)
    drive.step(Tick())
    assert not stands(drive, "node.stuck")
    drive.wait(seconds=2)
    (stuck,) = [c for c in drive.node("a").conditions if c.type == "node.stuck"]
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].text in stuck.evidence[-1].text


def test_a_short_stay_is_told_in_its_own_units_never_as_no_days() -> None:
    """Mutant: "stood at zap_fail for 0.0 days", of a lab whose time runs fast."""
    row = PHASES[Phase.zap_fail]
    fast = configuration(policy=lambda policy: policy.update(time_scale=1000.0))
    drive = Drive(fast, [a_node("a", "", phase=row.phase, phase_since=NOW)])
    drive.ask("pause", "fleet")
    drive.now = NOW + timedelta(seconds=LAB_PHASE_FLOOR_S - 1)
    drive.step(Tick())
    drive.wait(seconds=2)
    (stuck,) = [c for c in drive.node("a").conditions if c.type == "node.stuck"]
    assert re.match(r"in phase zap_fail for 5 min( \d+ s)?: ", stuck.evidence[-1].text), stuck.evidence[-1].text


def test_phases_without_a_limit_have_a_usual_stay_and_nobody_is_stuck_in_service() -> None:
    for row in PHASES.values():
        assert (row.usual_s is None) == (row.limit_s is not None or row.phase in (Phase.production, Phase.retired))


def test_who_moves_on_is_no_longer_stuck_and_is_not_stuck_at_once_where_it_comes_to() -> None:
    """Mutant: `stay_granted` outlives the phase."""
    drive = standing_at(Phase.debug)
    drive.wait(days=15)
    assert drive.ask("clear-condition", "a", condition="node.stuck").granted
    drive.wait(days=15)
    assert stands(drive, "node.stuck")
    assert drive.ask("onboard", "a").granted
    assert drive.node("a").phase is Phase.onboard
    assert not stands(drive, "node.stuck")
    drive.wait(days=6)
    assert not stands(drive, "node.stuck")
    drive.wait(days=2)
    assert stands(drive, "node.stuck")


def test_who_clears_it_grants_another_usual_stay() -> None:
    """Mutant: it stands again in the same batch."""
    drive = standing_at(Phase.debug)
    drive.wait(days=15)
    drive.ask("clear-condition", "a", condition="node.stuck")
    drive.wait(days=13)
    assert not stands(drive, "node.stuck")
    drive.wait(days=2)
    assert stands(drive, "node.stuck")


def test_a_takeover_raises_nothing_anew() -> None:
    drive = standing_at(Phase.rma)
    drive.wait(days=50)
    drive.restart()
    drive.wait(days=1)
    assert len(drive.events(e.ConditionRaised)) == 1


# --- a name that the cluster does not know


def members(*names: str) -> Drive:
    return Drive(configuration({"train": pool_document(target=2)}), [a_node(name) for name in names], quiet=True)


def list_of(*names: str, whole: bool = True) -> WorkSeen:
    return WorkSeen(tuple(WorkloadView(n, ()) for n in names), whole=whole, cluster=CLUSTER)


def test_a_member_that_its_cluster_does_not_list_is_told_after_a_while() -> None:
    """Mutants: nobody looks again; a list that is not whole counts; no time to come."""
    drive = members("a", "b")
    drive.step(list_of("b"))
    drive.wait(seconds=UNLISTED_S - 1)
    assert not stands(drive, "work.unknown")
    drive.wait(seconds=2)
    assert stands(drive, "work.unknown")
    assert not stands(drive, "work.unknown", "b")
    (told,) = drive.events(e.ConditionRaised)
    assert CLUSTER in told.condition.evidence[-1].text
    drive.step(list_of("a", whole=False))
    assert not stands(drive, "work.unknown")


def test_of_a_cluster_that_is_not_heard_nothing_is_said_node_by_node() -> None:
    """Mutant: a cluster that is lost ends it. What was so when it was last heard stands."""
    drive = members("a", "b")
    drive.wait(hours=2)
    assert not drive.events(e.ConditionRaised)
    drive.step(list_of("b"))
    drive.wait(seconds=UNLISTED_S / 2)
    drive.step(WorkSeen((), cluster=CLUSTER, lost="kubernetes: nodes are not watched"))
    drive.wait(hours=2)
    assert not stands(drive, "work.unknown")
    drive.step(list_of("b"))
    drive.wait(hours=1)
    assert stands(drive, "work.unknown")
    drive.step(WorkSeen((), cluster=CLUSTER, lost="kubernetes: nodes are not watched"))
    drive.wait(hours=1)
    drive.step(NodeSeen("a", ready=False))  # it is looked at for another reason
    assert stands(drive, "work.unknown")


def test_who_becomes_a_member_has_as_long_to_be_listed() -> None:
    """Mutant: only the cluster's time counts, not the member's."""
    drive = members("a", "b")
    drive.step(list_of("b"))
    late = replace(drive.node("a"), assignment=Assignment("train", "acme", CLUSTER, NOW + timedelta(seconds=300)))
    drive.controller.fleet.nodes.put("a", late)
    drive.controller.fleet.merge()
    drive.wait(seconds=UNLISTED_S + 1)
    assert not stands(drive, "work.unknown")
    drive.wait(seconds=UNLISTED_S)
    assert stands(drive, "work.unknown")


def test_a_takeover_waits_for_the_cluster_and_keeps_what_stands() -> None:
    drive = members("a", "b")
    drive.step(list_of("b"))
    drive.wait(hours=1)
    drive.work.pop("a")
    drive.restart()
    drive.wait(hours=1)
    assert stands(drive, "work.unknown")
    assert len(drive.events(e.ConditionRaised)) == 1


def test_it_disturbs_nobody_and_ends_with_membership() -> None:
    drive = members("a", "b")
    drive.step(list_of("b"))
    drive.wait(hours=1)
    assert not drive.events(e.PlanRecorded)
    drive.see_work("a", a_workload("w"))
    assert not stands(drive, "work.unknown")
