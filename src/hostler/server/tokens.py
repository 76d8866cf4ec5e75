"""Bearer tokens: made once, stored only as salted hashes, in a file beside the journal that only its owner reads.

A token reads `hst_ID_SECRET`. Whoever has one is its name; who lost one revokes it. Never part of any event.
"""

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Lock

from msgspec import Struct

TOKEN = re.compile(r"hst_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SALT_BYTES = 16
_LAYOUT = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, site TEXT NOT NULL, pool TEXT NOT NULL,
    tenant TEXT NOT NULL, node TEXT NOT NULL, created TEXT NOT NULL, expires TEXT,
    salt BLOB NOT NULL, hash BLOB NOT NULL
) WITHOUT ROWID
"""


class Role(StrEnum):
    """Who somebody is to the fleet; what each may do is `auth.MAY`."""

    operator = "operator"
    technician = "technician"
    tenant = "tenant"
    viewer = "viewer"
    agent = "agent"


class Grant(Struct, frozen=True):
    """What a token stands for. `name` is the person (or tool) that intents are recorded under.

    `site` and `pool` narrow what it sees and acts on ("" = all), `tenant` is needed for that role, `node` for an agent.
    """

    name: str
    role: Role
    site: str = ""
    pool: str = ""
    tenant: str = ""
    node: str = ""
    expires: datetime | None = None


class Identity(Struct, frozen=True):
    """Who calls: a grant, by the token with this id."""

    token: str
    grant: Grant

    @property
    def name(self) -> str:
        return self.grant.name

    @property
    def role(self) -> Role:
        return self.grant.role

    @property
    def whole(self) -> bool:
        """Whether it sees the whole cell: nobody's tenant, agent, site or pool in particular."""
        return not (self.grant.site or self.grant.pool or self.grant.tenant or self.grant.node)


class InvalidGrantError(ValueError):
    """The grant contradicts itself; no token was made."""


class TokenStore:
    """Tokens in the SQLite file at `path`, mode 0600. Another process may add or revoke while this one serves."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._lock = Lock()
        _private(path)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5.0)
        self._db.execute(_LAYOUT)

    def create(self, grant: Grant) -> str:
        """A new token for the grant, to be shown once. Raises InvalidGrantError."""
        _check(grant)
        identity, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(_SALT_BYTES)
        row = (
            identity,
            grant.name,
            grant.role.value,
            grant.site,
            grant.pool,
            grant.tenant,
            grant.node,
            self._clock().isoformat(),
            grant.expires.isoformat() if grant.expires else None,
            salt,
            _hash(secret, salt),
        )
        with self._lock:
            self._db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return f"hst_{identity}_{secret}"

    def verify(self, token: str) -> Identity | None:
        """Who the token is, None for one that is unknown, revoked, expired or no token at all."""
        parts = TOKEN.fullmatch(token)
        if parts is None:
            return None
        identity, secret = parts.groups()
        columns = "name, role, site, pool, tenant, node, expires, salt, hash"
        with self._lock:
            row = self._db.execute(f"SELECT {columns} FROM tokens WHERE id = ?", (identity,)).fetchone()  # noqa: S608 - constant
        if row is None:
            _hash(secret, bytes(_SALT_BYTES))  # an unknown id takes as long as a wrong secret
            return None
        *said, expires, salt, digest = row
        if not hmac.compare_digest(_hash(secret, salt), digest):
            return None
        until = datetime.fromisoformat(expires) if expires else None
        if until is not None and until <= self._clock():
            return None
        name, role, site, pool, tenant, node = said
        return Identity(identity, Grant(name, Role(role), site, pool, tenant, node, until))

    def revoke(self, identity: str) -> bool:
        """Forget a token by its id (the part between the underscores); whether it was there."""
        with self._lock:
            return self._db.execute("DELETE FROM tokens WHERE id = ?", (identity,)).rowcount > 0

    def list(self) -> list[Identity]:
        """Every token's grant, by name; no secrets: there are none here."""
        columns = "id, name, role, site, pool, tenant, node, expires"
        with self._lock:
            rows = self._db.execute(f"SELECT {columns} FROM tokens ORDER BY name, id").fetchall()  # noqa: S608 - constant
        return [_listed(row) for row in rows]

    def bootstrap(self, path: Path) -> Path | None:
        """Write the first operator token to `path` (0600) where no token exists yet; None where one does."""
        with self._lock:
            if self._db.execute("SELECT 1 FROM tokens LIMIT 1").fetchone():
                return None
        token = self.create(Grant("bootstrap", Role.operator))
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{token}\n")
        return path

    def close(self) -> None:
        self._db.close()


def _private(path: Path) -> None:
    """Make the file readable by its owner alone, before anything is in it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)


def _hash(secret: str, salt: bytes) -> bytes:
    """A fast hash is right here: the secret has 256 bits, nobody guesses it."""
    return hashlib.blake2b(secret.encode(), salt=salt, digest_size=32).digest()


def _listed(row: tuple[str, ...]) -> Identity:
    identity, name, role, site, pool, tenant, node, expires = row
    until = datetime.fromisoformat(expires) if expires else None
    return Identity(identity, Grant(name, Role(role), site, pool, tenant, node, until))


def _check(grant: Grant) -> None:
    if not NAME.fullmatch(grant.name):
        raise InvalidGrantError(f"name '{grant.name[:70]}': use 1 to 64 letters, digits and . _ @ -")
    if (grant.role is Role.tenant) != bool(grant.tenant):
        raise InvalidGrantError("a tenant's token names its tenant, and no other token does")
    if (grant.role is Role.agent) != bool(grant.node):
        raise InvalidGrantError("an agent's token names its node, and no other token does")
