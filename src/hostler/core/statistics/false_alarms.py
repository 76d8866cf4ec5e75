"""How many healthy nodes may be flagged: the operator's budget, shared out over metrics and days."""

from dataclasses import dataclass

import numpy as np

from hostler.core.statistics.cusum import MONTH_DAYS
from hostler.core.statistics.medians import Flags, Floats


@dataclass(frozen=True)
class AlarmBudget:
    """The share of healthy nodes that may be flagged a month, over all metrics that are judged of a node.

    `discovery_rate`: of what is flagged on one day, the expected share that is false, at most (Benjamini and Hochberg,
    1995; metrics of one node that go wrong together do not break it).
    """

    healthy_share_a_month: float = 0.003
    discovery_rate: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a budget that is no share. Raises ValueError."""
        for name in ("healthy_share_a_month", "discovery_rate"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, not {getattr(self, name):g}")

    def of_series(self, series_of_a_node: float, days: int) -> float:
        """The chance with which one healthy series may be flagged within so many judged days."""
        return self.healthy_share_a_month * days / MONTH_DAYS / max(series_of_a_node, 1.0)


def q_values(chances: Floats) -> Floats:
    """For each chance the least false discovery rate at which it is flagged; NaN stays NaN and counts as no test."""
    found = np.full(chances.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(chances))
    if not tested.size:
        return found
    order = tested[np.argsort(chances[tested], kind="stable")]
    count = len(order)
    raised = chances[order] * count / np.arange(1, count + 1)
    found[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return found


def flagged(chances: Floats, each: float, q: Floats, budget: AlarmBudget) -> Flags:
    """Flag series: within the budget of its series (`each`), and within the day's false discovery rate."""
    with np.errstate(invalid="ignore"):
        return np.asarray((chances <= each) & (q <= budget.discovery_rate))
