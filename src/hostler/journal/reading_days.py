"""One metric's readings by day, from files to arrays; only numbers leave DuckDB: a large fleet has millions of days."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hostler.core.state.passive_series import OBSERVED
from hostler.core.statistics.metrics import Metric
from hostler.core.statistics.series import Scale

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WATCHED_LEAST_S = 43_200
"""A day of which a counter was watched for less, in s, has no reading of it."""

_METRICS = "SELECT DISTINCT metric FROM written WHERE received >= ? ORDER BY metric"
_SERIES_OF_A_NODE = """
SELECT avg(n) FROM (
SELECT count(DISTINCT (metric, part)) AS n FROM written WHERE received >= ? AND list_contains(?, metric) GROUP BY node)
"""
_DAYS = """
CREATE OR REPLACE TEMP TABLE days AS
SELECT node, coalesce(part, '') AS part, datediff('day', ?::DATE, received::DATE) AS day, {value} AS value,
       coalesce(any_value(sku) || ' ' || arg_max(stack, received), '') AS stack{conditions}
FROM readings WHERE metric = ? AND received >= ?::DATE AND received < ?::DATE + 1 GROUP BY ALL
"""
_SERIES = """
CREATE OR REPLACE TEMP TABLE series AS
SELECT row_number() OVER (ORDER BY node, part) - 1 AS series, node, part FROM (SELECT DISTINCT node, part FROM days)
"""
_STACKS = """
CREATE OR REPLACE TEMP TABLE stacks AS
SELECT row_number() OVER (ORDER BY stack) - 1 AS number, stack FROM (SELECT DISTINCT stack FROM days)
"""
_NUMBERS = """
SELECT series, number, days.* EXCLUDE (node, part, stack)
FROM days JOIN series USING (node, part) JOIN stacks USING (stack)
"""
_CONDITION = "try_cast(json_extract_string(conditions, '$.{name}') AS DOUBLE)"
_RATE = f"""
CASE WHEN sum({_CONDITION.format(name=OBSERVED)}) >= {WATCHED_LEAST_S}
THEN sum(value) * 86400 / sum({_CONDITION.format(name=OBSERVED)}) END
"""
"""Errors a day, from what was watched of it: a node that was down for some hours has not become better by it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReadingDays:
    """Days of one metric, in n series (`node`, `part`) over t days from `first` on.

    `values` (n, t), NaN for a day without a reading; `stacks` (n, t): the place in `stack_names` of what the node ran,
    −1 for a day without; `conditions`: name → (n, t), in the reading's unit.
    """

    first: int
    series: list[tuple[str, str]]
    stack_names: list[str]
    values: Floats
    stacks: NDArray[np.int64]
    conditions: Mapping[str, Floats]


def metrics_since(database: "DuckDBPyConnection", first: datetime) -> list[str]:
    """Names of the metrics that have readings since a moment."""
    return [name for (name,) in database.execute(_METRICS, [first]).fetchall()]


def series_of_a_node(database: "DuckDBPyConnection", names: list[str], first: datetime) -> float:
    """How many series of these metrics a node has in the mean; 1 where nobody has any."""
    return float((database.execute(_SERIES_OF_A_NODE, [first, names]).fetchone() or (1.0,))[0] or 1.0)


def days_of(database: "DuckDBPyConnection", name: str, metric: Metric, first: datetime, today: datetime) -> ReadingDays:
    """The days of one metric from `first` to `today`, both midnights; the first column is the first with a reading."""
    database.execute(_question(metric), [first, name, first, today])
    database.execute(_SERIES)
    database.execute(_STACKS)
    series = database.execute("SELECT node, part FROM series ORDER BY series").fetchall()
    stacks = [stack for (stack,) in database.execute("SELECT stack FROM stacks ORDER BY number").fetchall()]
    rows = database.execute(_NUMBERS).fetchnumpy()
    days = rows["day"].astype(np.int64)
    offset = int(days.min()) if len(days) else 0
    size = (len(series), (today - first).days + 1 - offset)
    place = (rows["series"].astype(np.int64), days - offset)
    numbers = np.full(size, -1, dtype=np.int64)
    numbers[place] = rows["number"]
    conditions = {one: _spread(size, place, rows[one]) for one in metric.at_equal}
    return ReadingDays(offset, series, stacks, _spread(size, place, rows["value"]), numbers, conditions)


def _spread(size: tuple[int, int], place: tuple[Any, Any], column: Any) -> Floats:
    """A column of rows as an array of series and days, with NaN where there is none."""
    found = np.full(size, np.nan)
    found[place] = np.ma.filled(column.astype(np.float64), np.nan)
    return found


def _question(metric: Metric) -> str:
    """The question for a metric's days. Means where conditions count: a line goes through readings' means."""
    names = metric.at_equal
    value = _RATE if metric.scale is Scale.count else ("avg(value)" if names else "median(value)")
    told = "".join(f", avg({_CONDITION.format(name=name)}) AS {name}" for name in names)
    return _DAYS.format(value=value, conditions=told)
