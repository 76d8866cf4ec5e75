"""Finds what moves a whole cohort: one finding on the change of driver, firmware or suite, none on its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hostler.core.statistics.medians import MEDIAN_VARIANCE, Floats, Whole, spread
from hostler.core.statistics.series import BASELINE_DAYS, MIN_PEERS

MIN_DAYS = 2
"""Days in a row on which the cohort must show it."""
LEAST, ERRORS = 0.005, 6.0
"""Least size of a shift: half a percent (or half a standard deviation of a day), and so many standard errors."""


@dataclass(frozen=True)
class CohortShift:
    """A stack's nodes have moved together by `size` (metric's scale), known to within `error` (one standard error).

    `before` is the stack that most of them had in the baseline; the same as `stack` where no change is known.
    `day` is the first column that shows it, `nodes` how many have moved.
    """

    stack: int
    before: int
    size: float
    error: float
    day: int
    nodes: int

    @property
    def is_explained(self) -> bool:
        """Whether driver, firmware or suite changed with it."""
        return self.stack != self.before


def shifts(own: Floats, stacks: Whole, noise: Floats) -> tuple[CohortShift, ...]:
    """Every cohort that stands elsewhere on its last days than in its baseline.

    `own` (n, t): change of each series since its own baseline. `noise` (n,): standard deviation of a day.
    """
    general = float(np.nanmedian(noise)) if not np.isnan(noise).all() else np.nan
    if not general > 0:
        return ()
    home = _home(own, stacks)
    return tuple(found for stack in np.unique(stacks[stacks >= 0]) for found in _shift(own, stacks, home, int(stack)))


def _home(own: Floats, stacks: Whole) -> Whole:
    first = ~np.isnan(own[:, :BASELINE_DAYS])
    return np.asarray(stacks[np.arange(len(own)), np.argmax(first, axis=1)])


def _shift(own: Floats, stacks: Whole, home: Whole, stack: int) -> Iterator[CohortShift]:
    here = np.where((stacks == stack) & (home >= 0)[:, None], own, np.nan)
    count = np.count_nonzero(~np.isnan(here), axis=0)
    days = np.flatnonzero((count >= MIN_PEERS) & (np.arange(own.shape[1]) >= BASELINE_DAYS))
    if len(days) < MIN_DAYS:
        return
    middle = np.array([np.nanmedian(here[:, day]) for day in days])
    each = np.array([spread(here[:, day]) for day in days])
    errors = np.sqrt(MEDIAN_VARIANCE / count[days]) * each
    least = max(LEAST, 0.5 * float(np.median(each))) if np.nanmax(np.abs(own)) > 1 else LEAST
    moved = np.abs(middle) > np.maximum(least, ERRORS * errors)
    if not moved[-MIN_DAYS:].all():
        return
    first = len(days) - (int(np.argmin(moved[::-1])) if not moved.all() else len(days))
    rows = ~np.isnan(here[:, days[first:]]).all(axis=1)
    homes, sizes = np.unique(home[rows], return_counts=True)
    size = float(np.median(middle[first:]))
    yield CohortShift(
        stack, int(homes[np.argmax(sizes)]), size, float(np.median(errors[first:])), int(days[first]), int(rows.sum())
    )
