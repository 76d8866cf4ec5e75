"""Storage of tokens: a SQLite file of its owner alone, or the database that the cell's controllers share."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import RLock
from typing import Protocol

from sqlalchemy import Connection, StaticPool, Table, create_engine, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateColumn

from hostler.journal.postgres import PostgresDatabase
from hostler.ports import JournalError

TOKENS_LOCK = 0x486F7375
"""The advisory lock of those that change tokens in a database: two first starts make one first token."""


class TokenStorage(Protocol):
    """A database of tokens. Whatever goes wrong in it is a JournalError. `local`: an answer takes microseconds."""

    local: bool

    def alone(self) -> AbstractContextManager[Connection]:
        """A transaction that no other change of tokens runs beside; committed at the end or nothing of it."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that reads."""

    def unchanged(self) -> bool:
        """Tell whether certainly nothing has changed since the last call."""
        ...

    def close(self) -> None:
        """Close all connections."""


class TokenDatabaseFile:
    """A SQLite file, mode 0600; one connection, from any thread in turn."""

    local = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = RLock()
        _private(path)
        self._raw = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5.0)
        self._engine = create_engine("sqlite://", creator=lambda: self._raw, poolclass=StaticPool)
        self._version = -1

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """A transaction that no other process writes beside; rolled back on any error."""
        with self.reading() as db:
            db.exec_driver_sql("BEGIN IMMEDIATE")
            self._version = -1
            try:
                yield db
            except BaseException:
                db.exec_driver_sql("ROLLBACK")
                raise
            db.exec_driver_sql("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The connection, for one thread at a time. Raises JournalError."""
        try:
            with self._lock, self._engine.connect() as db:
                yield db
        except DBAPIError as error:
            raise JournalError(f"{self._path}: {error.orig}") from error

    def unchanged(self) -> bool:
        """SQLite counts the changes that others commit; our own ask for a fresh look in `alone`."""
        with self._lock:
            before = self._version
            self._version = int(self._raw.execute("PRAGMA data_version").fetchone()[0])
        return before == self._version

    def close(self) -> None:
        """Close the file."""
        self._engine.dispose()
        self._raw.close()


class SharedTokenDatabase:
    """A PostgreSQL database: the journal's own, so that every controller knows the same tokens."""

    local = False

    def __init__(self, url: str) -> None:
        self._database = PostgresDatabase(url)

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """A transaction under the advisory lock of tokens."""
        with self._database.writing() as db:
            db.exec_driver_sql(f"SELECT pg_advisory_xact_lock({TOKENS_LOCK})")
            yield db

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that reads."""
        return self._database.reading()

    def unchanged(self) -> bool:
        """Return False: others may have changed anything at any time."""
        return False

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def add_missing_columns(db: Connection, *tables: Table) -> None:
    """Add the columns with a default that a database of an older version lacks; older versions leave them alone."""
    shown = inspect(db)
    for table in tables:
        if not shown.has_table(table.name):
            continue
        there = {column["name"] for column in shown.get_columns(table.name)}
        for column in table.columns:
            if column.name not in there and column.server_default is not None:
                db.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {CreateColumn(column).compile(db)}")


def _private(path: Path) -> None:
    """Make the file readable by its owner alone, before anything is in it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
