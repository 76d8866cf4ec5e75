"""The cumulative sum of residuals (Page, 1954), and how likely a sum is where nothing has changed.

A day adds its residual less SLACK, CLIP at most, and the sum never falls under zero. What a healthy series reaches
within so many days is computed, not guessed: a Markov chain over the sum (Brook and Evans, 1972) whose steps are
heavier-tailed than normal, averaged over the error with which a few days tell a series' own level.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from hostler.core.statistics.medians import Floats, Whole
from hostler.core.statistics.series import LEVEL_VARIANCE, SPREAD_FREEDOM

SLACK, CLIP = 1.5, 4.0
"""In standard deviations of a day: what is let pass, and the most that one day adds."""
STATES, NODES, STEP, LARGEST = 80, 11, 0.5, 40.0
"""Of the chain: states of the sum, quadrature points of the level's error, distance of tabled limits, the last one."""
MONTH_DAYS = 30.0
MIRROR_AT, MIRROR_PRIOR = 0.01, 100.0
"""Of the calibration: the chance at which both directions are compared, and how many well-behaved series are added."""


@dataclass(frozen=True)
class Sums:
    """For each series: the `highest` sum so far, the sum of the last day, and the day on which its rise began."""

    highest: Floats
    last: Floats
    onset: Whole


def sums(standard: Floats) -> Sums:
    """The one-sided sums of standardised residuals (n, t), above 0 worse; a day without one changes nothing.

    `onset` is the first day of the rise that led to the highest sum; t for a series that never rose.
    """
    count, days = standard.shape
    total, highest = np.zeros(count), np.zeros(count)
    began, onset = np.full(count, days), np.full(count, days)
    for day in range(days):
        step = np.minimum(standard[:, day], CLIP) - SLACK
        after = np.where(np.isnan(step), total, np.maximum(total + np.nan_to_num(step), 0.0))
        began = np.where(after == 0, days, np.where(total == 0, day, began))
        better = after > highest
        highest, onset = np.where(better, after, highest), np.where(better, began, onset)
        total = after
    return Sums(highest, total, onset)


def chance(highest: Floats, days: int) -> Floats:
    """How likely a healthy series reaches each sum within so many judged days; 1 for a sum of 0."""
    limits, tail = _table(days)
    with np.errstate(divide="ignore"):
        logs = np.interp(highest, limits, np.log(np.maximum(tail, 1e-300)))
    return np.asarray(np.exp(logs))


def limit(budget: float, days: int) -> float:
    """The sum that a healthy series reaches within so many days with the chance `budget`."""
    limits, tail = _table(days)
    return float(np.interp(-np.log(budget), -np.log(np.maximum(tail, 1e-300)), limits))


def heaviness(mirrored: Floats, days: int) -> float:
    """How much heavier this metric's tails are than the chain's: the power to which its chances are taken, 1 at most.

    Hardware degrades in one direction. How often sums in the other direction (`mirrored`, NaN for series that are not
    judged) are beyond what the chain expects of one in a hundred shows noise that the chain does not know: wandering,
    outliers, days with few runs.
    """
    known = mirrored[~np.isnan(mirrored)]
    beyond = np.count_nonzero(chance(known, days) <= MIRROR_AT)
    share = (beyond + MIRROR_PRIOR * MIRROR_AT) / (len(known) + MIRROR_PRIOR)
    return min(1.0, float(np.log(share) / np.log(MIRROR_AT)))


@lru_cache(maxsize=256)
def _table(days: int) -> tuple[Floats, Floats]:
    """Sums and the chance that a healthy series reaches them within so many days."""
    limits = np.arange(0.0, LARGEST + STEP, STEP)
    tail = np.array([1.0, *(_reaches(limit, max(days, 1)) for limit in limits[1:])])
    return limits, np.minimum.accumulate(tail)


def _reaches(height: float, days: int) -> float:
    """The chance to reach `height`, averaged over the error of the baseline's level (Gauss-Hermite)."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    errors = points * np.sqrt(LEVEL_VARIANCE)
    chances = np.array([_reaches_with(height, days, error) for error in errors])
    return float(np.clip(weights @ chances / weights.sum(), 0.0, 1.0))


def _reaches_with(height: float, days: int, error: float) -> float:
    """The chance where every residual is larger by `error`: the chain's mass that has left [0, height)."""
    width = height / (STATES - 0.5)
    apart = np.arange(-STATES, STATES) * width + width / 2 + SLACK
    below = np.where(apart <= CLIP, special.stdtr(SPREAD_FREEDOM, apart - error), 1.0)
    to, start = np.arange(STATES)[None, :], np.arange(STATES)[:, None]
    moves = np.diff(below[to - start + STATES], axis=1, prepend=0.0)
    mass = np.zeros(STATES)
    mass[0] = 1.0
    for _ in range(days):
        mass = mass @ moves
    return 1.0 - float(mass.sum())
