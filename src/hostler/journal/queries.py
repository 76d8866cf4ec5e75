"""Queries of the journal's tables, as SQLAlchemy Core statements that every database understands."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from msgspec.structs import replace
from sqlalchemy import Connection, Select, and_, func, or_, select

from hostler.journal.codec import DIGEST_BYTES, GENESIS, StoredRow, capped, moment
from hostler.journal.schema import (
    archives,
    cursors,
    observations,
    records,
    restorations,
    snapshot_parts,
    snapshots,
    subjects,
)
from hostler.ports import Archived, RecordWindow, Restored, Snapshot

Place = tuple[int, int]
"""Moment (µs) and number of a record."""


def page(connection: Connection, after: int, limit: int) -> list[StoredRow]:
    """Rows after `after`, in order."""
    return _rows(connection, select(records).where(records.c.seq > after).order_by(records.c.seq), limit)


def named(connection: Connection, names: Sequence[str], at: int, limit: int, beyond: Place | None) -> list[StoredRow]:
    """Rows of these names, of moment `at` (µs) and later, the latest first; those beyond a row where it is given."""
    c = records.c
    found = select(records).where(c.at >= at, c.name.in_(names))
    if beyond is not None:
        found = found.where(c.at <= beyond[0], or_(c.at < beyond[0], and_(c.at == beyond[0], c.seq < beyond[1])))
    return _rows(connection, found.order_by(records.c.at.desc(), records.c.seq.desc()), limit)


def history(connection: Connection, subject: str, before: int | None, limit: int) -> list[StoredRow]:
    """Rows about one subject, newest first, older than record `before` where that is given."""
    found = select(records).join(subjects, subjects.c.seq == records.c.seq).where(subjects.c.subject == subject)
    if before is not None:
        found = found.where(subjects.c.seq < before)
    return _rows(connection, found.order_by(subjects.c.seq.desc()), limit)


def window(connection: Connection, wanted: RecordWindow, limit: int) -> list[StoredRow]:
    """Rows of the window, in its order; a prefix of names is a range of them, which no collation reads otherwise.

    Names are looked for beside the subject, and in a record only where they do not stand there. It is asked until
    `limit` rows are found: a query that compared the records' own names too might read all of that name in the fleet.
    """
    found: list[StoredRow] = []
    most = size = capped(limit)
    while len(found) < most:
        rows = _rows(connection, _within(wanted), size)
        found += (row for row in rows if not wanted.names or row.name in wanted.names)
        if len(rows) < size:
            break
        size = capped(2 * size)
        ends = {"after": rows[-1].seq} if wanted.oldest_first else {"before": rows[-1].seq}
        wanted = replace(wanted, **ends)
    return found[:most]


def _within(wanted: RecordWindow) -> Select[tuple[object, ...]]:
    found, seq, names = select(records), records.c.seq, records.c.name
    if wanted.subject:
        seq, names = subjects.c.seq, subjects.c.name
        found = found.join(subjects, seq == records.c.seq).where(subjects.c.subject == wanted.subject)
    found = found.where(seq > wanted.after)
    if wanted.before is not None:
        found = found.where(seq < wanted.before)
    if wanted.name:
        found = found.where(records.c.name >= wanted.name, records.c.name < wanted.name + "~")
    if wanted.names:
        found = found.where(or_(names.is_(None), names.in_(wanted.names)))
    return found.order_by(seq if wanted.oldest_first else seq.desc())


def first_since(connection: Connection, at: int) -> int:
    """The first record, by moment, of moment `at` (µs) or later; 0 where there is none."""
    query = select(records.c.seq).where(records.c.at >= at).order_by(records.c.at, records.c.seq).limit(1)
    return connection.execute(query).scalar_one_or_none() or 0


def beginning(connection: Connection) -> tuple[int, bytes]:
    """(seq, digest) of the last record that was archived: what is here follows it."""
    query = select(archives.c.last, archives.c.digest).order_by(archives.c.last.desc()).limit(1)
    found = connection.execute(query).one_or_none()
    return (found[0], bytes(found[1])) if found else (0, GENESIS)


def archived(connection: Connection) -> Archived | None:
    """Records that were archived."""
    files = connection.execute(select(archives.c.file).order_by(archives.c.last)).scalars().all()
    return Archived(seq=beginning(connection)[0], files=tuple(files)) if files else None


def tail(connection: Connection) -> tuple[int, bytes]:
    """(seq, digest) of the last record, or of the last snapshot where no record is kept."""
    query = select(records.c.seq, records.c.digest).order_by(records.c.seq.desc()).limit(1)
    last = connection.execute(query).one_or_none() or head(connection)
    return (last[0], last[1]) if last else (0, GENESIS)


def digest_at(connection: Connection, seq: int) -> bytes | None:
    """The chain's digest at a record, a snapshot or the end of an archive, None where none of them is there."""
    if seq == 0:
        return GENESIS
    for table, key in ((records, records.c.seq), (snapshots, snapshots.c.seq), (archives, archives.c.last)):
        found = connection.execute(select(table.c.digest).where(key == seq)).scalar_one_or_none()
        if found is not None:
            return bytes(found)
    return None


def count(connection: Connection) -> int:
    """How many records are kept."""
    return connection.execute(select(func.count()).select_from(records)).scalar_one()


def restored(connection: Connection) -> Restored | None:
    """The last time that this journal was filled from a copy."""
    query = select(restorations).order_by(restorations.c.id.desc()).limit(1)
    found = connection.execute(query).one_or_none()
    return Restored(at=moment(found.at), source=found.source, seq=found.seq) if found else None


def spool_cursors(connection: Connection) -> dict[str, tuple[str, int]]:
    """Node → (spool, sequence) up to which it has been read."""
    rows = connection.execute(select(cursors.c.node, cursors.c.spool, cursors.c.sequence).order_by(cursors.c.node))
    return {node: (spool, sequence) for node, spool, sequence in rows}


def observation(connection: Connection, key: tuple[str, str, int]) -> bytes | None:
    """The body of one observation by (node, spool, sequence)."""
    c = observations.c
    node, spool, sequence = key
    query = select(c.body).where(c.node == node, c.spool == spool, c.sequence == sequence)
    return connection.execute(query).scalar_one_or_none()


def observations_of(
    connection: Connection, node: str, since: int, limit: int, beyond: tuple[str, str, int] | None
) -> list[bytes]:
    """Bodies of a node's observations received at `since` (µs) or later, newest first; of those after `beyond`."""
    c = observations.c
    found = select(c.body).where(c.node == node, c.received >= since).order_by(c.received.desc(), c.id.desc())
    if beyond is not None:
        of, spool, sequence = beyond
        key = (c.node == of, c.spool == spool, c.sequence == sequence)
        place = connection.execute(select(c.received, c.id).where(*key)).one_or_none()
        if place is None:
            return []
        found = found.where((c.received < place[0]) | ((c.received == place[0]) & (c.id < place[1])))
    return list(connection.execute(found.limit(capped(limit))).scalars())


def head(connection: Connection) -> tuple[int, bytes] | None:
    """(seq, digest) of the newest snapshot of any version."""
    query = select(snapshots.c.seq, snapshots.c.digest).order_by(snapshots.c.seq.desc()).limit(1)
    found = connection.execute(query).one_or_none()
    return (found[0], found[1]) if found else None


def snapshot_seqs(connection: Connection) -> list[int]:
    """The records at which snapshots were taken, newest first."""
    return list(connection.execute(select(snapshots.c.seq).order_by(snapshots.c.seq.desc())).scalars())


def newest_snapshot(connection: Connection, versions: Sequence[int]) -> int:
    """The record at which the newest snapshot of these versions was taken, 0 where there is none."""
    c = snapshots.c
    return connection.execute(select(func.max(c.seq)).where(c.version.in_(versions))).scalar_one() or 0


def whole_snapshots(connection: Connection, versions: Sequence[int]) -> Iterator[Snapshot]:
    """Snapshots of these versions whose bodies match their checksums, newest first."""
    query = select(snapshots).where(snapshots.c.version.in_(versions)).order_by(snapshots.c.seq.desc())
    for seq, digest, _, checksum in connection.execute(query).all():
        body = snapshot_body(connection, seq)
        if checksum_of(body) == checksum:
            yield Snapshot(seq=seq, digest=digest.hex(), body=body)


def snapshot_body(connection: Connection, seq: int) -> bytes:
    """The pieces of a snapshot's body put together."""
    c = snapshot_parts.c
    return b"".join(connection.execute(select(c.body).where(c.seq == seq).order_by(c.part)).scalars())


def checksum_of(body: bytes) -> bytes:
    """Checksum that a snapshot's body is compared with before it is used."""
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def _rows(connection: Connection, query: Select[tuple[object, ...]], limit: int) -> list[StoredRow]:
    return [StoredRow._make(row) for row in connection.execute(query.limit(capped(limit)))]
