"""Says what stands in a journal file and what does not, for `hostler journal check`. Never modifies it."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from hostler.core.state.events import subjects_of
from hostler.core.state.snapshot import SNAPSHOT_VERSION, SNAPSHOTS_READ
from hostler.journal import compaction, layout, queries
from hostler.journal.codec import GENESIS, UnknownEventError, unseal, unseal_observation, verified
from hostler.journal.database import FINDINGS_MAX, PAGE, Database, rows_after
from hostler.journal.lease_rows import lease_of
from hostler.journal.opening import on_server, open_database
from hostler.journal.schema import observations, records, snapshots, subjects
from hostler.ports import CorruptJournalError, JournalError

_UNREADABLE = (SQLAlchemyError, UnicodeError, ValueError, TypeError, OverflowError, LookupError)
"""Errors that broken bytes raise on their way through SQLite and our types: any column may hold any type, or none."""


class ChainState(Struct, frozen=True):
    """How far the records hold: all up to `kept` can be kept, `first_bad` is the next one and `why` its fault.

    `indexed` is how many index entries the kept records should have.
    """

    kept: int = 0
    digest: str = GENESIS.hex()
    indexed: int = 0
    first_bad: int | None = None
    why: str = ""


class SnapshotState(Struct, frozen=True):
    """A checkpoint: `fault` is "" for one that can be used, else what is wrong with it."""

    seq: int
    version: int
    fault: str = ""


class JournalReport(Struct, frozen=True):
    """Result of `check`.

    Records up to `archived` are in files. `orphans` are index entries that name no record and `unindexed` is how many
    entries are missing: both harm searches only. `unreadable_observations` are row ids. `storage` is what the database
    says against itself. Each list stops at FINDINGS_MAX.
    """

    path: str
    chain: ChainState
    archived: int = 0
    epoch: int = 0
    holder: str = ""
    observations: int = 0
    unreadable_observations: tuple[int, ...] = ()
    snapshots: tuple[SnapshotState, ...] = ()
    orphans: tuple[str, ...] = ()
    unindexed: int = 0
    storage: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing at all is amiss."""
        faults = any(snapshot.fault for snapshot in self.snapshots)
        amiss = self.unreadable_observations or self.orphans or self.unindexed or self.storage
        return not (self.chain.why or faults or amiss)


def check(place: str | Path, archive: Path | None = None) -> JournalReport:
    """Read the whole journal and say what stands. Raises JournalError only where none is reached.

    A file is opened read-only; SQLite may put its `-shm` and an empty `-wal` beside it. A controller may go on. With
    `archive`, the folder of what was compacted, the chain is verified from the first record ever.
    """
    database = open_database(place)
    try:
        if on_server(place):
            with database.reading():
                """Out of reach is not damaged."""
        return _report(database, archive)
    finally:
        database.close()


def _report(database: Database, archive: Path | None) -> JournalReport:
    chain = _chain(database, archive)
    try:
        with database.reading() as connection:
            layout.require(database, connection)
            return _rest(connection, database, chain)
    except JournalError as error:
        return JournalReport(path=database.name, chain=chain, storage=(str(error),))
    except _UNREADABLE as error:
        said = f"the data beside the records cannot be read ({type(error).__name__}: {error})"
        return JournalReport(path=database.name, chain=chain, storage=(said,))


def _rest(connection: Connection, database: Database, chain: ChainState) -> JournalReport:
    lease = lease_of(connection)
    return JournalReport(
        path=database.name,
        chain=chain,
        archived=queries.beginning(connection)[0],
        epoch=lease.epoch,
        holder=lease.holder,
        observations=connection.execute(select(func.count()).select_from(observations)).scalar_one(),
        unreadable_observations=tuple(_unreadable(connection)),
        snapshots=tuple(_snapshots(connection, chain)),
        orphans=_orphans(connection),
        unindexed=max(0, chain.indexed - _entries(connection, chain)),
        storage=database.damage(connection),
    )


def _chain(database: Database, archive: Path | None) -> ChainState:
    kept, digest, indexed = 0, GENESIS, 0
    try:
        if archive is not None:
            compaction.follow(database, archive)
        kept, digest = compaction.beginning(database)
        for row in verified(rows_after(database, kept), kept, digest):
            indexed += len(set(subjects_of(unseal(row).event)))
            kept, digest = row.seq, row.digest
    except (CorruptJournalError, UnknownEventError) as error:
        return ChainState(kept=kept, digest=digest.hex(), indexed=indexed, first_bad=error.seq, why=str(error))
    except JournalError as error:
        return ChainState(kept=kept, digest=digest.hex(), indexed=indexed, first_bad=kept + 1, why=str(error))
    except _UNREADABLE as error:
        why = f"it cannot be read ({type(error).__name__}: {error})"
        return ChainState(kept=kept, digest=digest.hex(), indexed=indexed, first_bad=kept + 1, why=why)
    return ChainState(kept=kept, digest=digest.hex(), indexed=indexed)


def _unreadable(connection: Connection) -> Iterator[int]:
    """Row ids of observations whose bodies cannot be read, the first few."""
    c, place, found = observations.c, 0, 0
    while rows := connection.execute(select(c.id, c.body).where(c.id > place).order_by(c.id).limit(PAGE)).all():
        place = rows[-1].id
        for identity, body in rows:
            if not _reads(body):
                yield identity
                found += 1
            if found == FINDINGS_MAX:
                return


def _reads(body: bytes) -> bool:
    try:
        unseal_observation(body)
    except JournalError:
        return False
    return True


def _snapshots(connection: Connection, chain: ChainState) -> Iterator[SnapshotState]:
    for seq, digest, version, checksum in connection.execute(select(snapshots).order_by(snapshots.c.seq)).all():
        yield SnapshotState(seq=seq, version=version, fault=_fault(connection, chain, (seq, digest, version, checksum)))


def _fault(connection: Connection, chain: ChainState, snapshot: tuple[int, bytes, int, bytes]) -> str:
    seq, digest, version, checksum = snapshot
    if seq > chain.kept:
        return f"it was taken behind record {chain.kept}, the last valid one"
    if queries.digest_at(connection, seq) != digest:
        return f"its digest is not that of record {seq}"
    if queries.checksum_of(queries.snapshot_body(connection, seq)) != checksum:
        return "its body does not match its checksum; it is not used"
    if version in SNAPSHOTS_READ:
        return ""
    return f"it has version {version}, this Hostler uses version {SNAPSHOT_VERSION}"


def _orphans(connection: Connection) -> tuple[str, ...]:
    c = subjects.c
    missing = select(c.subject, c.seq).where(c.seq.not_in(select(records.c.seq))).limit(FINDINGS_MAX)
    return tuple(f"{subject}: record {seq}" for subject, seq in connection.execute(missing))


def _entries(connection: Connection, chain: ChainState) -> int:
    """The index entries that there are for the kept records."""
    return connection.execute(select(func.count()).where(subjects.c.seq <= chain.kept)).scalar_one()
