"""A reading at equal conditions: what a cohort's common dependence on another reading explains is taken off.

Temperature above ambient is compared at equal power, fan effort at equal ambient, throughput at equal inlet heat.
"""

import numpy as np
import scipy  # loads its `stats`, half a second, where a slope is first asked for

from hostler.core.statistics.medians import Floats, Whole

SAMPLE, MIN_PAIRS = 1_000, 20
"""Pairs of readings from which the dependence is learned at most, and at least."""


def at_equal(values: Floats, condition: Floats) -> Floats:
    """Values (n, t) as they would be at the cohort's median condition (n, t); NaN where the condition is not known.

    The dependence is one slope for the whole cohort (Theil–Sen over pairs of readings spread evenly through them), so a
    node that is worse at every condition stays worse. Where too few pairs are known, or the condition never changes,
    values stay as they are where both are known.
    """
    both = ~np.isnan(values) & np.isfinite(condition)
    kept = np.where(both, values, np.nan)
    y, x = values[both], condition[both]
    if len(y) < MIN_PAIRS or np.ptp(x) == 0:
        return kept
    chosen = np.linspace(0, len(y) - 1, min(len(y), SAMPLE)).astype(np.int64)
    slope = scipy.stats.theilslopes(y[chosen], x[chosen]).slope
    return np.where(both, values - slope * (condition - np.median(x)), np.nan)


def at_equal_by(groups: Whole, values: Floats, condition: Floats) -> Floats:
    """The same within each group (n,) of series: models and cooling differ in how a condition acts on them."""
    found = np.full(values.shape, np.nan)
    for group in np.unique(groups):
        rows = groups == group
        found[rows] = at_equal(values[rows], condition[rows])
    return found
