"""The journal in one SQLite file: for a cell with a single controller host.

Write-ahead log with `synchronous=FULL`: a commit is on the disk before `append` returns. One connection writes;
questions are answered on connections of their own, from any thread, while it does.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from math import ceil
from pathlib import Path
from threading import Event, Lock
from urllib.parse import quote

from sqlalchemy import (
    Connection,
    Engine,
    Insert,
    QueuePool,
    create_engine,
    delete,
    event,
    insert,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from hostler.core.events import VERSION, Record, subjects_of
from hostler.core.model import Observation
from hostler.engine.journal import leasing, queries, schema
from hostler.engine.journal.codec import (
    GENESIS,
    ObservationRow,
    OutOfPlaceError,
    Row,
    known,
    micros,
    observation_key,
    seal_all,
    seal_cursors,
    seal_observation,
    unseal,
    unseal_observation,
    verified,
)
from hostler.engine.journal.leasing import changed_hands
from hostler.engine.ports import Batch, CorruptJournalError, JournalError, Lease, Member, Restored, Snapshot

APPLICATION = 0x486F7374
"""Marks the file as ours ("Host"), so that no other program's database is taken for a journal."""

PAGE = 2_000
"""Records read per question while a journal is walked; no reader holds up the write-ahead log for longer."""

SNAPSHOTS_KEPT = 2
SNAPSHOT_PART_BYTES = 1 << 20
PRUNED_AT_ONCE = 5_000
READERS = 8
POLL_S = 0.05
BUSY_TIMEOUT_S = 5.0
CACHE_KIB = 64 * 1024
CHECKPOINT_PAGES = 10_000
"""The write-ahead log is folded into the file after 40 MB: index pages hit again and again are written once."""


def readers(path: Path) -> Engine:
    """Read-only connections for any thread."""
    return _engine(path, "ro", "BEGIN", READERS)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one moment of the journal; JournalError where the database cannot be read."""
    try:
        with engine.connect() as connection:
            yield connection
    except DBAPIError as error:
        raise JournalError(f"the journal cannot be read: {error.orig}") from error


def rows_after(engine: Engine, after: int) -> Iterator[Row]:
    """All rows after `after`, a page at a time; CorruptJournalError for one the database itself cannot read."""
    while rows := _page(engine, after):
        yield from rows
        after = rows[-1].seq


class SqliteJournal:
    """`ports.Journal` in the file at `path`, which is made if it is not there.

    Opening verifies every record behind the last snapshot: CorruptJournalError for the first that does not match
    its digest, UnknownEventError for one this version cannot read, JournalError for a file that is no journal.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._next, self._writing = Lock(), Lock()
        self._closed = Event()
        self._writer = _engine(self._path, "rwc", "BEGIN IMMEDIATE", 1)
        self._readers = readers(self._path)
        try:
            self._prepare()
            self._verify()
        except BaseException:
            self.close()
            raise

    # --- writing ---

    def acquire(self, holder: str, address: str = "", seen: Lease | None = None) -> int:
        """Take the lease and return the new epoch; every earlier epoch is fenced from then on."""
        with self._transaction() as db:
            return leasing.take(db, holder, address, seen)

    def renew(self, epoch: int) -> None:
        """Show that the holder of `epoch` lives; FencedError where another holds the lease."""
        with self._transaction() as db:
            leasing.renew(db, epoch)

    def resign(self, epoch: int) -> None:
        with self._transaction() as db:
            leasing.resign(db, epoch)

    def announce(self, member: Member) -> None:
        with self._transaction() as db:
            leasing.announce(db, member)

    def dismiss(self, name: str) -> None:
        with self._transaction() as db:
            leasing.dismiss(db, name)

    def append(self, batch: Batch, epoch: int) -> None:
        """Make the batch durable, whole or not at all.

        Raises FencedError for an epoch that is not the lease's, OutOfPlaceError for records that do not follow the
        last one, UnwritableError for what could not be read back, JournalError when the storage fails.
        """
        observed, read = [seal_observation(o) for o in batch.observations], seal_cursors(batch.cursors)
        with self._transaction() as db:
            leasing.fence(db, epoch)
            _insert(db, _RECORD, seal_all(batch.records, *queries.tail(db), epoch))
            _insert(db, _SUBJECT, _subjects(batch.records))
            _insert(db, _OBSERVATION, observed)
            _insert(db, _CURSOR, read)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a checkpoint, piece by piece so that an append never waits for more than one piece.

        Raises OutOfPlaceError where its digest is not the journal's at that record. Safe in another thread.
        """
        seq, digest, body = snapshot.seq, bytes.fromhex(snapshot.digest), snapshot.body
        with self._transaction() as db:
            if queries.digest_at(db, seq) != digest:
                raise OutOfPlaceError(f"a snapshot of record {seq} does not belong to this journal")
            _forget_snapshots(db, [seq])
        for part, start in enumerate(range(0, len(body), SNAPSHOT_PART_BYTES)):
            with self._transaction() as db:
                _insert(db, _SNAPSHOT_PART, [(seq, part, body[start : start + SNAPSHOT_PART_BYTES])])
        with self._transaction() as db:
            _insert(db, _SNAPSHOT, [(seq, digest, VERSION, queries.checksum_of(body))])
            _forget_snapshots(db, queries.snapshot_seqs(db)[SNAPSHOTS_KEPT:])

    def prune_observations(self, before: datetime) -> int:
        """Forget observations received before that moment, oldest first; how many. Appends go on in between."""
        total = place = 0
        while True:
            with self._transaction() as db:
                pruned, place = _prune(db, place, micros(before))
            total += pruned
            if not pruned:
                return total

    def close(self) -> None:
        self._closed.set()
        self._readers.dispose()
        self._writer.dispose()

    # --- reading ---

    def lease(self) -> Lease:
        with reading(self._readers) as connection:
            return leasing.lease_of(connection)

    def members(self) -> tuple[Member, ...]:
        with reading(self._readers) as connection:
            return leasing.members_of(connection)

    def wait(self, after: int, timeout_s: float) -> None:
        """Return when a record after `after` is there or the lease has changed hands, at the latest after `timeout_s`.

        The file is looked at every POLL_S, for another process that writes to it tells nobody.
        """
        before = self.lease()
        for _ in range(ceil(timeout_s / POLL_S)):
            with reading(self._readers) as connection:
                now, last = leasing.lease_of(connection), queries.tail(connection)[0]
            if last > after or changed_hands(before, now) or self._closed.wait(POLL_S):
                return

    def restored(self) -> Restored | None:
        """When this journal was filled from a copy, None for one that was not."""
        with reading(self._readers) as connection:
            return queries.restored(connection)

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot that is whole and of this version; without one the journal is folded from its start."""
        with reading(self._readers) as connection:
            return next(queries.whole_snapshots(connection, VERSION), None)

    def records(self, after: int = 0) -> Iterator[Record]:
        """Records after `after` in order, each verified against its digest (CorruptJournalError)."""
        with reading(self._readers) as connection:
            before = queries.digest_at(connection, after)
            last, _ = queries.tail(connection)
        if before is None and after < last:
            raise CorruptJournalError(after, "it is missing")
        if before is not None:
            yield from map(unseal, verified(rows_after(self._readers, after), after, before))

    def records_between(self, after: int, limit: int) -> list[Record]:
        """At most `limit` records after `after`, in order."""
        with reading(self._readers) as connection:
            return [unseal(row) for row in queries.page(connection, after, limit)]

    def changes_since(self, at: datetime, limit: int) -> list[Record]:
        """At most `limit` records of that moment and later, by moment."""
        with reading(self._readers) as connection:
            return [unseal(row) for row in queries.since(connection, micros(at), limit)]

    def history(self, subject: str, before: int | None = None, limit: int = 200) -> list[Record]:
        """Records about a node, part, asset, ticket or scope, newest first, older than record `before`."""
        with reading(self._readers) as connection:
            return [unseal(row) for row in queries.history(connection, subject, before, limit)]

    def observation(self, identity: str) -> Observation | None:
        """One observation by its id "node/spool/sequence"."""
        key = observation_key(identity)
        if key is None:
            return None
        with reading(self._readers) as connection:
            body = queries.observation(connection, key)
        return unseal_observation(body) if body is not None else None

    def observations_of(self, node: str, since: datetime | None = None, limit: int = 200) -> list[Observation]:
        """A node's observations, newest first, received at `since` or later."""
        with reading(self._readers) as connection:
            bodies = queries.observations_of(connection, node, micros(since) if since else 0, limit)
        return [unseal_observation(body) for body in bodies]

    def cursors(self) -> dict[str, tuple[str, int]]:
        with reading(self._readers) as connection:
            return queries.spool_cursors(connection)

    def digest(self) -> str:
        with reading(self._readers) as connection:
            return queries.tail(connection)[1].hex()

    def latest_seq(self) -> int:
        """The last record's number, 0 for an empty journal."""
        with reading(self._readers) as connection:
            return queries.tail(connection)[0]

    def count(self) -> int:
        """How many records are kept."""
        with reading(self._readers) as connection:
            return queries.count(connection)

    # --- helpers ---

    def _prepare(self) -> None:
        with self._transaction() as db:
            application, layout, tables = (db.exec_driver_sql(query).scalar_one() for query in _IDENTIFY)
            if (application, layout) == (APPLICATION, schema.SCHEMA_VERSION):
                return
            if tables or application or layout:
                raise JournalError(_foreign(self._path, application, layout))
            schema.metadata.create_all(db)
            db.execute(insert(schema.lease).values(id=1, epoch=0, holder=""))
            db.exec_driver_sql(f"PRAGMA application_id={APPLICATION}")
            db.exec_driver_sql(f"PRAGMA user_version={schema.SCHEMA_VERSION}")

    def _verify(self) -> None:
        with reading(self._readers) as connection:
            seq, digest = queries.head(connection) or (0, GENESIS)
            last, _ = queries.tail(connection)
            stored = queries.digest_at(connection, seq)
        if last < seq:
            raise CorruptJournalError(last + 1, f"it is missing, a snapshot was taken at record {seq}")
        if stored != digest:
            raise CorruptJournalError(seq, "its digest differs from the one the snapshot was taken at")
        for row in verified(rows_after(self._readers, seq), seq, digest):
            known(row)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """The writing connection in one transaction: committed at the end, or nothing of it."""
        try:
            with self._turn(), self._writer.begin() as db:
                yield db
        except DBAPIError as error:
            raise JournalError(f"{self._path} cannot be written, nothing of this is kept: {error.orig}") from error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Writers in the order they came: who waits holds `_next`, so a busy snapshot cannot overtake an append."""
        with self._next:
            self._writing.acquire()
        try:
            yield
        finally:
            self._writing.release()


def _page(engine: Engine, after: int) -> list[Row]:
    with reading(engine) as connection:
        try:
            return queries.page(connection, after, PAGE)
        except DBAPIError:
            return _readable(connection, after)


def _readable(connection: Connection, after: int) -> list[Row]:
    """The rows of a page up to the one that cannot be read; CorruptJournalError when that is the first."""
    rows: list[Row] = []
    while len(rows) < PAGE:
        try:
            rows += queries.page(connection, after + len(rows), 1)
        except DBAPIError as error:
            if rows:
                break
            raise CorruptJournalError(after + 1, f"the database cannot read it ({error.orig})") from error
    return rows


def _subjects(records: Iterable[Record]) -> list[tuple[str, int]]:
    return [(subject, r.seq) for r in records for subject in dict.fromkeys(subjects_of(r.event))]


def _prune(db: Connection, after: int, before: int) -> tuple[int, int]:
    """Forgets what is old among the next rows after id `after`: (how many, the last id looked at)."""
    c = schema.observations.c
    ids = list(db.execute(select(c.id).where(c.id > after).order_by(c.id).limit(PRUNED_AT_ONCE)).scalars())
    last = ids[-1] if ids else after
    old = delete(schema.observations).where(c.id > after, c.id <= last, c.received < before)
    return db.execute(old).rowcount, last


def _forget_snapshots(db: Connection, seqs: list[int]) -> None:
    """Removes these snapshots, and the pieces of one whose writing was cut off."""
    listed, parts = schema.snapshots.c.seq, schema.snapshot_parts.c.seq
    db.execute(delete(schema.snapshots).where(listed.in_(seqs)))
    db.execute(delete(schema.snapshot_parts).where(parts.not_in(select(listed))))


def _foreign(path: Path, application: int, layout: int) -> str:
    if application != APPLICATION:
        return f"{path} is a database of another program, not a journal"
    return f"{path} has layout {layout}, this Hostler knows layout {schema.SCHEMA_VERSION}"


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


def _insert(db: Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        db.exec_driver_sql(statement, rows)


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
_IDENTIFY = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")

_cursor = sqlite.insert(schema.cursors)
_RECORD = _sql(insert(schema.records))
_SUBJECT = _sql(insert(schema.subjects))
_OBSERVATION = _sql(sqlite.insert(schema.observations).on_conflict_do_nothing(), ObservationRow._fields)
_CURSOR = _sql(
    _cursor.on_conflict_do_update(
        index_elements=["node"], set_={"spool": _cursor.excluded.spool, "sequence": _cursor.excluded.sequence}
    )
)
_SNAPSHOT = _sql(insert(schema.snapshots))
_SNAPSHOT_PART = _sql(insert(schema.snapshot_parts))
