"""The journal in PostgreSQL: for a cell whose controllers run on several hosts.

A commit is on the server's disk, and on its synchronous standbys where it has them, before `append` returns. Writers
lock the lease's row first, so that appends and takeovers follow one another: whatever became of a commit whose answer
was lost, the next `acquire` waits until it is decided. Nothing waits for a silent server longer than PATIENCE_S.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from threading import Event, Lock
from time import monotonic  # noqa: TID251 - how long a server is silent is measured; nothing is decided by it
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    QueuePool,
    Table,
    Text,
    create_engine,
    event,
    inspect,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hostler.journal import schema
from hostler.journal.codec import ObservationRow
from hostler.journal.database import Values
from hostler.journal.journal_room import JournalFullError, JournalRoom
from hostler.journal.sql import SqlJournal
from hostler.ports import JournalError

CONNECT_S = 5
PATIENCE_S = 6
"""A server that says nothing for so long is taken for gone, though its connection stands."""

UPGRADE_S = 3_600
WRITERS, READERS = 4, 8
POLL_S = 1.0
"""How often who waits looks by itself, in case a notification was lost with its connection."""

CHANNEL = "hostler_journal"
UPGRADES = 0x486F7374
"""The advisory lock of those that change the layout."""

T = TypeVar("T")


class PostgresJournal(SqlJournal):
    """The journal in the database at `url`: postgresql://user@host:port/database."""

    def __init__(self, url: str) -> None:
        super().__init__(PostgresDatabase(url))


DISK_FULL = "53100"
"""PostgreSQL's word for a disk without room."""


class PostgresDatabase:
    """`database.Database` on a server; `patience_s` is for who asks long questions."""

    def __init__(self, url: str, patience_s: int = PATIENCE_S) -> None:
        self.name, self._conninfo = _addressed(url)
        self._patience_s = patience_s
        self._closed = Event()
        self._listeners: list[_Connection] = []
        self._listening = Lock()
        self._writer = self._engine(WRITERS, IsolationLevel.READ_COMMITTED)
        self._readers = self._engine(READERS, IsolationLevel.REPEATABLE_READ, read_only=True)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, committed at its end.

        Raises JournalError; where a commit failed, whether it is kept is unknown.
        """
        committing = False
        try:
            with self._writer.begin() as db:
                yield db
                committing = True
        except (SQLAlchemyError, psycopg.Error) as error:
            kept = "whether this is kept is unknown" if committing else "nothing of this is kept"
            full = getattr(getattr(error, "orig", error), "sqlstate", "") == DISK_FULL and not committing
            raise (JournalFullError if full else JournalError)(
                f"{self.name} cannot be written, {kept}: {_said(error)}; is the server up, and has its disk room?"
            ) from error

    @contextmanager
    def upgrading(self) -> Iterator[Connection]:
        """A transaction without the usual time limit, alone on the database, for changes of the layout."""
        with self.writing() as db:
            connection = db.connection.driver_connection
            assert isinstance(connection, _Connection)
            connection.patience_s = UPGRADE_S
            db.exec_driver_sql("SET LOCAL statement_timeout = 0")
            db.exec_driver_sql("SET LOCAL lock_timeout = 0")
            db.exec_driver_sql(f"SELECT pg_advisory_xact_lock({UPGRADES})")
            yield db
            connection.patience_s = self._patience_s

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that reads. Raises JournalError."""
        try:
            with self._readers.connect() as connection:
                yield connection
        except (SQLAlchemyError, psycopg.Error) as error:
            raise JournalError(
                f"{self.name} cannot be read: {_said(error)}; is the server up, and may Hostler's user read there?"
            ) from error

    def insert(self, db: Connection, table: Table, rows: Sequence[Values]) -> None:
        """Insert the rows with one statement."""
        if rows:
            statement, text = _INSERT[table.name]
            columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
            for place in text:
                columns[place] = [schema.escaped(value) for value in columns[place]]
            db.exec_driver_sql(statement, tuple(columns))

    def room(self) -> JournalRoom | None:
        """Return None: the disk is the server's."""
        return None

    def save_room(self, *, short: bool) -> None:
        """Do nothing: the disk is the server's."""

    def wake(self, db: Connection) -> None:
        """Notify every controller that waits."""
        db.exec_driver_sql(f"NOTIFY {CHANNEL}")

    def wait(self, moved: Callable[[], bool], timeout_s: float) -> None:
        """Return when `moved` says so, at a notification at the earliest, or when the time is over."""
        try:
            with self._listener() as listener:
                for turn in range(ceil(timeout_s / POLL_S)):
                    if moved() or self._closed.is_set():
                        return
                    left = min(POLL_S, timeout_s - turn * POLL_S)
                    for _ in listener.notifies(timeout=left, stop_after=1):
                        pass
        except psycopg.Error as error:
            raise JournalError(
                f"{self.name} cannot be read: {_said(error)}; is the server up, and may Hostler's user read there?"
            ) from error

    def spoilt(self, error: DBAPIError) -> bool:
        """Whether the error means damaged data, and not a lost connection."""
        return isinstance(error.orig, (psycopg.DataError, psycopg.InternalError))

    def damage(self, connection: Connection) -> tuple[str, ...]:  # noqa: ARG002 - the port's
        """Return nothing: PostgreSQL says so where a page is read."""
        return ()

    def foreign(self, db: Connection) -> str:
        """Why this database is not a journal's and must not be written, "" where it is one or empty."""
        encoding = db.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            return f"{self.name} is encoded in {encoding}; create it again: CREATE DATABASE … ENCODING 'UTF8'"
        tables = set(inspect(db).get_table_names())
        if tables and not {"records", "lease"} <= tables:
            return (
                f"{self.name} holds tables of another program ({', '.join(sorted(tables)[:3])}): name an empty database"
            )
        return ""

    def unmarked(self, db: Connection) -> str:  # noqa: ARG002 - the port's
        """PostgreSQL was never laid out without that table."""
        return ""

    def mark(self, db: Connection, layout: int) -> None:
        """Do nothing: no older program speaks PostgreSQL."""

    def close(self) -> None:
        """Close all connections and end every wait."""
        self._closed.set()
        self._readers.dispose()
        self._writer.dispose()
        with self._listening:
            while self._listeners:
                self._listeners.pop().close()

    @contextmanager
    def _listener(self) -> Iterator["_Connection"]:
        """A connection that hears of changes, one for each that waits; a broken one is not used again."""
        with self._listening:
            listener = self._listeners.pop() if self._listeners else None
        fresh = listener is None
        if listener is None:
            listener = self._connect(IsolationLevel.READ_COMMITTED, autocommit=True)
        try:
            if fresh:
                listener.execute(f"LISTEN {CHANNEL}".encode())
            yield listener
        except BaseException:
            listener.close()
            raise
        with self._listening:
            if self._closed.is_set():
                listener.close()
            else:
                self._listeners.append(listener)

    def _engine(self, size: int, isolation: IsolationLevel, *, read_only: bool = False) -> Engine:
        engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: self._connect(isolation, read_only=read_only),
            poolclass=QueuePool,
            pool_size=size,
            max_overflow=0,
            pool_timeout=self._patience_s,
            pool_pre_ping=True,
        )
        event.listen(engine, "checkin", self._returned)
        return engine

    def _returned(self, connection: "_Connection | None", _record: object) -> None:
        """Close a connection that comes back after everything was closed: its pool is no longer looked after."""
        if connection is not None and self._closed.is_set():
            connection.close()

    def _connect(
        self, isolation: IsolationLevel, *, read_only: bool = False, autocommit: bool = False
    ) -> "_Connection":
        connection = _Connection.connect(self._conninfo, connect_timeout=CONNECT_S, autocommit=True)
        try:
            connection.patience_s = self._patience_s
            settings = _limits(self._patience_s)
            each = ", ".join(["set_config(%s, %s, false)"] * len(settings))
            connection.execute(f"SELECT {each}".encode(), [word for setting in settings.items() for word in setting])
            connection.execute(_SYNCHRONOUS)
            connection.isolation_level, connection.read_only = isolation, read_only
            connection.autocommit = autocommit
        except BaseException:
            connection.close()
            raise
        return connection


class _Connection(psycopg.Connection[Any]):
    """A connection that gives up a server which stays silent: TCP alone would wait for a hung one forever."""

    patience_s: float = PATIENCE_S

    def wait(self, gen: PQGen[T], *args: Any, **settings: Any) -> T:
        """Return when `moved` says so, at a notification at the earliest, or when the time is over."""
        return super().wait(self._impatient(gen), *args, **settings)

    def _impatient(self, gen: PQGen[T]) -> PQGen[T]:
        """The same talk, given up once nothing has come for too long; psycopg looks up every 0.1 s while it waits."""
        heard = monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = monotonic()
                elif monotonic() - heard > self.patience_s:
                    self.close()
                    raise psycopg.OperationalError(f"the server said nothing for {self.patience_s} s")
                wanted = gen.send(ready)
        except StopIteration as ended:
            said: T = ended.value
            return said


def _addressed(url: str) -> tuple[str, str]:
    """(the name in errors, the whole address), of which only the latter holds a password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise JournalError(f"not a database URL, as postgresql://user@host:5432/name: {error}") from error
    shown = URL.create(
        "postgresql",
        username=_text(parts.get("user")),
        host=_text(parts.get("host")),
        port=int(str(parts["port"])) if str(parts.get("port", "")).isdecimal() else None,
        database=_text(parts.get("dbname")),
    )
    return shown.render_as_string(), make_conninfo(url, **_KEEPALIVE)


def _text(value: object) -> str | None:
    return str(value) if value else None


def _limits(patience_s: int) -> dict[str, str]:
    """The server gives up before we do, so that it says what it was."""
    return {
        "statement_timeout": f"{patience_s - 1}s",
        "lock_timeout": f"{max(1, patience_s - 2)}s",
        "idle_in_transaction_session_timeout": f"{patience_s}s",
        "application_name": "hostler",
    }


def _said(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(cause).split())


def _insertion(table: Table, columns: tuple[str, ...] = (), conflict: str = "") -> tuple[str, tuple[int, ...]]:
    """(a statement that takes one array for each column, which of them are text)."""
    chosen = [table.c[name] for name in columns or table.c.keys()]
    kinds = [_kind(column) for column in chosen]
    names = ", ".join(column.name for column in chosen)
    arrays = ", ".join(f"%{'t' if kind == 'text' else 'b'}::{kind}[]" for kind in kinds)
    statement = f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays}) {conflict}"  # noqa: S608 - our names
    return statement, tuple(place for place, kind in enumerate(kinds) if kind == "text")


def _kind(column: Column[Any]) -> str:
    kinds = {BigInteger: "bigint", Integer: "integer", LargeBinary: "bytea", Text: "text"}
    return next(name for kind, name in kinds.items() if isinstance(column.type, kind))


_KEEPALIVE = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": PATIENCE_S * 1_000,
}

# What a server is set to may be stronger, a wait for its standbys to apply; it must not be weaker.
_SYNCHRONOUS = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)

_REPLACED = "ON CONFLICT (node) DO UPDATE SET spool = excluded.spool, sequence = excluded.sequence"
_INSERT = {table.name: _insertion(table) for table in schema.metadata.sorted_tables} | {
    "observations": _insertion(schema.observations, ObservationRow._fields, "ON CONFLICT DO NOTHING"),
    "cursors": _insertion(schema.cursors, (), _REPLACED),
}
