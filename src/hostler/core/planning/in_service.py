"""Needs of a node in production beside remedies: a cordon for a person, an uncordon, a new proof."""

from collections.abc import Iterable

from hostler.core.conditions.sku_match import gaps
from hostler.core.planning.plan_builder import Frame, record
from hostler.core.planning.remediation import retry_wait
from hostler.core.policy.budgets import reopens
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.holds_and_pauses import held, scopes
from hostler.core.report.sentences import asked_for
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait
from hostler.core.state.model import OWNER, ActClass, Blocker, Hold, HoldKind, Node
from hostler.core.state.requalification import has_proven_itself
from hostler.core.tables.recipes import RECIPES

CORDONING = (HoldKind.cordon, HoldKind.physical_work, HoldKind.power)
"""Kinds of holds that keep new work away; under the last two the node is dark as well."""


def keeping_away(holds: Iterable[Hold]) -> list[Hold]:
    """Holds that keep new work away; who lifted our cordon by other means overrides a cordon."""
    found = list(holds)
    overridden = any(h.kind is HoldKind.override for h in found)
    return [h for h in found if h.kind in CORDONING and not (overridden and h.kind is HoldKind.cordon)]


def serve(context: DecisionContext, node: Node) -> Answer:
    """Answer for a node in production that needs no remedy; at rest, the approvals that it waits for."""
    answer = _serve(context, node)
    if not isinstance(answer, Rest) or not (asked := context.fleet.approvals_for(node.id)):
        return answer
    ends = "a second person approves or denies it (hostler approval list)"
    return Wait(asked[0].intent.verb, tuple(Blocker("approval", a.id, asked_for(a), ends) for a in asked), until=None)


def _serve(context: DecisionContext, node: Node) -> Answer:
    if context.fleet.holds.bare and not node.cordons and not node.attempts and not node.repairs:
        return _unseen(context, node) or Rest()
    holds = list(context.fleet.holds_on(scopes(context.fleet, node)))
    kept = keeping_away(holds)
    if kept and OWNER not in node.cordons and node.assignment is not None:
        overrides = tuple(held(hold) for hold in holds if hold.kind is HoldKind.override)
        return Wait("cordon", overrides, until=None) if overrides else _cordon(context, node, kept)
    if kept:
        return Wait("cordoned", tuple(held(hold) for hold in kept), until=None)
    if node.cordons or not has_proven_itself(node):
        name = "uncordon" if has_proven_itself(node) else "return_to_service"
        again = Act((record(context, node, RECIPES[name], Frame(ActClass.easing)),))
        return retry_wait(context, node, name) or again
    if node.assignment is None and (waiting := retry_wait(context, node, "deliver")):
        return waiting
    return _unseen(context, node) or Rest()


def _unseen(context: DecisionContext, node: Node) -> Wait | None:
    """Why a spare is delivered to nobody: it is not what its SKU says, or nobody has seen what it is in this boot."""
    if node.assignment is not None or not (found := gaps(context.fleet, node)):
        return None
    text = "; ".join(str(gap) for gap in found)[:400]
    ends = "its agent or BMC shows what its SKU says"
    return Wait("deliver", (Blocker("inventory", text[:120], text, ends),), until=None)


def _cordon(context: DecisionContext, node: Node, kept: list[Hold]) -> Answer:
    """A cordon counts as disruption and asks the guards; of a node that is dark anyway it takes nothing."""
    dark = any(h.kind is not HoldKind.cordon for h in kept)
    act_class = ActClass.easing if dark else ActClass.immediate
    request = DisruptionRequest("cordon", act_class, (node,), approved=True)
    if found := blockers(context, request):
        return Wait("cordon", found, until=reopens(context, found))
    plan = record(context, node, RECIPES["cordon"], Frame(act_class, remedy="cordon"))
    return retry_wait(context, node, "cordon") or Act((plan,))
