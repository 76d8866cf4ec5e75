"""Rules on trial: what a rule in shadow would do about a condition is recorded, once per standing, and not done."""

from datetime import timedelta

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.remedy_escalation import Need, shadow_need
from hostler.core.state import events as e
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Node, Shadow

AGAIN = timedelta(hours=1)
"""A condition that comes and goes is told of once in this time, however often it does."""
BLOCKER_TEXT = 200


def would_have(context: DecisionContext, node: Node) -> tuple[e.Event, ...]:
    """Events not told yet of the rules in shadow that this node's conditions meet.

    An instance's first mention is due when its condition begins to stand, another when its remedy has changed; of
    standings that begin within `AGAIN` of the last mention nothing is told.
    """
    if not node.conditions:
        return ()
    policy = context.fleet.policy_of(node)
    told = {(s.rule, s.remedy): s for s in node.shadows}
    found: dict[tuple[str, str], e.Event] = {}
    for condition in node.conditions:
        need = shadow_need(policy, node, condition, context.now)
        if need is None:
            continue
        last = told.get((need.rule, need.remedy))
        if last is None or (condition.since > last.at and context.now - last.at >= AGAIN):
            found.setdefault((need.rule, need.remedy), e.ShadowNoted(node.id, _shadow(context, node, need)))
    return tuple(found.values())


def _shadow(context: DecisionContext, node: Node, need: Need) -> Shadow:
    found = blockers(context, DisruptionRequest(need.remedy, need.act_class, (node,), confirm=need.confirm))
    works = context.live.workloads(node)
    return Shadow(
        rule=need.rule,
        remedy=need.remedy,
        act_class=need.act_class,
        at=context.now,
        waits=found[0].text[:BLOCKER_TEXT] if found else "",
        works=None if works is None else sum(w.work_class is not WorkClass.infrastructure for w in works),
    )
