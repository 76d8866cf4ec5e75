"""Tickets of technicians who pull the cords of a machine: open while an operation waits, closed by what the BMC shows.

Nothing is sent. A person's word that it is done is noted, and closes nothing: what follows within PROOF is the proof.
Where nothing follows the ticket says so and asks again.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.planning.plan_abort import limit_at
from hostler.core.state import events as e
from hostler.core.state.cases import CORDS, DUE_NOW, Ticket
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, asked_again
from hostler.core.state.durations import duration
from hostler.core.state.model import Blocker, Node, Operation
from hostler.core.state.operations import UNPLUG, PullCords
from hostler.core.state.ways_out import observed

DARK = timedelta(minutes=2)
"""How long the cords stay out: supplies and standby rails lose their charge."""
PROOF = timedelta(minutes=15)
"""So long after a person's word a BMC may be away and come back: up to 200 s were seen, and some need ten minutes."""
NAMED_MOST = 16


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer; where it is none to act on, the ticket agrees with what is waited for."""
    operation = asked_of(node)
    if isinstance(answer, Act) or (operation is None and context.fleet.index.lacks(f"ticket:{node.id}")):
        return answer
    standing = [t for t in context.fleet.tickets_about(node.id) if t.kind == CORDS]
    current = next((t for t in standing if operation is not None and t.id == ticket_id(operation)), None)
    closed = tuple(e.TicketClosed(t.id, _ended(node, t), t.done_by or "hostler") for t in standing if t is not current)
    if operation is None:
        return Act(closed) if closed else answer
    if current is None:
        return Act((*closed, e.TicketOpened(_ticket(context, node, operation))))
    if current.done_at is None:
        return answer
    if context.now >= current.done_at + PROOF:
        return Act((*closed, e.TicketUpdated(_not_so(context, node, current))))
    return asked_again(context.now, answer, current.done_at + PROOF)


def said_done(context: DecisionContext, ticket: Ticket, person: str, reason: str) -> tuple[str, tuple[e.Event, ...]]:
    """Answer and events when a person says that the cords were pulled: the BMC's restart closes it, no word does."""
    node = context.fleet.nodes.get(ticket.node)
    operation = asked_of(node) if node is not None else None
    if operation is None or ticket.id != ticket_id(operation):
        return f"ticket {ticket.id} closed", (e.TicketClosed(ticket.id, reason, person),)
    noted = replace(ticket, done_by=person, done_at=context.now, updated=context.now)
    text = (
        f"ticket {ticket.id} is noted as done and stays open until the BMC of {ticket.node} shows that it has restarted"
        f"; where it does not within {duration(PROOF.total_seconds())}, you are asked again"
    )
    return text, (e.TicketUpdated(noted),)


def asked_of(node: Node) -> Operation | None:
    """The operation that waits for a technician, None where none does."""
    return node.operation if node.operation is not None and node.operation.kind == UNPLUG else None


def blocker(operation: Operation) -> Blocker:
    """The technician, as the plan waits for them."""
    text = f"a technician is to pull its cords for {duration(DARK.total_seconds())} (ticket {ticket_id(operation)})"
    return Blocker("person", "technician", text, observed("its BMC shows that it has restarted", "bmc"))


def ticket_id(operation: Operation) -> str:
    """The id of the operation's ticket."""
    return f"{operation.id}-cords"


def _ticket(context: DecisionContext, node: Node, operation: Operation) -> Ticket:
    act, serial = operation.act, node.binding("serial")
    what = ", ".join(act.components[:NAMED_MOST]) if isinstance(act, PullCords) and act.components else "firmware"
    return Ticket(
        id=ticket_id(operation),
        node=node.id,
        kind=CORDS,
        summary=f"pull the cords of {node.id}, {_place(node)}: {what} runs only after all power was off"[:500],
        opened=context.now,
        hardware=serial,
        component="cords",
        fault=f"{what} is written and does not run yet"[:500],
        action=_work(context, node, operation),
        account=node.assignment.tenant if node.assignment else "",
        handover=node.handover,
        owner="technician",
        due=DUE_NOW,
    )


def _work(context: DecisionContext, node: Node, operation: Operation) -> str:
    """The machine, its cords, for how long they are out, and the proof."""
    supplies = sorted(part.slot or part.serial for part in context.fleet.parts.of(node.id) if part.kind == "psu")
    which = f"the cords of its {len(supplies)} power supplies ({', '.join(supplies[:NAMED_MOST])})"
    if not supplies:
        which = "all its power cords (the inventory lists no supplies; a tray without cords leaves its busbar)"
    until, out = _until(node, operation), duration(DARK.total_seconds())
    return (
        f"{_place(node)}, serial {node.binding('serial') or 'unknown'}: it is switched off. Pull {which}, leave all of "
        f"them out together for {out}, and plug all of them in again. Do not switch it on: that follows. Done when: "
        f"its BMC shows that it has restarted; the ticket then closes by itself, and versions are verified. "
        f"Asked for until {until:%Y-%m-%d %H:%M} UTC; what is done later: hostler node zap-again {node.id} "
        "--reason …"
    )


def _place(node: Node) -> str:
    where = node.position
    return f"rack {where.rack or 'unknown'} U{where.u or '?'}"


def _until(node: Node, operation: Operation) -> datetime:
    limit = limit_at(node, node.plan) if node.plan is not None else None
    return min(operation.deadline, limit) if limit is not None else operation.deadline


def _not_so(context: DecisionContext, node: Node, ticket: Ticket) -> Ticket:
    """The ticket asked for again, with what was said and what was seen."""
    assert ticket.done_at is not None, "somebody has said that it is done"
    told = (
        f"{ticket.done_by} said at {ticket.done_at:%H:%M} UTC that the cords of {node.id} were out; its BMC has not "
        f"restarted since. Compare the serial at the machine: {ticket.hardware or 'unknown'}, {_place(node)}"
    )
    return replace(ticket, fault=told[:500], done_by="", done_at=None, updated=context.now, reopened=context.now)


def _ended(node: Node, ticket: Ticket) -> str:
    """Why nobody is asked any more."""
    plan = node.plan
    passed = plan is not None and any(step.operation == UNPLUG for step in plan.steps[: plan.index])
    said = f"{ticket.done_by} said that it was done, and its" if ticket.done_by else "its"
    return f"{said} BMC has restarted" if passed else "the plan that waited for it has ended; leave all cords in"
