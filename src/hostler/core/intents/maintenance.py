"""Maintenance windows, and people's work inside a machine."""

from collections.abc import Iterator

from msgspec.structs import replace

from hostler.core.conditions import unanswered_checks
from hostler.core.intents import call_off, dark_by_word, ticket_claims, work_preparation
from hostler.core.intents.ask import (
    AnyAsk,
    Ask,
    Granted,
    Handler,
    Handlers,
    Nodes,
    RefusalError,
    hold_of,
    node_of,
    workplace_of,
)
from hostler.core.intents.bounds import concerns
from hostler.core.planning.plan_builder import Frame, freeze
from hostler.core.planning.what_if import begins
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import OWNER, ActClass, HoldKind, Node, Phase
from hostler.core.state.repairs import RepairAction, RepairDone
from hostler.core.state.verbs.maintenance import (
    AnswerMaintenance,
    CancelMaintenance,
    EndWork,
    ScheduleMaintenance,
    StartWork,
)
from hostler.core.state.verbs.remedies import ReturnForMaintenance
from hostler.core.state.verbs.tickets import SHIFT_H
from hostler.core.state.ways_out import ByAct, by_act
from hostler.core.state.windows import Window, WindowAnswer
from hostler.core.tables.recipe_facts import rules_of
from hostler.core.tables.recipes import RECIPES


def schedule_window(ask: Ask[ScheduleMaintenance]) -> Granted:
    """Pending disruption of the scope happens inside this window."""
    act = ask.act
    if not act.starts < act.ends or act.ends <= ask.context.now:
        raise RefusalError("the maintenance window has to start before it ends, and to end in the future")
    window = Window(
        f"w{ask.context.fleet.cell.seq}", workplace_of(ask), act.starts, act.ends, ask.intent.reason, ask.intent.person
    )
    return f"window {window.id} scheduled", (e.WindowScheduled(window),)


def cancel_window(ask: Ask[CancelMaintenance]) -> Granted:
    """A maintenance window is called off."""
    if ask.intent.target not in ask.context.fleet.windows:
        also = call_off.hint(ask, ask.intent.target)
        raise RefusalError(f"no maintenance window {ask.intent.target}; see `hostler maintenance list`{also}")
    return "window cancelled", (e.WindowEnded(ask.intent.target, ask.intent.person),)


def answer_window(ask: Ask[AnswerMaintenance]) -> Granted:
    """A tenant acknowledges a window that concerns its nodes, or asks for another time.

    A window of others and one that does not exist are refused in the same words.
    """
    intent, rather = ask.intent, ask.act.rather
    tenant = intent.bounds.tenant
    if not tenant:
        raise RefusalError("only the tenants whose nodes a window concerns answer it: ask with a tenant's token")
    window = ask.context.fleet.windows.get(intent.target)
    if window is None or not concerns(ask.context.fleet, window.scope, intent.bounds):
        raise RefusalError("no maintenance window of that name concerns your nodes; see `hostler maintenance list`")
    if rather is not None and rather <= ask.context.now:
        raise RefusalError("the other time has to lie in the future")
    answer = WindowAnswer(tenant, intent.person, ask.context.now, intent.reason, rather)
    said = f"{tenant} asks for {rather:%Y-%m-%d %H:%M} UTC instead" if rather else f"acknowledged by {tenant}"
    return f"window {window.id}: {said}", (e.WindowAnswered(window.id, window.scope, answer),)


def start_work(ask: Ask[StartWork]) -> Granted:
    """Hands in the machine: drained and dark, the right one, and nothing will power it until the work is ended."""
    node, ticket = node_of(ask), ask.context.fleet.tickets.get(ask.act.ticket)
    _demand_machine(ask, node, ticket)
    claimed = _claimed(ask, ticket)
    held = (h for h in ask.context.fleet.holds_of(node.id) if h.kind is HoldKind.physical_work)
    if any(h.owner == ask.intent.person for h in held):
        return f"{node.id} stays dark until end-work: you work on it already", ()
    if ask.act.prepare and (lacking := work_preparation.lacks(ask, node)) is not None:
        text, asked = work_preparation.ask_for(ask, node, lacking)
        return text, (*claimed, *asked)
    work = ask.context.live.workloads(node) if node.assignment else ()
    if work is None or any(w.work_class is not WorkClass.infrastructure for w in work):
        raise RefusalError(f"{node.id} is not drained: return it for maintenance first", way=_returned(node))
    if node.phase is Phase.production and node.assignment is not None:
        raise RefusalError(f"{node.id} serves pool {node.pool}: return it for maintenance first", way=_returned(node))
    if node.operation is not None or node.settling:
        raise RefusalError(f"{node.id}: an operation is under way or may still take effect; wait for it")
    word = dark_by_word.demand_dark(ask, node)
    hold = hold_of(ask, node.scope, HoldKind.physical_work, ticket=ticket.id if ticket else "")
    hold = replace(hold, word=word)
    events: list[e.Event] = [*claimed, e.HoldPlaced(hold), *_no_longer_kept_dark(ask, node)]
    if node.plan is None:
        events.append(e.PlanRecorded(freeze(ask.context, node, RECIPES["locate"], Frame(ActClass.easing))))
    return f"{node.id} stays dark until end-work", tuple(events)


def _demand_machine(ask: Ask[StartWork], node: Node, ticket: Ticket | None) -> None:
    """Raises RefusalError where what was scanned is another machine; it says which, and where the right one stands."""
    scanned = ask.act.serial
    expected = {node.binding("serial"), ticket.hardware if ticket and ticket.node == node.id else ""} - {""}
    if scanned in expected:
        return
    found = ask.context.fleet.resolve(scanned)
    other = found if found is not None and found.binding("serial") == scanned else None
    is_of = f" is the serial of {other.id}, which stands in {_place(other)}; it" if other is not None else ""
    raise RefusalError(
        f"scanned serial '{scanned}'{is_of} is not {' or '.join(sorted(expected))}: wrong machine; "
        f"{node.id} stands in {_place(node)}"
    )


def _place(node: Node) -> str:
    rack = f"rack {node.position.rack}" if node.position.rack else "no rack that is recorded"
    return f"{rack} U{node.position.u}" if node.position.u else rack


def _claimed(ask: Ask[StartWork], ticket: Ticket | None) -> tuple[e.TicketClaimed, ...]:
    """The claim of who begins work on a ticket that nobody has. Raises RefusalError where somebody else has it."""
    if ticket is None:
        return ()
    if ticket.holder(ask.context.now) == ask.intent.person or not ask.context.may_write("ticket_claimed"):
        return ()
    return (ticket_claims.claimed_by(ask, ticket, SHIFT_H),)


def _started_disturbs(ask: Ask[StartWork]) -> Nodes:
    """The node, where work on it begins with taking it out of service."""
    node = node_of(ask)
    verb = work_preparation.lacks(ask, node) if ask.act.prepare else None
    return (node.id,) if isinstance(verb, ReturnForMaintenance) and not work_preparation.stands(node, verb) else ()


def _no_longer_kept_dark(ask: AnyAsk, node: Node) -> list[e.Event]:
    """End holds and requests that kept it off until this work began: the work keeps it off from now on."""
    person, why = ask.intent.person, "work on it has begun"
    dark = (h for h in ask.context.fleet.holds_of(node.id) if h.kind is HoldKind.power and h.owner != OWNER)
    requested = (c for c in node.conditions if rules_of(c.remedy).keeps == HoldKind.power)
    cleared = [e.ConditionCleared(node.id, c.id, person, why) for c in requested]
    return [*(e.HoldReleased(h.id, h.scope, person, why) for h in dark), *cleared]


def end_work(ask: Ask[EndWork]) -> Granted:
    """The hands are out of the machine: their holds end; with the last of them what it was taken out for is done."""
    node = node_of(ask)
    holds = [h for h in ask.context.fleet.holds_of(node.id) if h.kind is HoldKind.physical_work]
    if not holds:
        return _ended_unbegun(ask, node)
    stays = [] if ask.act.shift_lead else [h.owner for h in holds if h.owner != ask.intent.person]
    if len(stays) == len(holds):
        raise RefusalError(f"{stays[0]} works on {node.id}: only they or a shift lead may end it")
    if (ask.act.did is RepairAction.unsaid) is not (ask.act.part is None):
        raise RefusalError("say both what you did and to which kind of part: --did swapped --part fan; or neither")
    own = [h for h in holds if h.owner not in stays]
    events: list[e.Event] = [e.HoldReleased(h.id, h.scope, ask.intent.person, ask.intent.reason) for h in own]
    if stays:
        events.extend(_repaired(ask, node))
        return f"your work on {node.id} is ended; it stays dark, for {stays[0]} works on it still", tuple(events)
    events.extend(_repaired(ask, node))
    events.extend(_maintenance_over(node, ask.intent.person, "the work is done"))
    events.extend(unanswered_checks.asked_anew(ask.context.fleet, node, ask.intent.person))
    if node.plan is None:
        events.append(e.PlanRecorded(freeze(ask.context, node, RECIPES["unlocate"], Frame(ActClass.easing))))
    return f"work on {node.id} is ended", tuple(events)


def _ended_unbegun(ask: Ask[EndWork], node: Node) -> Granted:
    """End what was asked for before work that nobody has begun. Raises RefusalError where nothing of theirs was."""
    if (other := work_preparation.prepared_by_other(ask, node)) and not ask.act.shift_lead:
        raise RefusalError(f"{other} prepares work on {node.id}: only they or a shift lead (--shift-lead) may end it")
    given_up = work_preparation.given_up(ask, node)
    ended = {event.condition for event in given_up if isinstance(event, e.ConditionCleared)}
    over: list[e.Event] = []
    if node.phase is not Phase.production:
        over.extend(_maintenance_over(node, ask.intent.person, "no work was needed"))
        over.extend(unanswered_checks.asked_anew(ask.context.fleet, node, ask.intent.person))
    over = [event for event in over if not isinstance(event, e.ConditionCleared) or event.condition not in ended]
    if over:
        return f"maintenance of {node.id} is ended, and no work was begun on it", (*given_up, *over)
    if given_up:
        return f"what you asked for before work on {node.id} is called off", given_up
    raise RefusalError(f"no work is under way on {node.id}, so there is none to end")


def _maintenance_over(node: Node, person: str, why: str) -> Iterator[e.ConditionCleared]:
    """Ends of what the node was taken out of service for."""
    asked = ReturnForMaintenance.remedy.condition
    return (e.ConditionCleared(node.id, c.id, person, why) for c in node.conditions if c.type == asked)


def _repaired(ask: Ask[EndWork], node: Node) -> tuple[e.RepairRecorded, ...]:
    """The repair, from which the depth of the node's test follows."""
    if not ask.context.may_write("repair_recorded"):
        return ()
    part = ask.act.part.value if ask.act.part is not None else ""
    return (e.RepairRecorded(node.id, RepairDone(ask.act.did, part, ask.context.now, ask.intent.person)),)


def _returned(node: Node) -> ByAct:
    return by_act(ReturnForMaintenance(), node.id, "it is returned for maintenance")


def _window(ask: AnyAsk) -> Nodes:
    """The nodes that wait for a window of this scope: one that opens, or the last that is called off, frees them."""
    fleet = ask.context.fleet
    window = fleet.windows.get(ask.intent.target)
    scope = window.scope if window is not None else ask.intent.scope
    nodes = (fleet.nodes[i] for i in fleet.index.members("waiting"))
    waiting = (n for n in nodes if n.waiting and any(b.kind == "window" for b in n.waiting.blockers))
    return tuple(n.id for n in waiting if begins(ask.context, n) and scope in scopes(fleet, n))


HANDLERS: Handlers = {
    ScheduleMaintenance: Handler(schedule_window, _window),
    CancelMaintenance: Handler(cancel_window, _window),
    AnswerMaintenance: Handler(answer_window),
    StartWork: Handler(start_work, _started_disturbs),
    EndWork: Handler(end_work),
}
