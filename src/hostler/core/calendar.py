"""Holds and maintenance windows that begin or end by the clock, so that what waits for them is asked again in time."""

from collections.abc import Iterator
from datetime import datetime

from hostler.core import events as e
from hostler.core.fleet import Fleet


def ended(fleet: Fleet, now: datetime) -> tuple[e.Event, ...]:
    """What has run out by now: holds with an end, and windows."""
    holds = [h for h in fleet.holds.values() if h.until is not None and h.until <= now]
    windows = [w for w in fleet.windows.values() if w.ends <= now]
    return (
        *(e.HoldReleased(h.id, h.scope, "clock", "its time is over") for h in holds),
        *(e.WindowEnded(w.id, "clock") for w in windows),
    )


def next_moment(fleet: Fleet, now: datetime) -> datetime | None:
    """When next a hold ends, or a window begins or ends; None where the clock changes nothing."""
    return min((at for at in _moments(fleet) if at > now), default=None)


def _moments(fleet: Fleet) -> Iterator[datetime]:
    yield from (h.until for h in fleet.holds.values() if h.until is not None)
    for window in fleet.windows.values():
        yield window.starts
        yield window.ends
