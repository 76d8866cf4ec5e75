"""Links between our tickets and those of ticket systems, in the outbox's database: whoever takes over knows them."""

from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from sqlalchemy import BigInteger, Column, Connection, LargeBinary, MetaData, Table, Text, delete, func, insert, select

from hostler.ports import TicketLink

LINKS_KEPT = 20_000
"""The links that were put last; an older one is found again by its label."""

META = MetaData()
_LINKS = Table(
    "ticket_links",
    META,
    Column("route", Text, primary_key=True),
    Column("ticket", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
_LINK = msgspec.msgpack.Decoder(TicketLink)


class LinkDatabase(Protocol):
    """A database that links are kept in."""

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that writes."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that reads."""
        ...


class SqlTicketLinks:
    """`ports.TicketLinks` in SQL."""

    def __init__(self, database: LinkDatabase) -> None:
        self._database = database

    def link(self, route: str, ticket: str) -> TicketLink | None:
        """Read the link of a ticket on a route."""
        asked = select(_LINKS.c.body).where(_LINKS.c.route == route, _LINKS.c.ticket == ticket)
        with self._database.reading() as db:
            row = db.execute(asked).first()
        return _LINK.decode(bytes(row.body)) if row is not None else None

    def put(self, link: TicketLink) -> None:
        """Keep the link in the place of the one before, and forget the oldest of too many."""
        one = (_LINKS.c.route == link.route) & (_LINKS.c.ticket == link.ticket)
        with self._database.writing() as db:
            db.execute(delete(_LINKS).where(one))
            number = (db.execute(select(func.max(_LINKS.c.number))).scalar() or 0) + 1
            body = msgspec.msgpack.encode(link)
            db.execute(insert(_LINKS).values(route=link.route, ticket=link.ticket, number=number, body=body))
            if (db.execute(select(func.count()).select_from(_LINKS)).scalar() or 0) > LINKS_KEPT:
                oldest = select(func.min(_LINKS.c.number)).scalar_subquery()
                db.execute(delete(_LINKS).where(_LINKS.c.number == oldest))

    def links(self) -> list[TicketLink]:
        """Read every link."""
        with self._database.reading() as db:
            return [_LINK.decode(bytes(row.body)) for row in db.execute(select(_LINKS.c.body)).all()]
