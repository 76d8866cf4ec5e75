"""Judges the series of one metric: whose residual has drifted, since when, by how much, and where it is going."""

from dataclasses import dataclass

import numpy as np

from hostler.core.statistics import cusum
from hostler.core.statistics.cohort_shift import CohortShift, shifts
from hostler.core.statistics.false_alarms import AlarmBudget, flagged, q_values
from hostler.core.statistics.medians import Floats, Whole
from hostler.core.statistics.residuals import residuals
from hostler.core.statistics.series import BASELINE_DAYS, Cohort, Scale, SeriesVerdict
from hostler.core.statistics.slope import Forecast, Slope, days_to, slope_of

LEAST_DAYS = 23
"""A window that is shorter is judged by a month's limit: a limit that grew from day to day would be crossed early."""
OVER = 0.5
"""A drift that stood is over once the sum has fallen under this share of its limit."""


@dataclass(frozen=True)
class Drift:
    """A series that has drifted. `row` of the cohort; `change` since its baseline beside peers, on the metric's scale.

    `onset`: the column on which it began. `chance`: of such a sum in a healthy series. `q_value`: expected share of
    false ones among all at least as clear. `slope` is None where it has not gone on for long enough; `forecast` where
    no floor is known or it is not going there.
    """

    row: int
    change: float
    total: float
    onset: int
    chance: float
    q_value: float
    slope: Slope | None
    forecast: Forecast | None


@dataclass(frozen=True)
class MetricJudgement:
    """Judgement of one metric: `verdicts` (n,), `chances` (n,), and the sum from which a series is flagged.

    `nearness` (n,): how near each series is to its alarm, 0 where nothing has moved, 1 at it; NaN: not judged.
    """

    drifts: tuple[Drift, ...]
    shifts: tuple[CohortShift, ...]
    verdicts: Whole
    chances: Floats
    limit: float
    nearness: Floats


def judge(
    cohort: Cohort, budget: AlarmBudget, series_of_a_node: float = 1.0, floor: float | None = None
) -> MetricJudgement:
    """Judge the cohort's series on their last day.

    `series_of_a_node`: how many series of a node are judged in all, which share its budget. `floor`: a change since the
    baseline, on the metric's scale, at which the series fails; forecasts say when it is reached.
    """
    found = residuals(cohort)
    days = max(cohort.values.shape[1] - BASELINE_DAYS, LEAST_DAYS)
    each = budget.of_series(series_of_a_node, days)
    totals = cusum.sums(found.standard)
    is_judged = found.verdicts == SeriesVerdict.judged
    power = cusum.heaviness(np.where(is_judged, cusum.sums(-found.standard).highest, np.nan), days)
    chances = np.where(is_judged, cusum.chance(totals.highest, days) ** power, np.nan)
    q = q_values(chances)
    alarm = cusum.limit(each ** (1 / power), days)
    stands = flagged(chances, each, q, budget) & (totals.last >= OVER * alarm)
    drifts = tuple(
        _drift(int(row), found.moved[row], totals, (float(chances[row]), float(q[row])), floor)
        for row in np.flatnonzero(stands)
    )
    nearness = np.where(stands, 1.0, np.where(is_judged, np.clip(totals.last / alarm, 0.0, 1.0), np.nan))
    moved = shifts(found.own, cohort.stacks, found.noise)
    return MetricJudgement(drifts, moved, found.verdicts, chances, alarm, nearness)


def _drift(row: int, moved: Floats, totals: cusum.Sums, odds: tuple[float, float], floor: float | None) -> Drift:
    onset = int(totals.onset[row])
    since = moved[max(onset - 1, 0) :]
    recent = since[-3:]
    change = float(np.nanmedian(recent)) if not np.isnan(recent).all() else float(np.nanmedian(since))
    slope = slope_of(since)
    forecast = days_to(floor, slope) if slope is not None and floor is not None else None
    return Drift(row, change, float(totals.highest[row]), onset, *odds, slope, forecast)


def as_ratio(change: float, scale: Scale) -> float:
    """A change on the metric's scale as people say it: -0.02 for two percent less; a difference as it is."""
    return float(np.expm1(change)) if scale is Scale.ratio else change
