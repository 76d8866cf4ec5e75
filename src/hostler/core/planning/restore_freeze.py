"""After a restore everything stands still: what a copied journal would do next is shown, and only protection acts.

The guard "restored" stops what is new. This stops what was under way, and what no guard is asked about.
"""

from datetime import datetime

from hostler.core.planning.remediation import protect
from hostler.core.policy.holds_and_pauses import restored_at
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import ActClass, HoldKind, Node


def standing_still(context: DecisionContext, node: Node, need: Need | None, answer: Answer) -> Answer:
    """The answer, or the wait in its place where it would act on what only a copy says."""
    since = context.fleet.cell.restored
    if since is None or not isinstance(answer, Act) or _may_go_on(context, node, need, since):
        return answer
    if _eases(context, node, answer, since):
        return answer
    return Wait(
        node.plan.name if node.plan else need.remedy if need else node.phase.value, (restored_at(since),), until=None
    )


def _may_go_on(context: DecisionContext, node: Node, need: Need | None, since: datetime) -> bool:
    """Protection, and what a person has had begun since: an LED that is lit, a cordon that is lifted."""
    plan = node.plan
    if plan is not None and plan.act_class in (ActClass.protective, ActClass.easing) and plan.recorded_at >= since:
        return True
    if need is None or need.act_class is not ActClass.protective:
        return False
    return isinstance(protect(context, node, need), Act)


def _eases(context: DecisionContext, node: Node, answer: Act, since: datetime) -> bool:
    """A cordon that a person has asked for since is laid; one is lifted where reality is seen to be as the copy has it.

    Power and checks wait, and so does a cordon that only the copy has: it may have been lifted long ago.
    """
    plans = [event.plan.name for event in answer.events if isinstance(event, e.PlanRecorded)]
    if len(answer.events) != 1 or plans not in (["cordon"], ["uncordon"]):
        return False
    if plans == ["cordon"]:
        holds = context.fleet.holds_of(node.id)
        return any(h.kind is HoldKind.cordon and h.since >= since for h in holds)
    return node.compared is not None and not node.differences
