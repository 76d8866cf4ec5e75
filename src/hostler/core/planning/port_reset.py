"""The ports of switches that a plan may reset for a node: those whose cable is found to lead to this node alone.

Both ends are idle then: the node is drained, and at a switch's port of such a cable nobody else's work is.
"""

from collections.abc import Iterator

from hostler.core.planning.cabling import fabrics_of
from hostler.core.policy.link_conditions import CONDITION
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import DesignedLink, Fabric, LinkCondition
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Node, Profile
from hostler.core.state.operations import ResetPort

_LIES = frozenset({LinkCondition.as_designed, LinkCondition.degraded, LinkCondition.unrated})
"""Conditions of a cable that lies where it is designed to."""


def acts(context: DecisionContext, node: Node) -> Iterator[ResetPort]:
    """A reset for each link of the node that fails; one without a port where none may be reset, which is refused."""
    failing = {condition.part for condition in node.conditions if condition.type == CONDITION}
    found = [
        act
        for fabric, device in fabrics_of(context.fleet, node)
        for link in _links(context.live, fabric, device)
        if link.a.rpartition(":")[2] in failing
        and not refused(context.fleet, context.live, node, act := _reset(fabric, link))
    ]
    yield from found or (ResetPort(),)


def refused(fleet: Fleet, live: LiveState, node: Node, act: ResetPort) -> str:
    """Why this port is not reset for this node, "" where it may be: asked again before the tool is run."""
    if node.profile is Profile.unmanaged:
        return f"{node.id} is unmanaged: none of its links is ever reset"
    found = next(((f, device) for f, device in fabrics_of(fleet, node) if f.name == act.fabric), None)
    if found is None:
        return f"no network {act.fabric or '(none)'} names {node.id}"
    fabric, device = found
    link = next((one for one in _links(live, fabric, device) if (one.a, one.z) == (act.a, act.z)), None)
    if link is None:
        return f"no whole validation against the design in force has seen {act.a} to {act.z}"
    if not fabric.names_switch(act.z.rpartition(":")[0]):
        return f"{act.z} is no port of a switch: whose work is there is not known"
    if link.condition not in _LIES or (link.a_found, link.z_found) != (act.z, act.a):
        return f"{act.z} was last found to lead to {link.z_found or 'nowhere'}, not to {act.a}"
    return ""


def _reset(fabric: Fabric, link: DesignedLink) -> ResetPort:
    return ResetPort(fabric.name, link.a, link.z)


def _links(live: LiveState, fabric: Fabric, device: str) -> tuple[DesignedLink, ...]:
    seen = live.fabrics.get(fabric.name)
    if seen is None or seen.good is None or seen.good.design != fabric.digest:
        return ()
    return seen.links.of(device)
