"""Who waits: in which order they are looked at, what is told of them, and what makes all of them be asked again."""

from collections.abc import Iterable
from datetime import datetime

from hostler.core import events as e
from hostler.core.answers import Rest, Wait
from hostler.core.domains import mates
from hostler.core.fleet import Fleet
from hostler.core.model import Node, Waiting
from hostler.core.scene import Scene


def ranked(scene: Scene, node_ids: Iterable[str]) -> list[str]:
    """Waiters rank by severity, GPU-hours at stake, age, id."""
    return [key[-1] for key in sorted(_rank(scene, i) for i in node_ids if i in scene.fleet.nodes)]


def _rank(scene: Scene, node_id: str) -> tuple[int, float, datetime, str]:
    node = scene.fleet.nodes[node_id]
    if not node.conditions:
        return (0, 0.0, node.phase_since, node_id)
    worst = max(int(c.severity) for c in node.conditions)
    stake = sum(w.gpu_hours_at_stake for w in scene.present.workloads(node) or ())
    return (-worst, -stake, min(c.since for c in node.conditions), node_id)


def told(node: Node, answer: Wait | Rest, now: datetime) -> Waiting | None:
    """What the node waits for by this answer.

    What was told stands while all of it holds; what comes on top is told when something of it has gone.
    """
    if isinstance(answer, Rest) or node.operation is not None:
        return None  # its own operation: the node shows that itself
    waiting = node.waiting
    if waiting is not None and waiting.what == answer.what and _names(waiting) <= _names(answer):
        return waiting
    return Waiting(answer.what, now, answer.blockers)


def _names(wait: Wait | Waiting) -> frozenset[tuple[str, str]]:
    return frozenset((b.kind, b.name) for b in wait.blockers)


def asks_all_again(fleet: Fleet, event: e.Event) -> bool:
    """Whether pools are to be balanced and everybody who waits is to be asked again after the event."""
    return isinstance(event, EASING) or (isinstance(event, REGROUPING) and bool(fleet.index.count("grouped")))


REGROUPING = (e.ConditionRaised, e.PlanRecorded, e.WaitingChanged)
"""Events after which the nodes of one act (a rack) may be other ones than before."""

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
)
"""Events after which pools are balanced and everybody who waits is asked again, once per batch.

A plan that begins takes budget: whoever waits is told by name what it waits for now.
"""
