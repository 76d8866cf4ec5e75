"""`ports.Journal` in the tables of `schema`, in any database."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, select

from hostler.core.state.events import Record, name_of, subjects_of
from hostler.core.state.model import Observation
from hostler.core.state.snapshot import SNAPSHOT_VERSION, SNAPSHOTS_READ
from hostler.journal import layout, lease_rows, queries, schema
from hostler.journal.codec import (
    GENESIS,
    OutOfPlaceError,
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
from hostler.journal.database import Database, rows_after
from hostler.journal.journal_room import JournalRoom
from hostler.journal.lease_succession import changed_hands
from hostler.ports import (
    Archived,
    ArchivedError,
    Batch,
    ControllerMember,
    CorruptJournalError,
    Lease,
    RecordWindow,
    Restored,
    Snapshot,
)

SNAPSHOTS_KEPT = 2
SNAPSHOT_PART_BYTES = 1 << 20


class SqlJournal:
    """`ports.Journal` in a database, which is laid out if it is empty.

    Opening verifies every record behind the last snapshot: CorruptJournalError for the first that does not match
    its digest, UnknownEventError for one this version cannot read, JournalError for a database that is no journal.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        try:
            layout.prepare(database)
            self._verify()
        except BaseException:
            self.close()
            raise

    # --- writing ---

    def acquire(self, holder: str, address: str = "", seen: Lease | None = None) -> int:
        """Take the lease and return the new epoch; every earlier epoch is fenced from then on."""
        with self._database.writing() as db:
            epoch = lease_rows.take(db, holder, address, seen)
            self._database.wake(db)
        return epoch

    def renew(self, epoch: int) -> None:
        """Show that the holder of `epoch` lives; FencedError where another holds the lease."""
        with self._database.writing() as db:
            lease_rows.renew(db, epoch)

    def resign(self, epoch: int) -> None:
        """Give the lease up and wake who waits for it."""
        with self._database.writing() as db:
            lease_rows.resign(db, epoch)
            self._database.wake(db)

    def announce(self, member: ControllerMember) -> None:
        """Write the controller down, or count one more beat of it."""
        with self._database.writing() as db:
            lease_rows.announce(db, member)

    def dismiss(self, name: str) -> None:
        """Forget a controller that has gone."""
        with self._database.writing() as db:
            lease_rows.dismiss(db, name)

    def append(self, batch: Batch, epoch: int) -> None:
        """Make the batch durable, whole or not at all.

        Raises FencedError for an epoch that is not the lease's, OutOfPlaceError for records that do not follow the
        last one, UnwritableError for what could not be read back, JournalError when the storage fails.
        """
        observed, read = [seal_observation(o) for o in batch.observations], seal_cursors(batch.cursors)
        insert = self._database.insert
        with self._database.writing() as db:
            lease_rows.fence(db, epoch)
            insert(db, schema.records, seal_all(batch.records, *queries.tail(db), epoch, batch.format))
            insert(db, schema.subjects, _subjects(batch.records))
            insert(db, schema.observations, observed)
            insert(db, schema.cursors, read)
            if batch.records:
                self._database.wake(db)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a checkpoint, piece by piece so that an append never waits for more than one piece.

        Raises OutOfPlaceError where its digest is not the journal's at that record. Safe in another thread.
        """
        seq, digest, body = snapshot.seq, bytes.fromhex(snapshot.digest), snapshot.body
        with self._database.writing() as db:
            if queries.digest_at(db, seq) != digest:
                raise OutOfPlaceError(f"a snapshot of record {seq} does not belong to this journal")
            _forget_snapshots(db, [seq])
        for part, start in enumerate(range(0, len(body), SNAPSHOT_PART_BYTES)):
            with self._database.writing() as db:
                self._database.insert(
                    db, schema.snapshot_parts, [(seq, part, body[start : start + SNAPSHOT_PART_BYTES])]
                )
        with self._database.writing() as db:
            self._database.insert(db, schema.snapshots, [(seq, digest, SNAPSHOT_VERSION, queries.checksum_of(body))])
            _forget_snapshots(db, queries.snapshot_seqs(db)[SNAPSHOTS_KEPT:])

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # --- reading ---

    def room(self) -> JournalRoom | None:
        """Room on the disk, None where it cannot be seen from here."""
        return self._database.room()

    def save_room(self, *, short: bool) -> None:
        """Write so that it takes little room (`short`), or as usual again. Raises JournalError."""
        self._database.save_room(short=short)

    def lease(self) -> Lease:
        """The lease as it stands."""
        with self._database.reading() as connection:
            return lease_rows.lease_of(connection)

    def members(self) -> tuple[ControllerMember, ...]:
        """Controllers announced and not dismissed, by name."""
        with self._database.reading() as connection:
            return lease_rows.members_of(connection)

    def wait(self, after: int, seen: Lease, timeout_s: float) -> None:
        """Return when a record after `after` is there or the lease is in other hands than `seen`, or in `timeout_s`."""

        def moved() -> bool:
            with self._database.reading() as connection:
                last, now = queries.tail(connection)[0], lease_rows.lease_of(connection)
            return last > after or changed_hands(seen, now)

        self._database.wait(moved, timeout_s)

    def archived(self) -> Archived | None:
        """Records that were moved to files, None where none were."""
        with self._database.reading() as connection:
            return queries.archived(connection)

    def restored(self) -> Restored | None:
        """When this journal was filled from a copy, None for one that was not."""
        with self._database.reading() as connection:
            return queries.restored(connection)

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot that is whole and of this version; without one the journal is folded from its start."""
        with self._database.reading() as connection:
            return next(queries.whole_snapshots(connection, SNAPSHOTS_READ), None)

    def snapshot_seq(self) -> int:
        """The record at which the newest snapshot of this version was taken, 0 where there is none."""
        with self._database.reading() as connection:
            return queries.newest_snapshot(connection, SNAPSHOTS_READ)

    def records(self, after: int = 0) -> Iterator[Record]:
        """Records after `after` in order, each verified against its digest (CorruptJournalError).

        Raises ArchivedError where the first of them are in files.
        """
        with self._database.reading() as connection:
            gone = queries.archived(connection)
            before = queries.digest_at(connection, after)
            last, _ = queries.tail(connection)
        if gone and after < gone.seq:
            raise ArchivedError(gone)
        if before is None and after < last:
            raise CorruptJournalError(after, "it is missing")
        if before is None:
            return
        try:
            yield from map(unseal, verified(rows_after(self._database, after), after, before))
        except CorruptJournalError as error:
            if (gone := self.archived()) and error.seq <= gone.seq:
                raise ArchivedError(gone) from error
            raise

    def named_since(self, names: Sequence[str], at: datetime, limit: int, beyond: Record | None = None) -> list[Record]:
        """At most `limit` records of these event names, of that moment and later, the latest first.

        Where `beyond` is given, of those that come after it in this order.
        """
        place = (micros(beyond.at), beyond.seq) if beyond is not None else None
        with self._database.reading() as connection:
            return [unseal(row) for row in queries.named(connection, names, micros(at), limit, place)]

    def history(self, subject: str, before: int | None = None, limit: int = 200) -> list[Record]:
        """Records about a node, part, asset, ticket or scope, newest first, older than record `before`."""
        with self._database.reading() as connection:
            return [unseal(row) for row in queries.history(connection, subject, before, limit)]

    def window(self, wanted: RecordWindow, limit: int) -> list[Record]:
        """At most `limit` records of the window, in its order."""
        with self._database.reading() as connection:
            return [unseal(row) for row in queries.window(connection, wanted, limit)]

    def first_since(self, at: datetime) -> int:
        """The first record, by moment, of that moment or later; 0 where there is none."""
        with self._database.reading() as connection:
            return queries.first_since(connection, micros(at))

    def observation(self, identity: str) -> Observation | None:
        """One observation by its id "node/spool/sequence"."""
        key = observation_key(identity)
        if key is None:
            return None
        with self._database.reading() as connection:
            body = queries.observation(connection, key)
        return unseal_observation(body) if body is not None else None

    def observations_of(
        self, node: str, since: datetime | None = None, limit: int = 200, beyond: str = ""
    ) -> list[Observation]:
        """A node's observations, newest first, received at `since` or later.

        Where `beyond` is given, of those that come after that one in this order; none where it is not kept.
        """
        place = observation_key(beyond)
        if beyond and place is None:
            return []
        with self._database.reading() as connection:
            bodies = queries.observations_of(connection, node, micros(since) if since else 0, limit, place)
        return [unseal_observation(body) for body in bodies]

    def cursors(self) -> dict[str, tuple[str, int]]:
        """How far each sender's spool has been read: sender → (spool, sequence)."""
        with self._database.reading() as connection:
            return queries.spool_cursors(connection)

    def digest(self) -> str:
        """The chained digest of all records, hex."""
        with self._database.reading() as connection:
            return queries.tail(connection)[1].hex()

    def latest_seq(self) -> int:
        """The last record's number, 0 for an empty journal."""
        with self._database.reading() as connection:
            return queries.tail(connection)[0]

    def count(self) -> int:
        """How many records are kept."""
        with self._database.reading() as connection:
            return queries.count(connection)

    # --- helpers ---

    def _verify(self) -> None:
        with self._database.reading() as connection:
            seq, digest = queries.head(connection) or (0, GENESIS)
            last, _ = queries.tail(connection)
            stored = queries.digest_at(connection, seq)
        if last < seq:
            raise CorruptJournalError(last + 1, f"it is missing, a snapshot was taken at record {seq}")
        if stored != digest:
            raise CorruptJournalError(seq, "its digest differs from the one the snapshot was taken at")
        for row in verified(rows_after(self._database, seq), seq, digest):
            known(row)


def _subjects(records: Iterable[Record]) -> list[tuple[str, int, str]]:
    return [(subject, r.seq, name_of(r.event)) for r in records for subject in dict.fromkeys(subjects_of(r.event))]


def _forget_snapshots(db: Connection, seqs: list[int]) -> None:
    """Removes these snapshots, and the pieces of one whose writing was cut off."""
    listed, parts = schema.snapshots.c.seq, schema.snapshot_parts.c.seq
    db.execute(delete(schema.snapshots).where(listed.in_(seqs)))
    db.execute(delete(schema.snapshot_parts).where(parts.not_in(select(listed))))
