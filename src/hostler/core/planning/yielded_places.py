"""Places of budgets that pending plans give up to immediate remedies, before they have disturbed anybody.

A plan that has only cordoned its node, or waits there for a job to end, uses its pool's and its domains' budgets for as
long as that takes: days. Where an immediate remedy waits for such a place and for nothing else, the plan is taken back
through its undo tail, and its need waits for a place like any other. Those give way whose need is the youngest, and no
more than the remedies that wait; none where their places would not be enough. So that a site with a fault a day still
has its firmware written, a plan that has given way `YIELDS_MOST` times in a week keeps its place.
"""

from collections.abc import Iterable
from datetime import datetime

from hostler.core.planning.remediation import TRIES_WINDOW
from hostler.core.policy.budgets import allowance, domain_limit, unavailable
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.index_keys import awaited_places, places_of, yields_place
from hostler.core.state.model import ActClass, Node, Plan
from hostler.core.state.scopes import POOL, Scope

YIELDS_MOST = 3


def give_way(context: DecisionContext, node: Node, plan: Plan) -> tuple[e.Event, ...] | None:
    """The undoing of a plan whose place an immediate remedy needs, None where it keeps its place."""
    places = places_of(node) if yields_place(node) else ()
    wanted = [place for place in places if context.fleet.index.count(f"urgent:{place}")]
    if not wanted or _has_yielded(context, node, plan) >= YIELDS_MOST:
        return None
    if any(tried.yielded and tried.at == plan.recorded_at for tried in node.attempts):
        return None  # it gave way in this very moment, and nobody took the place
    for waiters in _waiting_for(context, wanted, frozenset(places)):
        if node.id in _called(context, waiters):
            first = waiters[0]
            what = first.waiting.what if first.waiting is not None else "its remedy"
            why = f"it has disturbed nobody yet, and {what} of {first.id} needs its place of the budget"
            return (e.PlanUndoing(node.id, plan.id, why, e.YIELDED),)
    return None


def _has_yielded(context: DecisionContext, node: Node, plan: Plan) -> int:
    name, since = plan.remedy or plan.name, context.sure - TRIES_WINDOW
    return sum(tried.yielded and tried.remedy == name and tried.at > since for tried in node.attempts)


def _waiting_for(context: DecisionContext, wanted: Iterable[str], places: frozenset[str]) -> list[list[Node]]:
    """Nodes whose immediate remedy needs some of these places and no others, those that need the same together."""
    found: dict[tuple[str, ...], dict[str, Node]] = {}
    for place in wanted:
        for node_id in context.fleet.index.members(f"urgent:{place}"):
            node = context.fleet.nodes[node_id]
            needs = awaited_places(node)
            if places.issuperset(needs):
                found.setdefault(needs, {})[node_id] = node
    return [list(nodes.values()) for nodes in found.values()]


def _called(context: DecisionContext, waiters: list[Node]) -> frozenset[str]:
    """The nodes whose plans give way to these, as many as are short and the youngest need first."""
    needs, fleet = awaited_places(waiters[0]), context.fleet
    able = [fleet.nodes[node_id] for node_id in fleet.index.members(f"yields:{needs[0]}")]
    able = [
        one
        for one in able
        if frozenset(places_of(one)).issuperset(needs)
        and one.plan is not None
        and _has_yielded(context, one, one.plan) < YIELDS_MOST
    ]
    short_of_one = max(_short(context, place, 1) for place in needs)
    if short_of_one > len(able):
        return frozenset()
    short = max(_short(context, place, len(waiters)) for place in needs)
    able.sort(key=lambda one: (_needed_since(one), one.id), reverse=True)
    return frozenset(one.id for one in able[: max(0, short)])


def _short(context: DecisionContext, place: str, asking: int) -> int:
    """How many places are missing for so many, when those that are being given up already are free."""
    fleet, scope = context.fleet, Scope.of(place)
    coming = fleet.index.count(f"yielding:{place}")
    if scope.kind == POOL:
        pool = fleet.pools.get(scope.name)
        if pool is None:
            return 0
        return unavailable(context, pool) + asking - coming - allowance(pool.budget, pool.target, ActClass.immediate)
    limit = domain_limit(context, scope)
    return fleet.index.count(f"disturbed:{place}") + asking - coming - limit if limit is not None else 0


def _needed_since(node: Node) -> datetime:
    plan = node.plan
    assert plan is not None, "asked of nodes with a plan that may yield"
    return min((c.since for c in node.conditions if c.id in plan.causes), default=plan.recorded_at)
