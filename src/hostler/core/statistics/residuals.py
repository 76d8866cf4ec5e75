"""How far each series is from its own level and its peers' day: the residual on which drift is judged.

A series' level is the median of its first days beside its stack's. What all peers of a stack show on a day is taken
off, so heat, a driver or a suite that moves everybody moves no residual; what one place shows besides is taken off as
far as its size bears it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hostler.core.statistics.medians import (
    MAD_TO_SD,
    MEDIAN_VARIANCE,
    Flags,
    Floats,
    Whole,
    column_medians,
    row_medians,
    row_trimmed_means,
    spread,
)
from hostler.core.statistics.series import (
    BASELINE_DAYS,
    INVALID_SHARE,
    LEVEL_VARIANCE,
    MIN_BASELINE,
    MIN_JUDGED,
    MIN_PEERS,
    Cohort,
    Scale,
    SeriesVerdict,
    on_scale,
)

PRIOR_DAYS = 20.0
"""So many days of a series' own noise weigh as much as its cohort's: a week of readings says little of a spread."""
SPREAD_LEAST = 0.7
"""A series' noise in its cohort's, at least: one that was quiet for a week convicts nobody by being itself again."""

POISSON_NOISE = 1.0
"""The least noise of a count on its scale; nothing but zeros is no stuck counter."""


@dataclass(frozen=True)
class Residuals:
    """`standard` (n, t): residuals after the baseline days in standard deviations, above 0 worse; NaN for none.

    `moved` (n, t): the same on the metric's scale, above 0 higher. `own` (n, t): change since the own baseline, peers
    not taken off. `noise` (n,): standard deviation of a day's residual. `verdicts` (n,): SeriesVerdict.
    """

    standard: Floats
    moved: Floats
    own: Floats
    noise: Floats
    verdicts: Whole


def residuals(cohort: Cohort) -> Residuals:
    """The residuals of a cohort's series."""
    x, impossible = on_scale(cohort)
    groups = list(_groups(cohort.stacks))
    own = x - _levels(x[:, :BASELINE_DAYS], cohort.stacks[:, :BASELINE_DAYS])[:, None]
    moved = own - _peers(own, groups)
    if cohort.places is not None:
        moved -= _places(moved, cohort.places)
    noise, constant = _noise(moved, x)
    if cohort.scale is Scale.count:
        noise, constant = np.maximum(noise, POISSON_NOISE), np.zeros_like(constant)
    verdicts = _verdicts(x, moved, impossible, constant)
    sign = -1.0 if cohort.higher_is_better else 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        standard = sign * moved / noise[:, None]
    standard[verdicts != SeriesVerdict.judged] = np.nan
    standard[:, :BASELINE_DAYS] = np.nan
    return Residuals(standard, moved, own, noise, verdicts)


Group = tuple[int, slice, Whole | slice]
"""A stack, the days on which these rows are its series, and the rows."""


def _groups(stacks: Whole) -> Iterator[Group]:
    """Each stack with its rows, for each span of days in which nobody changes stack."""
    moves = np.flatnonzero((stacks[:, 1:] != stacks[:, :-1]).any(axis=0)) + 1
    for begin, end in pairwise((0, *moves, stacks.shape[1])):
        yield from ((stack, slice(begin, end), rows) for stack, rows in _of_day(stacks[:, begin]))


def _of_day(stacks: Whole) -> Iterator[tuple[int, Whole | slice]]:
    order = np.argsort(stacks, kind="stable")
    known, starts = np.unique(stacks[order], return_index=True)
    if len(known) == 1 and known[0] >= 0:
        yield int(known[0]), slice(None)
        return
    for stack, rows in zip(known, np.split(order, starts[1:]), strict=True):
        if stack >= 0:
            yield int(stack), rows


def _peers(values: Floats, groups: list[Group]) -> Floats:
    """For each series and day the median of its stack's; NaN where it has fewer than MIN_PEERS."""
    found = np.full(values.shape, np.nan)
    for _, days, rows in groups:
        here = values[rows, days]
        count = np.count_nonzero(~np.isnan(here), axis=0)
        found[rows, days] = np.where(count >= MIN_PEERS, column_medians(here), np.nan)
    return found


def _levels(first: Floats, stacks: Whole) -> Floats:
    """The level of each series in its baseline, the days of `first`: its offset beside its stack, and its stack's own.

    The stack is the one that it had on its first day with a reading; days on another are left out.
    """
    home = stacks[np.arange(len(first)), np.argmax(~np.isnan(first), axis=1)]
    at_home = np.where(stacks == home[:, None], first, np.nan)
    beside = at_home - _peers(first, list(_groups(stacks)))
    offset = np.where(np.count_nonzero(~np.isnan(beside), axis=1) >= MIN_BASELINE, row_trimmed_means(beside), np.nan)
    level = np.full(len(first), np.nan)
    for _, rows in _of_day(home):
        here = at_home[rows]
        level[rows] = np.nanmedian(here) if not np.isnan(here).all() else np.nan
    return level + offset


def _places(moved: Floats, places: Whole) -> Floats:
    """The effect that each place shows on a day besides its cohort, shrunk towards nothing as far as noise explains it.

    Empirical Bayes: of the spread between places that of their medians' own error is taken off, and each place keeps
    the share of its effect that its size bears.
    """
    found = np.zeros(moved.shape)
    groups = [(rows, column_medians(moved[rows])) for place, rows in _of_day(places) if place >= 0]
    if len(groups) < 2:
        return found
    sizes = np.array([len(moved[rows]) for rows, _ in groups], dtype=np.float64)
    medians = np.array([middle for _, middle in groups])
    error = MEDIAN_VARIANCE * spread(moved) ** 2 / sizes
    between = np.maximum(np.nanvar(np.nan_to_num(medians), axis=0) - error.mean(), 0.0)
    for (rows, middle), own_error in zip(groups, error, strict=True):
        share = between / (between + own_error) if own_error else np.ones_like(between)
        found[rows] = np.nan_to_num(middle * np.where(len(moved[rows]) >= MIN_PEERS, share, 0.0))
    return found


def _noise(moved: Floats, x: Floats) -> tuple[Floats, Flags]:
    """Standard deviation of each series' day, shrunk towards its cohort's; and who has shown no noise at all.

    A series' own is that of its steps from day to day, which neither a step nor a drift makes larger. The cohort's is
    at least what its series are away from their baselines, less the error of these: slow wandering is noise too.
    """
    steps = np.abs(np.diff(moved, axis=1)) / np.sqrt(2)
    own = MAD_TO_SD * row_medians(steps)
    count = np.count_nonzero(~np.isnan(steps), axis=1)
    away = MAD_TO_SD * _middle(np.abs(moved[:, BASELINE_DAYS:])) / np.sqrt(1 + LEVEL_VARIANCE)
    general = max(MAD_TO_SD * _middle(steps), away)
    mixed = np.sqrt((PRIOR_DAYS * general**2 + count * np.nan_to_num(own) ** 2) / (PRIOR_DAYS + count))
    days = np.count_nonzero(~np.isnan(x), axis=1)
    constant = (days >= MIN_BASELINE) & (_most(x) == -_most(-x))
    return np.maximum(mixed, SPREAD_LEAST * general), constant


def _middle(values: Floats) -> float:
    found = values[~np.isnan(values)]
    return float(np.median(found)) if found.size else 0.0


def _most(x: Floats) -> Floats:
    return np.asarray(np.max(np.where(np.isnan(x), -np.inf, x), axis=1))


def _verdicts(x: Floats, moved: Floats, impossible: Flags, constant: Flags) -> Whole:
    has = ~np.isnan(x)
    judged = np.count_nonzero(~np.isnan(moved[:, BASELINE_DAYS:]), axis=1)
    early = np.count_nonzero(has[:, :BASELINE_DAYS], axis=1)
    late = np.count_nonzero(has[:, BASELINE_DAYS:], axis=1)
    wrong, right = np.count_nonzero(impossible, axis=1), np.count_nonzero(has, axis=1)
    found = np.full(len(x), int(SeriesVerdict.judged), dtype=np.int64)
    found[judged < MIN_JUDGED] = SeriesVerdict.no_peers
    found[constant] = SeriesVerdict.constant
    found[(early < MIN_BASELINE) | (late < MIN_JUDGED)] = SeriesVerdict.too_short
    found[wrong > INVALID_SHARE * np.maximum(wrong + right, 1)] = SeriesVerdict.invalid
    return found
