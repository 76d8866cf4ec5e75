"""Holds, windows, incidents and returns to vendors that begin or end by the clock: what waits is asked again."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.policy import incidents, pool_places, rma_cases
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet

ENTRIES = (
    e.HoldPlaced,
    e.WindowScheduled,
    e.ApprovalRequested,
    e.PauseSet,
    e.BrakeReleased,
    e.ConfigActivated,
    e.RolloutStarted,
    e.SliceStarted,
    e.RolloutStopped,
    e.IncidentOpened,
    e.IncidentUpdated,
    e.IncidentClosed,
    e.RmaCaseOpened,
    e.RmaCaseChanged,
)
"""Events after which something may begin or end by the clock alone."""


def ended(context: DecisionContext) -> Iterator[e.Event]:
    """Ends of holds, windows and incidents that have run out by now. Each is folded before the next is asked for."""
    fleet, now = context.fleet, context.sure
    holds = [h for h in fleet.holds.values() if h.until is not None and h.until <= now]
    windows = [w for w in fleet.windows.values() if w.ends <= now]
    yield from (e.HoldReleased(h.id, h.scope, "clock", "its time is over") for h in holds)
    yield from (e.WindowEnded(w.id, "clock") for w in windows)
    yield from incidents.by_clock(context)
    yield from rma_cases.told_overdue(context)
    approvals = [a for a in fleet.approvals.values() if a.expires <= context.now]
    yield from (e.ApprovalEnded(a.id, a.intent.target, "expired", "clock", "not approved in time") for a in approvals)


def next_moment(fleet: Fleet, now: datetime) -> datetime | None:
    """When next a hold ends, a window begins or ends, an incident or a dark place is due; None where nothing is."""
    return min((at for at in _moments(fleet) if at > now), default=None)


def _moments(fleet: Fleet) -> Iterator[datetime]:
    yield from (h.until for h in fleet.holds.values() if h.until is not None)
    for window in fleet.windows.values():
        yield window.starts
        yield window.ends
    yield from incidents.moments(fleet)
    yield from pool_places.moments(fleet)
    yield from rma_cases.moments(fleet)
    yield from (approval.expires for approval in fleet.approvals.values())
    if (rollout := fleet.rollout) is not None:
        yield rollout.until
        yield rollout.since + timedelta(seconds=rollout.limit_s)
