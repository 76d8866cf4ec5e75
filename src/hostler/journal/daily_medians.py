"""Each day's value of each series, made once when the day is over: a judgement of a month reads no reading again.

A file a day in the folder `medians` beside the readings, sorted by metric and series. It is made of the readings' file
alone: one that is lost is made again.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hostler.core.state.passive_series import CONDITIONS, OBSERVED
from hostler.core.statistics.metrics import METRICS, Metric
from hostler.core.statistics.series import Scale
from hostler.journal import whole_files
from hostler.journal.reading_files import READ_SUFFIXES, opened
from hostler.ports import JournalError

FOLDER, ENDING = "medians", ".v1.parquet"
"""The number is that of how a day's value is computed: files of another one are made again."""
KEPT_DAYS = 90
"""Longer than any window that is judged; medians of older days are removed, their readings stay."""
WATCHED_LEAST_S = 43_200
"""A day of which a counter was watched for less, in s, has no reading of it."""
BETWEEN = "\t"
"""Between node and part in the name of a series; no node's name has one."""
AT_EQUAL = tuple(name for name in CONDITIONS if name != OBSERVED)

COLUMNS = pa.schema(
    [
        pa.field("metric", pa.string()),
        pa.field("series", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("stack", pa.string()),
        *(pa.field(name, pa.float64()) for name in AT_EQUAL),
    ]
)

_CONDITION = "try_cast(json_extract_string(conditions, '$.{name}') AS DOUBLE)"
_WATCHED = f"sum({_CONDITION.format(name=OBSERVED)})"
_RATE = f"CASE WHEN {_WATCHED} >= {WATCHED_LEAST_S} THEN sum(value) * 86400 / {_WATCHED} END"
"""Errors a day, from what was watched of it: a node that was down for some hours has not become better by it."""
_DAYS = f"""
SELECT metric, node || '{BETWEEN}' || coalesce(part, '') AS series, {{value}} AS value,
       coalesce(any_value(sku) || ' ' || arg_max(stack, received), '') AS stack, {{conditions}}
FROM {{view}} WHERE received::DATE = ?::DATE AND metric IN ({{metrics}}) GROUP BY metric, node, part
"""  # noqa: S608 - names of our own


class DailyMedians:
    """The days of all series from `first` to `today`: from their files, and from readings where there is none yet."""

    def __init__(self, folder: Path, first: date, today: date) -> None:
        """Compute what no file has. Raises JournalError."""
        self._days: dict[date, _Day] = {}
        made = _known(folder)
        known = made.keys() | _read(folder)
        if not known:
            raise JournalError(f"{folder} holds no readings yet: checks that run leave them there")
        for day in sorted(day for day in known if first <= day <= today):
            if day in made and not _has_lines(folder, day):
                self._days[day] = _of_file(made[day])
            else:
                self._days[day] = _of_table(_day_table(folder, day, "readings"))

    def metrics(self) -> list[str]:
        """Names of the metrics that have a reading."""
        return sorted({name for day in self._days.values() for name in day.places})

    def days_of(self, name: str, columns: Iterable[str], most: int = 0) -> Iterator[tuple[date, Any]]:
        """Each day (of `most`, the last ones) on which the metric was read, as a table of Arrow's in one piece."""
        found = [(day, one) for day, one in sorted(self._days.items()) if name in one.places]
        for day, one in found[-most:]:
            yield day, one.read(name, list(columns)).combine_chunks()


class _Day:
    """One day's table: in which slices, or row groups of a file, each metric stands."""

    def __init__(self, places: dict[str, list[Any]], source: Any) -> None:
        self.places = places
        self._source = source

    def read(self, name: str, columns: list[str]) -> Any:
        """The columns of a metric's series."""
        if isinstance(self._source, pa.Table):
            return self._source.slice(*self.places[name]).select(columns)
        try:
            file = pq.ParquetFile(self._source, read_dictionary=["stack"])
            return file.read_row_groups(self.places[name], columns=columns, use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(self._source, error) from error


def make_missing(folder: Path, today: date) -> None:
    """Make the file of each of the last KEPT_DAYS days whose readings are Parquet and that has none.

    Files of older days, and of another way to compute them, are removed. Raises JournalError.
    """
    made, oldest = _known(folder), today - timedelta(days=KEPT_DAYS)
    for path in (folder / FOLDER).glob("*"):
        if path not in made.values() or path.name < oldest.isoformat():
            path.unlink()
    for day in sorted(_read(folder)):
        if oldest <= day < today and day not in made and not _has_lines(folder, day):
            write(folder, day, _day_table(folder, day, "written"))  # a day's Parquet has each once


def write(folder: Path, day: date, table: Any) -> None:
    """Write a day's table, sorted by metric: each metric begins a row group. Raises OSError."""
    path = _path(folder, day)
    path.parent.mkdir(exist_ok=True)
    plain = [name for name in COLUMNS.names if name in ("metric", "stack")]  # the others have as many values as rows
    with pq.ParquetWriter(whole_files.unfinished(path), COLUMNS, compression="zstd", use_dictionary=plain) as file:
        for begin, count in _slices(table).values():
            file.write_table(table.slice(begin, count))
    whole_files.publish(path)


def forget(folder: Path, day: date) -> None:
    """Remove a day's file, before its readings change."""
    _path(folder, day).unlink(missing_ok=True)


def _day_table(folder: Path, day: date, view: str) -> Any:
    """One day's values of all series, from a view of that day's files alone, as a table of Arrow's with COLUMNS.

    DuckDB takes as long to plan a question to a month's files as to read a day's.
    """
    kinds: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, metric in METRICS.items():
        kinds.setdefault(_value(metric), []).append(name)
    asked = [_question(view, kind, names) for kind, names in kinds.items()]
    whole = f"{' UNION ALL '.join(asked)} ORDER BY metric, series"
    with opened(folder, (day.isoformat(), day.isoformat())) as database:
        table: Any = database.sql(whole, params=[day] * len(asked)).to_arrow_table()
    return table.cast(COLUMNS)


def _value(metric: Metric) -> tuple[str, tuple[str, ...]]:
    """How a day's value is computed, and by which conditions. Means where they count: a line goes through means."""
    if metric.scale is Scale.count:
        return _RATE, ()
    return ("avg(value)" if metric.at_equal else "median(value)"), tuple(sorted(metric.at_equal))


def _question(view: str, kind: tuple[str, tuple[str, ...]], names: list[str]) -> str:
    value, known = kind
    told = (f"avg({_CONDITION.format(name=name)})" if name in known else "NULL::DOUBLE" for name in AT_EQUAL)
    conditions = ", ".join(f"{one} AS {name}" for one, name in zip(told, AT_EQUAL, strict=True))
    metrics = ", ".join(f"'{name}'" for name in names)
    return _DAYS.format(view=view, value=value, conditions=conditions, metrics=metrics)


def _of_table(table: Any) -> _Day:
    place = table.schema.get_field_index("stack")
    return _Day(_slices(table), table.set_column(place, "stack", table["stack"].dictionary_encode()))


def _of_file(path: Path) -> _Day:
    places: dict[str, list[Any]] = {}
    try:
        found = pq.ParquetFile(path)
        if not found.schema_arrow.equals(COLUMNS):
            raise pa.ArrowInvalid("its columns are others")
        for group in range(found.metadata.num_row_groups):
            places.setdefault(found.metadata.row_group(group).column(0).statistics.min, []).append(group)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from error
    return _Day(places, path)


def _slices(table: Any) -> dict[str, list[Any]]:
    """First row of each metric in a sorted table, and how many rows it has."""
    found, begin = {}, 0
    for one in pc.value_counts(table["metric"]).to_pylist():
        found[one["values"]] = [begin, one["counts"]]
        begin += one["counts"]
    return found


def _damaged(path: Path, error: Exception) -> JournalError:
    return JournalError(f"{path} cannot be read: {error}; remove it, it is made again of the day's readings")


def _path(folder: Path, day: date) -> Path:
    return folder / FOLDER / f"{day}{ENDING}"


def _known(folder: Path) -> dict[date, Path]:
    found = (folder / FOLDER).glob(f"????-??-??{ENDING}")
    return {date.fromisoformat(path.name[: -len(ENDING)]): path for path in found}


def _read(folder: Path) -> set[date]:
    """Days that have readings."""
    found = (path.name for path in folder.glob("readings-????-??-??.*") if path.suffix in READ_SUFFIXES)
    return {date.fromisoformat(name[len("readings-") :][:10]) for name in found}


def _has_lines(folder: Path, day: date) -> bool:
    return any(path.suffix != ".parquet" for path in folder.glob(f"readings-{day}.*"))
