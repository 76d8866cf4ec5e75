"""Readings of checks and of passive series as they come: appended to a file of JSON lines a day, out of the journal.

`reading_files` makes Parquet of days that are over, in a process of its own: the controller loads nothing for it. What
is in memory when the process dies is lost: a reading is no verdict, and the next one comes.
"""

import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hostler.ports import JournalError

MOST_WAITING = 200_000
"""Readings in memory; beyond, new ones are dropped and counted."""
DAY_BYTES = 4 * 1024**3
"""The largest file of a day; what comes then is dropped and counted."""


class Reading(Struct, frozen=True):
    """One reading. (`node`, `source`, `metric`, `part`) is its identity.

    `received` is controller time: a node's own clock may leap. `source` is the operation that it is of. `stack` is what
    changes a level at once (driver, firmware, libraries). `conditions`: what else was so, in JSON.
    """

    received: datetime
    node: str
    source: str
    metric: str
    part: str
    value: float
    sku: str = ""
    stack: str = ""
    conditions: str = "{}"


class ReadingStore:
    """The readings of a cell in one folder. `add` is quick and never waits; `flush` writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dropped = 0
        self._waiting: list[Reading] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def add(self, readings: Sequence[Reading]) -> None:
        """Take readings; they are on disk after the next `flush`."""
        with self._lock:
            room = MOST_WAITING - len(self._waiting)
            self._waiting += readings[:room]
            self.dropped += max(len(readings) - room, 0)

    def flush(self) -> int:
        """Write what waits, to the file of its day; how many. What cannot be written waits on. Raises JournalError."""
        with self._writing:
            with self._lock:
                taken, self._waiting = self._waiting, []
            written = 0
            try:
                for day in sorted({one.received.astimezone(UTC).date() for one in taken}):
                    rows = [one for one in taken if one.received.astimezone(UTC).date() == day]
                    self._append(self.folder / f"readings-{day}.jsonl", rows)
                    written += len(rows)
            except OSError as error:
                with self._lock:
                    self._waiting = (taken[written:] + self._waiting)[:MOST_WAITING]
                raise JournalError(
                    f"readings cannot be written to {self.folder}: {error.strerror}"
                    "; let Hostler's user write there, and make room"
                ) from error
            return len(taken)

    def _append(self, path: Path, rows: Sequence[Reading]) -> None:
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        with path.open("ab") as file:
            if file.tell() > DAY_BYTES:
                self.dropped += len(rows)
                return
            file.write(b"\n" + b"\n".join(map(msgspec.json.encode, rows)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
