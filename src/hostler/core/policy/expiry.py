"""Holds, windows, incidents, returns to vendors and tests by hand that begin, end or fall due by the clock."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hostler.core.policy import incidents, pool_places, rma_cases
from hostler.core.state import events as e
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import Fabric
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
    e.ManualTestScheduled,
    e.ManualTestSigned,
    e.RecablingPlanned,
    e.RecablingMoved,
)
"""Events after which something may begin or end by the clock alone."""


def ended(context: DecisionContext) -> Iterator[e.Event]:
    """Ends of what is due by now, from holds to tests by hand. Each is folded before the next is asked for."""
    fleet, now = context.fleet, context.sure
    holds = [h for h in fleet.holds.values() if h.until is not None and h.until <= now]
    windows = [w for w in fleet.windows.values() if w.ends <= now]
    yield from (e.HoldReleased(h.id, h.scope, "clock", "its time is over") for h in holds)
    yield from (e.WindowEnded(w.id, "clock") for w in windows)
    yield from incidents.by_clock(context)
    yield from rma_cases.told_overdue(context)
    approvals = [a for a in fleet.approvals.values() if a.expires <= context.now]
    yield from (e.ApprovalEnded(a.id, a.intent.target, "expired", "clock", "not approved in time") for a in approvals)
    if context.may_write("manual_test_overdue"):
        overdue = [test for test in fleet.manual_tests.values() if test.due <= now and test.untold]
        yield from (e.ManualTestOverdue(test.fabric, test.owner, test.due) for test in overdue)
    yield from _recabled(fleet, now)


def _recabled(fleet: Fleet, now: datetime) -> Iterator[e.Event]:
    """Windows of re-cablings that begin or end. A validation then shows what is expected, early or late from now on."""
    for fabric in list(fleet.fabrics.values()):
        work = fabric.recabling
        if work is None or work.before or work.starts > now:
            continue
        if work.ends <= now:
            yield e.DesignTakenOver(fabric.name, work.version.digest)
            yield e.FabricValidationAsked(fabric.name, "clock", "the window of its re-cabling is over")
        elif not _looked_at(fabric, work.starts):
            yield e.FabricValidationAsked(fabric.name, "clock", "the window of its re-cabling has begun")


def _looked_at(fabric: Fabric, since: datetime) -> bool:
    """Whether the network was looked at since then, or is asked to be."""
    asked, looked = fabric.asked, fabric.look.began if fabric.look is not None else None
    return any(at is not None and at >= since for at in (asked, looked))


def next_moment(fleet: Fleet, now: datetime) -> datetime | None:
    """When next a hold ends, a window begins or ends, an incident, dark place or test is due; None where nothing is."""
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
    yield from (test.due for test in fleet.manual_tests.values())
    for work in (fabric.recabling for fabric in fleet.fabrics.values()):
        if work is not None:
            yield work.starts
            yield work.ends
    if (rollout := fleet.rollout) is not None:
        yield rollout.until
        yield rollout.since + timedelta(seconds=rollout.limit_s)
