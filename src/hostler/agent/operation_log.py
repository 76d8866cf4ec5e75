"""The agent's own journal of acts: which operation was started in which boot, and how it ended.

A mark is on disk before its act begins. After a crash it says that something was begun, never that it was not.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hostler.agent.private_files import make_private
from hostler.agent.spool_file import is_refusal
from hostler.core.state.model import Operation, Outcome

MAX_ENTRIES = 5_000
"""Finished marks beyond this are forgotten, the oldest first."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS marks (
    number INTEGER PRIMARY KEY AUTOINCREMENT, operation TEXT, attempt INTEGER, kind TEXT, epoch INTEGER,
    boot_id TEXT, outcome BLOB, sent INTEGER NOT NULL DEFAULT 0, UNIQUE (operation, attempt)
);
CREATE TABLE IF NOT EXISTS tried (one INTEGER PRIMARY KEY CHECK (one = 1), room BLOB);
CREATE TABLE IF NOT EXISTS epoch (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER);
"""
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "cache_size=-128")
_EMULATED = ("journal_mode=MEMORY", "synchronous=OFF", "cache_size=-64")
_COLUMNS = "SELECT operation, attempt, kind, epoch, boot_id, outcome FROM marks"


class LoggedOperation(Struct, frozen=True):
    """One act. `outcome` is None from its start until its end is known; `boot_id` is the boot it began in."""

    operation: str
    attempt: int
    kind: str
    epoch: int
    boot_id: str
    outcome: Outcome | None = None


class OperationLog:
    """Marks on disk. Safe to use from several threads; raises `sqlite3.Error` where the disk refuses.

    A disk that refuses from the start is tried again with each call: until it takes a write nobody knows what began.
    `emulated`: the disk is an emulated machine's, and no mark waits for the one below.
    """

    def __init__(self, path: Path, *, emulated: bool = False) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._pragmas = _EMULATED if emulated else _PRAGMAS
        self._opened: sqlite3.Connection | None = None
        try:
            self._opened = _open(path, self._pragmas)
        except sqlite3.OperationalError as error:
            if not is_refusal(error):
                raise

    @property
    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = _open(self._path, self._pragmas)
        return self._opened

    def close(self) -> None:
        """Close the database; closing twice is allowed."""
        if self._opened is not None:
            self._opened.close()

    def epoch(self) -> int:
        """The highest epoch that was ever seen."""
        rows = self._query("SELECT value FROM epoch")
        return int(rows[0][0]) if rows else 0

    def see(self, epoch: int) -> None:
        """A controller of this epoch has spoken: earlier ones are deposed."""
        if epoch > self.epoch():
            self._execute("INSERT OR REPLACE INTO epoch VALUES (1, ?)", (epoch,))

    def start(self, operation: Operation, epoch: int, boot_id: str) -> None:
        """Mark the act as started; on disk when this returns. A second start of an attempt raises."""
        values = (operation.id, operation.attempt, operation.kind, epoch, boot_id)
        query = "INSERT INTO marks (operation, attempt, kind, epoch, boot_id) VALUES (?, ?, ?, ?, ?)"
        self._execute(query, values)

    def finish(self, outcome: Outcome) -> None:
        """Write down how it ended; it stays to be sent until `sent`."""
        values = (msgspec.json.encode(outcome), outcome.operation, outcome.attempt)
        self._execute("UPDATE marks SET outcome = ?, sent = 0 WHERE operation = ? AND attempt = ?", values)
        self._execute(
            "DELETE FROM marks WHERE outcome IS NOT NULL AND number <= (SELECT max(number) FROM marks) - ?",
            (MAX_ENTRIES,),
        )

    def sent(self, outcome: Outcome) -> None:
        """The controller has it."""
        values = (outcome.operation, outcome.attempt)
        self._execute("UPDATE marks SET sent = 1 WHERE operation = ? AND attempt = ?", values)

    def resend(self, outcome: Outcome) -> bool:
        """Send the mark's outcome once more; False where it has none."""
        query = "UPDATE marks SET sent = 0 WHERE operation = ? AND attempt = ? AND outcome IS NOT NULL"
        return self._execute(query, (outcome.operation, outcome.attempt)) > 0

    def find(self, operation: str, attempt: int) -> LoggedOperation | None:
        """The record of this attempt, None where it was never started."""
        rows = self._query(f"{_COLUMNS} WHERE operation = ? AND attempt = ?", (operation, attempt))
        return _mark(rows[0]) if rows else None

    def latest(self, operation: str) -> LoggedOperation | None:
        """The mark of its last attempt."""
        rows = self._query(f"{_COLUMNS} WHERE operation = ? ORDER BY attempt DESC LIMIT 1", (operation,))
        return _mark(rows[0]) if rows else None

    def unfinished(self) -> list[LoggedOperation]:
        """Operations that were started and never ended, oldest first."""
        return [_mark(row) for row in self._query(f"{_COLUMNS} WHERE outcome IS NULL ORDER BY number")]

    def unsent(self, limit: int) -> list[Outcome]:
        """Outcomes that the controller does not have, oldest first."""
        rows = self._query(
            "SELECT outcome FROM marks WHERE outcome IS NOT NULL AND NOT sent ORDER BY number LIMIT ?", (limit,)
        )
        return [msgspec.json.decode(row[0], type=Outcome) for row in rows]

    def _query(self, text: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(text, values).fetchall()

    def _execute(self, text: str, values: tuple[Any, ...]) -> int:
        with self._lock:
            return self._db.execute(text, values).rowcount


def _open(path: Path, pragmas: Sequence[str]) -> sqlite3.Connection:
    with contextlib.suppress(OSError):  # SQLite then says what is wrong with it
        make_private(path)
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
        db.executescript(_SCHEMA)
        db.execute("INSERT OR REPLACE INTO tried VALUES (1, zeroblob(4096))")  # a full disk reads and says nothing
    except sqlite3.Error:
        db.close()
        raise
    return db


def _mark(row: tuple[Any, ...]) -> LoggedOperation:
    operation, attempt, kind, epoch, boot_id, outcome = row
    ended = None if outcome is None else msgspec.json.decode(outcome, type=Outcome)
    return LoggedOperation(operation, attempt, kind, epoch, boot_id, ended)
