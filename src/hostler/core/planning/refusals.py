"""Refusals: the consequences of an operation that was refused, and remedies not begun as they would be.

A refusal is neither done nor failed: nothing was touched. One that waiting does not change is not asked for again while
its cause stands: a ticket says why and what to do, and a person's request ends with it. One that waiting may change is
asked for again: a remedy by its own tries, a phase's own work after growing pauses. Taken for a failure, a refusal
sends a sound node to triage. The page: ADR 163.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.policy.abilities import (
    REFUSED,
    Ability,
    Answer,
    ability,
    basis,
    lasting_refusal,
    refusal_of,
    remedy_ability,
    waits_for,
)
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state import decisions
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Wait, asked_again
from hostler.core.state.model import LASTING, OWNER, ActClass, Blocker, Node, Operation, Outcome, Phase, Plan
from hostler.core.state.plan_rules import OnFailure
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.core.state.ways_out import Ways, by_act, by_time, observed
from hostler.core.tables.phases import PHASES
from hostler.core.tables.recipes import RECIPES

AGAIN_S, AGAIN_AT_MOST_S = 600.0, 86_400.0
"""A phase's own work that was refused is tried again after as long as its refusals have lasted, within these."""
EASED_AGAIN_S = 3600.0
"""At the latest an uncordon is tried again: a person has opened the node."""
_COUNTED = (ActClass.pending, ActClass.immediate, ActClass.protective)
_OLD_AGENTS = {
    "this agent was started without --allow-actions": "start the node's agent with --allow-actions",
    "is no operation of an agent": "upgrade the node's agent to the controller's version",
    "; upgrade the agent": "upgrade the node's agent to the controller's version",
}
"""How refusals of agents end that do not say themselves that waiting changes nothing, and what to do about them."""


def mend_of(context: DecisionContext, node: Node, operation: Operation, outcome: Outcome) -> str:
    """Instruction for a person about a refusal that waiting does not change, "" for one that it may change."""
    if said := str(outcome.facts.get(LASTING) or ""):
        return said
    for words, mend in _OLD_AGENTS.items():
        if outcome.detail.endswith(words):
            return mend
    found = ability(context, node, operation.kind)
    return found.mend if found.answer is Answer.cannot else ""


def follows(
    context: DecisionContext, node: Node, plan: Plan, operation: Operation, outcome: Outcome
) -> Iterator[e.Event]:
    """The ticket of a refusal, and the end of the requests that it answers for good."""
    if plan.to_phase == Phase.retired:  # the retirement's own ticket asks the person, who may say what is left behind
        return
    mend = mend_of(context, node, operation, outcome)
    why = outcome.detail or "no reason was given"
    if not mend and not is_tried_later(plan, lasts=False):
        return
    yield _told(context, node, operation.kind, Ability(Answer.cannot, operation.kind, why, mend))
    if mend:
        yield from _requests_end(node, plan.remedy or plan.name, f"{operation.kind}: {why}; {mend}")


def is_tried_later(plan: Plan, *, lasts: bool) -> bool:
    """Whether the plan, refused, leaves its node where it is until its next turn: work that no ladder counts.

    Hardware that it has touched has to prove itself; a delivery gives its node back, and a retirement asks a person.
    Firmware and settings that a BMC does not take have a desk of their own, zap_fail, where a person corrects them.
    """
    if plan.failed_phase == Phase.zap_fail and not lasts:
        return False
    if plan.disruptive or plan.touched or plan.act_class in _COUNTED or plan.to_phase == Phase.retired:
        return False
    return plan.rules.on_failure is not OnFailure.undoes


def is_requested(node: Node, plan: Plan) -> bool:
    """Whether people asked for the plan, and nothing else: no fault was seen that would keep the node out."""
    asked = [c for c in node.conditions if c.id in plan.causes]
    return bool(asked) and all(c.remedy for c in asked)


def lacking(context: DecisionContext, node: Node, need: Need) -> Act | Wait | None:
    """Why a remedy is not begun that cannot be carried out: a request ends with it, a fault asks a person."""
    found = remedy_ability(context, node, need.remedy)
    if found.answer is not Answer.cannot:
        return None
    told = _told(context, node, found.kind, found) if refusal_of(context, node, found.kind) is None else None
    ends = tuple(_requests_end(node, need.remedy, found.text)) if need.requested else ()
    if told is not None or ends:
        return Act((*((told,) if told is not None else ()), *ends))
    text = f"{need.remedy} needs {found.kind}: {found.why}"
    return Wait(
        need.remedy,
        (Blocker("ability", found.kind, text, _ways(context, node, found.kind, found.mend)),),
        until=None,
    )


def awaited(context: DecisionContext, node: Node, need: Need) -> Wait | None:
    """The wait of a person's request for a BMC, an agent or a scheduler that does not answer now: before any cordon."""
    blocker = waits_for(context, node, need.remedy) if need.requested else None
    return Wait(need.remedy, (blocker,), until=None) if blocker is not None else None


def wait_after_refusal(context: DecisionContext, node: Node, name: str) -> Wait | None:
    """The wait of work whose operation was refused: until what refused it has changed, or until its next turn."""
    if context.fleet.index.lacks(f"ticket:{node.id}"):
        return None
    for kind in dict.fromkeys(step.act.kind for step in RECIPES[name].steps) if name else ():
        ticket = refusal_of(context, node, kind)
        if ticket is None:
            continue
        if lasting_refusal(context, node, kind) is not None:
            return Wait(
                name, (Blocker("ability", kind, ticket.summary, _ways(context, node, kind, ticket.action)),), until=None
            )
        again = _again_at(context, node, ticket)
        if not ticket.component and again > context.now:
            turn = by_time(f"the next try is at {again:%Y-%m-%d %H:%M} UTC", again)
            closed = by_act(CloseTicket(), ticket.id, "the ticket is closed")
            return Wait(name, (Blocker("ability", kind, ticket.summary, (turn, closed)),), until=again)
    return None


def _ways(context: DecisionContext, node: Node, kind: str, mend: str) -> Ways:
    """Ends of a refusal that lasts: a person gives what is missing, or says by the ticket that they have."""
    ticket = refusal_of(context, node, kind)
    if ticket is None:
        return (observed(mend),)
    return observed(mend), by_act(CloseTicket(), ticket.id, "the ticket is closed")


def close_past_tickets(context: DecisionContext, node: Node, answer: decisions.Answer) -> decisions.Answer:
    """The answer; where it is none to act on, tickets about refusals of the past are closed."""
    if isinstance(answer, Act) or context.fleet.index.lacks(f"ticket:{node.id}"):
        return answer
    standing = [t for t in context.fleet.tickets_about(node.id) if t.kind == REFUSED]
    over = [(t, why) for t in standing if (why := _is_past(context, node, t))]
    if over:
        return Act(tuple(e.TicketClosed(t.id, why, OWNER) for t, why in over))
    moments = (_again_at(context, node, t) for t in standing if not t.component)
    return asked_again(context.now, answer, *(at for at in moments if at > context.now))


def granted(context: DecisionContext, node: Node, kind: str) -> Iterator[e.Event]:
    """The end of the ticket about a kind of operation that has been done."""
    if (ticket := refusal_of(context, node, kind)) is not None:
        yield e.TicketClosed(ticket.id, f"{kind} was done", OWNER)


def _is_past(context: DecisionContext, node: Node, ticket: Ticket) -> str:
    """Why nobody need see to the refusal any more, "" where somebody has to."""
    if ticket.component:
        same = ticket.component == basis(context, node, ticket.fault)
        return "" if same else "what refused it is another now, or may do it now"
    recipe = RECIPES.get(PHASES[node.phase].recipe) if node.plan is None else None
    wanted = {step.act.kind for step in recipe.steps} if recipe is not None else set()
    asked = {step.act.kind for c in node.conditions if c.remedy in RECIPES for step in RECIPES[c.remedy].steps}
    serving = node.plan is not None or node.phase is Phase.production
    return "" if serving or ticket.fault in wanted | asked else "nothing asks for it any more"


def _again_at(context: DecisionContext, node: Node, ticket: Ticket) -> datetime:
    """When a refusal that waiting may change is tried again: pauses double, as each lasts as long as all before it."""
    last = ticket.updated or ticket.opened
    most_s = AGAIN_AT_MOST_S if ticket.fault != "uncordon" else EASED_AGAIN_S
    pause_s = min(max((last - ticket.opened).total_seconds(), AGAIN_S), most_s)
    return last + timedelta(seconds=scaled(context.fleet.policy_of(node), pause_s))


def _requests_end(node: Node, remedy: str, why: str) -> Iterator[e.Event]:
    for condition in node.conditions:
        if condition.remedy == remedy:
            yield e.ConditionCleared(node.id, condition.id, OWNER, f"refused: {why}"[:500])


def _told(context: DecisionContext, node: Node, kind: str, found: Ability) -> e.TicketOpened | e.TicketUpdated:
    """The ticket of a refusal: of one that lasts it names what refused, and what to do."""
    known = refusal_of(context, node, kind)
    again = f"see what refused it (hostler node explain {node.id}); tried again by itself, or when this is closed"
    ticket = Ticket(
        id=known.id if known else f"{node.id}-t{context.fleet.cell.seq}-{kind}",
        node=node.id,
        kind=REFUSED,
        summary=f"{kind} is refused on {node.id}: {found.why}"[:500],
        opened=known.opened if known else context.now,
        hardware=node.binding("serial"),
        component=basis(context, node, kind) if found.mend else "",
        fault=kind,
        action=found.mend[:500] or again,
        owner="operator",
        due=DUE_DAY,
    )
    return e.TicketUpdated(replace(ticket, updated=context.now)) if known else e.TicketOpened(ticket)
