"""Files of readings, asked with DuckDB: JSON lines of the present day, Parquet of days that are over."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hostler.core.state.passive_series import COUNTERS
from hostler.ports import JournalError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEEP_DAYS = 400
"""Files of older days are removed."""
DAYS_MOST = 5_000
"""Days of series in one answer for people."""
POINTS, SERIES_MOST = 120, 96
"""Points of one series and series in one answer for a drawing."""
SPAN_MOST = timedelta(days=KEEP_DAYS)


class DailyReading(Struct, frozen=True):
    """A day of one series: the median of its readings, and how many there were."""

    day: str
    value: float
    count: int


class ReadingSeries(Struct, frozen=True):
    """The days of one metric of one part of a node, and its newest stack."""

    metric: str
    part: str
    stack: str
    days: tuple[DailyReading, ...]


class DrawnSeries(Struct, frozen=True):
    """One metric of one part of a node in steps: columns with one entry for each step in which something was read.

    `after_s` is the readings' mean moment in seconds after the drawing's begin, `value` their mean with the lowest and
    highest, `count` how many there were. Of a counter the values are errors an hour, by the time it was watched.
    """

    metric: str
    part: str
    after_s: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    count: tuple[int, ...]


class Drawn(Struct, frozen=True):
    """The series of a node between two moments, in steps of `step_s`; `left_out` series are beyond the most."""

    step_s: float
    series: tuple[DrawnSeries, ...]
    left_out: int


@contextmanager
def opened(folder: Path, days: tuple[str, str] = ("", "~")) -> Iterator["DuckDBPyConnection"]:
    """A connection with two views of the folder's files. Raises JournalError.

    `readings` has each reading once; `written` has them as they were written, which costs less where repeats are none.
    `days` are the first and the last one whose files are read, as in their names.
    """
    first, last = (f"readings-{day}" for day in days)
    found = (path for path in folder.glob("readings-*") if path.suffix in READ_SUFFIXES)
    files = sorted(path for path in found if first <= path.name.partition(".")[0] <= last)
    if not files:
        raise JournalError(f"{folder} holds no readings yet: checks that run leave them there")
    with connection(folder) as database:
        database.execute(f"CREATE VIEW written AS {_written(files)}")
        database.execute(f"CREATE VIEW readings AS {each_once(files)}")
        yield database


def series_of(folder: Path, node: str, since: datetime) -> tuple[ReadingSeries, ...]:
    """All series of one node since a moment. Raises JournalError."""
    with opened(folder) as database:
        rows = database.execute(_OF_NODE, [node, since, DAYS_MOST]).fetchall()
    found: dict[tuple[str, str], list[tuple[DailyReading, str]]] = {}
    for metric, part, day, value, count, stack in rows:
        found.setdefault((metric, part), []).append((DailyReading(str(day), value, count), stack))
    return tuple(
        ReadingSeries(metric, part, days[-1][1], tuple(day for day, _ in days))
        for (metric, part), days in found.items()
    )


def drawn_of(folder: Path, node: str, since: datetime, until: datetime) -> Drawn:
    """All series of one node between two moments, in at most POINTS steps. Raises JournalError.

    Nothing between them is no error: nobody looked. Reads at most KEEP_DAYS, the latest.
    """
    since = max(since, until - SPAN_MOST)
    step_s = max((until - since).total_seconds() / POINTS, 1.0)
    days = tuple(at.astimezone(UTC).date().isoformat() for at in (since, until))
    asked = {"node": node, "since": since, "until": until, "step": step_s, "counters": list(COUNTERS)}
    if not any(days[0] <= path.name[len("readings-") :][:10] <= days[1] for path in folder.glob("readings-*")):
        return Drawn(step_s, (), 0)
    with opened(folder, (days[0], days[1])) as database:
        rows = database.execute(_DRAWN, asked | {"most": SERIES_MOST}).fetchall()
    series = tuple(DrawnSeries(*row[:2], *(tuple(column) for column in row[2:7])) for row in rows)
    return Drawn(step_s, series, max((row[7] for row in rows), default=0) - len(series))


@contextmanager
def connection(folder: Path) -> Iterator["DuckDBPyConnection"]:
    """A database in memory. DuckDB is loaded here: a controller that nobody asks does without."""
    import duckdb  # noqa: PLC0415

    try:
        with duckdb.connect() as database:
            database.execute("SET memory_limit = '2GB'; SET threads = 2; SET TimeZone = 'UTC'")
            database.execute("SET enable_progress_bar = false")  # a slow question would draw one on standard output
            yield database
    except duckdb.Error as error:
        raise JournalError(
            f"the readings in {folder} cannot be read: {error}; move the damaged file away and ask again"
        ) from error


def each_once(files: list[Path]) -> str:
    """A question for all readings of the files, a repeated one once: an agent that hears no answer sends again."""
    each = "row_number() OVER (PARTITION BY metric, node, source, part) = 1"  # a third less CPU than DISTINCT ON
    return f"SELECT * FROM ({_written(files)}) QUALIFY {each}"  # noqa: S608 - names are quoted


def _written(files: list[Path]) -> str:
    kinds = [[quoted(path) for path in files if path.suffix in kind] for kind in (_PARQUET, _LINES)]
    asked = [
        ask.format(", ".join(names)) for ask, names in zip((_FROM_PARQUET, _FROM_LINES), kinds, strict=True) if names
    ]
    return " UNION ALL BY NAME ".join(asked)


def quoted(path: Path) -> str:
    """A path as DuckDB writes text: a view takes no parameters, and a name may hold a quote."""
    return "'" + str(path).replace("'", "''") + "'"


_PARQUET, _LINES = (".parquet",), (".jsonl", ".lines")
READ_SUFFIXES = (*_PARQUET, *_LINES)
_FROM_PARQUET = "SELECT * FROM read_parquet([{}])"
_FROM_LINES = """SELECT * FROM read_json([{}], format='newline_delimited', ignore_errors=true, columns={{
received: 'TIMESTAMPTZ', node: 'VARCHAR', source: 'VARCHAR', metric: 'VARCHAR', part: 'VARCHAR', value: 'DOUBLE',
sku: 'VARCHAR', stack: 'VARCHAR', conditions: 'VARCHAR'}}) WHERE node IS NOT NULL AND value IS NOT NULL"""
"""A line that a loss of power has cut short is passed over."""

_OF_NODE = """
SELECT metric, part, received::DATE AS day, median(value), count(*), last(stack ORDER BY received)
FROM readings WHERE node = ? AND received >= ? AND isfinite(value)
GROUP BY metric, part, day ORDER BY metric, part, day LIMIT ?
"""

_DRAWN = """
WITH known AS (
    SELECT *, metric IN (SELECT unnest($counters::VARCHAR[])) AS counts,
        TRY_CAST(TRY_CAST(conditions AS JSON) ->> 'observed_s' AS DOUBLE) AS watched
    FROM readings WHERE node = $node AND received >= $since AND received <= $until AND isfinite(value)),
shown AS (
    SELECT metric, part, counts, epoch(received - $since::TIMESTAMPTZ) AS after_s,
        CASE WHEN counts THEN 3600 * value / watched ELSE value END AS value,
        CASE WHEN counts THEN watched ELSE 1 END AS weight
    FROM known WHERE NOT counts OR watched > 0),
steps AS (
    SELECT metric, part, counts, floor(after_s / $step) AS step, avg(after_s) AS after_s, count(*) AS n,
        sum(value * weight) / sum(weight) AS mean, min(value) AS low, max(value) AS high
    FROM shown GROUP BY metric, part, counts, step)
SELECT metric, part, list(round(after_s, 1) ORDER BY step), list(round(mean, 6) ORDER BY step),
    list(round(low, 6) ORDER BY step), list(round(high, 6) ORDER BY step), list(n ORDER BY step), count(*) OVER ()
FROM steps GROUP BY metric, part, counts
ORDER BY NOT starts_with(metric, 'gpu.') AND NOT starts_with(metric, 'inlet.'), NOT counts,
    NOT starts_with(metric, 'fan.'), metric, part
LIMIT $most
"""
"""Passive series come first, so that a node with many checks does not lose them to the limit."""
