"""Tickets of conditions that no remedy ends: one per cause, closed by proof, opened again if the cause comes back.

Level, not edge: what stands on a node now says which tickets there are. A ticket's id is made of what it is about, so
the same cause never has two, and what comes again opens the same one. A person's word that it is done is noted; what
whoever sees the condition sees next closes the ticket, or shows that it stands on.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from zlib import crc32

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.policy.incidents import explained
from hostler.core.policy.remedy_escalation import rule_for
from hostler.core.state import events as e
from hostler.core.state.cases import CONDITION, Ticket
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Rest, Wait, asked_again
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, Condition, HoldKind, Node, Phase, Severity
from hostler.core.state.verbs.nodes import ClearCondition
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.core.state.ways_out import WayOut, by_act, observed
from hostler.core.tables.conditions import CONDITIONS, ConditionKind
from hostler.core.tables.conditions.row import HandWork
from hostler.core.tables.recipe_facts import is_protective

_OF_OTHERS = frozenset({Phase.registered, Phase.initializing, Phase.debug, Phase.rma, Phase.retired})
"""Phases in which engineers, the vendor or the rack's builders have the machine: nobody else is sent to it."""

_ARRIVING = frozenset({Phase.registered, Phase.initializing})
"""Of these the phases before anybody was at the machine: what keeps it from coming up is asked for all the same."""

_GONE = frozenset({Phase.rma, Phase.retired})

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]+")


def beside(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer; where it is none to act on, the node's tickets are made to agree with its conditions."""
    if isinstance(answer, Act) or (not node.conditions and context.fleet.index.lacks(f"ticket:{node.id}")):
        return answer
    standing = [t for t in context.fleet.tickets_about(node.id) if t.kind == CONDITION]
    kept = (event for ticket in standing for event in _kept(context, node, ticket))
    fresh = (
        e.TicketOpened(_ticket(context, node, condition, identity))
        for identity, condition in _wanted(context, node).items()
        if identity not in context.fleet.tickets
    )
    events = (*kept, *fresh)
    return Act(events) if events else asked_again(context.now, answer, *_moments(context, node))


ASKED_MOST = 8
"""So many tickets of one node are named as what it waits for."""


def counted(context: DecisionContext, node: Node, answer: Answer) -> Answer:
    """The answer; a node at rest waits for the people whom its tickets ask, and so is counted among those that wait.

    Of conditions that many nodes show there is one ticket, and each of these nodes waits for it.
    """
    if not isinstance(answer, Rest) or (not node.conditions and context.fleet.index.lacks(f"ticket:{node.id}")):
        return answer
    asked = sorted(_asked(context, node).values(), key=lambda one: (one[0].opened, one[0].id))
    if not asked:
        return answer
    blockers = tuple(Blocker("person", ticket.id, text, way) for ticket, text, way in asked[:ASKED_MOST])
    what = asked[0][0].fault if asked[0][0].kind == CONDITION else asked[0][0].action.partition(" ")[0]
    return Wait(what or asked[0][0].kind, blockers, answer.until, in_hands=True)


def _asked(context: DecisionContext, node: Node) -> dict[str, tuple[Ticket, str, WayOut]]:
    """Open tickets for which the node waits by their ids, with what they say of it and what ends them."""
    found: dict[str, tuple[Ticket, str, WayOut]] = {}
    for identity, condition in _wanted(context, node).items():
        if (ticket := context.fleet.tickets.get(identity)) is not None:
            found[identity] = (
                ticket,
                f"{_summary(node, condition)} (ticket {identity})",
                _way(node, condition, ticket),
            )
    for ticket in context.fleet.tickets_about(node.id):
        if ticket.kind not in (CONDITION, "consent"):
            closed = by_act(CloseTicket(), ticket.id, "the ticket is closed")
            found[ticket.id] = (ticket, f"{ticket.summary} (ticket {ticket.id})", closed)
    return found


def _way(node: Node, condition: Condition, ticket: Ticket) -> WayOut:
    """The end of the wait for the condition's ticket: a person's word where nothing else does, else what is seen."""
    hands = _hands(ticket)
    if condition.clears != "observation":
        return by_act(ClearCondition(condition.id), node.id, "a person says that it is over")
    command = f" ({hands.command.format(node=node.id)})" if hands.command else ""
    return observed(f"{hands.proof[:1].lower()}{hands.proof[1:].rstrip('.')}{command}", "site")


def _moments(context: DecisionContext, node: Node) -> Iterator[datetime]:
    """When the clock alone opens a ticket, or shows that what was said to be done is not."""
    for condition in node.conditions:
        hands = hands_of(condition)
        if hands is not None and hands.after_s:
            yield condition.since + _span(context, node, hands.after_s)
    for ticket in context.fleet.tickets_about(node.id):
        if ticket.kind == CONDITION and ticket.done_at is not None:
            yield ticket.done_at + _span(context, node, _hands(ticket).proof_s)


def said_done(context: DecisionContext, ticket: Ticket, person: str, reason: str) -> tuple[str, tuple[e.Event, ...]]:
    """Answer and events when a person says that a condition's work is done.

    Of a condition that nothing observes the end of, the technician's word is the proof.
    """
    node = context.fleet.nodes.get(ticket.node)
    condition = _condition(node, ticket) if node is not None else None
    if node is None or condition is None:
        return f"ticket {ticket.id} closed", (e.TicketClosed(ticket.id, reason, person),)
    hands = _hands(ticket)
    if condition.clears == "operator" and hands.owner == "technician":
        cleared = e.ConditionCleared(node.id, condition.id, person, reason)
        return f"ticket {ticket.id} closed, and {condition.type} with it", (
            cleared,
            e.TicketClosed(ticket.id, reason, person),
        )
    noted = replace(ticket, done_by=person, done_at=context.now, updated=context.now)
    text = f"ticket {ticket.id} is noted as done and stays open until it is proven: {hands.proof}"
    return text, (e.TicketUpdated(noted),)


def hands_of(condition: Condition) -> HandWork | None:
    """Work that a person does about the condition, None where its row asks for nobody."""
    kind = CONDITIONS.get(condition.type)
    return work_on(kind) if kind is not None else None


def work_on(kind: ConditionKind) -> HandWork | None:
    """Work of a person on a condition of this kind, None where nobody need come.

    Where the policy has no remedy for a kind that the table leaves to remedies, only a person ends it: the row's own
    words have to do.
    """
    if kind.hands is not None or kind.source == "person":
        return kind.hands
    lasts = kind.clears in ("remedy", "operator") and kind.severity >= Severity.warning
    if not lasts and (kind.clears != "observation" or kind.severity < Severity.degraded):
        return None
    proof = "It is no longer shown."
    command = f"hostler node clear-condition {{node}} --condition {kind.type} --reason …" if lasts else ""
    if lasts:
        proof = "A person says that it is over, or asks for a remedy."
    return HandWork("Nothing.", kind.investigate, proof, owner="operator", last=True, command=command)


def _hands(ticket: Ticket) -> HandWork:
    hands = work_on(CONDITIONS[ticket.fault]) if ticket.fault in CONDITIONS else None
    return hands or HandWork("", "", "The condition is over.")


def _span(context: DecisionContext, node: Node, seconds: float) -> timedelta:
    return timedelta(seconds=scaled(context.fleet.policy_of(node), seconds))


def _wanted(context: DecisionContext, node: Node) -> dict[str, Condition]:
    """Tickets that the node's conditions ask for now: id → the condition that it would be opened for."""
    if node.phase in _OF_OTHERS - _ARRIVING or _is_worked_on(context.fleet, node):
        return {}
    found: dict[str, Condition] = {}
    for condition in node.conditions:
        hands = hands_of(condition)
        if hands is None or condition.unknown_since is not None or not _still_asked(context, node, condition):
            continue
        if node.phase in _ARRIVING and not hands.early:
            continue
        ripe = context.now - condition.since >= _span(context, node, hands.after_s)
        if ripe:
            found.setdefault(ticket_id(node, condition, hands), condition)
    return found


def _is_for_a_person(context: DecisionContext, node: Node, condition: Condition) -> bool:
    """Whether no remedy answers it; what powers a node off for its protection leaves the cause to a person."""
    if condition.clears == "age" or condition.remedy or condition.drill:
        return False
    policy = context.fleet.policy_of(node)
    remedy, rule = rule_for(policy, condition).remedy, policy.rules.get(condition.type)
    if rule is not None and rule.shadow and CONDITIONS[condition.type].hands is None:
        return False  # on trial: what it would do is told, and nobody is called for it
    return not remedy or is_protective(remedy)


def _is_worked_on(fleet: Fleet, node: Node) -> bool:
    return any(hold.kind is HoldKind.physical_work for hold in fleet.holds_of(node.id))


def _covers(ticket: Ticket, hands: HandWork) -> bool:
    """Whether another ticket about the node asks for this already: its inspection, or anything, for what comes last."""
    if ticket.kind == unanswered_checks.TICKET and ticket.fault == unanswered_checks.INVENTORY:
        return True
    return hands.last and (ticket.kind != CONDITION or not _hands(ticket).last)


def ticket_id(node: Node, condition: Condition, hands: HandWork) -> str:
    """The id of the condition's ticket: the same whenever the same cause is shown."""
    scope, part = {
        "": (node.id, condition.part),
        "sku": (f"sku-{node.sku}", condition.part),
        "part": ("all", condition.part),
        "cell": ("all", ""),
    }[hands.shared]
    return "-".join(_safe(word) for word in (scope, condition.type.replace(".", "-"), part) if word)


def _safe(word: str) -> str:
    """The word as an id can carry it; one that had to be changed or cut keeps a checksum of what it was."""
    fit = _UNSAFE.sub("-", word)
    return (
        fit
        if fit.replace("-", "") == word.replace("-", "") and len(fit) <= 80
        else (f"{fit[:60].strip('-')}-{crc32(word.encode()):08x}")
    )


def _kept(context: DecisionContext, node: Node, ticket: Ticket) -> Iterator[e.Event]:
    """Events of an open ticket: it is over, goes to another node that shows the same, or is found not done."""
    shown = _condition(node, ticket)
    if shown is None or not _shows(context, node, ticket):
        yield from _ended(context, node, ticket)
        return
    late = ticket.done_at is not None and context.now - ticket.done_at >= _span(context, node, _hands(ticket).proof_s)
    if late and shown.unknown_since is None:
        again = f"{_summary(node, shown)} {ticket.done_by} said that it was done, and it is still shown."
        yield e.TicketUpdated(
            replace(ticket, summary=again, done_at=None, updated=context.now, reopened=context.now, done_by="")
        )


def _condition(node: Node, ticket: Ticket) -> Condition | None:
    """The condition on the node that the ticket is about."""
    for condition in node.conditions:
        hands = hands_of(condition)
        if condition.type == ticket.fault and hands is not None and ticket_id(node, condition, hands) == ticket.id:
            return condition
    return None


def _still_asked(context: DecisionContext, node: Node, condition: Condition) -> bool:
    hands = hands_of(condition)
    aside = explained(context.fleet, node)
    if hands is None or condition.id in aside or not _is_for_a_person(context, node, condition):
        return False
    if {c.type for c in node.conditions}.intersection(hands.symptom_of):
        return False
    return not any(_covers(ticket, hands) for ticket in context.fleet.tickets_about(node.id))


def _ended(context: DecisionContext, node: Node, ticket: Ticket) -> Iterator[e.Event]:
    if _hands(ticket).shared and (other := _other(context, node, ticket)) is not None:
        yield e.TicketUpdated(replace(ticket, node=other.id, done_at=None, done_by="", updated=context.now))
        return
    yield e.TicketClosed(ticket.id, _why(context, node, ticket), ticket.done_by or "hostler")


def _other(context: DecisionContext, node: Node, ticket: Ticket) -> Node | None:
    """Another node that shows what a shared ticket is about."""
    fleet = context.fleet
    others = (fleet.nodes[node_id] for node_id in sorted(fleet.index.members("ailing")) if node_id != node.id)
    return next((other for other in others if _shows(context, other, ticket)), None)


def _shows(context: DecisionContext, node: Node, ticket: Ticket) -> bool:
    condition = _condition(node, ticket)
    return condition is not None and node.phase not in _GONE and _still_asked(context, node, condition)


def _why(context: DecisionContext, node: Node, ticket: Ticket) -> str:
    """Why it is over: gone, the vendor's, explained by an incident, answered by a remedy, or another's symptom."""
    condition = _condition(node, ticket)
    if condition is None:
        said = f"{ticket.done_by} said that it was done, and it is" if ticket.done_by else "it is"
        return f"{said} no longer shown"
    if node.phase in _GONE:
        return f"{node.id} is in {node.phase}"
    if incident := next(iter(context.fleet.incidents_of(node.id)), None):
        return f"explained by incident {incident.id}"
    return "another ticket or a remedy answers it"


def _ticket(context: DecisionContext, node: Node, condition: Condition, identity: str) -> Ticket:
    kind = CONDITIONS[condition.type]
    hands = work_on(kind)
    assert hands is not None, "only rows with work for a person are asked for"
    part = context.fleet.parts.get(condition.part) if condition.part else None
    return Ticket(
        id=identity,
        node=node.id,
        kind=CONDITION,
        summary=_summary(node, condition),
        opened=context.now,
        hardware=part.serial if part else node.binding("serial"),
        component=part.kind if part else condition.part,
        fault=condition.type,
        action=instructions(kind, hands) + (f" Next: {hands.command.format(node=node.id)}" if hands.command else ""),
        account=node.assignment.tenant if node.assignment else "",
        handover=node.handover,
        owner=hands.owner,
        due=hands.due,
    )


def _summary(node: Node, condition: Condition) -> str:
    on = f" on {condition.part}" if condition.part else ""
    said = f": {condition.evidence[-1].text}" if condition.evidence else ""
    hands = hands_of(condition)
    wide = " Others may show the same: hostler node list." if hands is not None and hands.shared else ""
    return f"{node.id} shows {condition.type}{on}{said}."[:480] + wide


def instructions(kind: ConditionKind, hands: HandWork) -> str:
    """The row's work in one text: what to look at, what to bring, where, and what proves it done."""
    return f"Look at: {kind.investigate} Bring: {hands.bring} Where: {hands.where} Done when: {hands.proof}"
