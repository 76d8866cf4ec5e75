"""Findings of trends: drifts of single series, and changes that have moved a whole cohort."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

DRIFT = "trend.drift"
"""The condition of a node of which a reading has drifted."""


def series_key(metric: str, part: str) -> str:
    """Name a series of a node: its metric, and its part where it has one."""
    return f"{metric}/{part}" if part else metric


class DaysToFloor(Struct, frozen=True):
    """Days until the metric's floor is reached: as expected, soonest, latest (None: not within a year)."""

    expected: float
    soonest: float
    latest: float | None = None


class DriftFinding(Struct, frozen=True):
    """A reading of a node that has drifted from its own level, beside its peers.

    `change` is a share of the level (-0.02: two percent less), or a difference in the metric's unit. `since` is the day
    on which it began. `chance`: of as much in a healthy series; `q_value`: expected share of false findings among those
    at least as clear. `daily`: change a day while it goes on, 0 where it is a step. `found`: when it was first found.
    """

    node: str
    metric: str
    part: str
    change: float
    since: datetime
    found: datetime
    chance: float
    q_value: float
    daily: float = 0.0
    floor_in: DaysToFloor | None = None
    judged: bool = True

    @property
    def key(self) -> str:
        """The part of the condition: one for each metric and part of a node."""
        return series_key(self.metric, self.part)


class ShiftFinding(Struct, frozen=True):
    """A cohort that has moved together: from one stack to another, or (`before` == `stack`) without a known change."""

    metric: str
    stack: str
    before: str
    change: float
    since: datetime
    nodes: int


class MetricLooked(Struct, frozen=True):
    """A metric that was judged: how many series, and how many could not be, by reason."""

    metric: str
    judged: int
    too_short: int = 0
    no_peers: int = 0
    constant: int = 0
    invalid: int = 0


class RuleScore(Struct, frozen=True):
    """The fate of a metric's findings: within 30 days a check failed, or a part was replaced, or nothing came.

    `open`: found less than 30 days ago, and nothing has come yet. `missed`: failures of nodes whose series were judged
    and not flagged before. `lead_days`: median days from finding to failure, None where none came true.
    """

    metric: str
    came_true: int
    false_alarms: int
    open: int
    missed: int
    lead_days: float | None = None

    @property
    def precision(self) -> float | None:
        """Share of decided findings that came true; None where none is decided."""
        decided = self.came_true + self.false_alarms
        return self.came_true / decided if decided else None

    @property
    def recall(self) -> float | None:
        """Share of failures that were foretold; None where nothing failed."""
        failed = self.came_true + self.missed
        return self.came_true / failed if failed else None


class DriftScores(Struct, frozen=True):
    """Drift score of each node that was judged, as columns: how near its worst series is to its alarm, in hundredths.

    `worst` counts into `series`, the keys of series as findings have them ("gemm_perf.bf16_tflops/cuda:0").
    """

    at: datetime
    nodes: tuple[str, ...] = ()
    score: tuple[int, ...] = ()
    worst: tuple[int, ...] = ()
    series: tuple[str, ...] = ()


class LemonFinding(Struct, frozen=True):
    """A node, or a part by its serial number, that had troubles in service: how often, beside others of its `kind`.

    `kind`: the node's SKU, or what kind of part. `node`: where it is now, "" for in none; `nodes`: where its days in
    service were spent, in order. `troubles`: how many began with which condition. Rates are troubles a year: `rate`
    is shrunken towards `usual`, that of all of the kind, `low` and `high` its interval of 90 %. `probability`: that it
    is at least twice `usual`. `q_value`: expected share of false findings among those at least as likely.
    """

    unit: Literal["node", "part"]
    name: str
    kind: str
    node: str
    nodes: tuple[str, ...]
    days: float
    troubles: dict[str, int]
    rate: float
    low: float
    high: float
    usual: float
    probability: float
    q_value: float
    lemon: bool

    @property
    def count(self) -> int:
        """How many troubles it had."""
        return sum(self.troubles.values())


class TrendReport(Struct, frozen=True):
    """Findings that the last judgement of all readings found. `days`: how many days of readings it looked at.

    `lemons`: units with troubles since `lemons_since`, the likeliest lemons first; None: no journal was asked.
    """

    at: datetime
    days: int
    drifts: tuple[DriftFinding, ...] = ()
    shifts: tuple[ShiftFinding, ...] = ()
    metrics: tuple[MetricLooked, ...] = ()
    scores: tuple[RuleScore, ...] = ()
    lemons: tuple[LemonFinding, ...] = ()
    lemons_since: datetime | None = None
