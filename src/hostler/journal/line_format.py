"""A journal as lines of text: what `export` writes, `import` reads and `compact` puts away. Pure.

One JSON object a line. A record's and an observation's body is their stored JSON, byte for byte, so that the chain's
digest can be verified from the lines alone, by Hostler or by anybody with a JSON reader and BLAKE2b.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NoReturn

import msgspec
from msgspec import Raw, Struct

from hostler.journal.codec import DIGEST_BYTES, GENESIS, ObservationRow, StoredRow
from hostler.ports import JournalError

FORMAT = 1
LINE_MAX = 64 << 20
"""Bytes of the longest line that is read; a snapshot's part and the largest body are far shorter."""


class FirstLine(Struct, frozen=True, tag="journal", tag_field="line"):
    """The first line. Records begin at `first`, behind the digest `before` (hex); `epoch` is the lease's."""

    format: int
    first: int = 1
    before: str = GENESIS.hex()
    epoch: int = 0


class ArchivedLine(Struct, frozen=True, tag="archived", tag_field="line"):
    """Records `first` to `last` are not here but in a file of that name; `digest` is the chain's at `last`."""

    last: int
    first: int
    digest: str
    file: str


class RecordLine(Struct, frozen=True, tag="record", tag_field="line"):
    """A record: `codec.StoredRow`, `at` in µs since 1970 UTC, the digest in hex."""

    seq: int
    at: int
    epoch: int
    cause: str
    name: str
    version: int
    body: Raw
    digest: str

    def row(self) -> StoredRow:
        """The record as it is stored. Raises ValueError where the digest is no hex."""
        fields = (self.seq, self.at, self.epoch, self.cause, self.name, self.version)
        return StoredRow(*fields, bytes(self.body), _digest(self.digest))


class ObservationLine(Struct, frozen=True, tag="observation", tag_field="line"):
    """A raw observation: `codec.ObservationRow`."""

    node: str
    spool: str
    sequence: int
    received: int
    body: Raw

    def row(self) -> ObservationRow:
        """The observation as it is stored."""
        return ObservationRow(self.node, self.spool, self.sequence, self.received, bytes(self.body))


class CursorLine(Struct, frozen=True, tag="cursor", tag_field="line"):
    """How far a node's spool has been read."""

    node: str
    spool: str
    sequence: int


class SnapshotLine(Struct, frozen=True, tag="snapshot", tag_field="line"):
    """One piece of a checkpoint's body, base64; the last piece has `checksum`, of all of it, in hex."""

    seq: int
    digest: str
    version: int
    part: int
    body: bytes
    checksum: str = ""


class LastLine(Struct, frozen=True, tag="end", tag_field="line"):
    """The last line: how many lines of each kind came before it, where the chain ends, and a checksum of all lines."""

    records: int
    observations: int
    cursors: int
    last: int
    digest: str
    checksum: str


Line = FirstLine | ArchivedLine | RecordLine | ObservationLine | CursorLine | SnapshotLine | LastLine

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class LineTally:
    """Counts lines and keeps their checksum, the same way for who writes and who reads them."""

    def __init__(self) -> None:
        self.records = self.observations = self.cursors = 0
        self._checksum = blake2b(digest_size=DIGEST_BYTES)

    def add(self, line: Line, text: bytes) -> None:
        """Count the line and add its bytes to the checksum."""
        self._checksum.update(text)
        self.records += isinstance(line, RecordLine)
        self.observations += isinstance(line, ObservationLine)
        self.cursors += isinstance(line, CursorLine)

    def end(self, last: int, digest: bytes) -> LastLine:
        """The last line of the file: counts, last record, its digest, and the checksum of all lines before."""
        checksum = self._checksum.hexdigest()
        return LastLine(self.records, self.observations, self.cursors, last, digest.hex(), checksum)


def written(line: Line) -> bytes:
    """The line with its newline."""
    return _encode(line) + b"\n"


def read(lines: Iterable[bytes]) -> Iterator[tuple[int, Line, bytes]]:
    """(number, line, text) of each; JournalError names the first that is none."""
    for number, text in enumerate(lines, 1):
        try:
            yield number, _decode(text), text
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            refuse(number, f"it cannot be read ({error})")


def record_line(row: StoredRow) -> RecordLine:
    """The line of a record; JournalError for a body that would not be one line."""
    return RecordLine(*row[:6], body=_raw(row.body, f"record {row.seq}"), digest=row.digest.hex())


def observation_line(row: ObservationRow) -> ObservationLine:
    """The line of an observation; JournalError as for a record."""
    return ObservationLine(*row[:4], body=_raw(row.body, f"observation {row.node}/{row.spool}/{row.sequence}"))


def refuse(number: int, why: str) -> NoReturn:
    """Raises JournalError for a line of an export."""
    raise JournalError(f"line {number}: {why}; nothing was imported; export it anew (hostler journal export)")


def _raw(body: bytes, what: str) -> Raw:
    if b"\n" in body:
        raise JournalError(f"{what} holds a line break: it is not one of ours; run `hostler journal check`")
    return Raw(body)


def _digest(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
