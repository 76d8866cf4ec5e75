"""Writes a whole journal as lines, verified on the way: `hostler journal export`."""

from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection, Table, select

from hostler.journal import layout, queries, schema
from hostler.journal.codec import ObservationRow, unseal, unseal_observation, verified
from hostler.journal.database import PAGE
from hostler.journal.lease_rows import lease_of
from hostler.journal.line_format import (
    FORMAT,
    ArchivedLine,
    CursorLine,
    FirstLine,
    LastLine,
    Line,
    LineTally,
    ObservationLine,
    RecordLine,
    SnapshotLine,
    observation_line,
    record_line,
    written,
)
from hostler.journal.opening import open_database

PART_BYTES = 1 << 20


def export(place: str | Path, write: Callable[[bytes], object]) -> LastLine:
    """Give `write` the lines of the journal at one moment, the end's line last, which is returned.

    A controller may go on meanwhile. Raises CorruptJournalError for a record that does not verify and JournalError
    for anything else that could not be imported again; what was written then has no end.
    """
    database = open_database(place)
    tally = LineTally()
    try:
        with database.reading() as connection:
            layout.require(database, connection)
            for line in _lines(connection):
                text = written(line)
                tally.add(line, text)
                write(text)
            end = tally.end(*queries.tail(connection))
            write(written(end))
    finally:
        database.close()
    return end


def _lines(connection: Connection) -> Iterator[Line]:
    first, before = queries.beginning(connection)
    yield FirstLine(FORMAT, first=first + 1, before=before.hex(), epoch=lease_of(connection).epoch)
    for archive in connection.execute(select(schema.archives).order_by(schema.archives.c.last)).all():
        yield ArchivedLine(archive.last, archive.first, archive.digest.hex(), archive.file)
    yield from _records(connection, first, before)
    yield from _observations(connection)
    for node, (spool, sequence) in queries.spool_cursors(connection).items():
        yield CursorLine(node, spool, sequence)
    yield from _snapshots(connection)


def _records(connection: Connection, first: int, before: bytes) -> Iterator[RecordLine]:
    after = first
    while rows := queries.page(connection, after, PAGE):
        for row in verified(rows, after, before):
            unseal(row)
            yield record_line(row)
        after, before = rows[-1].seq, rows[-1].digest


def _observations(connection: Connection) -> Iterator[ObservationLine]:
    c, place = schema.observations.c, 0
    columns = [c[name] for name in ObservationRow._fields]
    while rows := connection.execute(select(c.id, *columns).where(c.id > place).order_by(c.id).limit(PAGE)).all():
        for identity, *values in rows:
            row = ObservationRow(*values)
            unseal_observation(row.body)
            yield observation_line(row)
            place = identity


def _snapshots(connection: Connection) -> Iterator[SnapshotLine]:
    """Keep whole snapshots, older ones first."""
    table: Table = schema.snapshots
    for seq, digest, version, checksum in connection.execute(select(table).order_by(table.c.seq)).all():
        body = queries.snapshot_body(connection, seq)
        if queries.checksum_of(body) != checksum:
            continue
        pieces = [body[start : start + PART_BYTES] for start in range(0, len(body), PART_BYTES)] or [b""]
        for part, piece in enumerate(pieces):
            ends = checksum.hex() if part == len(pieces) - 1 else ""
            yield SnapshotLine(seq, digest.hex(), version, part, piece, ends)
