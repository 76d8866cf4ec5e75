"""Moves raw observations that have had their time into Parquet files, one for each day, and out of the database.

Cut off after any step it loses nothing and repeats nothing: rows leave the database only when the file that holds them
is on the disk and has been counted, and a file that is there already is merged with what still is in the database.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import delete, select

from hostler.journal import whole_files
from hostler.journal.codec import micros, moment
from hostler.journal.database import Database
from hostler.journal.parquet import DayFile
from hostler.journal.schema import observations
from hostler.ports import JournalError

DAYS = 30
"""How long raw observations are kept in the database where nothing else is said."""

PAGE = 5_000
OPEN_MAX = 4
"""Days whose files are written at once; ids grow with time, so that more are rarely met together."""


class Removed(Struct, frozen=True):
    """Observations that left the database: how many, and the files that hold them now."""

    observations: int = 0
    files: tuple[str, ...] = ()


class _ObservationPage(NamedTuple):
    """Rows with ids above `after` up to `last`, of which `archived` are in files."""

    after: int
    last: int
    archived: int


def archive_observations(database: Database, folder: Path, before: datetime) -> Removed:
    """Put observations received on days before the one of `before` (UTC) into `folder`, and take them out.

    Raises JournalError where the folder or the database cannot be written; the same call later goes on from there.
    """
    end = micros(before.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0))
    with whole_files.alone(folder):
        days = _Days(folder)
        pages = []
        for after, rows in _pages(database, end):
            old = [row for row in rows if row.received < end]
            for row in old:
                days.add(row)
            pages.append(_ObservationPage(after, rows[-1].id, len(old)))
        days.finish()
        for page in pages:
            _remove(database, page, end)
    return Removed(sum(page.archived for page in pages), tuple(sorted(days.written)))


class _Days:
    """The files of several days, opened as their rows come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, DayFile] = {}
        self.written: set[str] = set()

    def add(self, row: Any) -> None:
        name = _name(row.received)
        if name not in self._open:
            if len(self._open) == OPEN_MAX:
                self._finish(min(self._open))
            self._open[name] = DayFile(self._folder / name)
        self._open[name].add(row)

    def finish(self) -> None:
        for name in sorted(self._open):
            self._finish(name)

    def _finish(self, name: str) -> None:
        self._open.pop(name).finish()
        self.written.add(name)


def _pages(database: Database, end: int) -> Iterator[tuple[int, list[Any]]]:
    """(id before, rows) of each page from the oldest on, until one holds nothing that is old."""
    c, after = observations.c, 0
    while True:
        with database.reading() as connection:
            rows = list(connection.execute(select(observations).where(c.id > after).order_by(c.id).limit(PAGE)))
        if not any(row.received < end for row in rows):
            return
        yield after, rows
        after = rows[-1].id


def _remove(database: Database, page: _ObservationPage, end: int) -> None:
    c = observations.c
    with database.writing() as db:
        old = delete(observations).where(c.id > page.after, c.id <= page.last, c.received < end)
        if db.execute(old).rowcount != page.archived:
            raise JournalError(
                f"observations {page.after + 1} to {page.last} changed while they were archived: they stay, try again"
            )


def _name(received: int) -> str:
    day = f"{moment(received):%Y-%m-%d}" if received else "undated"
    return f"observations-{day}.parquet"


def older_than(now: datetime, days: int = DAYS) -> datetime:
    """The moment before which observations have had their time."""
    return now - timedelta(days=days)
