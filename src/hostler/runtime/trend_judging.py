"""Judges all readings of a cell, from files to a report of drifts and shifts; for a process of its own."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from threading import Lock

import numpy as np
from msgspec.structs import replace

from hostler.core.state.trends import DaysToFloor, DriftFinding, DriftScores, MetricLooked, ShiftFinding, TrendReport
from hostler.core.statistics.drift import Drift, MetricJudgement, as_ratio, judge
from hostler.core.statistics.equal_conditions import at_equal_by
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.metrics import METRICS, Metric
from hostler.core.statistics.series import Cohort, Scale, SeriesVerdict
from hostler.journal.daily_medians import DailyMedians
from hostler.journal.reading_days import ReadingDays, days_of, series_of_a_node
from hostler.runtime.worst_series import WorstSeries

WINDOW_DAYS = 60
"""Days of readings that are judged, today's among them."""
AT_ONCE = 2
"""Metrics that are judged at the same time: a large fleet's days of one take some hundred MB."""
FINDINGS_MOST = 1_000
"""Drifts of one report, the clearest first; so many at once are no nodes' fault."""


@dataclass(frozen=True)
class Judgement:
    """Result of a judgement of all readings: the report, and how near each node is to its alarm."""

    report: TrendReport
    scores: DriftScores


def judge_readings(folder: Path, now: datetime, budget: AlarmBudget, before: TrendReport | None = None) -> Judgement:
    """Judge what the files of `folder` hold up to `now`. Raises JournalError where they cannot be read.

    `before` is the last report: what it found and cannot be judged now (no peers, no readings) is found still.
    """
    today = now.astimezone(UTC).date()
    medians = DailyMedians(folder, today - timedelta(days=WINDOW_DAYS - 1), today)
    names = [name for name in medians.metrics() if name in METRICS]
    each = series_of_a_node(medians, names)
    earlier = before.drifts if before is not None else ()

    worst, taking = WorstSeries(), Lock()

    def judged(name: str) -> tuple[TrendReport, set[DriftFinding]]:
        one = _Judged(name, days_of(medians, name, METRICS[name], today), now)
        report = one.judge(budget, each)
        with taking:
            one.tell(worst)
        return report, one.judged_of(earlier)

    with ThreadPoolExecutor(AT_ONCE) as workers:  # arrays let go of the interpreter's lock
        told = list(workers.map(judged, names))
    found = [report for report, _ in told]
    unjudged = [drift for drift in earlier if not any(drift in seen for _, seen in told)]
    fresh = tuple(drift for one in found for drift in one.drifts)
    drifts = sorted((*_carried(unjudged, fresh, now), *fresh), key=lambda one: (one.chance, one.node, one.key))
    report = TrendReport(
        now,
        WINDOW_DAYS,
        tuple(_since_first(drifts[:FINDINGS_MOST], before)),
        tuple(shift for one in found for shift in one.shifts),
        tuple(one.metrics[0] for one in found if one.metrics),
    )
    return Judgement(report, worst.scores(now))


class _Judged:
    """One metric's days as arrays, and what was said of each of its series."""

    def __init__(self, name: str, days: ReadingDays, now: datetime) -> None:
        self.name = name
        self._metric, self._stacks, self._series = METRICS[name], days.stack_names, days.series
        self._first, self._now = datetime.combine(days.first, time(), UTC), now
        values, numbers = days.values, _filled(days.stacks)
        for known in days.conditions.values():
            fair = at_equal_by(numbers[:, -1], values, known)
            values = np.where(values <= 0, values, fair) if self._metric.scale is Scale.ratio else fair
        places = np.unique([part for _, part in self._series], return_inverse=True)[1].astype(np.int64)
        self._cohort = Cohort(values, numbers, places, self._metric.scale, self._metric.higher_is_better)
        self._verdicts = np.full(len(self._series), int(SeriesVerdict.too_short))
        self._nearness = np.full(len(self._series), np.nan)

    def judge(self, budget: AlarmBudget, series_of_a_node: float) -> TrendReport:
        """A report of this metric alone."""
        told = judge(self._cohort, budget, series_of_a_node, _floor(self._metric))
        self._verdicts, self._nearness = told.verdicts, told.nearness
        drifts = tuple(self._drift(one) for one in told.drifts)
        shifts = tuple(
            ShiftFinding(
                self.name,
                self._stacks[one.stack],
                self._stacks[one.before],
                as_ratio(one.size, self._metric.scale),
                self._first + timedelta(days=one.day),
                one.nodes,
            )
            for one in told.shifts
        )
        return TrendReport(self._now, WINDOW_DAYS, drifts, shifts, (self._looked(told),))

    def tell(self, worst: WorstSeries) -> None:
        """Tell how near each of its series was to its alarm when it was judged."""
        worst.add(self.name, self._series, self._nearness)

    def judged_of(self, drifts: Sequence[DriftFinding]) -> set[DriftFinding]:
        """Drifts whose series is of this metric and could be judged now."""
        asked = {(one.node, one.part): one for one in drifts if one.metric == self.name}
        if not asked:
            return set()
        rows = np.flatnonzero(self._verdicts == SeriesVerdict.judged)
        return {asked[series] for series in map(self._series.__getitem__, rows) if series in asked}

    def _looked(self, told: MetricJudgement) -> MetricLooked:
        counts = {verdict.name: int(np.count_nonzero(told.verdicts == verdict)) for verdict in SeriesVerdict}
        return MetricLooked(self.name, **counts)

    def _drift(self, one: Drift) -> DriftFinding:
        node, part = self._series[one.row]
        scale, forecast = self._metric.scale, one.forecast
        goes_on = one.slope is not None and one.slope.is_trend
        return DriftFinding(
            node=node,
            metric=self.name,
            part=part,
            change=as_ratio(one.change, scale),
            since=self._first + timedelta(days=one.onset),
            found=self._now,
            chance=one.chance,
            q_value=one.q_value,
            daily=as_ratio(one.slope.daily, scale) if goes_on and one.slope is not None else 0.0,
            floor_in=DaysToFloor(forecast.expected, forecast.soonest, forecast.latest) if forecast else None,
        )


def _filled(stacks: np.ndarray) -> np.ndarray:
    """Each series' stack on days without readings: the one before, so that nobody changes stack by being busy."""
    found = stacks.copy()
    for day in range(1, stacks.shape[1]):
        found[:, day] = np.where(found[:, day] < 0, found[:, day - 1], found[:, day])
    return found


def _floor(metric: Metric) -> float | None:
    if metric.floor is None or metric.scale is not Scale.ratio:
        return metric.floor
    return float(np.log1p(metric.floor))


def _carried(unjudged: Sequence[DriftFinding], fresh: Sequence[DriftFinding], now: datetime) -> Iterator[DriftFinding]:
    """Earlier findings of series that could not be judged now: who was not looked at has not recovered."""
    known = {(one.node, one.key) for one in fresh}
    for one in unjudged:
        is_old = (now - one.found).days > WINDOW_DAYS
        if (one.node, one.key) not in known and not is_old:
            yield replace(one, judged=False)


def _since_first(drifts: Sequence[DriftFinding], before: TrendReport | None) -> Iterator[DriftFinding]:
    """Each finding with the moment at which it was found first."""
    known = {(one.node, one.key): one.found for one in (before.drifts if before is not None else ())}
    for one in drifts:
        yield replace(one, found=known.get((one.node, one.key), one.found))
