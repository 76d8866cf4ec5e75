"""Fills an empty journal from the lines of an export, whole or not at all: `hostler journal import`."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, update

from hostler.core.state.events import subjects_of
from hostler.core.state.snapshot import SNAPSHOTS_READ
from hostler.journal import lease_rows, queries, schema
from hostler.journal.codec import GENESIS, INTEGER_MAX, micros, seal_cursors, unseal, unseal_observation, verified
from hostler.journal.database import Database, Values
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
    read,
    refuse,
)
from hostler.journal.opening import made_database
from hostler.ports import JournalError

ROWS_AT_ONCE = 1_000
EPOCHS_SKIPPED = 1_000
"""Takeovers that may have happened since the export was made. Agents refuse an epoch lower than one they have heard,
so a restored journal goes on behind any that there can have been."""


def import_journal(place: str | Path, lines: Iterable[bytes], source: str, now: datetime) -> LastLine:
    """Make the journal at `place` from these lines, marked as restored from `source` at `now`.

    One transaction: JournalError where a line, the chain, a count or the checksum is wrong, where the lines end
    before their end, or where a journal is there already; nothing is then imported.
    """
    with made_database(place) as database, database.writing() as db:
        _refuse_full(database, db)
        filling = _Filling(database, db)
        for number, line, text in read(lines):
            filling.take(number, line, text)
        end = filling.finished()
        db.execute(update(schema.lease).values(epoch=filling.start.epoch + EPOCHS_SKIPPED))
        db.execute(insert(schema.restorations).values(at=micros(now), source=source, seq=end.last))
        database.wake(db)
    return end


class _Filling:
    """Takes lines in their order, verifies each, and writes rows as they come together."""

    def __init__(self, database: Database, db: Connection) -> None:
        self._database, self._db = database, db
        self._tally = LineTally()
        self._rows: dict[str, list[Values]] = {}
        self._snapshot: list[SnapshotLine] = []
        self._number = 0
        self.start = FirstLine(0)
        self.end: LastLine | None = None
        self._last, self._digest = 0, GENESIS
        self._covered = True

    def take(self, number: int, line: Line, text: bytes) -> None:
        self._number = number
        if self.end is not None:
            refuse(number, "it comes behind the end")
        if (number == 1) != isinstance(line, FirstLine):
            refuse(number, "an export begins with one line of kind journal")
        match line:
            case FirstLine():
                self._begin(line)
            case ArchivedLine():
                self._archived(line)
            case RecordLine():
                self._record(line)
            case ObservationLine():
                self._observation(line)
            case CursorLine():
                self._cursor(line)
            case SnapshotLine():
                self._piece(line)
            case LastLine():
                self._finish(line)
                return
        self._tally.add(line, text)

    def finished(self) -> LastLine:
        """Writes what is left; JournalError where the end did not come."""
        if self.end is None:
            refuse(self._number + 1, "it is missing: the export was cut off before its end")
        for table in list(self._rows):
            self._flush(table)
        return self.end

    def _begin(self, line: FirstLine) -> None:
        if line.format != FORMAT:
            refuse(1, f"it has format {line.format}, this Hostler reads format {FORMAT}")
        if not (1 <= line.first <= INTEGER_MAX and 0 <= line.epoch <= INTEGER_MAX - EPOCHS_SKIPPED):
            refuse(1, "its numbers are outside what a journal holds")
        self.start = line
        self._last, self._digest = line.first - 1, _bytes(1, line.before)
        if line.first == 1 and self._digest != GENESIS:
            refuse(1, "a first record follows no digest")
        self._covered = line.first == 1

    def _archived(self, line: ArchivedLine) -> None:
        if self._tally.records or line.last >= self.start.first:
            refuse(self._number, "archived records come before those that are here")
        self._add("archives", (line.last, line.first, _bytes(self._number, line.digest), line.file))

    def _record(self, line: RecordLine) -> None:
        (row,) = verified([line.row()], self._last, self._digest)
        record = unseal(row)
        self._last, self._digest = row.seq, row.digest
        self._add("records", row)
        for subject in dict.fromkeys(subjects_of(record.event)):
            self._add("subjects", (subject, row.seq, row.name))

    def _observation(self, line: ObservationLine) -> None:
        row, seen = line.row(), unseal_observation(bytes(line.body))
        received = micros(seen.received) if seen.received else 0
        if row[:4] != (seen.node, seen.spool, seen.sequence, received):
            refuse(self._number, "the observation is not the one that its line names")
        self._add("observations", row)

    def _cursor(self, line: CursorLine) -> None:
        (row,) = seal_cursors({line.node: (line.spool, line.sequence)})
        self._add("cursors", row)

    def _piece(self, line: SnapshotLine) -> None:
        """Pieces of one snapshot follow one another; with the last one it is verified and written."""
        first = self._snapshot[0] if self._snapshot else line
        if (line.seq, line.digest, line.part) != (first.seq, first.digest, len(self._snapshot)):
            refuse(self._number, f"it does not continue the snapshot of record {first.seq}")
        self._snapshot.append(line)
        if not line.checksum:
            return
        body = b"".join(piece.body for piece in self._snapshot)
        self._flush("records")
        self._flush("archives")
        digest, checksum = _bytes(self._number, line.digest), queries.checksum_of(body)
        if checksum.hex() != line.checksum or queries.digest_at(self._db, line.seq) != digest:
            refuse(self._number, f"the snapshot of record {line.seq} does not belong to these records")
        for piece in self._snapshot:
            self._add("snapshot_parts", (piece.seq, piece.part, piece.body))
            self._flush("snapshot_parts")
        self._add("snapshots", (line.seq, digest, line.version, checksum))
        self._covered |= line.version in SNAPSHOTS_READ and line.seq >= self.start.first - 1
        self._snapshot = []

    def _finish(self, line: LastLine) -> None:
        expected = self._tally.end(self._last, self._digest)
        for field in LastLine.__struct_fields__:
            said, is_so = getattr(line, field), getattr(expected, field)
            if said != is_so:
                refuse(self._number, f"{field} is {said} there and {is_so} in the lines before")
        if self._snapshot:
            refuse(self._number, f"the snapshot of record {self._snapshot[0].seq} is not whole")
        if not self._covered:
            what = f"records 1 to {self.start.first - 1} are archived and no snapshot of this version covers them"
            refuse(self._number, what)
        self.end = line

    def _add(self, table: str, row: Values) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) == ROWS_AT_ONCE:
            self._flush(table)

    def _flush(self, table: str) -> None:
        self._database.insert(self._db, schema.metadata.tables[table], self._rows.pop(table, []))


def _refuse_full(database: Database, db: Connection) -> None:
    """Raises JournalError unless nothing was ever kept here; nobody can begin to until this transaction ends."""
    lease = lease_rows.held(db)
    tables = (schema.records, schema.observations, schema.cursors, schema.snapshots, schema.archives)
    kept = [table.name for table in tables if db.execute(select(func.count()).select_from(table)).scalar_one()]
    if kept or lease.epoch:
        what = f"it holds {', '.join(kept)}" if kept else f"a controller was here, under epoch {lease.epoch}"
        raise JournalError(f"{database.name} is not empty ({what}): import into a new file or an empty database")


def _bytes(number: int, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        refuse(number, f"{text!r} is not a digest")
