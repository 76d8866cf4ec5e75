"""Nodes within a caller's reach: which are selected, which are shown, and the scopes that they stand in."""

from collections.abc import Iterable

from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state.model import Node
from hostler.core.state.scopes import Scope
from hostler.server.app_state import AppState
from hostler.server.fleet_status import own_pools
from hostler.server.paging import Selection
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity, Role


def ids_for(app_state: AppState, who: Identity, wanted: Selection) -> list[str]:
    """Sorted ids among which the caller's selected nodes are."""
    if (who.role is Role.tenant or who.grant.pool) and not wanted.pool:
        pools = own_pools(app_state.fleet, who)
        return sorted(i for pool in pools for i in app_state.fleet.index.members(f"pool:{pool.name}"))
    found = app_state.nodes.ids(app_state.fleet, wanted)
    return within_reach(app_state, who, found) if who.role is Role.tenant else found


def selected(app_state: AppState, who: Identity, wanted: Selection, node_id: str) -> tuple[Node, ...]:
    """The node, where it is selected and within the caller's reach, as they are shown it."""
    return tuple(app_state.shown(who, node) for node in reached(app_state, who, wanted, node_id))


def reached(app_state: AppState, who: Identity, wanted: Selection, node_id: str) -> tuple[Node, ...]:
    """The same, as it is. What the caller is not shown cannot be searched for either."""
    node = app_state.fleet.nodes.get(node_id)
    if node is None or not wanted.matches(node) or not sees(who, node):
        return ()
    return (node,) if not wanted.searches or wanted.matches(app_state.shown(who, node)) else ()


def within_reach(app_state: AppState, who: Identity, keys: Iterable[str]) -> list[str]:
    """Of node ids those that the caller sees: a page's cursor then tells nothing of others."""
    nodes = app_state.fleet.nodes
    return list(keys) if who.whole else [i for i in keys if (node := nodes.get(i)) is not None and sees(who, node)]


def scopes_within(app_state: AppState, who: Identity) -> frozenset[Scope]:
    """Every scope that a node within the caller's reach stands in."""
    context, all_nodes = app_state.context(), Selection(limit=1)
    ids = ids_for(app_state, who, all_nodes)
    nodes = (n for i in ids for n in reached(app_state, who, all_nodes, i))
    return frozenset(scope for node in nodes for scope in scopes(context.fleet, node))
