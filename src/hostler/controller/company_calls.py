"""Calls idle nodes to meet one that meetings blamed, while it is at its check. What it notes is volatile."""

from collections.abc import Iterator

from hostler.core.planning import idle_checks
from hostler.core.planning.meeting_calls import CALLED_MOST, calling_pools, is_call_due, is_current
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import CompanyCall
from hostler.core.state.model import Node

LEAF = "leaf"


def called(context: DecisionContext, node_id: str) -> list[str]:
    """Call others for the node, those under its own leaves first; the nodes that were called."""
    node = context.fleet.nodes.get(node_id)
    if node is None or not is_call_due(context, node):
        return []
    context.live.entry(node_id).called_others = context.now
    found = sorted(_able(context, node), key=lambda one: (-_shared_leaves(node, one), one.id))[:CALLED_MOST]
    for one in found:
        context.live.entry(one.id).call = CompanyCall(node_id, context.now)
    return [one.id for one in found]


def _able(context: DecisionContext, node: Node) -> Iterator[Node]:
    """Idle nodes that nobody who is still at its check has called."""
    for pool in calling_pools(context.fleet, node):
        for name in context.fleet.index.members(f"pool:{pool}"):
            one, told = context.fleet.nodes[name], context.live.of(name).call
            is_taken = told is not None and is_current(context, told)
            if name != node.id and not is_taken and idle_checks.could_begin(context, one):
                yield one


def _shared_leaves(node: Node, other: Node) -> int:
    return sum(domain.kind == LEAF and domain in other.domains for domain in node.domains)
