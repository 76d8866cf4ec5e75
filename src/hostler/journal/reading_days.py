"""One metric's days, from files to arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hostler.core.statistics.metrics import Metric
from hostler.journal.daily_medians import BETWEEN, DailyMedians

Floats = NDArray[np.float64]

LAST_DAYS = 7
"""Of each metric's days, from which the series of a node are counted."""


@dataclass(frozen=True)
class ReadingDays:
    """Days of one metric, in n series (`node`, `part`) over t days from `first` on.

    `values` (n, t), NaN for a day without a reading; `stacks` (n, t): the place in `stack_names` of what the node ran,
    −1 for a day without; `conditions`: name → (n, t), in the reading's unit.
    """

    first: date
    series: list[tuple[str, str]]
    stack_names: list[str]
    values: Floats
    stacks: NDArray[np.int64]
    conditions: Mapping[str, Floats]


def series_of_a_node(medians: DailyMedians, names: Sequence[str]) -> float:
    """How many series of these metrics a node has in the mean, on their LAST_DAYS; 1 where there is none."""
    count, nodes = 0, pa.array([], pa.string())
    for name in names:
        tables = [table for _, table in medians.days_of(name, ["series"], LAST_DAYS)]
        series = pc.unique(pa.concat_tables(tables)["series"])
        here = pc.list_element(pc.split_pattern(series, BETWEEN, max_splits=1), 0)
        count, nodes = count + len(series), pc.unique(pa.chunked_array([nodes, here]))
    return count / len(nodes) if len(nodes) else 1.0


def days_of(medians: DailyMedians, name: str, metric: Metric, today: date) -> ReadingDays:
    """The days of one metric, which has some, up to `today`; the first column is the first day with a reading."""
    days, tables = zip(*medians.days_of(name, ["series", "value", "stack", *metric.at_equal]), strict=True)
    series, rows = _encoded(pa.concat_tables(tables)["series"].dictionary_encode())
    stacks, numbers = _encoded(pa.concat_tables(tables)["stack"].unify_dictionaries())
    columns = [(day - days[0]).days for day in days]
    size = ((today - days[0]).days + 1, len(series))

    def spread(column: str) -> Floats:
        values = (table[column].to_numpy() for table in tables)
        return _spread(np.full(size, np.nan), columns, rows, values)

    ran = _spread(np.full(size, -1, dtype=np.int64), columns, rows, numbers)
    parts = [(node, part) for node, _, part in (one.partition(BETWEEN) for one in series)]
    conditions = {one: spread(one) for one in metric.at_equal}
    return ReadingDays(days[0], parts, stacks, spread("value"), ran, conditions)


def _encoded(column: Any) -> tuple[list[str], list[NDArray[np.int32]]]:
    """The different texts of a column in order, and for each row of each day the place of its text among them.

    The column is a dictionary's, one for all days.
    """
    texts = column.chunk(0).dictionary
    order = pc.sort_indices(texts).to_numpy()
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order))
    return texts.take(order).to_pylist(), [ranks[chunk.indices.to_numpy()] for chunk in column.chunks]


def _spread(found: NDArray[Any], columns: Sequence[int], rows: Sequence[Any], values: Iterable[Any]) -> NDArray[Any]:
    """Days' values in their series' rows; `found` (days, series) has what stands where there is none."""
    for column, row, value in zip(columns, rows, values, strict=True):
        found[column, row] = value
    return np.ascontiguousarray(found.T)
