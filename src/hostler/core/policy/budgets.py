"""Budgets of pools, of failure domains, of a day's removals and of bring-up: how much may be away at once.

A pool's budget counts what its customers can use. Two mistakes are easy here. A node that is down already and has no
work on it costs nothing to take (`costs_availability`), but a line of kernel log alone does not make it so: a false
rule would then empty a pool past its budget. And what waits for an immediate remedy has the next free place, or a
pending plan that has made way for it would take the place back (`planning.yielded_places`).
"""

from bisect import bisect_right
from datetime import datetime, timedelta
from functools import partial

from hostler.core.policy.corroboration import KERNEL_LOG, is_confirmed_down
from hostler.core.policy.disruption_request import DisruptionRequest, removes
from hostler.core.state.configuration import Budget, Pool
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import is_serving, is_unheard
from hostler.core.state.index_keys import awaited_places
from hostler.core.state.model import ActClass, Blocker, Condition, Node, Phase, Severity
from hostler.core.state.rack_runs import Rack
from hostler.core.state.scopes import POOL, RACK, Scope
from hostler.core.state.ways_out import WayOut, by_time, observed
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.phases import PHASES

DAY = timedelta(days=1)
"""The window of the budget of removals."""


def over_budget(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers of the nodes' pools (unavailable members, removals of a day, spares kept back), or of bring-up."""
    if request.act_class is ActClass.bring_up:
        return _bring_up_budget(context, request)
    found: list[Blocker] = []
    for name in sorted({node.pool for node in request.nodes if node.pool}):
        pool = context.fleet.pools.get(name)
        if pool is None:
            text = f"pool {name} is not in the active configuration, so its budget is unknown"
            found.append(Blocker("budget", f"pool:{name}", text, observed("the pool is configured again", "hostler")))
            continue
        members = [node for node in request.nodes if node.pool == name]
        found.extend(_pool_budget(context, pool, members, request))
        found.extend(_removal_budget(context, pool, members, request))
        found.extend(_spares_floor(context, pool, request))
    return found


def _pool_budget(
    context: DecisionContext, pool: Pool, members: list[Node], request: DisruptionRequest
) -> list[Blocker]:
    scope = Scope(POOL, pool.name)
    ahead = _ahead(context.fleet, scope, request)
    counts = is_serving if ahead else partial(costs_availability, context)  # it would be away for who is next
    cost = sum(counts(node) for node in members)
    if cost == 0:
        return []
    now_out, limit = unavailable(context, pool), allowance(pool.budget, pool.target, request.act_class)
    if now_out + ahead + cost <= limit:
        return []
    users = used_by(context.fleet, f"out:{pool.name}")
    text = f"pool {pool.name}: {now_out} of {pool.target} unavailable, {cost} more would exceed the budget of {limit}"
    text += users + _first_turn(ahead)
    return [Blocker("budget", scope.text, text, observed(_ends(context, pool, cost, limit), "hostler"))]


def costs_availability(context: DecisionContext, node: Node) -> bool:
    """Whether taking the node takes anything from its pool's customers: it serves, and can run work or runs some."""
    return is_serving(node) and not (is_unusable(context, node) and context.live.workloads(node) == ())


def is_unusable(context: DecisionContext, node: Node) -> bool:
    """Whether work can certainly not run there: two paths say that it is down, or more than a log shows a fault."""
    if is_unheard(node) and is_confirmed_down(context.live, node):
        return True
    return any(_is_sure(condition) for condition in node.conditions)


def _is_sure(condition: Condition) -> bool:
    """Whether it is a critical fault of the machine that is known, and that not only its kernel log shows."""
    row = CONDITIONS.get(condition.type)
    if row is None or row.source != "observer" or row.silence or condition.severity < Severity.critical:
        return False
    return condition.unknown_since is None and any(path != KERNEL_LOG for path in condition.paths)


def _ahead(fleet: Fleet, scope: Scope, request: DisruptionRequest) -> int:
    """Immediate remedies that wait for nothing but this budget: the next places are theirs."""
    if request.act_class is not ActClass.pending:
        return 0
    return fleet.index.count(f"next:{scope.text}") - sum(
        awaited_places(node) == (scope.text,) for node in request.nodes
    )


def others_are_next(fleet: Fleet, request: DisruptionRequest) -> bool:
    """Whether the next place of a budget that the nodes are under is an immediate remedy's of other nodes."""
    pools = (Scope(POOL, node.pool) for node in request.nodes if node.pool)
    scopes = dict.fromkeys((*pools, *(domain for node in request.nodes for domain in node.domains)))
    return any(_ahead(fleet, scope, request) > 0 for scope in scopes)


def _first_turn(ahead: int) -> str:
    if not ahead:
        return ""
    return "; the next place is an immediate remedy's" if ahead == 1 else f"; the next {ahead} are immediate remedies'"


USERS_NAMED = 3
USERS_LISTED = 32
"""Of so many nodes that use a budget the first are named; of more the number says enough."""


def used_by(fleet: Fleet, key: str) -> str:
    """The first nodes under this key of the index with what is done to them, "" where none is or too many are."""
    count = fleet.index.count(key)
    if not 0 < count <= USERS_LISTED:
        return ""
    first = [fleet.nodes[node_id] for node_id in fleet.index.members(key)[:USERS_NAMED]]
    names = ", ".join(f"{node.id} ({taken_by(node)})" for node in first)
    more = f" and {count - len(first)} more" if count > len(first) else ""
    return f"; used by {names}{more}"


def taken_by(node: Node) -> str:
    """Name what takes the node away from its pool or uses its domain's budget."""
    if node.plan is not None and node.plan.state != "proposed":
        return node.plan.name
    return "cordoned" if node.cordons else node.phase.value


def _ends(context: DecisionContext, pool: Pool, cost: int, limit: int) -> str:
    """Name what gives the budget room; no node's return does where the pool could not hold so many anyway."""
    if cost > limit:
        fewer = ", or fewer are asked for at once" if cost > 1 else ""
        return f"the budget of pool {pool.name} allows {cost} at once{fewer}"
    missing = max(0, pool.target - context.fleet.index.count(f"pool:{pool.name}"))
    if missing + cost > limit:
        return f"the pool has nodes for the {missing} of {pool.target} that are missing, or its budget is raised"
    return "another node of the pool is back in service"


def allowance(budget: Budget, target: int, act_class: ActClass) -> int:
    """How many members may be unavailable: the stricter of count and percent of the *target*.

    Immediate acts may use the reserve on top. Where the percentage allows any at all, it allows one.
    """
    by_percent = int(target * budget.percent / 100)
    if budget.percent > 0 and target > 0:
        by_percent = max(by_percent, 1)
    limit = min(budget.count, by_percent)
    return limit + budget.reserve if act_class is ActClass.immediate else limit


def unavailable(context: DecisionContext, pool: Pool) -> int:
    """The pool's target less its members in service: a node moved away counts, one that merely ails does not yet."""
    return max(0, pool.target - context.fleet.index.count(f"serving:{pool.name}"))


def _removal_budget(
    context: DecisionContext, pool: Pool, members: list[Node], request: DisruptionRequest
) -> list[Blocker]:
    if not removes(request.remedy):
        return []
    day = context.sure - DAY
    done = sum(1 for r in context.fleet.cell.recent if r.pool == pool.name and removes(r.name) and r.at > day)
    if done + len(members) <= pool.budget.removals_per_day:
        return []
    text = f"pool {pool.name}: {done} nodes were removed within 24 h, the limit is {pool.budget.removals_per_day}"
    ends: WayOut = by_time("24 h have passed since the first removal", leaves(context, DAY))
    if len(members) > pool.budget.removals_per_day:
        fewer = ", or fewer are asked for at once" if len(members) > 1 else ""
        ends = observed(f"the budget of pool {pool.name} lets {len(members)} leave in a day{fewer}", "hostler")
    return [Blocker("budget", f"removals:{pool.name}", text, ends)]


def reopens(context: DecisionContext, found: tuple[Blocker, ...]) -> datetime | None:
    """When the clock alone changes a blocker: a removal budget has room again; None where it never does."""
    if not any(b.kind == "budget" and b.name.startswith("removals:") for b in found):
        return None
    return leaves(context, DAY)


def leaves(context: DecisionContext, window: timedelta) -> datetime | None:
    """When the next of what was done to nodes leaves a window that counts it: there is room again.

    They stand in the order in which they were done, so that a storm's thousands are not walked through.
    """
    recent = context.fleet.cell.recent
    first = bisect_right(recent, context.now - window, key=lambda done: done.at)
    return recent[first].at + window if first < len(recent) else None


def _spares_floor(context: DecisionContext, pool: Pool, request: DisruptionRequest) -> list[Blocker]:
    """A merely degraded node leaves its pool only where a spare may take its place; what is broken is out anyway."""
    floor = pool.budget.spares_floor
    if not removes(request.remedy) or request.act_class is not ActClass.pending or not floor:
        return []
    ready = context.fleet.index.count(f"spare:{pool.sku}")
    if ready > floor:
        return []
    left = f"{ready} spares of {pool.sku} are left, {floor} are kept back"
    text = f"pool {pool.name}: {left}, so no spare would replace the node"
    return [Blocker("budget", f"spares:{pool.sku}", text, observed("another spare is ready", "hostler"))]


def _bring_up_budget(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    found = domainstaken(context, request)
    if request.remedy != PHASES[Phase.initializing].recipe:
        return found
    limit = context.fleet.policy.bring_up_at_once
    own = sum(1 for node in request.nodes if node.phase is Phase.initializing)
    busy = context.fleet.index.count("phase:initializing") - own
    if busy + len(request.nodes) <= limit:
        return found
    text = f"{busy} nodes are being brought up, the limit is {limit} at once"
    return [Blocker("budget", "bring_up", text, observed("one of them has finished", "hostler")), *found]


def over_domain_budget(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers of the failure domains that would have too many nodes disturbed at once."""
    found = domainstaken(context, request) if request.scope is not None else []
    ids = frozenset(node.id for node in request.nodes)
    for domain in sorted({domain for node in request.nodes for domain in node.domains}):
        limit = domain_limit(context, domain)
        if limit is None:
            continue
        members = [node for node in request.nodes if domain in node.domains]
        asking = sum(1 for n in members if n.plan is None or not n.plan.disruptive or n.plan.state == "proposed")
        if not asking or domain == request.scope or (len(ids) > 1 and is_whole(context, domain, ids)):
            continue
        busy = context.fleet.index.count(f"disturbed:{domain}")
        ahead = _ahead(context.fleet, domain, request)
        if busy + ahead + asking > limit:
            size = context.fleet.index.count(domain.shared)
            users = used_by(context.fleet, f"disturbed:{domain}")
            text = f"{domain}: {busy} of {size} nodes disturbed, {asking} more would exceed the budget of {limit}"
            text += users + _first_turn(ahead)
            ends = "another node of the domain is back in service"
            if asking > limit:
                ends = f"the policy's budget of a {domain.kind} allows {asking} at once, or fewer are asked for at once"
            found.append(Blocker("budget", domain.text, text, observed(ends, "hostler")))
    return found


def domain_limit(context: DecisionContext, domain: Scope) -> int | None:
    """How many nodes of the failure domain may be disturbed at once, None where none are counted."""
    budget = context.fleet.policy.domains.get(domain.kind)
    if budget is None:
        return None
    size = context.fleet.index.count(domain.shared)
    return min(budget.count, max(1, int(size * budget.percent / 100)))


def domainstaken(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers where more domains of a kind would be taken whole at once than the policy allows."""
    found: list[Blocker] = []
    for kind, budget in sorted(context.fleet.policy.domains.items()):
        asking = {d for node in request.nodes for d in node.domains if d.kind == kind}
        asking |= {scope for scope in (request.scope, *request.beside) if scope is not None and scope.kind == kind}
        if not budget.at_once or not asking:
            continue
        busy = taken(context, kind)
        if len(busy | asking) > budget.at_once and asking - busy:
            names = ", ".join(scope.text for scope in sorted(busy)[:4])
            text = f"{len(busy)} {kind} domains are taken whole, {budget.at_once} may be at once ({names})"
            found.append(Blocker("budget", f"{kind} domains", text, observed("one of them is done", "hostler")))
    return found


def taken(context: DecisionContext, kind: str) -> set[Scope]:
    """Domains of this kind whose nodes are being brought up, whose rack is flashed, or that an act takes whole."""
    fleet = context.fleet
    nodes = [fleet.nodes[i] for i in fleet.index.members(f"phase:{Phase.initializing.value}")]
    nodes += [node for i in fleet.index.members("together") if _is_of_a_domain(node := fleet.nodes[i])]
    writing = [rack for rack in fleet.racks.values() if _is_written(rack)]
    nodes += [fleet.nodes[i] for rack in writing for i in fleet.index.members(Scope(RACK, rack.name).shared)]
    assets = [asset for rack in writing for asset in fleet.assets_of(rack.name)]
    found = {d for node in nodes for d in node.domains if d.kind == kind}
    return (
        found
        | {d for asset in assets for d in asset.domains if d.kind == kind}
        | {Scope(RACK, rack.name) for rack in writing if kind == RACK}
    )


def _is_of_a_domain(node: Node) -> bool:
    plan = node.plan
    return plan is not None and plan.group.scope is not None and plan.state != "proposed"


def _is_written(rack: Rack) -> bool:
    run = rack.run
    return run is not None and bool(run.acts) and (run.acted > 0 or any(one.plan == run.id for one in rack.operations))


def is_whole(context: DecisionContext, domain: Scope, asking: frozenset[str]) -> bool:
    """Whether all of the domain that is in production is asked for at once: nothing of it is left to be spared."""
    others = [i for i in context.fleet.index.members(domain.shared) if i not in asking]
    return all(context.fleet.nodes[i].phase is not Phase.production for i in others)
