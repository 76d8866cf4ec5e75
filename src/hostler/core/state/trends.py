"""Findings of trends: drifts of single series, and changes that have moved a whole cohort."""

from datetime import datetime

from msgspec import Struct

DRIFT = "trend.drift"
"""The condition of a node of which a reading has drifted."""


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
        return f"{self.metric}/{self.part}" if self.part else self.metric


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


class TrendReport(Struct, frozen=True):
    """Findings that the last judgement of all readings found. `days`: how many days of readings it looked at."""

    at: datetime
    days: int
    drifts: tuple[DriftFinding, ...] = ()
    shifts: tuple[ShiftFinding, ...] = ()
    metrics: tuple[MetricLooked, ...] = ()
    scores: tuple[RuleScore, ...] = ()
