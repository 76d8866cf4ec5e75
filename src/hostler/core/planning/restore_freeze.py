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
from hostler.core.state.model import ActClass, Node


def standing_still(context: DecisionContext, node: Node, need: Need | None, answer: Answer) -> Answer:
    """The answer, or the wait in its place where it would act on what only a copy says."""
    since = context.fleet.cell.restored
    if since is None or not isinstance(answer, Act) or _may_go_on(context, node, need, since):
        return answer
    if _eases(node, answer):
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


def _eases(node: Node, answer: Act) -> bool:
    """A cordon is lifted where reality has been seen to be as the copy has it; power and checks wait."""
    agrees = node.compared is not None and not node.differences
    plans = [event.plan.name for event in answer.events if isinstance(event, e.PlanRecorded)]
    return agrees and plans == ["uncordon"] and len(answer.events) == 1
