"""Moves records that a checkpoint stands for into files, and out of the database: `hostler journal compact`.

The newest two snapshots and all that follows the older one stay. The files are exports of their records: each begins
with the digest that it follows and ends with the one that the next begins with, so the chain can be verified from
the first record ever to the last, across files and database.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from sqlalchemy import Connection, bindparam, delete, insert, select

from hostler.core.state.events import subjects_of
from hostler.core.state.snapshot import SNAPSHOTS_READ
from hostler.journal import queries, schema, whole_files
from hostler.journal.codec import GENESIS, StoredRow, micros, unseal, verified
from hostler.journal.database import PAGE, Database, rows_after
from hostler.journal.line_format import FORMAT, FirstLine, LastLine, LineTally, RecordLine, read, record_line, written
from hostler.journal.sql import SNAPSHOTS_KEPT
from hostler.ports import JournalError

DAYS = 90
"""How long records are kept in the database where nothing else is said."""

FILE_RECORDS = 1_000_000
_NAME = re.compile(r"records-(\d{12,})-(\d{12,})\.jsonl")


class Compacted(Struct, frozen=True):
    """Records that left the database: how many, the last of them, and the files that hold them now."""

    records: int = 0
    last: int = 0
    files: tuple[str, ...] = ()


def compact(database: Database, folder: Path, before: datetime) -> Compacted:
    """Put records older than `before`, up to the last but one snapshot, into `folder` and take them out.

    Raises CorruptJournalError for a record that does not verify, JournalError where the folder or the database
    cannot be written; the same call later goes on from there. A controller may go on meanwhile.
    """
    begun, names = beginning(database)[0], []
    with whole_files.alone(folder):
        while path := _covering(folder, beginning(database)[0] + 1) or _written(database, folder, micros(before)):
            _remove(database, path)
            names.append(path.name)
    last = beginning(database)[0]
    return Compacted(last - begun, last, tuple(names))


def beginning(database: Database) -> tuple[int, bytes]:
    """(seq, digest) of the last record that is in a file: what the database holds follows it."""
    with database.reading() as connection:
        return queries.beginning(connection)


def follow(database: Database, folder: Path) -> None:
    """Verify the chain from the first record ever, through the files, to where the database begins (JournalError)."""
    with database.reading() as connection:
        parts = connection.execute(select(schema.archives).order_by(schema.archives.c.last)).all()
    digest = GENESIS
    for part in parts:
        ends = b""
        for row in verified(archive_rows(folder / part.file), part.first - 1, digest):
            ends = row.digest if row.seq == part.last else ends
        digest = ends
        if digest != part.digest:
            raise JournalError(
                f"{folder / part.file} does not lead to record {part.last} of this journal"
                "; put the archive's files of this journal there, or name another --archive"
            )


def archive_rows(path: Path) -> Iterator[StoredRow]:
    """The records of an archive file, verified against each other and its end. Raises JournalError naming the file."""
    tally, last, digest, end = LineTally(), 0, b"", None
    try:
        with path.open("rb") as lines:
            for _, line, text in read(lines):
                match line:
                    case FirstLine():
                        last, digest = line.first - 1, bytes.fromhex(line.before)
                    case RecordLine():
                        (row,) = verified([line.row()], last, digest)
                        last, digest = row.seq, row.digest
                        yield row
                    case LastLine():
                        end = line
                        break
                    case _:
                        break
                tally.add(line, text)
    except (OSError, ValueError, JournalError) as error:
        raise JournalError(
            f"the archive {path} cannot be used: {error}; move the file away, or restore it from a copy"
        ) from error
    if end is None or end != tally.end(last, digest):
        raise JournalError(
            f"the archive {path} was cut off or changed: its end does not match its records"
            "; restore that file from a copy"
        )


def _covering(folder: Path, seq: int) -> Path | None:
    """The file that holds record `seq` already, because a predecessor was cut off before it removed the record."""
    for path in sorted(folder.glob("records-*.jsonl")):
        if (name := _NAME.fullmatch(path.name)) and int(name[1]) <= seq <= int(name[2]):
            return path
    return None


def _written(database: Database, folder: Path, before: int) -> Path | None:
    """The next records that have had their time as a file, None where there are none."""
    last, digest = beginning(database)
    unnamed = folder / "records.jsonl"
    tally, first = LineTally(), last + 1
    with whole_files.create(whole_files.unfinished(unnamed)) as out:
        _write(out, tally, FirstLine(FORMAT, first=first, before=digest.hex()))
        for row in _expired(database, last, digest, before):
            _write(out, tally, record_line(row))
            last, digest = row.seq, row.digest
        out.write(written(tally.end(last, digest)))
    if last < first:
        whole_files.unfinished(unnamed).unlink()
        return None
    path = folder / f"records-{first:012d}-{last:012d}.jsonl"
    whole_files.unfinished(unnamed).rename(whole_files.unfinished(path))
    whole_files.publish(path)
    return path


def _write(out: BinaryIO, tally: LineTally, line: FirstLine | RecordLine) -> None:
    text = written(line)
    tally.add(line, text)
    out.write(text)


def _expired(database: Database, after: int, digest: bytes, before: int) -> Iterator[StoredRow]:
    """Records that the last but one snapshot stands for, from the first on, while they are older than `before`."""
    with database.reading() as connection:
        whole = [snapshot.seq for snapshot in queries.whole_snapshots(connection, SNAPSHOTS_READ)]
    if len(whole) < SNAPSHOTS_KEPT:
        return
    for row in verified(rows_after(database, after), after, digest):
        if row.seq > whole[1] or row.at >= before or row.seq - after > FILE_RECORDS:
            return
        yield row


def _remove(database: Database, path: Path) -> None:
    """Take the records of a file out of the database, some at a time; each time the archive's row tells how far."""
    begun = beginning(database)[0]
    rows = (row for row in archive_rows(path) if row.seq > begun)
    sum(1 for _ in archive_rows(path))  # all of it is verified before anything is removed
    while page := list(islice(rows, PAGE)):
        with database.writing() as db:
            if queries.digest_at(db, page[-1].seq) != page[-1].digest:
                raise JournalError(f"the archive {path} is of another journal: move it away and try again")
            _forget(db, page)
            db.execute(delete(schema.archives).where(schema.archives.c.file == path.name))
            first = int(path.name.split("-")[1])
            values = {"first": first, "last": page[-1].seq, "digest": page[-1].digest, "file": path.name}
            db.execute(insert(schema.archives).values(**values))


def _forget(db: Connection, page: list[StoredRow]) -> None:
    c = schema.subjects.c
    entries = [{"s": s, "q": row.seq} for row in page for s in dict.fromkeys(subjects_of(unseal(row).event))]
    if entries:
        db.execute(delete(schema.subjects).where(c.subject == bindparam("s"), c.seq == bindparam("q")), entries)
    gone = schema.records.c.seq
    db.execute(delete(schema.records).where(gone >= page[0].seq, gone <= page[-1].seq))
