"""Passive series: what agents and BMCs read anyway, folded into a few readings a day that trends are judged by.

A gauge (temperature, fan) becomes the mean of a window with the mean of its conditions: a line through readings at
changing power goes through their means too. A counter becomes what was counted and for how long it was watched.
"""

import math
from collections.abc import Mapping

from msgspec import Struct

WINDOW_S = 4 * 3600.0
"""Six windows a day, as often as a node's idle checks run where it is mostly idle."""
SAMPLES_LEAST = 10
"""A gauge that was read less often in a window has no mean worth keeping."""
SERIES_MOST = 256
"""Series of one node; more are not followed."""
COUNTER_BITS = 32
"""A counter that falls from the last tenth of this range to its first has wrapped; any other fall is a reset."""

GAUGES: dict[str, tuple[float, float]] = {
    "gpu.temperature_c": (0.5, 125.0),
    "inlet.temperature_c": (-20.0, 80.0),
    "fan.effort_percent": (0.0, 100.0),
    "fan.speed_rpm": (1.0, 100_000.0),
}
"""Gauges and the values between which (both included) hardware can have them."""
COUNTERS = ("gpu.ecc_corrected", "memory.ecc_corrected", "link.errors")
OBSERVED = "observed_s"
CONDITIONS: dict[str, tuple[float, float]] = {
    "power_w": (0.0, 100_000.0),
    "ambient_c": (-20.0, 80.0),
    OBSERVED: (1.0, 2 * WINDOW_S),
}
"""Conditions of a reading and their bounds; `observed_s`: for how long a counter was watched."""
COUNT_MOST = 1e12
"""Errors of one window; a larger number is no count."""


class PassiveReading(Struct, frozen=True):
    """A series' window: the mean of a gauge, or how much a counter has grown, and what else was so.

    `stack` is what changes the level at once (driver, which sensor tells the ambient).
    """

    metric: str
    part: str
    value: float
    stack: str = ""
    conditions: dict[str, float] = {}


def is_possible(reading: PassiveReading) -> bool:
    """Tell whether hardware can have said so: a known metric, a value and conditions within their bounds."""
    if reading.metric in GAUGES:
        bounds = GAUGES[reading.metric]
    elif reading.metric in COUNTERS and OBSERVED in reading.conditions:
        bounds = (0.0, COUNT_MOST)
    else:
        return False
    return _within(reading.value, bounds) and all(
        name in CONDITIONS and _within(value, CONDITIONS[name]) for name, value in reading.conditions.items()
    )


def _within(value: object, bounds: tuple[float, float]) -> bool:
    """Whether it is a number between them; comparisons with NaN are false."""
    return type(value) in (int, float) and bounds[0] <= value <= bounds[1]  # type: ignore[operator]


def grown(before: int, now: int) -> int | None:
    """How much a counter has grown between two looks; None where it was reset, so that nobody knows."""
    if now >= before:
        return now - before
    size = 1 << COUNTER_BITS
    return now + size - before if size * 9 // 10 <= before < size and now < size // 10 else None


class _Sum(Struct):
    """Samples of a gauge, or a counter's growth: the sum, how many, and the same of each condition."""

    stack: str = ""
    total: float = 0.0
    count: int = 0
    conditions: dict[str, tuple[float, int]] = {}


class PassiveWindows:
    """Folds samples of one node into windows. Knows no clock; what it has of an open window is lost with it.

    `phase_s` shifts the windows' ends, so that a fleet does not report in one moment.
    """

    def __init__(self, phase_s: float = 0.0) -> None:
        self._phase_s = phase_s % WINDOW_S
        self._number: int | None = None
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._counters: dict[tuple[str, str], tuple[int, float]] = {}

    def gauge(self, reading: PassiveReading) -> None:
        """Take one sample; an impossible one, or one at impossible conditions, is left out."""
        if reading.metric not in GAUGES or not is_possible(reading):
            return
        found = self._sum(reading.metric, reading.part, reading.stack)
        if found is None:
            return
        found.total, found.count = found.total + reading.value, found.count + 1
        for name, value in reading.conditions.items():
            total, count = found.conditions.get(name, (0.0, 0))
            found.conditions[name] = (total + value, count + 1)

    def counter(self, metric: str, part: str, count: object, now_s: float) -> None:
        """Take a counter's look. The time around a reset, or a pause of more than a window, is not watched."""
        if type(count) is not int or not 0 <= count < 1 << 64:
            self._counters.pop((metric, part), None)
            return
        before = self._counters.get((metric, part))
        if before is None and len(self._counters) >= SERIES_MOST:
            return
        self._counters[metric, part] = (count, now_s)
        growth = grown(before[0], count) if before is not None else None
        if before is None or growth is None or not 0 < now_s - before[1] <= WINDOW_S:
            return
        if (found := self._sum(metric, part, "")) is not None:
            found.total, found.count = found.total + growth, found.count + 1
            watched, looks = found.conditions.get(OBSERVED, (0.0, 0))
            found.conditions[OBSERVED] = (watched + now_s - before[1], looks + 1)

    def finished(self, now_s: float) -> tuple[int, tuple[PassiveReading, ...]] | None:
        """The window that has ended: its number and readings; None while it lasts, or where nothing was read."""
        number = math.floor((now_s + self._phase_s) / WINDOW_S)
        ended, self._number = self._number, number
        if ended is None or ended == number:
            return None
        sums, self._sums = self._sums, {}
        readings = tuple(one for key, found in sorted(sums.items()) if (one := _reading(key, found)) is not None)
        return (ended, readings) if readings else None

    def _sum(self, metric: str, part: str, stack: str) -> _Sum | None:
        """The window's sum; a series whose stack has changed begins anew."""
        found = self._sums.get((metric, part))
        if found is None and len(self._sums) >= SERIES_MOST:
            return None
        if found is None or found.stack != stack:
            found = self._sums[metric, part] = _Sum(stack, conditions={})
        return found


def _reading(key: tuple[str, str], found: _Sum) -> PassiveReading | None:
    if key[0] in COUNTERS:
        return PassiveReading(*key, found.total, found.stack, {OBSERVED: round(found.conditions[OBSERVED][0], 1)})
    if found.count < SAMPLES_LEAST:
        return None
    return PassiveReading(*key, round(found.total / found.count, 3), found.stack, _means(found))


def _means(found: _Sum) -> dict[str, float]:
    """Mean of each condition that was known in at least half of the samples."""
    known: Mapping[str, tuple[float, int]] = found.conditions
    return {name: round(total / n, 3) for name, (total, n) in known.items() if 2 * n >= found.count}
