"""Needs of a node in production beside remedies: a cordon for a person, an uncordon, a new proof.

A person's cordon is laid at once, ahead of every remedy that waits, and asks no guard: it ends nobody's work
(docs/adr/0168). Automation lays no cordon here; its plans have one as their first step, and pass the guards whole.
"""

from hostler.core.conditions.sku_match import gaps
from hostler.core.planning import refusals
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.planning.remediation import retry_wait
from hostler.core.policy.holds_and_pauses import held, keeping_away, lacks_cordon, scopes
from hostler.core.report.sentences import asked_for
from hostler.core.state.change_control import Approval
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait, asked_again
from hostler.core.state.model import OWNER, ActClass, Blocker, HoldKind, Node, Phase
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.verbs.approvals import ApproveRequest, DenyRequest, WithdrawRequest
from hostler.core.state.ways_out import Ways, by_act, observed
from hostler.core.tables.recipes import RECIPES


def cordon_as_asked(context: DecisionContext, node: Node, otherwise: Answer) -> Answer:
    """The cordon that a person asked for, or its end; `otherwise` where neither is due.

    While the scheduler has its pause, `otherwise` too, asked again when the pause is over.
    """
    answer: Answer = Rest()
    if lacks_cordon(context.fleet, node):
        answer = _ease(context, node, "cordon")
    elif _outlives_its_person(context, node):
        answer = _ease(context, node, "uncordon")
    return answer if isinstance(answer, Act) else asked_again(context.now, otherwise, answer.until)


def _outlives_its_person(context: DecisionContext, node: Node) -> bool:
    """Whether a cordon of ours is only left of a person's, which has ended: nothing was done behind it since."""
    if node.phase is not Phase.production or OWNER not in node.cordons or not has_proven_itself(node):
        return False
    proposed_at = node.plan.recorded_at if node.plan is not None else None
    tried = [attempt.remedy for attempt in node.attempts if attempt.at != proposed_at]
    if tried[-1:] != ["cordon"]:
        return False
    return not keeping_away(context.fleet.holds_on(scopes(context.fleet, node)))


def serve(context: DecisionContext, node: Node) -> Answer:
    """Answer for a node in production that needs no remedy; at rest, the approvals that it waits for."""
    answer = _serve(context, node)
    if not isinstance(answer, Rest) or not (asked := context.fleet.approvals_for(node.id)):
        return answer
    waits = tuple(Blocker("approval", a.id, asked_for(a), _answers(a)) for a in asked)
    return Wait(asked[0].intent.verb, waits, until=None)


def _answers(approval: Approval) -> Ways:
    """Acts of a second person on what somebody asked for, and of that somebody."""
    return (
        by_act(ApproveRequest(), approval.id, "a second person approves it"),
        by_act(DenyRequest(), approval.id, "a second person denies it"),
        by_act(WithdrawRequest(), approval.id, "it is withdrawn by whom it is from"),
    )


def _serve(context: DecisionContext, node: Node) -> Answer:
    if context.fleet.holds.bare and not node.cordons and not node.attempts and not node.repairs:
        return _unseen(context, node) or Rest()
    holds = list(context.fleet.holds_on(scopes(context.fleet, node)))
    kept = keeping_away(holds)
    if kept and OWNER not in node.cordons and node.assignment is not None:
        overrides = tuple(held(hold) for hold in holds if hold.kind is HoldKind.override)
        return Wait("cordon", overrides, until=None) if overrides else _ease(context, node, "cordon")
    if kept:
        return Wait("cordoned", tuple(held(hold) for hold in kept), until=None)
    if node.cordons or not has_proven_itself(node):
        name = "uncordon" if has_proven_itself(node) else "return_to_service"
        return _ease(context, node, name)
    if node.assignment is None and (waiting := retry_wait(context, node, "deliver")):
        return waiting
    return _unseen(context, node) or Rest()


def _ease(context: DecisionContext, node: Node, name: str) -> Answer:
    """The plan that eases. What a cordon takes counts as unavailable (`health.is_serving`); no budget is asked."""
    plan = record(context, node, RECIPES[name], Frame(ActClass.easing))
    return refusals.wait_after_refusal(context, node, name) or retry_wait(context, node, name) or Act((plan,))


def _unseen(context: DecisionContext, node: Node) -> Wait | None:
    """Why a spare is delivered to nobody: it is not what its SKU says, or nobody has seen what it is in this boot."""
    if node.assignment is not None or not (found := gaps(context.fleet, node)):
        return None
    text = "; ".join(str(gap) for gap in found)[:400]
    shown = observed("its agent or BMC shows what its SKU says", "agent")
    return Wait("deliver", (Blocker("inventory", text[:120], text, shown),), until=None)
