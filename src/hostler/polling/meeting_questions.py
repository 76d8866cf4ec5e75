"""Answers to agents that ask whom to meet: which checks may, what keeps their nodes away, and where their ports are."""

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.conditions.meeting_blame import blame_on
from hostler.core.planning import idle_checks
from hostler.core.planning.meeting_calls import calling_pools, is_call_due
from hostler.core.planning.meeting_rules import keeps_apart, keeps_in_leaf, place_of
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.meetings import TAKES_MOST, MeetingReply
from hostler.core.state.model import Node
from hostler.core.state.operations import RunChecks
from hostler.polling.meeting_hall import MeetingHall, MeetingTold, Visitor, Way

PROFILES = frozenset({"burn_in", "suspect"})
"""Checks of plans during which a node meets others; idle checks of nodes without a cluster are the third."""


PAIR = 2
"""A node that was blamed meets by two: what many pass together tells the less of it."""


class MeetingQuestion(Struct, frozen=True):
    """An agent's question: for which operation, by which way, how many at once, and what its last meeting came to."""

    operation: str
    way: Way
    takes: int = 2
    told: MeetingTold | None = None


def is_under_check(node: Node, operation: str) -> bool:
    """Whether the operation is a check of the node that goes on, and during which nobody else uses it."""
    check = node.operation
    if check is None or check.id != operation:
        return False
    if isinstance(check.act, RunChecks):
        return check.act.profile in PROFILES
    return idle_checks.running(node) is not None and node.assignment is not None and not node.assignment.cluster


def answer(hall: MeetingHall, context: DecisionContext, node: Node, asked: MeetingQuestion) -> MeetingReply:
    """Take what the node's last meeting came to, and say whom it is to meet. The node is under this check."""
    if asked.told is not None:
        hall.tell(asked.operation, asked.told)
    if why := keeps_apart(context, node):
        return MeetingReply(waits=why)
    fleet, (fabric, leaf) = context.fleet, place_of(context, node, asked.way.via)
    stays, is_blamed = keeps_in_leaf(context, node), blame_on(node) is not None
    takes, calls = PAIR if is_blamed else min(asked.takes, TAKES_MOST), is_blamed and bool(calling_pools(fleet, node))
    said = hall.ask(Visitor(node.id, asked.operation, asked.way, fabric, leaf, takes, not stays, calls))
    return replace(said, waits=f"nodes of other leaves are not met: {stays}" if stays and leaf else "")


def seeks_company(context: DecisionContext, node: Node, reply: MeetingReply) -> bool:
    """Whether others are to be called now: the node has nobody to meet, and has to pass with two."""
    return reply.order is None and not reply.is_done and is_call_due(context, node)
