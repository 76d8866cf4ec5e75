"""Use of a pool's budget now: nodes that are away, what is done to each, since when, and what that waits for."""

from hostler.client.answers import BudgetUse, BudgetUser
from hostler.core.policy.budgets import allowance, taken_by
from hostler.core.state.configuration import Pool
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, Node

USERS_SHOWN = 20


def budget_use(fleet: Fleet, pool: Pool, *, reasons: bool) -> BudgetUse:
    """The pool's budget as it is used now; `reasons`: with what each of its users waits for."""
    index, limit = fleet.index, allowance(pool.budget, pool.target, ActClass.pending)
    away = index.members(f"out:{pool.name}")
    members, serving = index.count(f"pool:{pool.name}"), index.count(f"serving:{pool.name}")
    return BudgetUse(
        limit=limit,
        reserve=allowance(pool.budget, pool.target, ActClass.immediate) - limit,
        used=max(0, pool.target - serving),
        missing=max(0, pool.target - members),
        users=tuple(_user(fleet, fleet.nodes[node_id], reasons=reasons) for node_id in away[:USERS_SHOWN]),
        more=max(0, len(away) - USERS_SHOWN),
        waiting=index.count(f"short:pool:{pool.name}"),
    )


def _user(fleet: Fleet, node: Node, *, reasons: bool) -> BudgetUser:
    plan = node.plan if node.plan is not None and node.plan.state != "proposed" else None
    since = plan.recorded_at if plan is not None else node.phase_since
    if plan is None and node.cordons and (holds := fleet.holds_of(node.id)):
        since = holds[0].since
    step = plan.steps[plan.index].operation if plan and plan.state == "running" and plan.index < len(plan.steps) else ""
    waits = node.waiting.blockers[0].text if reasons and node.waiting is not None and node.waiting.blockers else ""
    return BudgetUser(node.id, taken_by(node), since, step, waits)
