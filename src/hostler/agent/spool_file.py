"""The spool's file: rows in SQLite, each with its checksum; a write is one transaction, on disk when it returns.

All methods raise `sqlite3.Error` when the disk refuses, and then nothing has changed. A disk that is full or read-only
from the start leaves the file unopened, until `open` succeeds.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from hostler.agent.private_files import make_private

ROW_BYTES = 96
"""Bytes that a row costs beside its body."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (
    sequence INTEGER PRIMARY KEY, boot_id TEXT, seen_s REAL, body BLOB, crc INTEGER
);
CREATE TABLE IF NOT EXISTS marks (upto INTEGER PRIMARY KEY, at_s REAL);
"""
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "cache_size=-256",
    "wal_autocheckpoint=256",
    "journal_size_limit=4194304",
)
_EMULATED = ("journal_mode=MEMORY", "synchronous=OFF", "cache_size=-64")
"""For the disk of an emulated machine: nothing waits for the disk below, whose crash the machine would not outlive."""
_REFUSALS = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR")
_SIZE = f"SELECT coalesce(sum(length(body)), 0) + count(*) * {ROW_BYTES} FROM rows WHERE sequence > ?"  # noqa: S608


class SpoolRow(Struct, frozen=True):
    """A numbered, encoded sighting. `damaged`: the body is not what was written."""

    sequence: int
    boot_id: str
    seen_s: float
    body: bytes
    damaged: bool = False

    @property
    def size(self) -> int:
        """Bytes that the row takes on disk, about."""
        return len(self.body) + ROW_BYTES


class SpoolFile:
    """Rows, marks (when the controller had acknowledged how much) and small named values."""

    def __init__(self, path: Path, *, emulated: bool = False) -> None:
        """Open or create the file; `set_aside` says why an unreadable one was put aside, else "".

        `emulated`: its disk is an emulated machine's, and no write waits for the one below. Raises `sqlite3.Error`
        where another process has it.
        """
        self.set_aside = ""
        self._path = path
        self._pragmas = _EMULATED if emulated else _PRAGMAS
        self._opened: sqlite3.Connection | None = None
        self.open()

    @property
    def is_open(self) -> bool:
        """Tell whether the disk has taken a first write."""
        return self._opened is not None

    def open(self) -> bool:
        """Open the file where it is not; whether the disk takes writes."""
        if self._opened is None:
            try:
                self._opened = self._whole()
            except sqlite3.OperationalError as error:
                if not is_refusal(error):
                    raise
        return self._opened is not None

    def _whole(self) -> sqlite3.Connection:
        try:
            return _connect(self._path, self._pragmas)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.set_aside = str(error)
            put_aside(self._path)
            return _connect(self._path, self._pragmas)

    @property
    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            raise sqlite3.OperationalError(f"{self._path} could not be opened: its disk is full or read-only")
        return self._opened

    def close(self) -> None:
        """Close the database; closing twice is allowed."""
        if self._opened is not None:
            self._opened.close()

    def meta(self) -> dict[str, bytes]:
        """All named values."""
        return {str(name): bytes(value) for name, value in self._db.execute("SELECT name, value FROM meta")}

    def newest(self) -> int:
        """The greatest sequence held, 0 where there is none."""
        return int(self._scalar("SELECT max(sequence) FROM rows") or 0)

    def oldest(self) -> int:
        """The smallest sequence held, 0 where there is none."""
        return int(self._scalar("SELECT min(sequence) FROM rows") or 0)

    def boot_ends(self) -> dict[str, float]:
        """Clock reading of each boot's last row, by that boot's clock."""
        return dict(self._db.execute("SELECT boot_id, max(seen_s) FROM rows GROUP BY boot_id"))

    def size(self, after: int = 0) -> int:
        """Bytes of the rows above `after`."""
        return int(self._scalar(_SIZE, after) or 0)

    def rows(self, after: int, limit: int) -> list[SpoolRow]:
        """The first `limit` rows after this number, in order; damaged ones are marked."""
        columns = "SELECT sequence, boot_id, seen_s, body, crc FROM rows"
        found = self._db.execute(f"{columns} WHERE sequence > ? ORDER BY sequence LIMIT ?", (after, limit))
        return [SpoolRow(number, boot, at, body, zlib.crc32(body) != crc) for number, boot, at, body, crc in found]

    def write(self, rows: Sequence[SpoolRow], meta: Mapping[str, bytes], evict_upto: int = 0) -> None:
        """Delete the rows up to `evict_upto`, add rows, set values."""
        with self._transaction():
            self._db.execute("DELETE FROM rows WHERE sequence <= ?", (evict_upto,))
            self._insert(rows)
            self._set(meta)

    def mark(self, upto: int, at_s: float, every_s: float, keep_s: float) -> bool:
        """Note that the controller has everything up to `upto`; marks closer than `every_s` become one.

        Rows acknowledged longer ago than `keep_s` are deleted; True where there were any.
        """
        with self._transaction():
            self._set({"acknowledged": str(upto).encode()})
            self._db.execute("DELETE FROM marks WHERE upto > ?", (upto,))
            last = self._db.execute("SELECT upto, at_s FROM marks ORDER BY upto DESC LIMIT 1").fetchone()
            if last and at_s - last[1] < every_s:
                self._db.execute("UPDATE marks SET upto = ? WHERE upto = ?", (upto, last[0]))
            else:
                self._db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (upto, at_s))
            return self._expire(at_s - keep_s - every_s)

    def restart_retention(self, at_s: float) -> None:
        """Count retention from now on: the clock of an earlier boot means nothing."""
        with self._transaction():
            self._db.execute("UPDATE marks SET at_s = ? WHERE at_s > ?", (at_s, at_s))

    def renumber(self, base: int, rows: Sequence[SpoolRow], meta: Mapping[str, bytes]) -> None:
        """Drop the rows up to `base`, number the others from 1, add `rows`, set values."""
        with self._transaction():
            self._db.execute("DELETE FROM rows WHERE sequence <= ?", (base,))
            self._db.execute("UPDATE rows SET sequence = ? - sequence", (base,))
            self._db.execute("UPDATE rows SET sequence = -sequence")
            self._db.execute("DELETE FROM marks")
            self._insert(rows)
            self._set(meta)

    def oldest_worth(self, excess: int, upto: int) -> tuple[int, int]:
        """Sequence to delete up to (at most `upto`) to free `excess` bytes, and the bytes this frees."""
        last = freed = 0
        query = "SELECT sequence, length(body) FROM rows WHERE sequence <= ? ORDER BY sequence"
        for sequence, length in self._db.execute(query, (upto,)):
            if freed >= excess:
                break
            last, freed = sequence, freed + length + ROW_BYTES
        return last, freed

    def _expire(self, before_s: float) -> bool:
        upto = self._scalar("SELECT max(upto) FROM marks WHERE at_s <= ?", before_s)
        if upto is None:
            return False
        self._db.execute("DELETE FROM marks WHERE upto <= ?", (upto,))
        return self._db.execute("DELETE FROM rows WHERE sequence <= ?", (upto,)).rowcount > 0

    def _insert(self, rows: Sequence[SpoolRow]) -> None:
        values = [(r.sequence, r.boot_id, r.seen_s, r.body, zlib.crc32(r.body)) for r in rows]
        self._db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", values)

    def _set(self, meta: Mapping[str, bytes]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(meta.items()))

    def _scalar(self, query: str, *values: float) -> int | float | None:
        found: int | float | None = self._db.execute(query, values).fetchone()[0]
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


def is_refusal(error: sqlite3.Error) -> bool:
    """Tell whether the disk is full, read-only or broken; a file locked by another process is none of these."""
    return getattr(error, "sqlite_errorname", "").startswith(_REFUSALS)


def accepted(work: Callable[[], None]) -> bool:
    """Try a write; False where the disk refuses it (full, read-only, broken)."""
    try:
        work()
    except sqlite3.Error:
        return False
    return True


def _connect(path: Path, pragmas: Sequence[str]) -> sqlite3.Connection:
    with suppress(OSError):  # SQLite then says what is wrong with it
        make_private(path)
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
        db.executescript(_SCHEMA)
        db.execute("INSERT OR REPLACE INTO meta VALUES ('tried', zeroblob(4096))")  # a full disk reads and says nothing
        if db.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("quick_check failed")
    except sqlite3.Error:
        db.close()
        raise
    return db


def put_aside(path: Path) -> None:
    """Keep the newest unreadable file for a person to look at."""
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(path.with_name(f"unreadable-{path.name}{suffix}"))
