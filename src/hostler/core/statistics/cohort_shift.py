"""Finds what moves a whole cohort: one finding on the change of driver, firmware or suite, none on its nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hostler.core.statistics.medians import MEDIAN_VARIANCE, Floats, Whole, row_medians, spread
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


def shifts(own: Floats, stacks: Whole, noise: Floats) -> tuple[CohortShift, ...]:
    """Every cohort that stands elsewhere on its last days than in its baseline.

    `own` (n, t): change of each series since its own baseline. `noise` (n,): standard deviation of a day.
    """
    general = float(np.nanmedian(noise)) if not np.isnan(noise).all() else np.nan
    if not general > 0:
        return ()
    home = _home(own, stacks)
    return tuple(found for stack in _known(stacks) for found in _shift(own, stacks, home, stack))


def _known(stacks: Whole) -> list[int]:
    return np.flatnonzero(np.bincount(stacks.ravel() + 1)[1:]).tolist()


def _home(own: Floats, stacks: Whole) -> Whole:
    first = ~np.isnan(own[:, :BASELINE_DAYS])
    return np.asarray(stacks[np.arange(len(own)), np.argmax(first, axis=1)])


def _shift(own: Floats, stacks: Whole, home: Whole, stack: int) -> Iterator[CohortShift]:
    among = np.flatnonzero((stacks == stack).any(axis=1) & (home >= 0))
    here = np.ascontiguousarray(np.where(stacks[among] == stack, own[among], np.nan).T)  # a day is a row
    count = np.count_nonzero(~np.isnan(here), axis=1)
    days = np.flatnonzero((count >= MIN_PEERS) & (np.arange(len(here)) >= BASELINE_DAYS))
    if len(days) < MIN_DAYS:
        return
    middle = row_medians(here[days])
    if not (np.abs(middle[-MIN_DAYS:]) > LEAST).all():
        return
    each = np.array([spread(day) for day in here[days]])
    errors = np.sqrt(MEDIAN_VARIANCE / count[days]) * each
    least = max(LEAST, 0.5 * float(np.median(each))) if np.nanmax(np.abs(own)) > 1 else LEAST
    moved = np.abs(middle) > np.maximum(least, ERRORS * errors)
    if not moved[-MIN_DAYS:].all():
        return
    first = len(days) - (int(np.argmin(moved[::-1])) if not moved.all() else len(days))
    series = among[~np.isnan(here[days[first:]]).all(axis=0)]
    homes, sizes = np.unique(home[series], return_counts=True)
    size = float(np.median(middle[first:]))
    yield CohortShift(
        stack, int(homes[np.argmax(sizes)]), size, float(np.median(errors[first:])), int(days[first]), len(series)
    )
