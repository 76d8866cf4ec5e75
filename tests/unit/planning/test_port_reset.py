"""Ports of switches that a plan may reset for a node, and why others may not be."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.port_reset import acts, refused
from hostler.core.policy.link_conditions import CONDITION
from hostler.core.state.decision_context import DecisionContext
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
from hostler.core.state.model import Node, Profile
from hostler.core.state.operations import ResetPort
from tests.kit import NOW, a_node
from tests.unit.planning.values import a_condition, a_context

LINK = DesignedLink("a:1", "leaf-0:1", "4X NDR", LinkCondition.as_designed, "leaf-0:1", "a:1", "4X NDR")
OTHER = replace(LINK, a="a:2", z="leaf-0:2", a_found="leaf-0:2", z_found="a:2")
DESIGN = "device,port,device,port\na,1,leaf-0,1\na,2,leaf-0,2\n"


def seen(*links: DesignedLink, design: str = "d1", **fields: Any) -> tuple[DecisionContext, Node]:
    """A node whose first link fails, and a network whose last whole validation found these cables."""
    node = replace(a_node("a"), conditions=(a_condition(CONDITION, "a", part="1"),), **fields)
    context = a_context(node)
    context.fleet.fabrics.put("ib", Fabric("ib", DESIGN, "d1", DiscoverySource(), 14_400.0, {"a": 2}, 1, 2, ()))
    context.fleet.merge()
    look = FabricLook(NOW, design, FabricVerdict.differs, 2, 2, 0, "r1")
    context.live.fabrics["ib"] = LiveFabric(look, look, FabricLinks(links, {"a": tuple(range(len(links)))}))
    return context, node


def why(context: DecisionContext, node: Node, act: ResetPort) -> str:
    return refused(context.fleet, context.live, node, act)


def test_the_failing_links_far_port_is_reset_and_no_other() -> None:
    """Mutants: every link of the node; the node's own port in place of the switch's."""
    assert list(acts(*seen(LINK, OTHER))) == [ResetPort("ib", "a:1", "leaf-0:1")]


def test_where_none_may_be_reset_the_act_names_no_port_and_is_refused() -> None:
    """Mutant: nothing is yielded, and a plan has a step that does nothing."""
    context, node = seen(OTHER)
    assert list(acts(context, node)) == [ResetPort()]
    assert why(context, node, ResetPort()) == "no network (none) names a"


@pytest.mark.parametrize("condition", [LinkCondition.as_designed, LinkCondition.degraded, LinkCondition.unrated])
def test_a_cable_that_lies_as_designed_may_have_its_port_reset(condition: LinkCondition) -> None:
    context, node = seen(replace(LINK, condition=condition))
    assert why(context, node, ResetPort("ib", "a:1", "leaf-0:1")) == ""


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            replace(LINK, condition=LinkCondition.missing, a_found="", z_found=""),
            "lead to nowhere, not to a:1",
        ),
        (replace(LINK, condition=LinkCondition.elsewhere, z_found="b:1"), "found to lead to b:1, not to a:1"),
        (replace(LINK, z_found="b:1"), "found to lead to b:1, not to a:1"),
        (replace(LINK, z="spine-9:1", a_found="spine-9:1"), "spine-9:1 is no port of a switch"),
    ],
)
def test_a_port_at_which_others_work_may_be_is_not_reset(link: DesignedLink, said: str) -> None:
    """Mutants: one end's word is enough; a far end that the design does not have counts as a switch."""
    context, node = seen(link)
    assert said in why(context, node, ResetPort("ib", link.a, link.z))
    assert list(acts(context, node)) == [ResetPort()]


def test_another_designs_validation_and_an_unmanaged_node_allow_nothing() -> None:
    """Mutants: cables that were seen against the last design count; the profile is not asked."""
    act = ResetPort("ib", "a:1", "leaf-0:1")
    assert "no whole validation against the design in force" in why(*seen(LINK, design="d0"), act)
    assert why(*seen(LINK, profile=Profile.unmanaged), act) == "a is unmanaged: none of its links is ever reset"
