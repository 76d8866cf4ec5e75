"""Yes to proposed plans, and to the end of running work."""

from hostler.core.intents.ask import Ask, Granted, RefusalError, hold_of, node_of
from hostler.core.planning.domain_plans import mates, scope_of
from hostler.core.policy.guards import DisruptionRequest, blockers
from hostler.core.state import events as e
from hostler.core.state.model import ConsentedWork, HoldKind, Node, WorkClass


def approve(ask: Ask) -> Granted:
    """Yes to a proposed plan, where the guards let it begin now: what was proposed has kept nothing free for it."""
    node = node_of(ask)
    plan = node.plan
    if plan is None or plan.state != "proposed":
        raise RefusalError(f"{node.id} has no proposed plan")
    nodes = together(ask, node)
    scope = scope_of(plan.group)
    request = DisruptionRequest(
        plan.remedy or plan.name, plan.act_class, nodes, plan.causes, approved=True, scope=scope
    )
    if found := blockers(ask.scene, request):
        waits = "; ".join(f"{b.text} (ends when {b.ends_when})" for b in found[:5])
        raise RefusalError(f"{plan.name} cannot begin now: {waits}")
    approved = tuple(e.PlanApproved(n.id, n.plan.id, ask.intent.person) for n in nodes if n.plan is not None)
    return f"{plan.name} approved" + (f" for all {len(nodes)} nodes of {scope}" if scope else ""), approved


def together(ask: Ask, node: Node) -> tuple[Node, ...]:
    """The node, with the others of a domain act whose plans are proposed with its own."""
    others = (mate for mate, theirs in mates(ask.scene.fleet, node) if theirs.state == "proposed")
    return tuple(sorted((node, *others), key=lambda n: n.id))


def reject(ask: Ask) -> Granted:
    """No to a proposed plan: the node is held as it is."""
    node = node_of(ask)
    if node.plan is None or node.plan.state != "proposed":
        raise RefusalError(f"{node.id} has no proposed plan")
    hold = hold_of(ask, node.id, HoldKind.operator)
    why = f"rejected by {ask.intent.person}"
    ended = (e.PlanEnded(n.id, n.plan.id, "cancelled", why) for n in together(ask, node) if n.plan is not None)
    return f"rejected; hold {hold.id} keeps the node as it is", (e.HoldPlaced(hold), *ended)


def consent(ask: Ask) -> Granted:
    """Yes, evict: the work that a consent ticket asks about may be ended, for its remedy and for no other."""
    scene, intent = ask.scene, ask.intent
    ticket = scene.fleet.tickets.get(intent.target)
    if ticket is None or ticket.kind != "consent":
        raise RefusalError(f"no open consent ticket {intent.target}; see `hostler ticket list`")
    node = scene.fleet.nodes[ticket.node]
    pool = scene.fleet.pool_of(node)
    if intent.bounds.tenant and pool is not None and pool.owner and intent.person not in (pool.owner, ticket.owner):
        raise RefusalError(f"{ticket.owner} is asked for consent: they answer, or an operator does")
    running = scene.present.workloads(node)
    if running is None:
        raise RefusalError(f"what runs on {node.id} is unknown: its scheduler has not been heard; try again then")
    work = tuple(
        ConsentedWork(w.id, ticket.action, ticket.id, intent.person, scene.now)
        for w in running
        if w.work_class is WorkClass.uninterruptible
    )
    if not work:
        raise RefusalError(f"nothing that needs consent runs on {node.id} any more")
    names = ", ".join(w.workload for w in work)
    consented = e.WorkConsented(node.id, ticket.id, work, intent.reason)
    closed = e.TicketClosed(ticket.id, f"{intent.person} consents: {intent.reason}"[:500], intent.person)
    return f"{ticket.action} may end {names} on {node.id}", (consented, closed)
