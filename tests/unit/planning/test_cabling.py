"""A node's cabling step: what each kind of validation says of it, and what nobody has looked at."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.core.planning import cabling
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.fabrics import (
    DesignedLink,
    DiscoverySource,
    Fabric,
    FabricLinks,
    FabricLook,
    FabricVerdict,
    LinkCondition,
)
from hostler.core.state.live_state import LiveFabric
from hostler.core.state.model import Node, Phase, Plan, Step, Verdict
from hostler.core.state.operations import VerifyCabling
from hostler.core.state.repairs import RepairAction, RepairDone
from tests.kit import NOW, a_node, after
from tests.unit.planning.values import a_context, a_plan

LINK = DesignedLink("a:1", "leaf-0:1", "4X NDR", LinkCondition.as_designed, "leaf-0:1", "a:1", "4X NDR")
BEFORE = NOW - timedelta(hours=1)


def a_link(condition: LinkCondition) -> DesignedLink:
    return replace(LINK, condition=condition, a_found="", found_rate="")


def at_cabling(
    *links: DesignedLink, began: timedelta | None = timedelta(minutes=5), design: str = "d1"
) -> tuple[DecisionContext, Node, Plan]:
    """A node at its cabling step, and a network whose last whole validation began so long after the step."""
    step = Step(VerifyCabling("ib", "a"), 1800.0)
    plan = replace(a_plan("reboot"), name="seatrial", steps=(step,), index=0, step_since=NOW)
    node = replace(a_node("a", phase=Phase.seatrial, phase_since=BEFORE), plan=plan)
    context = a_context(node, now=after(minutes=10))
    fabric = Fabric("ib", "", "d1", DiscoverySource(), 14_400.0, {"a": 1}, 1, 1, ())
    context.fleet.fabrics.put("ib", fabric)
    context.fleet.merge()
    if began is not None:
        look = FabricLook(NOW + began, design, FabricVerdict.differs, 1, 1, 0, "r1")
        context.live.fabrics["ib"] = LiveFabric(look, look, FabricLinks(links, {"a": tuple(range(len(links)))}))
    return context, node, plan


def test_ports_as_designed_pass_the_step() -> None:
    found = cabling.verify(*at_cabling(LINK))
    assert isinstance(found, Act)
    assert [type(event) for event in found.events] == [e.CheckRecorded, e.PlanAdvanced]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (LinkCondition.missing, "a:1 is to lead to leaf-0:1 and has no link"),
        (LinkCondition.elsewhere, "a:1 is to lead to leaf-0:1"),
        (LinkCondition.degraded, "a:1 to leaf-0:1 runs at"),
    ],
)
def test_a_port_that_is_not_as_designed_leaves_the_step_open_and_is_named(condition: LinkCondition, says: str) -> None:
    """Mutant: it fails the plan, so that a cable is evidence against a node."""
    found = cabling.verify(*at_cabling(a_link(condition)))
    assert isinstance(found, Act)
    (verdict,) = [event.check for event in found.events if isinstance(event, e.CheckRecorded)]
    assert verdict.verdict is Verdict.failed
    assert says in verdict.detail
    assert not [event for event in found.events if isinstance(event, e.PlanAdvanced | e.PlanEnded)]


@pytest.mark.parametrize(
    ("links", "began", "design", "says"),
    [
        ((LINK,), None, "d1", "since the controller began"),
        ((LINK,), timedelta(minutes=5), "d0", "new design"),
        ((LINK,), timedelta(hours=-2), "d1", "from before the node came to seatrial"),
        ((), timedelta(minutes=5), "d1", "says nothing of this node"),
        ((a_link(LinkCondition.missing),), timedelta(minutes=-5), "d1", "before the node was up"),
        ((a_link(LinkCondition.unrated),), timedelta(minutes=5), "d1", "did not say at which rate"),
    ],
)
def test_what_nobody_has_looked_at_waits(
    links: tuple[DesignedLink, ...], began: timedelta | None, design: str, says: str
) -> None:
    """Mutants: an old validation convicts; one of another design passes; no answer is a pass."""
    found = cabling.verify(*at_cabling(*links, began=began, design=design))
    assert isinstance(found, Wait)
    assert says in found.blockers[0].text
    assert found.until == after(seconds=1800)


@pytest.mark.parametrize(("repaired", "passes"), [(timedelta(minutes=-10), True), (timedelta(minutes=-2), False)])
def test_a_validation_from_before_a_repair_says_nothing(repaired: timedelta, passes: bool) -> None:
    """A node in production whose cable was swapped. Mutant: only the phase's beginning counts."""
    context, node, plan = at_cabling(LINK, began=timedelta(minutes=-5))
    done = RepairDone(RepairAction.swapped, "cable", NOW + repaired, "tess")
    found = cabling.verify(context, replace(node, phase=Phase.production, repairs=(done,)), plan)
    assert isinstance(found, Act if passes else Wait)
    if isinstance(found, Wait):
        assert "from before hands were in it" in found.blockers[0].text


def test_a_validation_from_before_the_step_passes_and_does_not_fail() -> None:
    assert isinstance(cabling.verify(*at_cabling(LINK, began=timedelta(minutes=-5))), Act)


def test_a_design_that_names_the_node_no_more_asks_for_nothing_and_records_no_pass() -> None:
    context, node, plan = at_cabling(LINK)
    context.fleet.fabrics.put("ib", replace(context.fleet.fabrics["ib"], hosts={}))
    found = cabling.verify(context, node, plan)
    assert isinstance(found, Act)
    assert [type(event) for event in found.events] == [e.PlanAdvanced]


def test_who_waits_for_a_network_is_known_by_its_step() -> None:
    context, _, _ = at_cabling(LINK)
    assert cabling.waiting(context.fleet, "ib") == ["a"]
    assert cabling.waiting(context.fleet, "other") == []
    assert cabling.wanted_since(context.fleet, "ib") == NOW
    assert cabling.wanted_since(context.fleet, "other") is None
