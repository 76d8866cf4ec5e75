"""Sign-ins that were granted, beside the tokens: who is known here without a token that a person made for them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Row, Select, Table, Text, delete, func, insert, or_, select

NAMES_MOST = 16

KNOWN_DAYS = 90
"""Days for which a person is known after their last sign-in."""

SIGN_INS = Table(
    "sign_ins",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("expires", Text),
    Column("known_as", Text, nullable=False, server_default=""),
)
"""Every sign-in by the id of its session's token, with the grant that it gave."""


def record_sign_in(db: Connection, session: dict[str, object], now: datetime) -> None:
    """Record a sign-in by its session's row of the tokens; sign-ins that are too old to be known by go."""
    row = {column.name: session[column.name] for column in SIGN_INS.columns}
    db.execute(delete(SIGN_INS).where(SIGN_INS.c.created < (now - timedelta(days=KNOWN_DAYS)).isoformat()))
    db.execute(insert(SIGN_INS), [row])


def ended_sessions(now: datetime) -> Select[tuple[str]]:
    """The question for the ids of sessions that are over; some of their tokens were revoked before."""
    return select(SIGN_INS.c.id).where(SIGN_INS.c.expires <= now.isoformat())


def names_of_subject(db: Connection, subject: str, now: datetime) -> list[str]:
    """Names under which a provider's subject has signed in within KNOWN_DAYS, the latest first, NAMES_MOST at most."""
    since = (now - timedelta(days=KNOWN_DAYS)).isoformat()
    theirs = or_(SIGN_INS.c.known_as == subject, SIGN_INS.c.known_as.startswith(f"{subject}\n", autoescape=True))
    latest = func.max(SIGN_INS.c.created)
    named = select(SIGN_INS.c.name).where(SIGN_INS.c.created >= since, theirs).group_by(SIGN_INS.c.name)
    return list(db.execute(named.order_by(latest.desc()).limit(NAMES_MOST)).scalars())


def last_sign_ins(db: Connection, now: datetime) -> Sequence[Row[Any]]:
    """The last sign-in of each person within KNOWN_DAYS, by name."""
    since = (now - timedelta(days=KNOWN_DAYS)).isoformat()
    known = select(SIGN_INS).where(SIGN_INS.c.created >= since).order_by(SIGN_INS.c.created)
    last = {row.name: row for row in db.execute(known)}
    return [last[name] for name in sorted(last)]
