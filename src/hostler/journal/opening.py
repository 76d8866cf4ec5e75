"""Opens the journal that an address names: a file, or a database on a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostler.journal import layout
from hostler.journal.database import Database
from hostler.journal.sql import SqlJournal
from hostler.ports import JournalError

SCHEMES = ("postgresql://", "postgres://")
LONG_S = 600
"""How long one question may take of who walks a whole journal."""


def open_journal(place: str | Path) -> SqlJournal:
    """The journal at a path or a postgresql:// URL, made or upgraded where need be.

    Raises JournalError where it cannot be had, CorruptJournalError where it does not verify.
    """
    if on_server(place):
        from hostler.journal.postgres import PostgresJournal  # noqa: PLC0415 - psycopg is only loaded for it

        return PostgresJournal(str(place))
    from hostler.journal.sqlite import SqliteJournal  # noqa: PLC0415

    return SqliteJournal(place)


def open_database(place: str | Path, *, writable: bool = False) -> Database:
    """The database of a journal that is there, for long questions. Raises JournalError for a file that is not there."""
    if not on_server(place) and not Path(place).is_file():
        raise JournalError(f"{place} is not there; name the journal with --data, or start a controller to make one")
    return _database(place, writable=writable)


@contextmanager
def existing_database(place: str | Path) -> Iterator[Database]:
    """The database of a journal that is there, brought to today's layout; JournalError where there is none."""
    database = open_database(place, writable=True)
    try:
        layout.prepare(database)
        yield database
    finally:
        database.close()


@contextmanager
def made_database(place: str | Path) -> Iterator[Database]:
    """The database of a journal, laid out where it was not; a file that was not there before goes again on failure."""
    fresh = not on_server(place) and not Path(place).exists()
    database = _database(place, writable=True)
    try:
        layout.prepare(database)
        yield database
    except BaseException:
        database.close()
        if fresh:
            Path(place).unlink(missing_ok=True)
        raise
    database.close()


def on_server(place: str | Path) -> bool:
    """Whether the place is a URL of PostgreSQL; all else is a path."""
    return str(place).startswith(SCHEMES)


def _database(place: str | Path, *, writable: bool) -> Database:
    if on_server(place):
        from hostler.journal.postgres import PostgresDatabase  # noqa: PLC0415

        return PostgresDatabase(str(place), LONG_S)
    from hostler.journal.sqlite import SqliteDatabase  # noqa: PLC0415

    return SqliteDatabase(Path(place), writable=writable)
