"""The journal in one SQLite file: for a cell of one controller.

Write-ahead log with `synchronous=FULL`: a commit is on the disk before `append` returns. One connection writes;
questions are answered on connections of their own, from any thread, while it does.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from math import ceil
from pathlib import Path
from threading import Event, Lock
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Insert, QueuePool, Table, create_engine, event, insert
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from hostler.journal import schema
from hostler.journal.codec import ObservationRow
from hostler.journal.database import FINDINGS_MAX, Values
from hostler.journal.journal_room import JournalFullError, JournalRoom
from hostler.journal.sql import SqlJournal
from hostler.ports import JournalError

APPLICATION = 0x486F7374
"""Marks the file as ours ("Host"), so that no other program's database is taken for a journal."""

READERS = 8
BUSY_TIMEOUT_S = 5.0
POLL_S = 0.05
CACHE_KIB = 64 * 1024
CHECKPOINT_PAGES = 10_000
"""The write-ahead log is folded into the file after 40 MB: index pages hit again and again are written once."""


SHORT_PAGES = 500
"""The same while room is short, 2 MB: the log's pages come on top of the file's."""


class SqliteJournal(SqlJournal):
    """The journal in the file at `path`, which is made if it is not there."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(SqliteDatabase(Path(path)))


class SqliteDatabase:
    """`database.Database` in a file; `writable=False` opens it for questions only, and only where it is there."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        self.name = str(path)
        self._next, self._writing = Lock(), Lock()
        self._closed = Event()
        if writable:
            keep_private(path)
        self._writer = _engine(path, "rwc" if writable else "ro", "BEGIN IMMEDIATE", 1)
        self._readers = _engine(path, "ro", "BEGIN", READERS)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, committed at its end. Raises JournalError: nothing of it is kept."""
        try:
            with self._turn(), self._writer.begin() as db:
                yield db
        except DBAPIError as error:
            full = _is_full(error, Path(self.name))
            raise (JournalFullError if full else JournalError)(
                f"{self.name} cannot be written, nothing of this is kept: {error.orig}"
                "; is there room, and does Hostler's user own the file?"
            ) from error
        except UnicodeDecodeError as error:
            raise JournalError(
                f"{self.name} cannot be written, it is damaged ({error})"
                "; run `hostler journal check`, and restore it from a copy"
            ) from error

    def upgrading(self) -> AbstractContextManager[Connection]:
        """The same as `writing`."""
        return self.writing()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that reads. Raises JournalError."""
        try:
            with self._readers.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise JournalError(
                f"{self.name} cannot be read: {error.orig}; does Hostler's user own the file?"
            ) from error
        except UnicodeDecodeError as error:  # Python's, where SQLite quotes broken bytes in what it complains of
            raise JournalError(
                f"{self.name} cannot be read: it is damaged ({error})"
                "; run `hostler journal check`, and restore it from a copy"
            ) from error

    def insert(self, db: Connection, table: Table, rows: Sequence[Values]) -> None:
        """Insert the rows with one statement."""
        if rows:
            db.exec_driver_sql(_INSERT[table.name], rows)

    def wake(self, db: Connection) -> None:
        """Do nothing: another process cannot be told, it looks every POLL_S."""

    def wait(self, moved: Callable[[], bool], timeout_s: float) -> None:
        """Return when `moved` says so, asked in turns, or when the time is over."""
        for _ in range(ceil(timeout_s / POLL_S)):
            if moved() or self._closed.wait(POLL_S):
                return

    def spoilt(self, error: DBAPIError) -> bool:  # noqa: ARG002 - the port's
        """A local file is always reached."""
        return True

    def room(self) -> JournalRoom | None:
        """Room on the disk and in the file's own free pages, less what the log will still take when it is folded in."""
        path = Path(self.name)
        with self.reading() as connection:
            pages, spare, size = (connection.exec_driver_sql(query).scalar_one() for query in _PAGES)
        try:
            disk, stored = os.statvfs(path.parent), path.stat().st_size
        except OSError as error:
            raise JournalError(f"{self.name} cannot be looked at: {error}") from error
        free = disk.f_bavail * disk.f_frsize + spare * size - max(0, pages * size - stored)
        return JournalRoom(max(0, free), disk.f_blocks * disk.f_frsize, str(path.parent))

    def save_room(self, *, short: bool) -> None:
        """Fold the write-ahead log in and cut it to nothing; keep it short from now on, or let it grow again."""
        try:
            with self._turn(), self._writer.connect() as connection:
                raw = connection.connection.driver_connection
                assert isinstance(raw, sqlite3.Connection)
                raw.execute(f"PRAGMA wal_autocheckpoint={SHORT_PAGES if short else CHECKPOINT_PAGES}")
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except (DBAPIError, sqlite3.Error) as error:
            raise JournalError(f"{self.name} cannot give room back: {error}") from error

    def damage(self, connection: Connection) -> tuple[str, ...]:
        """Findings of SQLite's quick check, at most FINDINGS_MAX, none for a sound file."""
        said = connection.exec_driver_sql(f"PRAGMA quick_check({FINDINGS_MAX})").scalars()
        return tuple(line for line in said if line != "ok")

    def foreign(self, db: Connection) -> str:
        """Why this file is not a journal and must not be written, "" where it is one or empty."""
        application, tables = (db.exec_driver_sql(query).scalar_one() for query in _IDENTIFY)
        if application == APPLICATION or not (application or tables):
            return ""
        return f"{self.name} is a database of another program, not a journal"

    def unmarked(self, db: Connection) -> str:
        """The layout that the file's header names, "" where it names none."""
        layout = db.exec_driver_sql("PRAGMA user_version").scalar_one()
        return f"{layout:04d}" if layout else ""

    def mark(self, db: Connection, layout: int) -> None:
        """Write our application id and the layout into the file's header."""
        db.exec_driver_sql(f"PRAGMA application_id={APPLICATION}")
        db.exec_driver_sql(f"PRAGMA user_version={layout}")

    def close(self) -> None:
        """Close all connections and end every wait."""
        self._closed.set()
        self._readers.dispose()
        self._writer.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Writers in the order they came: who waits holds `_next`, so a busy snapshot cannot overtake an append."""
        with self._next:
            self._writing.acquire()
        try:
            yield
        finally:
            self._writing.release()


def _is_full(error: DBAPIError, path: Path) -> bool:
    """Whether it was for want of room: SQLite says so, or says that it could not write where there is none."""
    code = getattr(error.orig, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL:
        return True
    with suppress(OSError):
        return code & 0xFF == sqlite3.SQLITE_IOERR and os.statvfs(path.parent).f_bavail == 0
    return False


def keep_private(path: Path) -> None:
    """Make the file where it is not there, and take it from all but its owner before anything is in it.

    SQLite gives its -wal and -shm the mode of the file itself. Where that is refused SQLite says what is wrong.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for part in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
            if part.exists() and part.stat().st_mode & 0o077:
                part.chmod(0o600)


def _engine(path: Path, mode: str, begin: str, size: int) -> Engine:
    """At most `size` connections in `mode` (ro, rwc), whose transactions start with `begin`."""
    engine = create_engine(
        "sqlite://", creator=lambda: _connect(path, mode), poolclass=QueuePool, pool_size=size, max_overflow=0
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_TIMEOUT_S,
    )
    try:
        for pragma in _PRAGMAS if mode == "rwc" else _READER_PRAGMAS:
            connection.execute(pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _sql(statement: Insert, columns: tuple[str, ...] | None = None) -> str:
    """Core's SQL with positional values: given row by row to Core itself, an append would take three times as long."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="qmark"), column_keys=columns))


_READER_PRAGMAS = (f"PRAGMA cache_size=-{CACHE_KIB}",)
_PRAGMAS = (
    *_READER_PRAGMAS,
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}",
)
_PAGES = ("PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA page_size")
_IDENTIFY = ("PRAGMA application_id", "SELECT count(*) FROM sqlite_master")

_cursor = sqlite.insert(schema.cursors)
_INSERT = {table.name: _sql(insert(table)) for table in schema.metadata.sorted_tables} | {
    "observations": _sql(sqlite.insert(schema.observations).on_conflict_do_nothing(), ObservationRow._fields),
    "cursors": _sql(
        _cursor.on_conflict_do_update(
            index_elements=["node"], set_={"spool": _cursor.excluded.spool, "sequence": _cursor.excluded.sequence}
        )
    ),
}
