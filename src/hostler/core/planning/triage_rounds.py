"""When a node in triage is a person's: it comes again and again, and no examination finds a fault.

Two ways round are counted: back to where it had got to (`Node.rounds`), which service ends; and by way of service,
where one check of the site's own sends it each time, which is wrong, or sees what no examination does.
"""

from collections.abc import Iterator
from datetime import timedelta

from msgspec import Struct

from hostler.core.conditions.site_checks import check_of
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, ROUNDS, Ticket
from hostler.core.state.configuration import STRIKES_KEPT_S
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Answer, Wait
from hostler.core.state.durations import duration
from hostler.core.state.model import Attempt, Blocker, Node, Phase
from hostler.core.state.verbs.nodes import Debug, RmaSend
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.core.state.ways_out import by_act


class _GoingRound(Struct, frozen=True):
    """How a node goes round, in words: how often it came, whose words to look at, and what is put right first."""

    came: str
    see: str
    put_right: str

    def told(self, who: str) -> str:
        """Sentence with this subject."""
        return f"{who} {self.came}, and no examination found a faulty part"


def going_round(context: DecisionContext, node: Node) -> Answer | None:
    """The wait for a person where visits to triage convict nobody and lead back to what fails; or its ticket."""
    found = _round_of(node, context.fleet.policy_of(node).triage_rounds)
    if found is None:
        return None
    asked = next((t for t in context.fleet.tickets_about(node.id) if t.kind == "stuck" and t.action == ROUNDS), None)
    if asked is None:
        return Act((e.TicketOpened(_ticket(context, node, found)),))
    ways = (
        by_act(CloseTicket(), asked.id, f"{found.put_right} and the ticket is closed"),
        by_act(Debug(), node.id, "engineers look"),
        by_act(RmaSend(), node.id, "it is returned"),
    )
    return Wait(ROUNDS, (Blocker("person", "operator", found.told("it"), ways),), until=None)


def _round_of(node: Node, most: int) -> _GoingRound | None:
    """Why the node is not examined again by itself; None where it may be. `most` 0: it always may."""
    if not most:
        return None
    if node.rounds > most:
        before = node.came_from.value if node.came_from is not None else "its phase"
        came = f"came to triage {node.rounds} times in a row, now from {before}"
        return _GoingRound(came, "what fails", "what fails is put right")
    visits = tuple(by_one_check(node))
    if len(visits) <= most:
        return None
    name = check_of(visits[0].part)
    came = f"came to triage {len(visits)} times within {duration(STRIKES_KEPT_S)} for the site's check {name} alone"
    return _GoingRound(came, f"what {name} says", f"{name}, or what it finds, is put right")


def by_one_check(node: Node) -> Iterator[Attempt]:
    """The visits to triage, the last one first, for which the site's check that caused the last one is to blame alone.

    Those that evidence convicted end the row, and so do those that a person has seen to. Visits for other reasons are
    passed over.
    """
    visits = [visit for visit in reversed(node.visits) if visit.remedy == Phase.triage.value]
    if not visits or not (name := check_of(visits[0].part)):
        return
    oldest = visits[0].at - timedelta(seconds=STRIKES_KEPT_S)
    for visit in visits:
        if visit.struck or visit.forgiven or visit.at < oldest:
            return
        if check_of(visit.part) == name:
            yield visit


def _ticket(context: DecisionContext, node: Node, found: _GoingRound) -> Ticket:
    """The ticket of a person; once it is closed the node has all its rounds again."""
    identity = f"{node.id}-t{context.fleet.cell.seq}"
    summary = (
        f"{found.told(node.id)}: see {found.see} (hostler node explain {node.id}), put it right and close this ticket "
        f"to have it examined again (hostler ticket close {identity} --reason …), have engineers look "
        f"(hostler node debug {node.id} --reason …), or return it (hostler node rma-send {node.id} --reason …)"
    )
    return Ticket(identity, node.id, "stuck", summary, context.now, action=ROUNDS, owner="operator", due=DUE_DAY)
