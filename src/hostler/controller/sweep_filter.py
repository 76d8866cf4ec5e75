"""Nodes that a sweep may pass over: in service, heard, listed by their cluster, and with nothing on them."""

from hostler.controller.live_updates import Silence
from hostler.core.conditions import own_conditions
from hostler.core.planning import needs_nothing
from hostler.core.state.decision_context import DecisionContext

FEW = 64
"""So many nodes of a sweep are asked one by one, though fewer may need something."""


def to_visit(context: DecisionContext, silent: Silence, node_ids: dict[str, None]) -> list[str]:
    """The nodes among these that may need something."""
    fleet = context.fleet
    restless = fleet.index.count("restless") + len(fleet.tickets) + len(fleet.holds) + len(silent)
    one_by_one = len(node_ids) <= max(FEW, restless)
    candidates = node_ids if one_by_one else {**needs_nothing.candidates(fleet), **silent}
    return [i for i in candidates if i in node_ids and not needs_no_step(context, silent, i)]


def needs_no_step(context: DecisionContext, silent: Silence, node_id: str) -> bool:
    """Whether the node certainly needs nothing; so does one that is not known."""
    node = context.fleet.nodes.get(node_id)
    if node is None:
        return True
    if node_id in silent or not needs_nothing.needs_nothing(context.fleet, node):
        return False
    return not own_conditions.is_unlisted(context, node) and own_conditions.misbound_at(context, node) is None
