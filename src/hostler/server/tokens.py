"""Bearer tokens: made once, stored only as salted hashes, beside the journal: in a file of its owner, or its database.

A token reads `hst_ID_SECRET`. Whoever has one is its name; who lost one revokes it. Never part of any event. In the
database it is the same token to every controller of the cell.
"""

import asyncio
import hashlib
import hmac
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Column, LargeBinary, MetaData, Row, Table, Text, bindparam, delete, func, insert, select
from sqlalchemy.schema import CreateTable

from hostler.core.state.intent import Bounds
from hostler.journal.opening import on_server
from hostler.ports import JournalError
from hostler.server.sign_in_record import SIGN_INS, ended_sessions, last_sign_ins, names_of_subject, record_sign_in
from hostler.server.token_storage import SharedTokenDatabase, TokenDatabaseFile, TokenStorage, add_missing_columns

TOKEN = re.compile(r"hst_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SALT_BYTES = 16

FRESH_S = 5.0
"""Time for which a token read from a database is trusted: a revoked one is good for so long."""
OUTAGE_S = 120.0
"""Time for which it is trusted while the database does not answer."""
REMEMBERED = 200_000
NODES_AT_ONCE = 500
"""Nodes in one statement: SQLite takes 999 arguments where it is old."""

_TOKENS = Table(
    "tokens",
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
    Column("salt", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("known_as", Text, nullable=False, server_default=""),
)
_ONE = select(_TOKENS).where(_TOKENS.c.id == bindparam("id"))


class Role(StrEnum):
    """Role of a caller; `auth.MAY` lists what each may do."""

    operator = "operator"
    technician = "technician"
    tenant = "tenant"
    viewer = "viewer"
    agent = "agent"


class Grant(Struct, frozen=True):
    """Rights of a token.

    `name` is the person (or tool) that intents are recorded under.

    `site` and `pool` narrow what it sees and acts on ("" = all), `tenant` is needed for that role, `node` for an agent.
    `known_as`: other names of that person, of a sign-in: ISSUER#SUBJECT first, then verified mail and former names.
    """

    name: str
    role: Role
    site: str = ""
    pool: str = ""
    tenant: str = ""
    node: str = ""
    expires: datetime | None = None
    known_as: tuple[str, ...] = ()

    @property
    def bounds(self) -> Bounds:
        """Limits of intents under this grant."""
        return Bounds(self.site, self.pool, self.tenant)


class Identity(Struct, frozen=True):
    """Identity of a caller: a grant, by the token with this id."""

    token: str
    grant: Grant

    @property
    def name(self) -> str:
        """Name of the person, agent or tool."""
        return self.grant.name

    @property
    def role(self) -> Role:
        """Role of the grant."""
        return self.grant.role

    @property
    def whole(self) -> bool:
        """Tell whether the grant reaches the whole cell: no tenant, agent, site or pool in particular."""
        return not (self.grant.site or self.grant.pool or self.grant.tenant or self.grant.node)


class InvalidGrantError(ValueError):
    """The grant contradicts itself; no token was made."""


class TokenStore:
    """Tokens in the SQLite file at a path, mode 0600, or in the PostgreSQL database at a URL.

    Other processes may add and revoke while this one serves. Every call raises JournalError where the place does not
    answer. With `make`, the table is made where it is not there; otherwise its absence is a JournalError too.
    """

    def __init__(
        self, place: Path | str, clock: Callable[[], datetime] = lambda: datetime.now(UTC), *, make: bool = True
    ) -> None:
        self._clock = clock
        self._place: TokenStorage = (
            SharedTokenDatabase(str(place)) if on_server(place) else TokenDatabaseFile(Path(place))
        )
        self._known: OrderedDict[str, tuple[Row[Any], float]] = OrderedDict()
        try:
            with self._place.alone() as db:
                if make:
                    db.execute(CreateTable(SIGN_INS, if_not_exists=True))
                db.execute(CreateTable(_TOKENS, if_not_exists=True) if make else select(_TOKENS.c.id).limit(1))
                add_missing_columns(db, _TOKENS, SIGN_INS)
        except BaseException:
            self._place.close()
            raise

    def create(self, grant: Grant) -> str:
        """A new token for the grant, to be shown once. Raises InvalidGrantError."""
        return self.create_all([grant])[0]

    def create_all(self, grants: Sequence[Grant]) -> list[str]:
        """A new token for each grant, in order: all of them or none. Raises InvalidGrantError."""
        for grant in grants:
            check_grant(grant)
        drawn = [self._drawn(grant) for grant in grants]
        with self._place.alone() as db:
            if drawn:
                db.execute(insert(_TOKENS), [row for _, row in drawn])
        return [token for token, _ in drawn]

    def begin_session(self, grant: Grant) -> str:
        """A new token for somebody who has signed in, who is known from then on. Raises InvalidGrantError.

        Tokens of sessions that are over are deleted. The names under which the same subject signed in before are added
        to the grant: whose mail address the provider changes is the same person.
        """
        check_grant(grant)
        now = self._clock()
        with self._place.alone() as db:
            if grant.known_as:
                former = names_of_subject(db, grant.known_as[0], now)
                known_as = dict.fromkeys((*grant.known_as, *(name for name in former if name != grant.name)))
                grant = replace(grant, known_as=tuple(known_as))
            token, row = self._drawn(grant)
            db.execute(delete(_TOKENS).where(_TOKENS.c.id.in_(ended_sessions(now))))
            db.execute(insert(_TOKENS), [row])
            record_sign_in(db, row, now)
        return token

    def people(self) -> list[Grant]:
        """Grants of tokens that are good, agents' left out, and of people's last sign-ins; by name."""
        now = self._clock()
        with self._place.reading() as db:
            rows = db.execute(select(_TOKENS).where(_TOKENS.c.role != Role.agent.value)).all()
            signed_in = last_sign_ins(db, now)
        sessions = {row.id for row in signed_in}
        good = [row for row in rows if row.id not in sessions and (not row.expires or row.expires > now.isoformat())]
        return sorted((_identity(row).grant for row in (*good, *signed_in)), key=lambda grant: grant.name)

    def renew(self, grant: Grant) -> str:
        """A new token for the grant; those of the same name and node are revoked. Raises InvalidGrantError."""
        check_grant(grant)
        token, row = self._drawn(grant)
        with self._place.alone() as db:
            db.execute(delete(_TOKENS).where(_TOKENS.c.name == grant.name, _TOKENS.c.node == grant.node))
            db.execute(insert(_TOKENS), [row])
        return token

    async def recognise(self, token: str) -> Identity | None:
        """Identify the token, as `verify` does, without holding up the loop for a database.

        What was read of it is believed for FRESH_S, and for OUTAGE_S where the database does not answer.
        """
        if self._place.local:
            return self.verify(token)
        parts = TOKEN.fullmatch(token)
        if parts is None:
            return None
        row, at = self._known.get(parts[1], (None, 0.0))
        age_s = time.monotonic() - at
        if row is None or age_s > FRESH_S:
            try:
                row = await asyncio.to_thread(self._read, parts[1])
            except JournalError:
                if row is None or age_s > OUTAGE_S:
                    raise
        return self._judged(row, *parts.groups())

    def verify(self, token: str) -> Identity | None:
        """Identify the token, None for one that is unknown, revoked, expired or no token at all."""
        parts = TOKEN.fullmatch(token)
        return self._judged(self._read(parts[1]), *parts.groups()) if parts is not None else None

    def revoke(self, identity: str) -> bool:
        """Forget a token by its id (the part between the underscores); whether it was there."""
        self._known.pop(identity, None)
        with self._place.alone() as db:
            return db.execute(delete(_TOKENS).where(_TOKENS.c.id == identity)).rowcount > 0

    def revoke_agents(self, nodes: Sequence[str]) -> int:
        """Forget every token of these nodes' agents; how many there were."""
        gone = 0
        for at in range(0, len(nodes), NODES_AT_ONCE):
            some = nodes[at : at + NODES_AT_ONCE]
            with self._place.alone() as db:
                named = (_TOKENS.c.role == Role.agent.value, _TOKENS.c.node.in_(some))
                gone += db.execute(delete(_TOKENS).where(*named)).rowcount
        self._known.clear()
        return gone

    def list(self) -> list[Identity]:
        """Every token's grant, by name; no secrets: there are none here."""
        with self._place.reading() as db:
            rows = db.execute(select(_TOKENS).order_by(_TOKENS.c.name, _TOKENS.c.id)).all()
        return [_identity(row) for row in rows]

    def revision(self) -> tuple[int, str]:
        """Stamp that differs after every change: the number of tokens, and when the last of them was made."""
        with self._place.reading() as db:
            number, last = db.execute(select(func.count(), func.max(_TOKENS.c.created)).select_from(_TOKENS)).one()
        return number, last or ""

    def ids(self) -> frozenset[str]:
        """The id of every token."""
        with self._place.reading() as db:
            return frozenset(db.execute(select(_TOKENS.c.id)).scalars())

    def bootstrap(self, path: Path) -> Path | None:
        """Write the first operator token to `path` (0600) where no token exists yet; None where one does.

        Of controllers that start together one makes it. The file is written before the token counts.
        """
        with self._place.alone() as db:
            if db.execute(select(_TOKENS.c.id).limit(1)).first() is not None:
                return None
            token, row = self._drawn(Grant("bootstrap", Role.operator))
            path.unlink(missing_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"{token}\n")
            db.execute(insert(_TOKENS).values(row))
        return path

    def close(self) -> None:
        """Close the database."""
        self._place.close()

    def _drawn(self, grant: Grant) -> tuple[str, dict[str, object]]:
        """A fresh token, and what is stored of it."""
        identity, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(_SALT_BYTES)
        row = {name: getattr(grant, name) for name in ("name", "site", "pool", "tenant", "node")}
        row |= {"id": identity, "role": grant.role.value, "created": self._clock().isoformat()}
        row |= {"expires": grant.expires.isoformat() if grant.expires else None}
        row |= {"known_as": "\n".join(grant.known_as)}
        return f"hst_{identity}_{secret}", row | {"salt": salt, "hash": _hash(secret, salt)}

    def _read(self, identity: str) -> Row[Any] | None:
        """The stored row; from memory where nothing can have changed since."""
        if not self._place.unchanged():
            self._forget()
        elif identity in self._known:
            return self._known[identity][0]
        with self._place.reading() as db:
            row = db.execute(_ONE, {"id": identity}).first()
        if row is None:
            self._known.pop(identity, None)
            return None
        self._known[identity] = (row, time.monotonic())
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return row

    def _forget(self) -> None:
        """Drop the cache after a change; what is read of a database is trusted for its time all the same."""
        if self._place.local:
            self._known.clear()

    def _judged(self, row: Row[Any] | None, identity: str, secret: str) -> Identity | None:
        if row is None:
            _hash(secret, bytes(_SALT_BYTES))  # an unknown id takes as long as a wrong secret
            return None
        if row.id != identity or not hmac.compare_digest(_hash(secret, row.salt), row.hash):
            return None
        found = _identity(row)
        until = found.grant.expires
        return None if until is not None and until <= self._clock() else found


def _hash(secret: str, salt: bytes) -> bytes:
    """A fast hash is right here: the secret has 256 bits, nobody guesses it."""
    return hashlib.blake2b(secret.encode(), salt=salt, digest_size=32).digest()


def _identity(row: Row[Any]) -> Identity:
    until = datetime.fromisoformat(row.expires) if row.expires else None
    known_as = tuple(row.known_as.split("\n")) if row.known_as else ()
    grant = Grant(row.name, Role(row.role), row.site, row.pool, row.tenant, row.node, until, known_as)
    return Identity(row.id, grant)


def check_grant(grant: Grant) -> None:
    """Raises InvalidGrantError where the grant contradicts itself."""
    if not NAME.fullmatch(grant.name):
        raise InvalidGrantError(f"name '{grant.name[:70]}': use 1 to 64 letters, digits and . _ @ -")
    if (grant.role is Role.tenant) != bool(grant.tenant):
        raise InvalidGrantError("a grant of role tenant needs a tenant, and no other takes one")
    if (grant.role is Role.agent) != bool(grant.node):
        raise InvalidGrantError("a grant of role agent needs a node, and no other takes one")
    for value in (grant.site, grant.pool, grant.tenant, grant.node):
        if not value.isprintable():
            raise InvalidGrantError(f"{value!r} has characters that cannot be printed")
