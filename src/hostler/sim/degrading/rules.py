"""Rules that flag nodes by their readings: ours, and what open tools and sites do. Each sees the same daily medians.

A rule says for each node the first day on which it would flag it, looking at the days up to that one.
"""

from collections.abc import Callable

import numpy as np

from hostler.core.statistics.drift import judge
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.medians import MAD_TO_SD, Flags, Floats, Whole
from hostler.core.statistics.residuals import residuals
from hostler.core.statistics.series import BASELINE_DAYS, MIN_JUDGED, Cohort

Rule = Callable[[Floats, Whole], Whole]
"""Daily medians (n, t) and stacks (n, t) → the day of the first flag (n,), t for never."""

FIXED, PEER_Z, HISTORY_Z = -0.05, 4.0, 3.0
RUN = 2
"""Days in a row below its own history that a node must show to be flagged by `own_history`."""


def fixed_limit(daily: Floats, _stacks: Whole) -> Whole:
    """A day's median more than 5 % under the fleet's figure, which was taken in the first week."""
    known = float(np.nanmedian(daily[:, :BASELINE_DAYS]))
    return _first(daily / known - 1 < FIXED)


def robust_z(daily: Floats, _stacks: Whole) -> Whole:
    """A day's median more than 4 robust standard deviations under that day's peers (same stack)."""
    middle = np.nanmedian(daily, axis=0)
    wide = MAD_TO_SD * np.nanmedian(np.abs(daily - middle), axis=0)
    return _first((daily - middle) / wide < -PEER_Z)


def own_history(daily: Floats, stacks: Whole) -> Whole:
    """Two days in a row more than 3 standard deviations under the node's own first week, beside its peers' day."""
    standard = residuals(Cohort(daily, stacks)).standard
    below = np.nan_to_num(standard) > HISTORY_Z
    return _first(below & np.pad(below[:, :-1], ((0, 0), (1, 0))), from_day=0)


def ours(daily: Floats, stacks: Whole, budget: AlarmBudget = AlarmBudget(), series_of_a_node: float = 1.0) -> Whole:  # noqa: B008 - frozen
    """Judge every day anew, as the product does, with the budget's part for the days so far."""
    days = daily.shape[1]
    found = np.full(len(daily), days)
    for day in range(BASELINE_DAYS + MIN_JUDGED, days + 1):
        judged = judge(Cohort(daily[:, :day], stacks[:, :day]), budget, series_of_a_node)
        rows = np.array([drift.row for drift in judged.drifts], dtype=np.int64)
        found[rows] = np.minimum(found[rows], day - 1)
    return found


RULES: dict[str, Rule] = {
    "fixed −5 %": fixed_limit,
    "peer robust z < −4": robust_z,
    "own history, peer-normalised": own_history,
    "ours (CUSUM, peer-normalised, budget 0.3 %)": ours,
}


def _first(flags: Flags, from_day: int = BASELINE_DAYS) -> Whole:
    flags = flags.copy()
    flags[:, :from_day] = False
    return np.asarray(np.where(flags.any(axis=1), np.argmax(flags, axis=1), flags.shape[1]))
