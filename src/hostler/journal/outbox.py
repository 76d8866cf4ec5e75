"""Outbox beside the journal: messages that wait, were delivered, or were given up, and how far the journal was read.

A SQLite file of its own, or tables in the database that the cell's controllers share: who takes over goes on where the
one before stopped. It is no part of the journal: a copy of a journal tells nobody anything.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
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
    exists,
    func,
    insert,
    select,
    update,
)

from hostler.core.notify.messages import Message
from hostler.journal import ticket_links
from hostler.journal.database import Database
from hostler.journal.opening import on_server
from hostler.journal.postgres import PostgresDatabase
from hostler.journal.sqlite import SqliteDatabase
from hostler.ports import Delivery, RouteCounts

DELIVERED_KEPT_S = 30 * 86_400.0
DELIVERED_KEPT = 20_000
"""Delivered and dead messages beyond this number or age are forgotten, the oldest first."""
QUEUED_MOST = 10_000
"""Messages that wait, of all routes together; beyond it the oldest that are no pages are given up."""
WHY_MAX = 500

_META = MetaData()
_ID = BigInteger().with_variant(Integer, "sqlite")
_POSITION = Table(
    "outbox_position",
    _META,
    Column("one", Integer, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("told", LargeBinary, nullable=False),
)
_OUTBOX = Table(
    "outbox",
    _META,
    Column("number", _ID, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False),
    Column("route", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("page", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("queued", Double, nullable=False),
    Column("due", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("why", Text, nullable=False),
    Column("ended", Double),
    Column("body", LargeBinary, nullable=False),
)
Index("outbox_state", _OUTBOX.c.state, _OUTBOX.c.due)
Index("outbox_key", _OUTBOX.c.route, _OUTBOX.c.key, _OUTBOX.c.state, _OUTBOX.c.number)

_MESSAGE = msgspec.msgpack.Decoder(Message)


class SqlOutbox:
    """`ports.Outbox` in SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.links = ticket_links.SqlTicketLinks(database)
        with database.upgrading() as db:
            _META.create_all(db)
            ticket_links.META.create_all(db)

    def position(self) -> tuple[int, bytes] | None:
        """Read the place in the journal, and what stood open there."""
        with self._database.reading() as db:
            row = db.execute(select(_POSITION.c.seq, _POSITION.c.told)).first()
        return (int(row.seq), bytes(row.told)) if row is not None else None

    def advance(self, before: int, after: int, told: bytes, messages: Sequence[Message], now: datetime) -> bool:
        """Queue and move on in one transaction, from `before` alone."""
        with self._database.writing() as db:
            moved = db.execute(update(_POSITION).where(_POSITION.c.seq == before).values(seq=after, told=told)).rowcount
            if not moved:
                if db.execute(select(_POSITION.c.seq)).first() is not None:
                    return False
                db.execute(insert(_POSITION).values(one=1, seq=after, told=told))
            if messages:
                db.execute(insert(_OUTBOX), [_values(message, now) for message in messages])
                _tidy(db, now)
                _bound(db, now)
        return True

    def put(self, message: Message, now: datetime) -> None:
        """Queue one message."""
        with self._database.writing() as db:
            db.execute(insert(_OUTBOX).values(_values(message, now)))

    def due(self, now: datetime, limit: int, but: Collection[str] = ()) -> list[Delivery]:
        """Read what may be tried now: the earliest of each key, pages first."""
        earlier = _OUTBOX.alias("earlier")
        blocked = exists().where(
            and_(
                earlier.c.route == _OUTBOX.c.route,
                earlier.c.key == _OUTBOX.c.key,
                earlier.c.state == "queued",
                earlier.c.number < _OUTBOX.c.number,
            )
        )
        asked = (
            select(_OUTBOX)
            .where(_OUTBOX.c.state == "queued", _OUTBOX.c.due <= now.timestamp(), ~blocked)
            .where(_OUTBOX.c.route.not_in(sorted(but)))
            .order_by(_OUTBOX.c.page.desc(), _OUTBOX.c.number)
            .limit(limit)
        )
        return self._rows(asked)

    def ended(self, delivery: Delivery, state: str, at: datetime, why: str = "") -> None:
        """Write how the delivery ended."""
        self._change(delivery.number, state=state, ended=at.timestamp(), why=why[:WHY_MAX])

    def postponed(self, delivery: Delivery, due: datetime, why: str) -> None:
        """Write when it is tried again, and why."""
        self._change(delivery.number, due=due.timestamp(), why=why[:WHY_MAX])

    def retry(self, number: int, now: datetime) -> bool:
        """Queue a dead letter again."""
        anew = {"state": "queued", "due": now.timestamp(), "queued": now.timestamp(), "attempts": 0, "ended": None}
        with self._database.writing() as db:
            dead = and_(_OUTBOX.c.number == number, _OUTBOX.c.state == "dead")
            return bool(db.execute(update(_OUTBOX).where(dead).values(anew)).rowcount)

    def listed(self, route: str, state: str, before: int | None, limit: int) -> list[Delivery]:
        """Read a page of deliveries, newest first."""
        asked = select(_OUTBOX).order_by(_OUTBOX.c.number.desc()).limit(limit)
        for column, value in ((_OUTBOX.c.route, route), (_OUTBOX.c.state, state)):
            asked = asked.where(column == value) if value else asked
        return self._rows(asked.where(_OUTBOX.c.number < before) if before is not None else asked)

    def counts(self) -> dict[str, RouteCounts]:
        """Count messages by route and state."""
        figures = (func.count(), func.min(_OUTBOX.c.queued), func.max(_OUTBOX.c.ended))
        asked = select(_OUTBOX.c.route, _OUTBOX.c.state, *figures)
        with self._database.reading() as db:
            rows = db.execute(asked.group_by(_OUTBOX.c.route, _OUTBOX.c.state)).all()
        found: dict[str, dict[str, Any]] = {}
        for route, state, number, oldest, last in rows:
            counted = found.setdefault(route, {})
            counted[state] = number
            if state == "queued":
                counted["oldest"] = _moment(oldest)
            if state == "delivered":
                counted["last"] = _moment(last)
        return {route: RouteCounts(**counted) for route, counted in found.items()}

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _rows(self, asked: Select[Any]) -> list[Delivery]:
        with self._database.reading() as db:
            return [_delivery(row) for row in db.execute(asked).all()]

    def _change(self, number: int, **values: Any) -> None:
        """Change a message that is queued; what is over stays as it is, whoever else has answered for it."""
        waiting = and_(_OUTBOX.c.number == number, _OUTBOX.c.state == "queued")
        with self._database.writing() as db:
            db.execute(update(_OUTBOX).where(waiting).values(attempts=_OUTBOX.c.attempts + 1, **values))


def open_outbox(place: Path | str) -> SqlOutbox:
    """The outbox at a path, or in the database of a postgresql:// URL. Raises JournalError, OSError."""
    if isinstance(place, str) and on_server(place):
        return SqlOutbox(PostgresDatabase(place))
    return SqlOutbox(SqliteDatabase(Path(place)))


def _values(message: Message, now: datetime) -> dict[str, Any]:
    return {
        "id": message.id,
        "route": message.route,
        "key": message.key,
        "page": int(message.page),
        "state": "queued",
        "queued": now.timestamp(),
        "due": now.timestamp(),
        "attempts": 0,
        "why": "",
        "body": msgspec.msgpack.encode(message),
    }


def _tidy(db: Connection, now: datetime) -> None:
    over = _OUTBOX.c.state != "queued"
    db.execute(delete(_OUTBOX).where(over, _OUTBOX.c.ended < now.timestamp() - DELIVERED_KEPT_S))
    newest = db.execute(select(func.max(_OUTBOX.c.number))).scalar() or 0
    db.execute(delete(_OUTBOX).where(over, _OUTBOX.c.number <= newest - DELIVERED_KEPT))


def _bound(db: Connection, now: datetime) -> None:
    """Give up the oldest of a queue that is too long; pages stay. They are dead letters, and can be sent again."""
    waiting = _OUTBOX.c.state == "queued"
    over = (db.execute(select(func.count()).select_from(_OUTBOX).where(waiting)).scalar() or 0) - QUEUED_MOST
    if over > 0:
        oldest = select(_OUTBOX.c.number).where(waiting, _OUTBOX.c.page == 0).order_by(_OUTBOX.c.number).limit(over)
        numbers = db.execute(oldest).scalars().all()
        dead = {"state": "dead", "why": "the queue was full", "ended": now.timestamp()}
        db.execute(update(_OUTBOX).where(_OUTBOX.c.number.in_(numbers)).values(dead))


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        message=_MESSAGE.decode(bytes(row.body)),
        state=row.state,
        queued=_moment(row.queued),
        due=_moment(row.due),
        attempts=row.attempts,
        why=row.why,
        ended=_moment(row.ended) if row.ended is not None else None,
        number=row.number,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
