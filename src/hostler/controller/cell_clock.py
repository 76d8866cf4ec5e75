"""Controller time while a controller runs, from two clocks: it never goes back and follows no leap of the wall clock.

Whoever drives the controller reads both clocks every turn, asks `read` for the moment of the step, and puts what it
says before the controller. The monotonic clock must count while the machine sleeps (CLOCK_BOOTTIME).
"""

from datetime import datetime, timedelta

from hostler.controller.inputs import ClockSeen
from hostler.core.state.clock_doubt import GAP_S


class CellClock:
    """The moment of each step. `begin` at a start, with the moment that the controller has opened at."""

    def __init__(self, now: datetime, wall: datetime, monotonic_s: float) -> None:
        self.now = now
        self._wall = wall
        self._monotonic_s = monotonic_s

    def read(self, wall: datetime, monotonic_s: float, *, doubted: bool) -> ClockSeen:
        """Move `now` on, and say what is new. `doubted`: the fleet as committed bears a doubt of its clock."""
        passed_s = max(0.0, monotonic_s - self._monotonic_s)
        leap_s = (wall - self._wall).total_seconds() - passed_s
        expected = self.now + timedelta(seconds=passed_s)
        ahead_s = (wall - expected).total_seconds()
        self._wall, self._monotonic_s = wall, monotonic_s
        held_up_s = passed_s if passed_s > GAP_S else 0.0
        if doubted:
            agrees = abs(ahead_s) <= GAP_S
            self.now = max(expected, wall) if agrees else expected
            return ClockSeen(held_up_s, agrees=agrees)
        if abs(leap_s) > GAP_S:
            self.now = expected
            return ClockSeen(held_up_s, leap_s, wall)
        self.now = expected if ahead_s < -GAP_S else max(self.now, wall)
        return ClockSeen(held_up_s + (ahead_s if ahead_s > GAP_S else 0.0))
