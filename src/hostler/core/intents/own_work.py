"""Ownership of work on a machine: a claim of a ticket about it, or the hold of who works on it."""

from hostler.core.intents.ask import AnyAsk, RefusalError
from hostler.core.state.cases import Ticket
from hostler.core.state.model import HoldKind, Node


def claimed(ask: AnyAsk, node: Node) -> Ticket | None:
    """The ticket that they have claimed: about the node, or one that asks for a walk through its rack."""
    tickets = ask.context.fleet.tickets.values()
    return next((t for t in tickets if _is_about(t, node) and t.holder(ask.context.now) == ask.intent.person), None)


def works(ask: AnyAsk, node: Node) -> bool:
    """Whether they have begun work on the node and not ended it."""
    holds = ask.context.fleet.holds_of(node.id)
    return any(hold.kind is HoldKind.physical_work and hold.owner == ask.intent.person for hold in holds)


def demand(ask: AnyAsk, node: Node) -> None:
    """Raises RefusalError where the node is not theirs to work on; it names the command that makes it so."""
    if claimed(ask, node) is None and not works(ask, node):
        raise RefusalError(f"you have claimed no ticket about {node.id} and begun no work on it: {_first(ask, node)}")


def _first(ask: AnyAsk, node: Node) -> str:
    """The command to run first: a claim where a ticket is free, else what its holder does, else a scan."""
    found = [t for t in ask.context.fleet.tickets.values() if _is_about(t, node)]
    free = next((t for t in found if not t.holder(ask.context.now)), None)
    if free is not None:
        return f"claim it first (hostler ticket claim {free.id} --reason …)"
    if found:
        holder = found[0].holder(ask.context.now)
        how = f"hostler ticket hand-over {found[0].id} --reason …"
        return f"ask {ask.called(holder)} to hand it over first ({how}), or ask an operator"
    return (
        f"no ticket is open about it; begin work at the machine, which has it switched off "
        f"(hostler node start-work {node.id} --serial SERIAL --prepare --reason …), or ask an operator"
    )


def _is_about(ticket: Ticket, node: Node) -> bool:
    if ticket.kind == "consent":
        return False
    return ticket.node == node.id or any(stop.rack == node.position.rack != "" for stop in ticket.walk)
