"""Controller time at a start: what the wall clock says is believed as far as the journal and a witness bear it out.

Time never goes back. What nobody attended to extends deadlines; where the wall clock cannot be believed, time goes on
from what was last recorded, and whatever counts days stands still until somebody confirms.
"""

from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.state.durations import duration

GAP_S = 60.0
"""Up to here clocks agree, and a pause is no gap."""

LONG_S = 7 * 86_400.0
"""A start so long after the last record looks like a wrong clock; a person says that it is none."""


class Doubt(Struct, frozen=True):
    """Since when the clock is not believed, and why: what counts days stands still from there."""

    since: datetime
    text: str


class Witness(Struct, frozen=True):
    """Measurement of a standby on its own monotonic clock before it took over; no two wall clocks need agree for it.

    `unattended_s`: how long at most no active was there. `since_record_s`: how long ago the last record reached it.
    """

    unattended_s: float
    since_record_s: float | None = None


class Opening(Struct, frozen=True):
    """The controller's first moment `now`, for how long nobody was there, and why the wall is not believed, if so."""

    now: datetime
    unattended_s: float = 0.0
    doubt: str = ""


def opening(last: datetime | None, wall: datetime, witness: Witness | None) -> Opening:
    """The first moment after the record of `last` (None: there is none) where the wall clock says `wall`."""
    if last is None:
        return Opening(wall)
    known_s = witness.since_record_s if witness else None
    earliest = last + timedelta(seconds=known_s or 0.0)
    latest = last + timedelta(seconds=LONG_S if known_s is None else known_s)
    off_s = max((earliest - wall).total_seconds(), (wall - latest).total_seconds())
    if off_s > GAP_S:
        return Opening(earliest, witness.unattended_s if witness else 0.0, _why(last, wall, known_s))
    now = max(wall, last)
    return Opening(now, witness.unattended_s if witness else (now - last).total_seconds())


def _why(last: datetime, wall: datetime, known_s: float | None) -> str:
    said = f"the clock shows {wall:%Y-%m-%d %H:%M} UTC, the last record is of {last:%Y-%m-%d %H:%M} UTC"
    return said if known_s is None else f"{said} and reached this controller {duration(known_s)} ago"
