"""Turns records into stored rows and back, and chains their digests. Pure: no database is known here.

Bodies are JSON: whatever reached us as JSON can be stored (msgpack cannot hold an integer above 64 bits, and a
node could stop its cell with one), and an operator can read the table. Keys keep the order they were given in,
so that a replayed dict iterates as the live one did.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple, get_args

import msgspec

from hostler.core.state.events import Event, Record, name_of
from hostler.core.state.live_state import Release
from hostler.core.state.model import Observation
from hostler.core.state.scopes import scope_hook, text_hook
from hostler.core.state.upcast import Body, downcast, is_cast, upcast
from hostler.ports import CorruptJournalError, JournalError

RELEASE = Release()
"""Formats that this version writes and reads."""

DIGEST_BYTES = 16
GENESIS = bytes(DIGEST_BYTES)
"""The digest before the first record."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
INTEGER_MAX = 2**63 - 1
"""The largest sequence number that a database column holds."""

LIMIT_MAX = 10_000
"""The most rows that one question is answered with."""


class UnwritableError(JournalError):
    """The batch holds something that could not be read back; it is refused whole before the store is touched."""


class OutOfPlaceError(JournalError):
    """A record does not follow the journal's last one, or claims another epoch: load again, decide again."""


class UnknownEventError(JournalError):
    """A stored record that this version cannot read; to go on without it would be to fold another history."""

    def __init__(self, seq: int, name: str, version: int, why: str) -> None:
        super().__init__(f"record {seq} is {name!r} version {version}: {why}; run the Hostler that wrote it or a newer")
        self.seq = seq


class StoredRow(NamedTuple):
    """A record as it is stored: `at` in µs since 1970 UTC, `body` the event as JSON, `digest` the chain's here."""

    seq: int
    at: int
    epoch: int
    cause: str
    name: str
    version: int
    body: bytes
    digest: bytes


class ObservationRow(NamedTuple):
    """An observation as it is stored; `received` in µs since 1970 UTC, 0 where the server did not say."""

    node: str
    spool: str
    sequence: int
    received: int
    body: bytes


_encode = msgspec.json.Encoder(enc_hook=text_hook).encode
_canonical = msgspec.msgpack.Encoder().encode
_decoders: dict[str, msgspec.json.Decoder[Event]] = {
    str(event.__struct_config__.tag): msgspec.json.Decoder(event, dec_hook=scope_hook) for event in get_args(Event)
}
_decode_any: Callable[[bytes], Event] = msgspec.json.Decoder(Event, dec_hook=scope_hook).decode
_decode_body = msgspec.json.Decoder(Body).decode
_decode_observation = msgspec.json.Decoder(Observation).decode


def micros(moment: datetime) -> int:
    """Microseconds since 1970 UTC, exact; TypeError for a naive moment."""
    return (moment - EPOCH) // MICROSECOND


def moment(micros: int) -> datetime:
    """The aware UTC moment, so many microseconds after 1970."""
    return EPOCH + micros * MICROSECOND


def seal(record: Record, before: bytes, cell: int = RELEASE.reads) -> StoredRow:
    """The row for a record that follows the digest `before`, in words that controllers of format `cell` read.

    Raises UnwritableError for what could not be read back (a wrong type, an infinite number, a naive moment):
    better no commit than a journal that never opens again.
    """
    name = name_of(record.event)
    try:
        body = _encode(record.event)
        _decoders[name].decode(body)
        if cell < RELEASE.reads:
            body = _in_words_of(cell, name, body)
        version = RELEASE.version_for(name, cell)
        fields = (record.seq, micros(record.at), record.epoch, record.cause, name, version, body)
        return StoredRow(*fields, chained(before, fields))
    except (msgspec.MsgspecError, TypeError, ValueError, KeyError) as error:
        raise UnwritableError(f"record {record.seq} ({name}) cannot be stored: {error}") from error


def _in_words_of(cell: int, name: str, body: bytes) -> bytes:
    """The body as a cell of this format writes it. Raises ValueError where the format does not have all of it.

    A field that the format lacks may be left out where the rest says it again, as a wait's sentence says its ways.
    """
    if not RELEASE.may_differ(name, cell):
        newest, version = RELEASE.newest(name), RELEASE.version_for(name, cell)
        return body if newest == version else _encode(downcast(_decode_body(body), newest, version))
    read = RELEASE.read_as(name, _decode_body(body), cell)
    if read.unread or (read.lost and _decoders[name].decode(_encode(read.body)) != _decoders[name].decode(body)):
        raise ValueError(f"format {cell} does not have {read.said}")
    return _encode(RELEASE.stored(name, read, cell))


def seal_all(
    records: Iterable[Record], last: int, before: bytes, epoch: int, cell: int = RELEASE.reads
) -> list[StoredRow]:
    """The rows for a batch that follows record `last`; OutOfPlaceError where one has another place or epoch."""
    rows = []
    for seq, record in enumerate(records, last + 1):
        if record.seq != seq or record.epoch != epoch:
            raise OutOfPlaceError(
                f"record {record.seq} of epoch {record.epoch} cannot be record {seq} of epoch {epoch}: "
                "load the journal again and decide again"
            )
        row = seal(record, before, cell)
        rows.append(row)
        before = row.digest
    return rows


def unseal(row: StoredRow) -> Record:
    """The record in a row; UnknownEventError where this version cannot read it."""
    return Record(seq=row.seq, at=moment(row.at), epoch=row.epoch, cause=row.cause, event=_event(row))


def verified(rows: Iterable[StoredRow], last: int, before: bytes) -> Iterator[StoredRow]:
    """The rows again, each checked to follow the one before it; CorruptJournalError names the first that does not."""
    for seq, row in enumerate(rows, last + 1):
        if row.seq != seq:
            raise CorruptJournalError(seq, f"it is missing, record {row.seq} comes next")
        if chained(before, row[:-1]) != row.digest:
            raise CorruptJournalError(seq, "its content and its digest differ")
        before = row.digest
        yield row


def known(row: StoredRow) -> None:
    """Raises UnknownEventError for a row that this version certainly cannot read; looks at its name only."""
    if row.name not in _decoders and not is_cast(row.name, row.version):
        raise UnknownEventError(row.seq, row.name, row.version, "this Hostler does not know the name")
    if row.name in _decoders and row.version > (newest := RELEASE.newest(row.name)):
        raise UnknownEventError(row.seq, row.name, row.version, f"this Hostler reads up to version {newest}")


def seal_observation(observation: Observation) -> ObservationRow:
    """The row for an observation; UnwritableError for what no column or JSON can hold."""
    o = observation
    try:
        body = _encode(o)
        received = micros(o.received) if o.received else 0
    except (TypeError, ValueError) as error:
        raise UnwritableError(f"observation {o.id} cannot be stored: {error}") from error
    if not 0 <= o.sequence <= INTEGER_MAX:
        raise UnwritableError(
            f"observation {o.id} cannot be stored: its sequence is outside 0 … {INTEGER_MAX}"
            "; the sender's numbering is broken: restart its agent"
        )
    return ObservationRow(o.node, o.spool, o.sequence, received, body)


def seal_cursors(cursors: dict[str, tuple[str, int]]) -> list[tuple[str, str, int]]:
    """(node, spool, sequence) of each; UnwritableError for what no column can hold."""
    rows = [(node, spool, sequence) for node, (spool, sequence) in cursors.items()]
    try:
        _canonical(rows)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnwritableError(f"a cursor cannot be stored: {error}") from error
    if any(not 0 <= sequence <= INTEGER_MAX for _, _, sequence in rows):
        raise UnwritableError(
            f"a cursor cannot be stored: its sequence is outside 0 … {INTEGER_MAX}"
            "; the sender's numbering is broken: restart its agent"
        )
    return rows


def unseal_observation(body: bytes) -> Observation:
    """The observation in a stored body; JournalError where it cannot be read."""
    try:
        return _decode_observation(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise JournalError(f"a stored observation cannot be read: {error}; run `hostler journal check`") from error


def observation_key(identity: str) -> tuple[str, str, int] | None:
    """(node, spool, sequence) of an observation id "node/spool/sequence"; None where it is no such id."""
    head, _, sequence = identity.rpartition("/")
    node, _, spool = head.rpartition("/")
    if not (node and sequence.isdecimal() and int(sequence) <= INTEGER_MAX):
        return None
    return node, spool, int(sequence)


def capped(limit: int) -> int:
    """The rows to answer with where `limit` were asked for."""
    return max(0, min(limit, LIMIT_MAX))


def chained(before: bytes, fields: tuple[object, ...]) -> bytes:
    """The digest of these fields behind the digest `before`."""
    return blake2b(before + _canonical(fields), digest_size=DIGEST_BYTES).digest()


def _event(row: StoredRow) -> Event:
    known(row)
    try:
        if not is_cast(row.name, row.version) and row.name in _decoders:
            return _decoders[row.name].decode(row.body)
        body = upcast(_decode_body(row.body), row.version)
        return _decode_any(_encode(body))
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError, TypeError) as error:
        raise UnknownEventError(row.seq, row.name, row.version, f"its body cannot be read ({error})") from error
