"""The audit log: who asked what, when and from where, in chains whose digests the journal seals.

It stands beside the journal, a SQLite file of its own or tables in the database that the cell's controllers share. What
was done and what was refused are two chains, so that a flood of refusals never pushes out an act.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    and_,
    delete,
    insert,
    or_,
    select,
    update,
)

from hostler.core.state.audit import Chain, Seal
from hostler.journal.codec import GENESIS, chained, micros, moment
from hostler.journal.database import Database
from hostler.journal.opening import on_server
from hostler.journal.postgres import PostgresDatabase
from hostler.journal.sqlite import SqliteDatabase

FILE = "audit.db"
"""The file's name beside a journal's file."""


class Keeping(NamedTuple):
    """How long entries of a chain are kept, and how many at most; the oldest leave first."""

    days: int
    most: int


KEPT: dict[Chain, Keeping] = {"acts": Keeping(365, 1_000_000), "refusals": Keeping(30, 200_000)}
CHAINS: tuple[Chain, ...] = ("acts", "refusals")
TEXT_MAX = 200
"""Characters of any text of an entry."""

PAGE = 2_000

Outcome = Literal["done", "waits", "dry_run", "refused", "failed"]


class AuditEntry(Struct, frozen=True):
    """A request, or `count` alike ones from `at` to `last`, in the words that everybody may read: no body, no query.

    `person` is "" where nobody was recognised; `token` is a token's id, which is no secret. `intent` is the journal's.
    """

    chain: Chain
    at: datetime
    last: datetime
    person: str
    role: str
    token: str
    address: str
    method: str
    route: str
    verb: str
    target: str
    status: int
    outcome: Outcome
    request: str
    controller: str
    intent: str = ""
    count: int = 1


class AuditRow(Struct, frozen=True):
    """An entry at its place in its chain, with the chain's digest there."""

    number: int
    entry: AuditEntry
    digest: str


class AuditQuery(Struct, frozen=True):
    """Selection of entries; what is empty selects everything. `before`: the place after which to go on."""

    chain: str = ""
    since: datetime | None = None
    until: datetime | None = None
    person: str = ""
    verb: str = ""
    target: str = ""
    address: str = ""
    outcome: str = ""
    before: tuple[int, str, int] | None = None


_META = MetaData()
_TEXTS = ("person", "role", "token", "address", "method", "route", "verb", "target", "outcome", "request", "controller")
_ENTRIES = Table(
    "audit",
    _META,
    Column("chain", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    *(Column(name, Text, nullable=False) for name in (*_TEXTS, "intent")),
    Column("status", Integer, nullable=False),
    Column("times", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Index("audit_at", "at"),
)
_HEADS = Table(
    "audit_heads",
    _META,
    Column("chain", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("left", BigInteger, nullable=False),
    Column("left_digest", LargeBinary, nullable=False),
)
"""One row a chain: its last entry, and the last one that has had its time and left."""

_FIELDS = ("at", "last", *_TEXTS, "intent", "status", "times")
"""Columns that the digest is of, in this order, behind the chain's name and the entry's number."""


class SqlAuditLog:
    """The audit log in SQL, laid out with `make`. Whatever goes wrong in the database is a JournalError."""

    def __init__(self, database: Database, *, make: bool = True) -> None:
        self._database = database
        if make:
            with database.upgrading() as db:
                _META.create_all(db)

    def append(self, entries: Sequence[AuditEntry], now: datetime) -> None:
        """Write the entries, each behind its chain's last, and let go of what has had its time; all or none."""
        with self._database.writing() as db:
            for chain in sorted({entry.chain for entry in entries}):
                _append(db, chain, [entry for entry in entries if entry.chain == chain], now)

    def listed(self, wanted: AuditQuery, limit: int) -> list[AuditRow]:
        """Read a page of entries, newest first."""
        order = (_ENTRIES.c.at.desc(), _ENTRIES.c.chain.desc(), _ENTRIES.c.number.desc())
        asked = select(_ENTRIES).where(*_selected(wanted)).order_by(*order).limit(limit)
        with self._database.reading() as db:
            return [_row(row) for row in db.execute(asked).all()]

    def seals(self) -> tuple[Seal, ...]:
        """Read where each chain ends now; a chain without an entry has no seal."""
        with self._database.reading() as db:
            return tuple(Seal(row.chain, row.number, bytes(row.digest).hex()) for row in db.execute(_heads()).all())

    def faults(self, sealed: Sequence[tuple[Seal, datetime]], now: datetime) -> list[str]:
        """Read every entry and tell what does not fit: within the chains, and with what the journal has sealed."""
        with self._database.reading() as db:
            heads = {row.chain: row for row in db.execute(_heads()).all()}
            found: list[str] = []
            for chain in CHAINS:
                seals = {seal.number: (seal, at) for seal, at in sealed if seal.chain == chain}
                if chain in heads:
                    found += _chain_faults(db, heads[chain], seals, now)
                elif seals:
                    found.append(f"{chain}: the journal has sealed {max(seals)} entries, and none is here")
            return found

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def open_audit_log(place: Path | str) -> SqlAuditLog:
    """The log at a path, or in the database of a postgresql:// URL. Raises JournalError, OSError."""
    if isinstance(place, str) and on_server(place):
        return SqlAuditLog(PostgresDatabase(place))
    return SqlAuditLog(SqliteDatabase(Path(place)))


def _heads() -> Select[Any]:
    return select(_HEADS).order_by(_HEADS.c.chain)


def _append(db: Connection, chain: Chain, entries: Sequence[AuditEntry], now: datetime) -> None:
    mine = _HEADS.c.chain == chain
    head = db.execute(select(_HEADS).where(mine).with_for_update()).first()
    number, digest = (head.number, bytes(head.digest)) if head is not None else (0, GENESIS)
    rows = []
    for number, entry in enumerate(entries, number + 1):  # noqa: B020 - it goes on from the last
        values = _values(entry)
        digest = chained(digest, _digested(chain, number, values))
        rows.append({"chain": chain, "number": number, **values, "digest": digest})
    db.execute(insert(_ENTRIES), rows)
    if head is None:
        db.execute(insert(_HEADS).values(chain=chain, number=number, digest=digest, left=0, left_digest=GENESIS))
    else:
        db.execute(update(_HEADS).where(mine).values(number=number, digest=digest))
    _tidy(db, chain, number, now)


def _tidy(db: Connection, chain: Chain, last: int, now: datetime) -> None:
    """Let go of the oldest entries of a chain, and keep the digest that the first of the others follows."""
    keeping, mine = KEPT[chain], _ENTRIES.c.chain == chain
    old = and_(_ENTRIES.c.last < micros(now - timedelta(days=keeping.days)), _ENTRIES.c.number < last)
    first_kept = select(_ENTRIES.c.number).where(mine, ~old).order_by(_ENTRIES.c.number).limit(1)
    end = max(int(db.execute(first_kept).scalar_one()) - 1, last - keeping.most)
    digest = db.execute(select(_ENTRIES.c.digest).where(mine, _ENTRIES.c.number == end)).scalar()
    if digest is not None:
        db.execute(update(_HEADS).where(_HEADS.c.chain == chain).values(left=end, left_digest=digest))
        db.execute(delete(_ENTRIES).where(mine, _ENTRIES.c.number <= end))


def _chain_faults(
    db: Connection, head: Row[Any], seals: dict[int, tuple[Seal, datetime]], now: datetime
) -> Iterator[str]:
    """The first entry of a chain that does not follow, and each seal that is not met."""
    chain, number, digest = head.chain, head.left, bytes(head.left_digest)
    yield from _left_too_soon(head, seals, now)
    met = {number: digest}
    for row in _walk(db, chain):
        if row.number != number + 1:
            missing = f"entry {number + 1}" if row.number == number + 2 else f"entries {number + 1} to {row.number - 1}"
            yield f"{chain}: {missing} missing"
            return
        if chained(digest, _digested(chain, row.number, row._asdict())) != bytes(row.digest):
            yield f"{chain}: entry {row.number} of {moment(row.at):%Y-%m-%d %H:%M:%S} UTC and its digest differ"
            return
        number, digest = row.number, bytes(row.digest)
        if number in seals:
            met[number] = digest
    if (number, digest) != (head.number, bytes(head.digest)):
        yield f"{chain}: it ends with entry {number}, and {head.number} were written"
    for place, (seal, at) in sorted(seals.items()):
        if place > head.left and met.get(place, b"").hex() != seal.digest:
            yield f"{chain}: entry {place} is not the one that the journal sealed at {at:%Y-%m-%d %H:%M:%S} UTC"


def _left_too_soon(head: Row[Any], seals: dict[int, tuple[Seal, datetime]], now: datetime) -> Iterator[str]:
    keeping = KEPT[head.chain]
    recent = [at for place, (_, at) in seals.items() if place <= head.left and at > now - timedelta(days=keeping.days)]
    if recent and head.number - head.left < keeping.most and min(seals) <= head.left:
        yield f"{head.chain}: entries up to {head.left} have left before their {keeping.days} days"


def _walk(db: Connection, chain: str) -> Iterator[Row[Any]]:
    after = -1
    while True:
        asked = select(_ENTRIES).where(_ENTRIES.c.chain == chain, _ENTRIES.c.number > after)
        rows = db.execute(asked.order_by(_ENTRIES.c.number).limit(PAGE)).all()
        yield from rows
        if len(rows) < PAGE:
            return
        after = rows[-1].number


def _selected(wanted: AuditQuery) -> Iterator[ColumnElement[bool]]:
    c = _ENTRIES.c
    for name in ("chain", "person", "verb", "target", "address", "outcome"):
        if value := getattr(wanted, name):
            yield c[name] == storable(value)
    if wanted.since is not None:
        yield c.last >= micros(wanted.since)
    if wanted.until is not None:
        yield c.at < micros(wanted.until)
    if wanted.before is not None:
        at, chain, number = wanted.before
        same = and_(c.at == at, or_(c.chain < chain, and_(c.chain == chain, c.number < number)))
        yield or_(c.at < at, same)


def _values(entry: AuditEntry) -> dict[str, Any]:
    texts = {name: storable(getattr(entry, name)) for name in (*_TEXTS, "intent")}
    moments = {"at": micros(entry.at), "last": micros(entry.last)}
    return {**moments, **texts, "status": entry.status, "times": entry.count}


def storable(text: str) -> str:
    """The text as every database takes it and gives it back: cut, valid, without NUL."""
    return text[:TEXT_MAX].encode(errors="replace").decode().replace("\0", "")


def _digested(chain: str, number: int, values: dict[str, Any]) -> tuple[object, ...]:
    return (chain, number, *(values[name] for name in _FIELDS))


def _row(row: Row[Any]) -> AuditRow:
    texts = {name: getattr(row, name) for name in (*_TEXTS, "intent")}
    entry = AuditEntry(
        chain=row.chain, at=moment(row.at), last=moment(row.last), status=row.status, count=row.times, **texts
    )
    return AuditRow(row.number, entry, bytes(row.digest).hex())
