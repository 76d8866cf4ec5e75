"""Claims of tickets, for a shift: handed over to somebody or back to the queue. They disturb no node."""

from datetime import timedelta

from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.verbs.tickets import ClaimTicket, HandOverTicket
from hostler.core.state.ways_out import by_act


def claim(ask: Ask[ClaimTicket]) -> Granted:
    """The ticket is theirs for a shift. Who has it may claim it anew; whose shift is over loses it to the next."""
    ticket = _work(ask)
    claimed = claimed_by(ask, ticket, ask.act.hours)
    late = f", and no longer {claimed.before}'s" if claimed.before else ""
    return f"ticket {ticket.id} is yours until {claimed.until:%Y-%m-%d %H:%M} UTC{late}", (claimed,)


def claimed_by(ask: AnyAsk, ticket: Ticket, hours: float) -> e.TicketClaimed:
    """The claim of who asks. Raises RefusalError where somebody else has the ticket."""
    refuse_others(ask, ticket)
    person, until = ask.intent.person, ask.context.now + timedelta(hours=hours)
    before = ticket.claimed_by if ticket.claimed_by != person else ""
    return e.TicketClaimed(ticket.id, ticket.node, person, until, ask.intent.reason, before)


def refuse_others(ask: AnyAsk, ticket: Ticket) -> None:
    """Raises RefusalError where somebody else has the ticket."""
    holder = ticket.holder(ask.context.now)
    if holder in ("", ask.intent.person):
        return
    raise RefusalError(
        f"{ask.called(holder)} has ticket {ticket.id} until {ticket.claimed_until:%Y-%m-%d %H:%M} UTC; ask them to "
        f"hand it over (hostler ticket hand-over {ticket.id} --reason …), or an operator as shift lead"
    )


def hand_over(ask: Ask[HandOverTicket]) -> Granted:
    """The ticket goes to another person for a shift, or back to the queue."""
    ticket, act, person = _work(ask), ask.act, ask.intent.person
    if ticket.claimed_by != person and not act.shift_lead:
        refuse_others(ask, ticket)
        raise RefusalError(
            f"you have not claimed ticket {ticket.id}; claim it first",
            way=by_act(ClaimTicket(), ticket.id, "you claim it"),
        )
    if act.to == ticket.holder(ask.context.now):
        raise RefusalError(
            f"{ask.called(act.to) or 'nobody'} has ticket {ticket.id} already; name another person with --to"
        )
    until = ask.context.now + timedelta(hours=act.hours) if act.to else None
    event = e.TicketHandedOver(ticket.id, ticket.node, person, ticket.claimed_by, act.to, until, ask.intent.reason)
    if until is None:
        return f"ticket {ticket.id} is back in the queue", (event,)
    return f"ticket {ticket.id} is {act.to}'s until {until:%Y-%m-%d %H:%M} UTC", (event,)


def _work(ask: AnyAsk) -> Ticket:
    ticket = ask.context.fleet.tickets.get(ask.intent.target)
    if ticket is None:
        raise RefusalError(f"no open ticket {ask.intent.target}; see `hostler ticket list`")
    if ticket.kind == "consent":
        raise RefusalError(f"ticket {ticket.id} asks for a consent, not for work; see `hostler ticket consent`")
    return ticket


HANDLERS: Handlers = {ClaimTicket: Handler(claim), HandOverTicket: Handler(hand_over)}
