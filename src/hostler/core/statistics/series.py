"""The readings of one metric over a cohort's days: checked, and put on a scale on which differences compare."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hostler.core.statistics.medians import Flags, Floats, Whole


class SeriesVerdict(IntEnum):
    """Whether a series was judged. Only `judged` can be found healthy; the others say why nothing is known."""

    judged = 0
    too_short = 1
    no_peers = 2
    constant = 3
    invalid = 4


class Scale(IntEnum):
    """How values compare: by their ratio (throughput), their difference (degrees), or as counts of rare events."""

    ratio = 0
    difference = 1
    count = 2


BASELINE_DAYS, MIN_BASELINE, MIN_JUDGED = 7, 5, 2
"""Days from which a series' own level is learned; how many of them, and of later ones, must have a reading."""
MIN_PEERS = 5
"""Series that must share a stack on a day before that day says anything of one of them."""
SPREAD_FREEDOM = 12.0
"""Degrees of freedom of a day: its spread is known from days, and real readings have heavier tails than normal."""
LEVEL_VARIANCE = 1.1 / BASELINE_DAYS + 0.1
"""Variance of a series' level, in variances of a day: a trimmed mean's own error, and a tenth for slow wandering."""
INVALID_SHARE = 0.2
"""A larger share of impossible readings makes the whole series invalid: its source is broken, not its node."""


@dataclass(frozen=True)
class Cohort:
    """The readings of one metric: `values` (n, t), one median a day, NaN where nothing was read.

    `stacks` (n, t) numbers what changes a node's level at once (SKU, driver, firmware, suite): equal numbers are peers;
    -1 is unknown. `places` (n,) numbers positions (chassis slot, rack row), -1 for none. `higher_is_better` says which
    way is worse.
    """

    values: Floats
    stacks: Whole
    places: Whole | None = None
    scale: Scale = Scale.ratio
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together. Raises ValueError."""
        if self.values.ndim != 2 or self.values.shape != self.stacks.shape:
            raise ValueError(f"values {self.values.shape} and stacks {self.stacks.shape} must be one (series, days)")
        if self.places is not None and self.places.shape != (len(self.values),):
            raise ValueError(f"places {self.places.shape} must be one number for each of {len(self.values)} series")


def on_scale(cohort: Cohort) -> tuple[Floats, Flags]:
    """Values on a scale where noise is about even: logarithm, as they are, or Anscombe's root; and impossible ones.

    Infinite values are impossible on every scale, values of zero or less as ratios, negative ones as counts. They
    become NaN. Anscombe (1948): 2·√(x + 3/8) has a variance of about 1 for a Poisson count.
    """
    values = cohort.values
    with np.errstate(invalid="ignore"):
        impossible = np.isinf(values)
        if cohort.scale is Scale.ratio:
            impossible |= values <= 0
        elif cohort.scale is Scale.count:
            impossible |= values < 0
        kept = np.where(impossible, np.nan, values)
        if cohort.scale is Scale.ratio:
            return np.log(kept), impossible
        if cohort.scale is Scale.count:
            return 2 * np.sqrt(kept + 0.375), impossible
    return kept, impossible
