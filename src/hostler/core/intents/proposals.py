"""Answers to proposed plans."""

from hostler.core.intents import call_off
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, Nodes, RefusalError, hold_of, node_of
from hostler.core.planning.domain_plans import mates
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Node
from hostler.core.state.verbs.proposals import Approve, Reject


def approve(ask: Ask[Approve]) -> Granted:
    """Yes to a proposed plan, where the guards let it begin now: what was proposed has kept nothing free for it."""
    node = node_of(ask)
    plan = node.plan
    if plan is None or plan.state != "proposed":
        raise RefusalError(f"{node.id} has no proposed plan; see `hostler node get {node.id}`")
    nodes = together(ask, node)
    scope = plan.group.scope
    request = DisruptionRequest(
        plan.remedy or plan.name, plan.act_class, nodes, plan.causes, approved=True, scope=scope
    )
    if found := blockers(ask.context, request):
        waits = "; ".join(f"{b.text} (ends when {b.ends_when})" for b in found[:5])
        raise RefusalError(f"{plan.name} cannot begin now: {waits}")
    approved = tuple(e.PlanApproved(n.id, n.plan.id, ask.intent.person) for n in nodes if n.plan is not None)
    return f"{plan.name} approved" + (f" for all {len(nodes)} nodes of {scope}" if scope else ""), approved


def together(ask: AnyAsk, node: Node) -> tuple[Node, ...]:
    """The node, with the others of a domain act whose plans are proposed with its own."""
    others = (mate for mate, theirs in mates(ask.context.fleet, node) if theirs.state == "proposed")
    return tuple(sorted((node, *others), key=lambda n: n.id))


def reject(ask: Ask[Reject]) -> Granted:
    """No to a proposed plan: the node is held as it is."""
    node = node_of(ask)
    if node.plan is None or node.plan.state != "proposed":
        also = call_off.hint(ask, node.id)
        raise RefusalError(f"{node.id} has no proposed plan; see `hostler node get {node.id}`{also}")
    hold = hold_of(ask, node.scope, HoldKind.operator, ask.act.hours)
    why = f"rejected by {ask.intent.person}"
    ended = (e.PlanEnded(n.id, n.plan.id, "cancelled", why) for n in together(ask, node) if n.plan is not None)
    return f"rejected; hold {hold.id} keeps the node as it is", (e.HoldPlaced(hold), *ended)


def _approved(ask: Ask[Approve]) -> Nodes:
    """Saying yes to a domain act is saying so for all of it."""
    node = ask.context.fleet.resolve(ask.intent.target)
    plan = node.plan if node is not None else None
    if node is None or plan is None or plan.state != "proposed" or plan.group.scope is None:
        return ()
    return tuple(n.id for n in together(ask, node))


HANDLERS: Handlers = {Approve: Handler(approve, _approved), Reject: Handler(reject)}
