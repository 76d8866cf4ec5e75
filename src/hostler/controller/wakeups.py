"""Waiting nodes: their order, what is told of them, and what makes all of them be asked again."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.controller.step_output import Send
from hostler.core.planning import cabling, idle_checks
from hostler.core.planning.domain_plans import mates
from hostler.core.planning.rejoin_guard import TURN_AWAY
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Rest, Wait
from hostler.core.state.fabrics import Fabric
from hostler.core.state.fleet import Fleet
from hostler.core.state.index_keys import awaited_places, is_spare
from hostler.core.state.model import Condition, Node, Waiting
from hostler.core.state.operations import UNPLUG
from hostler.core.state.syndromes import SYNDROME_OF
from hostler.core.tables.operations import IDLE_CHECK, OPERATIONS


def ranked(context: DecisionContext, node_ids: Iterable[str]) -> list[str]:
    """Waiters rank by severity, GPU-hours at stake, age, id."""
    return [key[-1] for key in sorted(_rank(context, i) for i in node_ids if i in context.fleet.nodes)]


def _rank(context: DecisionContext, node_id: str) -> tuple[int, float, datetime, str]:
    node = context.fleet.nodes[node_id]
    if not node.conditions:
        return (0, 0.0, node.phase_since, node_id)
    worst = max(int(c.severity) for c in node.conditions)
    stake = sum(w.gpu_hours_at_stake for w in context.live.workloads(node) or ())
    return (-worst, -stake, min(c.since for c in node.conditions), node_id)


def told(node: Node, answer: Wait | Rest, now: datetime, *, swept: bool = False) -> Waiting | None:
    """The wait that the answer means for the node.

    What was told stands while all of it holds; what comes on top is told when something of it has gone. What changes
    often is told at once a few times, then seldom (`_retold`). Whatever it waits for, the wait began when it began.
    """
    if isinstance(answer, Rest) or not answer.blockers:
        return None
    if node.operation is not None and node.operation.kind != UNPLUG and answer.what != TURN_AWAY:
        return None  # its own operation: the node shows that itself
    waiting = node.waiting
    if waiting is None or waiting.what != answer.what:
        return Waiting(answer.what, now, answer.blockers, answer.urgent, now, in_hands=answer.in_hands)
    fresh = _retold(waiting, answer, now)
    late = waiting.changes >= TOLD_AT_ONCE or _names(waiting) <= _names(fresh)
    return waiting if swept and late else fresh  # what is only told late is told by the clock: a sweep finds nothing


TOLD_AT_ONCE = 6
"""So many changes of what one wait waits for are told as they come."""
TOLD_EVERY = timedelta(minutes=15)
TOLD_ALONE_EVERY = timedelta(hours=3)
"""How seldom a node that waits by turns for one and for another is told to wait for fewer of them."""
TURNS_MOST = 8


def _retold(waiting: Waiting, answer: Wait, now: datetime) -> Waiting:
    """The wait with what it waits for now, or as it was told: a node's records are bounded, however its reasons flap.

    After some changes, what comes is told beside what was, as coming by turns; it stands while nothing else comes.
    That some of it has gone and nothing came is progress, and no such change: a rack's nodes catch up one by one.
    """
    known, fresh, told = _names(waiting), _names(answer), waiting.told or waiting.since
    same = waiting.urgent == answer.urgent or waiting.told is None  # what an older controller reads says neither
    fewer = fresh < known and not waiting.by_turns
    often = waiting.changes >= TOLD_AT_ONCE
    pause = TOLD_ALONE_EVERY if waiting.by_turns and fresh <= known else TOLD_EVERY
    if same and (known <= fresh if not waiting.by_turns else fresh == known):
        old = _users(waiting) != _users(answer) and now - told >= TOLD_EVERY
        more = waiting.changes + (fresh != known)
        return (
            waiting
            if not old or waiting.by_turns
            else replace(waiting, blockers=answer.blockers, told=now, changes=more)
        )
    if same and often and now - told < pause:
        return waiting
    blockers, turns = answer.blockers, often and not (waiting.by_turns and fresh <= known)
    if turns:
        before = (b for b in waiting.blockers if (b.kind, b.name) not in fresh)
        blockers = (*blockers, *before)[:TURNS_MOST]
    return Waiting(
        answer.what, waiting.since, blockers, answer.urgent, now, waiting.changes + (not fewer), turns, answer.in_hands
    )


def told_again_at(waiting: Waiting | None) -> Iterator[datetime]:
    """When a wait whose reasons change often may be told anew; never where they do not."""
    if waiting is not None and waiting.changes >= TOLD_AT_ONCE:
        told = waiting.told or waiting.since
        yield from (told + TOLD_EVERY, told + TOLD_ALONE_EVERY)


def eases(before: Node, node: Node) -> bool:
    """Whether the end of the wait lets others go on: a spare is ready, or an immediate remedy needs no place now."""
    return is_spare(node) or (bool(awaited_places(before)) and not awaited_places(node))


def _users(wait: Wait | Waiting) -> list[str]:
    """Texts of the budgets, which name the nodes that use them."""
    return [b.text for b in wait.blockers if b.kind == "budget"]


def _names(wait: Wait | Waiting) -> frozenset[tuple[str, str]]:
    return frozenset((b.kind, b.name) for b in wait.blockers)


def asks_all_again(fleet: Fleet, event: e.Event) -> bool:
    """Whether pools are to be balanced and everybody who is blocked is to be asked again after the event."""
    return isinstance(event, EASING) or (isinstance(event, REGROUPING) and bool(fleet.index.count("grouped")))


def concerned(fleet: Fleet, event: e.Event) -> Iterator[str]:
    """The nodes that are to be looked at after the event though it is of none of them."""
    yield from _may_give_way(fleet, event)
    match event:
        case e.PlanAdvanced(node=node_id) | e.PlanUndoing(node=node_id):
            yield from (mate.id for mate, _ in mates(fleet, fleet.nodes[node_id]))
        case e.ConditionUpdated(condition=Condition(node=node_id)) | e.BootObserved(node=node_id):
            yield from beside(fleet, node_id) if fleet.index.count("grouped") else ()
        case e.IncidentUpdated(incident=incident, state="individual"):
            yield from fleet.incidents[incident].members
        case (
            e.HoldPlaced()
            | e.WindowScheduled()
            | e.ApprovalRequested()
            | e.PauseSet()
            | e.BrakeLatched()
            | e.ClockGap()
        ):
            yield from fleet.index.members("operating")
        case e.ModeSet(pool=pool, remedy=remedy) if remedy == IDLE_CHECK:
            yield from fleet.index.members(f"pool:{pool}")
        case e.RolloutStarted() | e.SliceStarted() | e.RolloutStopped() | e.ConfigActivated():
            yield from _of_configuration(fleet)
        case e.TicketClosed(ticket=ticket):
            yield from (*fleet.index.members("lit"), *fleet.index.members(f"asked:{ticket}"))
        case e.BitsDisputed(golden=golden):
            yield from golden.wanted
        case e.FabricRegistered(fabric=Fabric(name=name)) | e.FabricRemoved(fabric=name):
            yield from cabling.waiting(fleet, name)
        case _:
            pass


def _may_give_way(fleet: Fleet, event: e.Event) -> Iterator[str]:
    """Nodes with plans that may give their places up to the immediate remedy that waits now."""
    if isinstance(event, e.WaitingChanged) and event.waiting is not None and event.waiting.urgent:
        for blocker in event.waiting.blockers:
            yield from fleet.index.members(f"yields:{blocker.name}")


def _of_configuration(fleet: Fleet) -> Iterator[str]:
    """The nodes that ail, and those that another configuration may have checked."""
    yield from fleet.index.members("ailing")
    for known in fleet.pools.values():
        if IDLE_CHECK in known.modes:
            yield from fleet.index.members(f"pool:{known.name}")


def suspects(fleet: Fleet, event: e.Event) -> Iterable[str]:
    """The nodes of which to ask, because of the event, whether they share a cause with others."""
    match event:
        case e.ConditionRaised(condition=c) | e.ConditionUpdated(condition=c) if c.type in SYNDROME_OF:
            return (c.node,)
        case e.ConditionCleared(node=node_id) | e.PhaseChanged(node=node_id) if fleet.incidents_of(node_id):
            return (node_id,)
        case e.RolloutStarted() | e.SliceStarted() | e.RolloutStopped() | e.ConfigActivated():
            return fleet.index.members("ailing")
        case _:
            return ()


def revocations(fleet: Fleet, event: e.Event) -> list[Send]:
    """Sends that call off the operation which the event gives up, where that can still help."""
    if not isinstance(event, e.OperationFinished) or event.result not in ("revoked", "timed_out"):
        return []
    node = fleet.nodes[event.node]
    given_up = [one for one in node.under_way if one.id == event.operation]
    return [Send("revoke", one, node) for one in given_up if OPERATIONS[event.kind].revocable]


def beside(fleet: Fleet, node_id: str) -> Iterator[str]:
    """Waiting nodes that share a domain with it: what one member of a domain act runs or needs concerns all."""
    node = fleet.nodes.get(node_id)
    if node is not None and not fleet.index.lacks("waiting"):
        for shared in dict.fromkeys(domain.shared for domain in node.domains):
            if fleet.index.count("waiting") < fleet.index.count(shared):  # a feed of a whole hall, where few wait
                waiting = fleet.index.members("waiting")
                yield from (i for i in waiting if any(d.shared == shared for d in fleet.nodes[i].domains))
            else:
                yield from (i for i in fleet.index.members(shared) if fleet.nodes[i].waiting is not None)


REGROUPING = (
    e.ConditionRaised,
    e.PlanAdvanced,
    e.PlanUndoing,
    e.OperationStarted,
    e.OperationFinished,
    e.WaitingChanged,
)
"""Events after which the nodes of one act (a rack) may be other ones than before, or wait for another of them."""

EASING = (
    e.PlanRecorded,
    e.PlanApproved,
    e.PlanEnded,
    e.PhaseChanged,
    e.NodeAssigned,
    e.NodeReleased,
    e.NodeRegistered,
    e.HoldReleased,
    e.HoldPlaced,
    e.PauseSet,
    e.ModeSet,
    e.BrakeReleased,
    e.BrakeLatched,
    e.RemediatorsFound,
    e.RemediatorAccepted,
    e.ClockConfirmed,
    e.RestoreReleased,
    e.ConfigActivated,
    e.RolloutStarted,
    e.SliceStarted,
    e.RolloutStopped,
    e.ApprovalEnded,
    e.WindowScheduled,
    e.WindowEnded,
    e.TicketOpened,
    e.TicketClosed,
    e.ConditionCleared,
    e.OperationSettled,
    e.RackStepDone,
    e.RackRunEnded,
)
"""Events after which pools are balanced and everybody who is blocked is asked again, once per batch. Whom only a
person's hands move on need not be.

A plan that begins takes budget: whoever waits is told by name what it waits for now.
"""


WOKEN = 4
"""So many of each pool are asked again when a check has ended: as a rule one of them takes its place."""

FREEING = (e.HoldReleased, e.PauseSet, e.BrakeReleased, e.IncidentClosed, e.ClockConfirmed, e.RestoreReleased)
"""Events after which nodes may be checked that were kept away from it, beside what happens to a node itself."""


class SlotWaiters:
    """Idle nodes that are due for a check and could not be given one: for want of room, or because they are kept away.

    Volatile: filled as nodes are looked at.
    """

    def __init__(self) -> None:
        self._for_room: dict[str, dict[str, None]] = {}
        self._kept: dict[str, None] = {}

    def note(self, context: DecisionContext, node: Node) -> None:
        """The node was looked at and stays as it is."""
        waiting = idle_checks.waits(context, node)
        kept = waiting and bool(idle_checks.keeps_away(context, node))
        if kept:
            self._kept[node.id] = None
        elif self._kept:
            self._kept.pop(node.id, None)
        if waiting and not kept:
            self._for_room.setdefault(node.pool, {})[node.id] = None
        elif self._for_room:
            self._for_room.get(node.pool, {}).pop(node.id, None)

    def woken(self, event: e.Event) -> list[str]:
        """Nodes to look at again because of the event; who still waits is noted anew, behind the others."""
        found: list[str] = []
        if isinstance(event, FREEING):
            found, self._kept = list(self._kept), {}
        elif isinstance(event, e.OperationFinished) and event.kind == IDLE_CHECK:
            for waiting in self._for_room.values():
                first = list(waiting)[:WOKEN]
                found += first
                for node_id in first:
                    del waiting[node_id]
        return found
