"""Judges all readings of a cell, from files to a report of drifts and shifts; for a process of its own."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
from msgspec.structs import replace

from hostler.core.state.passive_series import OBSERVED
from hostler.core.state.trends import DaysToFloor, DriftFinding, MetricLooked, ShiftFinding, TrendReport
from hostler.core.statistics.drift import Drift, MetricJudgement, as_ratio, judge
from hostler.core.statistics.equal_conditions import at_equal_by
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.metrics import METRICS, Metric
from hostler.core.statistics.series import Cohort, Scale, SeriesVerdict
from hostler.journal.reading_files import opened

WINDOW_DAYS = 60
"""Days of readings that are judged, today's among them."""
WATCHED_LEAST_S = 43_200
"""A day of which a counter was watched for less, in s, has no reading of it."""
FINDINGS_MOST = 1_000
"""Drifts of one report, the clearest first; so many at once are no nodes' fault."""

_METRICS = "SELECT DISTINCT metric FROM readings WHERE received >= ? ORDER BY metric"
_COUNT = """
SELECT avg(n) FROM (
SELECT count(DISTINCT (metric, part)) AS n FROM readings WHERE received >= ? AND list_contains(?, metric) GROUP BY node)
"""
_DAYS = """
SELECT node, part, datediff('day', ?::DATE, received::DATE) AS day, {value} AS value,
       last(sku || ' ' || stack ORDER BY received) AS stack{conditions}
FROM readings WHERE metric = ? AND received >= ?::DATE AND received < ?::DATE + 1 GROUP BY node, part, day
"""
_CONDITION = "try_cast(json_extract_string(conditions, '$.{name}') AS DOUBLE)"
_RATE = f"""
CASE WHEN sum({_CONDITION.format(name=OBSERVED)}) >= {WATCHED_LEAST_S}
THEN sum(value) * 86400 / sum({_CONDITION.format(name=OBSERVED)}) END
"""
"""Errors a day, from what was watched of it: a node that was down for some hours has not become better by it."""


def judge_readings(folder: Path, now: datetime, budget: AlarmBudget, before: TrendReport | None = None) -> TrendReport:
    """Judge what the files of `folder` hold up to `now`. Raises JournalError where they cannot be read.

    `before` is the last report: what it found and cannot be judged now (no peers, no readings) is found still.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=WINDOW_DAYS - 1)
    with opened(folder) as database:
        names = [name for (name,) in database.execute(_METRICS, [first]).fetchall() if name in METRICS]
        each = float((database.execute(_COUNT, [first, names]).fetchone() or (1.0,))[0] or 1.0)
        looked = [_Judged(database, name, first, today, now) for name in names]
        found = [one.judge(budget, each) for one in looked]
    fresh = tuple(drift for one in found for drift in one.drifts)
    kept = _carried(before, fresh, looked, now)
    drifts = sorted((*kept, *fresh), key=lambda one: (one.chance, one.node, one.key))[:FINDINGS_MOST]
    return TrendReport(
        now,
        WINDOW_DAYS,
        tuple(_since_first(drifts, before)),
        tuple(shift for one in found for shift in one.shifts),
        tuple(one.metrics[0] for one in found if one.metrics),
    )


class _Judged:
    """One metric's days as arrays, and what was said of each of its series."""

    def __init__(
        self, database: duckdb.DuckDBPyConnection, name: str, first: datetime, today: datetime, now: datetime
    ) -> None:
        self.name = name
        self._metric = METRICS[name]
        rows = database.execute(_question(self._metric), [first, name, first, today]).fetchnumpy()
        series, index = np.unique(
            np.char.add(np.char.add(rows["node"].astype(str), "\x1f"), rows["part"].astype(str)), return_inverse=True
        )
        self._stacks, stack = np.unique(rows["stack"].astype(str), return_inverse=True)
        days = rows["day"].astype(np.int64)
        self._offset = int(days.min()) if len(days) else 0
        size = (len(series), WINDOW_DAYS - self._offset)
        self._first, self._now = first + timedelta(days=self._offset), now
        values, numbers = np.full(size, np.nan), np.full(size, -1, dtype=np.int64)
        values[index, days - self._offset] = np.ma.filled(rows["value"].astype(np.float64), np.nan)
        numbers[index, days - self._offset] = stack
        numbers = _filled(numbers)
        for condition in self._metric.at_equal:
            known = np.full(size, np.nan)
            known[index, days - self._offset] = np.ma.filled(rows[condition].astype(np.float64), np.nan)
            fair = at_equal_by(numbers[:, -1], values, known)
            values = np.where(values <= 0, values, fair) if self._metric.scale is Scale.ratio else fair
        self._series = [tuple(one.split("\x1f")) for one in series]
        places = np.unique([part for _, part in self._series], return_inverse=True)[1]
        self._cohort = Cohort(
            values,
            numbers,
            places.astype(np.int64),
            self._metric.scale,
            self._metric.higher_is_better,
        )
        self.said: dict[tuple[str, ...], SeriesVerdict] = {}

    def judge(self, budget: AlarmBudget, series_of_a_node: float) -> TrendReport:
        """A report of this metric alone."""
        told = judge(self._cohort, budget, series_of_a_node, _floor(self._metric))
        self.said = {one: SeriesVerdict(int(v)) for one, v in zip(self._series, told.verdicts, strict=True)}
        drifts = tuple(self._drift(one) for one in told.drifts)
        shifts = tuple(
            ShiftFinding(
                self.name,
                str(self._stacks[one.stack]),
                str(self._stacks[one.before]),
                as_ratio(one.size, self._metric.scale),
                self._first + timedelta(days=one.day),
                one.nodes,
            )
            for one in told.shifts
        )
        return TrendReport(self._now, WINDOW_DAYS, drifts, shifts, (self._looked(told),))

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


def _question(metric: Metric) -> str:
    """The question for a metric's days. Means where conditions count: a line goes through readings' means."""
    names = metric.at_equal
    value = _RATE if metric.scale is Scale.count else ("avg(value)" if names else "median(value)")
    told = "".join(f", avg({_CONDITION.format(name=name)}) AS {name}" for name in names)
    return _DAYS.format(value=value, conditions=told)


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


def _carried(
    before: TrendReport | None, fresh: Sequence[DriftFinding], looked: Sequence[_Judged], now: datetime
) -> Iterator[DriftFinding]:
    """Earlier findings of series that could not be judged now: who was not looked at has not recovered."""
    known = {(one.node, one.key) for one in fresh}
    said = {one.name: one.said for one in looked}
    for one in before.drifts if before is not None else ():
        verdict = said.get(one.metric, {}).get((one.node, one.part))
        is_old = (now - one.found).days > WINDOW_DAYS
        if (one.node, one.key) not in known and verdict is not SeriesVerdict.judged and not is_old:
            yield replace(one, judged=False)


def _since_first(drifts: Sequence[DriftFinding], before: TrendReport | None) -> Iterator[DriftFinding]:
    """Each finding with the moment at which it was found first."""
    known = {(one.node, one.key): one.found for one in (before.drifts if before is not None else ())}
    for one in drifts:
        yield replace(one, found=known.get((one.node, one.key), one.found))
