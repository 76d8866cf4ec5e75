"""Waits of a node in triage: for somebody's hands, or its next examination, where the last could not be made.

An examination that never came to its checks has found nothing: a BMC that restarts, a management network that is away.
However often it could not be made, that is no evidence against the node: a technician is asked to see to it.
"""

from datetime import datetime, timedelta

from hostler.core.planning.outcomes import MAINTENANCE, REPEAT
from hostler.core.planning.triage_rounds import going_round
from hostler.core.planning.without_bmc import goes_without, words_without
from hostler.core.policy.holds_and_pauses import held
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket
from hostler.core.state.configuration import scaled
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.model import Attempt, Blocker, HoldKind, Node, Phase
from hostler.core.state.verbs.maintenance import EndWork
from hostler.core.state.verbs.nodes import RmaSend
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.core.state.ways_out import by_act, by_time
from hostler.core.tables.phases import PHASES

EXAMINE = PHASES[Phase.triage].recipe
DECIDED_WITHIN_S = 86_400.0
"""For so long a person may decide about a node whose repair did not last."""
AGAIN_S = (600.0, 3600.0, 4 * 3600.0, 86_400.0)
"""So long after an examination that could not be made began the next one does; the last one for good."""


def waits(context: DecisionContext, node: Node) -> Answer | None:
    """The wait of a node in triage, or the ticket that asks them; None where it may be examined now."""
    asked = next((c for c in node.conditions if c.type == MAINTENANCE), None)
    if asked is not None:
        text = f"{asked.owner} took the node out for maintenance"
        ended = by_act(EndWork(), node.id, "the work is ended, or none is needed")
        works = [h for h in context.fleet.holds_of(node.id) if h.kind is HoldKind.physical_work]
        found = tuple(map(held, works)) or (Blocker("person", "technician", text, ended),)
        return Wait("maintenance", found, until=None)
    if undecided := _undecided(context, node) or going_round(context, node):
        return undecided
    vain = _in_vain(node)
    again = _again_at(context, node, vain)
    if again is None or again <= context.now:
        return None
    if len(vain) >= len(AGAIN_S) and _ticket(context, node) is None:
        return Act((e.TicketOpened(_asking(context, node, len(vain))),))
    text = f"the node could not be restarted for its examination, {len(vain)} times so far"
    tries = by_time(f"a technician sees to its power and BMC, and the next try is at {again:%Y-%m-%d %H:%M} UTC", again)
    return Wait(EXAMINE, (Blocker("person", "technician", text, (tries, *goes_without(context, node))),), until=again)


def _undecided(context: DecisionContext, node: Node) -> Wait | None:
    """The time in which a person may return a node whose repair did not last; nobody's word has it examined."""
    proposal = next((t for t in context.fleet.tickets_about(node.id) if t.kind == REPEAT), None)
    if proposal is None:
        return None
    until = proposal.opened + timedelta(seconds=scaled(context.fleet.policy_of(node), DECIDED_WITHIN_S))
    if until <= context.now:
        return None
    ways = (
        by_act(RmaSend(), node.id, "it is returned"),
        by_act(CloseTicket(), proposal.id, "the ticket is closed"),
        by_time(f"it is examined at {until:%Y-%m-%d %H:%M} UTC", until),
    )
    text = "the node failed again on probation: its repair did not last"
    return Wait(REPEAT, (Blocker("person", "operator", text, ways),), until=until)


def _ticket(context: DecisionContext, node: Node) -> Ticket | None:
    open_ones = (context.fleet.tickets[i] for i in context.fleet.index.members(f"ticket:{node.id}"))
    return next((t for t in open_ones if t.kind == "stuck" and t.action == EXAMINE), None)


def _asking(context: DecisionContext, node: Node, times: int) -> Ticket:
    """The ticket of a technician; once it is closed the node is examined anew."""
    summary = (
        f"{node.id} could not be restarted for its examination {times} times: check its power, BMC and boot; close "
        f"this ticket to have it examined again, or send it to its vendor (hostler node rma-send {node.id} --reason …)"
    ) + words_without(context, node)
    identity = f"{node.id}-t{context.fleet.cell.seq}"
    return Ticket(identity, node.id, "stuck", summary, context.now, action=EXAMINE, owner="technician", due=DUE_DAY)


def _in_vain(node: Node) -> list[Attempt]:
    """The examinations of this visit that could not be made, with the BMC that it has now or without one."""
    since = max([node.phase_since, *(b.until for b in node.bindings if b.kind == "bmc" and b.until is not None)])
    return [a for a in node.attempts if a.remedy == EXAMINE and a.failed and not a.forgiven and a.at >= since]


def _again_at(context: DecisionContext, node: Node, vain: list[Attempt]) -> datetime | None:
    if not vain:
        return None
    pause_s = AGAIN_S[min(len(vain), len(AGAIN_S)) - 1]
    return vain[-1].at + timedelta(seconds=scaled(context.fleet.policy_of(node), pause_s))
