"""How far an intent may go: no further than the token under which it was asked, as the fleet is when it is decided."""

from collections.abc import Iterable

from hostler.core.intents.ask import AnyAsk, RefusalError
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Bounds, Unreadable
from hostler.core.state.model import Node, Phase
from hostler.core.state.scopes import CLUSTER, DOMAINS, NODES, POOL, WHOLE_CELL, Scope


def check_bounds(ask: AnyAsk) -> None:
    """Raises RefusalError where a node of the target is out of the token's bounds, or has left them meanwhile."""
    intent = ask.intent
    if intent.bounds == Bounds() or isinstance(intent.act, Unreadable) or ask.act.facts.partly:
        return
    nodes = concerned(ask.context.fleet, intent.target, intent.nodes)
    outside = [node.id for node in nodes if not within(intent.bounds, node)]
    if outside or not nodes:
        raise RefusalError(
            f"'{intent.target[:100]}' has nodes that you do not see; name one that you see (hostler node list)"
        )


def within(bounds: Bounds, node: Node) -> bool:
    """Whether the node lies within the bounds now."""
    if bounds.tenant and (node.assignment is None or node.assignment.tenant != bounds.tenant):
        return False
    if bounds.site and node.position.site != bounds.site:
        return False
    return not bounds.pool or node.pool == bounds.pool


def is_theirs(bounds: Bounds, tenant: str) -> bool:
    """Whether what `tenant` has laid ("": an operator) may be undone under these bounds: a tenant undoes its own."""
    return not bounds.tenant or bounds.tenant == tenant


def concerns(fleet: Fleet, scope: Scope, bounds: Bounds) -> bool:
    """Whether the scope has a node within the bounds of a tenant. Nodes of other pools than its own are not asked."""
    own = [pool for pool in fleet.configuration.pools.values() if pool.tenant == bounds.tenant]
    whole = [pool.name for pool in own if scope in (WHOLE_CELL, Scope(POOL, pool.name), Scope(CLUSTER, pool.cluster))]
    ids = [fleet.index.members(f"{POOL}:{name}") for name in whole]
    if scope.kind in DOMAINS:
        ids.append(fleet.index.members(scope.shared))
    elif scope.kind == "" and scope.text in fleet.nodes:
        ids.append([scope.text])
    return any(within(bounds, fleet.nodes[i]) for members in ids for i in members)


def concerned(fleet: Fleet, target: str, nodes: Iterable[str] = ()) -> list[Node]:
    """The nodes an act on the target concerns: through a hold, ticket, incident, window, approval too; or none."""
    return _within_scope(fleet, Scope.of(target), nodes)


def _within_scope(fleet: Fleet, scope: Scope, nodes: Iterable[str] = ()) -> list[Node]:
    if scope.kind == NODES:
        named = (fleet.resolve(one) for one in nodes)
        return [node for node in named if node is not None]
    if scope.kind in (POOL, *DOMAINS) and scope.name:
        members = (fleet.nodes[i] for i in fleet.index.members(scope.shared))
        return [node for node in members if node.phase is Phase.production or scope.kind != "rack"]
    node = fleet.resolve(scope.text)
    return [node] if node is not None else _through(fleet, scope.text)


def _through(fleet: Fleet, target: str) -> list[Node]:
    if (ticket := fleet.tickets.get(target)) is not None:
        return concerned(fleet, ticket.node)
    if (case := fleet.rma_cases.get(target)) is not None:
        return concerned(fleet, case.node)
    if (approval := fleet.approvals.get(target)) is not None:
        return concerned(fleet, approval.intent.target, approval.intent.nodes)
    if (incident := fleet.incidents.get(target)) is not None:
        return [fleet.nodes[i] for i in incident.members if i in fleet.nodes]
    hold, window = fleet.holds.get(target), fleet.windows.get(target)
    found = hold.scope if hold else window.scope if window else None
    return _within_scope(fleet, found) if found is not None and found.text != target else []
