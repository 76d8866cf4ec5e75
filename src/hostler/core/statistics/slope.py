"""The trend of one series: Theil–Sen's slope with its interval, Kendall's test, and the days to a floor."""

from dataclasses import dataclass
from inspect import unwrap

import numpy as np
import scipy  # loads its `stats`, half a second, where a slope is first asked for

from hostler.core.statistics.medians import Floats

CONFIDENCE = 0.9
"""Of every interval of a slope and a forecast."""
SIGNIFICANT = 0.05
MIN_DAYS = 5
HORIZON_DAYS = 365.0
"""No value is forecast beyond: a slope of a month says nothing of the year after next."""


@dataclass(frozen=True)
class Slope:
    """Change a day on the metric's scale, its interval, Kendall's p-value for no trend, and the present level."""

    daily: float
    low: float
    high: float
    p_value: float
    level: float
    days: int

    @property
    def is_trend(self) -> bool:
        """Whether it goes on: Kendall's test and the interval agree that it is not level."""
        return self.p_value < SIGNIFICANT and self.low * self.high > 0


@dataclass(frozen=True)
class Forecast:
    """Days until the floor is reached: as expected, soonest, latest (None: not within HORIZON_DAYS)."""

    expected: float
    soonest: float
    latest: float | None


def slope_of(values: Floats) -> Slope | None:
    """The slope of one series (t,), NaN where nothing was read; None for fewer than MIN_DAYS readings.

    Sen (1968); the interval inverts Kendall's test.
    """
    days = np.flatnonzero(~np.isnan(values)).astype(np.float64)
    if len(days) < MIN_DAYS:
        return None
    seen = values[days.astype(np.int64)]
    if seen.max() == seen.min():
        return Slope(0.0, 0.0, 0.0, 1.0, float(seen[0]), len(days))
    # scipy's outer layer of both serves axes and NaN, of which there is none here, and takes half of the time
    daily, intercept, low, high = unwrap(scipy.stats.theilslopes)(seen, days, alpha=CONFIDENCE)
    p_value = float(unwrap(scipy.stats.kendalltau)(days, seen).pvalue)
    level = float(intercept + daily * (len(values) - 1))
    return Slope(float(daily), float(low), float(high), p_value, level, len(days))


def days_to(floor: float, slope: Slope) -> Forecast | None:
    """When a series at the slope's level reaches the floor; None where it does not go there within HORIZON_DAYS.

    Zero where it is there already. `floor` is on the scale of the values that the slope is of.
    """
    gap = floor - slope.level
    if not slope.is_trend or gap * slope.daily < 0:
        return None
    if gap == 0:
        return Forecast(0.0, 0.0, 0.0)
    fast, slow = (slope.high, slope.low) if gap > 0 else (slope.low, slope.high)
    expected, soonest, latest = (gap / one if one else np.inf for one in (slope.daily, fast, slow))
    if expected > HORIZON_DAYS:
        return None
    return Forecast(expected, soonest, latest if latest <= HORIZON_DAYS else None)
