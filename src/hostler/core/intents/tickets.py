"""Tickets and incidents: consent to the end of running work, and what is closed by a person's word."""

from hostler.core.intents.affected_nodes import freed
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, Nodes, RefusalError
from hostler.core.intents.attached_files import attach
from hostler.core.planning import cords
from hostler.core.policy import condition_tickets, fabric_cases, finding_walks
from hostler.core.policy.incidents import closed, individually
from hostler.core.policy.workload_consent import unknown_work
from hostler.core.state import events as e
from hostler.core.state.cases import CONDITION, CORDS, Incident
from hostler.core.state.customer_workloads import ConsentedWork, WorkClass
from hostler.core.state.verbs.tickets import (
    AddTicketFile,
    CloseIncident,
    CloseTicket,
    ConsentToEviction,
    TickStop,
    TreatIndividually,
)


def consent(ask: Ask[ConsentToEviction]) -> Granted:
    """Yes, evict: the work that a consent ticket asks about may be ended, for its remedy and for no other."""
    context, intent = ask.context, ask.intent
    ticket = context.fleet.tickets.get(intent.target)
    if ticket is None or ticket.kind != "consent":
        raise RefusalError(f"no open consent ticket {intent.target}; see `hostler ticket list`")
    node = context.fleet.nodes[ticket.node]
    pool = context.fleet.pool_of(node)
    if intent.bounds.tenant and pool is not None and pool.owner and intent.person not in (pool.owner, ticket.owner):
        contact = pool.owner if ticket.owner == pool.owner else ask.called(ticket.owner)  # the customer's own contact
        raise RefusalError(f"{contact} or an operator has to consent")
    running = context.live.workloads(node)
    if running is None:
        unknown = unknown_work(node, context.live)
        raise RefusalError(f"{node.id}: {unknown.text}; consent to it once that is known", way=unknown.ways[0])
    work = tuple(
        ConsentedWork(w.id, ticket.action, ticket.id, intent.person, context.now)
        for w in running
        if w.work_class is WorkClass.uninterruptible
    )
    if not work:
        raise RefusalError(f"nothing that needs consent runs on {node.id} any more")
    names = ", ".join(w.workload for w in work)
    consented = e.WorkConsented(node.id, ticket.id, work, intent.reason)
    closed = e.TicketClosed(ticket.id, f"{intent.person} consents: {intent.reason}"[:500], intent.person)
    return f"{ticket.action} may end {names} on {node.id}", (consented, closed)


def close_ticket(ask: Ask[CloseTicket]) -> Granted:
    """The work is done, or not needed. An incident's ticket is closed with the incident."""
    ticket = ask.context.fleet.tickets.get(ask.intent.target)
    if ticket is None:
        raise RefusalError(f"no open ticket {ask.intent.target}; see `hostler ticket list`")
    of = next((i for i in ask.context.fleet.incidents.values() if i.ticket == ticket.id), None)
    if of is not None:
        return f"ticket {ticket.id} and incident {of.id} closed", closed(of, ask.intent.person, ask.intent.reason)
    if (case := fabric_cases.of_ticket(ask.context.fleet, ticket)) is not None:
        text = f"ticket {ticket.id} closed; network {case.fabric} is validated now, and shows whether it is repaired"
        return text, tuple(fabric_cases.said_done(case, ask.intent.person, ask.intent.reason))
    if ticket.kind == finding_walks.WALK:
        text = f"ticket {ticket.id} closed; the network is validated now, and what is still found is asked for anew"
        return text, tuple(finding_walks.said_done(ask.context.fleet, ticket, ask.intent.person, ask.intent.reason))
    if ticket.kind == CORDS:
        return cords.said_done(ask.context, ticket, ask.intent.person, ask.intent.reason)
    if ticket.kind == CONDITION:
        return condition_tickets.said_done(ask.context, ticket, ask.intent.person, ask.intent.reason)
    return f"ticket {ticket.id} closed", (e.TicketClosed(ticket.id, ask.intent.reason, ask.intent.person),)


def tick_stop(ask: Ask[TickStop]) -> Granted:
    """A stop of a walk is said to be repaired: its network is validated, and shows whether it is."""
    context, intent, number = ask.context, ask.intent, ask.act.stop
    ticket = context.fleet.tickets.get(intent.target)
    if ticket is None or ticket.kind != finding_walks.WALK:
        raise RefusalError(f"no open walk {intent.target}; see `hostler ticket list`")
    if number > len(ticket.walk):
        raise RefusalError(f"walk {ticket.id} has {len(ticket.walk)} stops, and no {number}")
    if not context.may_write("walk_stop_changed"):
        raise RefusalError("not every controller of this cell reads ticks of a walk yet: close the ticket at its end")
    stop = ticket.walk[number - 1]
    if stop.proved is not None:
        return f"stop {number} is proved already: validations find it no more", ()
    events = tuple(finding_walks.ticked(context, ticket, number, intent.person, intent.reason))
    left = sum(not one.done_by and one.proved is None for one in ticket.walk) - (not stop.done_by)
    text = f"stop {number} of walk {ticket.id} is ticked; the network is validated now; {left} stops are left"
    return text, events


def add_file(ask: Ask[AddTicketFile]) -> Granted:
    """A photo or file belongs to the ticket. The same bytes are added once."""
    ticket = ask.context.fleet.tickets.get(ask.intent.target)
    if ticket is None:
        raise RefusalError(f"no open ticket {ask.intent.target}; see `hostler ticket list`")
    return attach(ask, ticket.files, lambda file: e.TicketFileAdded(ticket.id, ticket.node, file))


def _incident(ask: AnyAsk) -> Incident:
    incident = ask.context.fleet.incidents.get(ask.intent.target)
    if incident is None:
        raise RefusalError(f"no open incident {ask.intent.target}; see `hostler incident list`")
    return incident


def close_incident(ask: Ask[CloseIncident]) -> Granted:
    """The shared part is repaired, or was never at fault: what is left is treated node by node, within the budgets."""
    incident = _incident(ask)
    text = f"incident {incident.id} closed; {len(incident.members)} node(s) are now remedied one by one, within budgets"
    return text, closed(incident, ask.intent.person, ask.intent.reason)


def treat_individually(ask: Ask[TreatIndividually]) -> Granted:
    """The shared part's ticket stays; its members wait for it no longer."""
    incident = _incident(ask)
    if not incident.holds:
        raise RefusalError(f"the nodes of incident {incident.id} are remedied one by one already")
    text = f"{len(incident.members)} node(s) of incident {incident.id} are now remedied one by one, within budgets"
    return text, (individually(incident, ask.intent.person, ask.intent.reason),)


def _ticketed(ask: Ask[ConsentToEviction]) -> Nodes:
    ticket = ask.context.fleet.tickets.get(ask.intent.target)
    return (ticket.node,) if ticket is not None else ()


def _members(ask: AnyAsk) -> Nodes:
    return freed(ask, "incident", ask.intent.target)


HANDLERS: Handlers = {
    ConsentToEviction: Handler(consent, _ticketed),
    CloseTicket: Handler(close_ticket),
    TickStop: Handler(tick_stop),
    AddTicketFile: Handler(add_file),
    CloseIncident: Handler(close_incident, _members),
    TreatIndividually: Handler(treat_individually, _members),
}
