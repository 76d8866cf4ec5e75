"""First records of a controller: that it is there, for how long nobody was, and whether its journal is a copy."""

from collections.abc import Iterator

from hostler.controller.inputs import ClockSeen
from hostler.core.state import events as e
from hostler.core.state.clock_doubt import GAP_S, Opening
from hostler.core.state.durations import duration
from hostler.core.state.fleet import Fleet
from hostler.ports import Restored

CLOCKS = "clocks"
"""Name under which the time is confirmed when no person has to."""


def first_words(fleet: Fleet, started: e.ControllerStarted, begun: Opening, copy: Restored | None) -> Iterator[e.Event]:
    """The events of a start. `copy` is the journal's own word of when it was filled from one."""
    yield started
    if begun.doubt or begun.unattended_s:
        yield e.ClockGap(begun.unattended_s, doubt=begun.doubt)
    if fleet.cell.doubt is not None and not begun.doubt:
        yield e.ClockConfirmed(CLOCKS, "the clock agrees with the journal at a start")
    if copy is not None and copy.seq != fleet.cell.copied and fleet.cell.last_at is not None:
        yield e.JournalRestored(started.epoch, copy.seq, fleet.cell.last_at)


def of_clock(fleet: Fleet, seen: ClockSeen) -> Iterator[e.Event]:
    """Events about controller time from the clocks' news."""
    doubted = fleet.cell.doubt is not None
    doubt = "" if doubted or abs(seen.leap_s) <= GAP_S else _leapt(seen)
    if doubt or seen.unattended_s:
        yield e.ClockGap(seen.unattended_s, seen.leap_s, doubt)
    if seen.agrees and doubted:
        yield e.ClockConfirmed(CLOCKS, "the wall clock agrees again with the time that has passed")


def _leapt(seen: ClockSeen) -> str:
    way = "forward" if seen.leap_s > 0 else "back"
    now = f"; it shows {seen.wall:%Y-%m-%d %H:%M} UTC" if seen.wall else ""
    return f"the wall clock jumped {way} by {duration(abs(seen.leap_s))}{now}"
