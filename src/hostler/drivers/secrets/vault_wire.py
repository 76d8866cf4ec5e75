"""Answers of Vault's HTTP API: a secret of its KV engine, version 2, read and written, and a login.

No error quotes an answer.

Sources: https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2#read-secret-version, and under
https://developer.hashicorp.com/vault/api-docs the status codes and the Kubernetes method.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import ConflictError, RefusedError, Secret, StoredSecret, UnreachableError

VAULT = "check Vault's address in secrets.json, and that a KV engine of version 2 is there"

_SEALED = 503
_LATER = {412, 429, 472, 473}
"""Not there yet, too many requests, and standbys that do not answer themselves."""


class _Metadata(Struct):
    version: int = 0


class _Versioned(Struct):
    data: dict[str, Any] | None = None
    metadata: _Metadata | None = None


class _Read(Struct):
    data: _Versioned | None = None
    lease_duration: float = 0.0


class Login(Struct, frozen=True):
    """A token, and for how many seconds it is good (0: without end)."""

    client_token: str
    lease_duration: float = 0.0

    def __repr__(self) -> str:
        return f"Login(…, lease_duration={self.lease_duration!r})"


class _Auth(Struct):
    auth: Login


def read_secret(status: int, body: bytes, name: str) -> Secret:
    """The latest version's fields. Raises RefusedError, UnreachableError."""
    _demand_ok(status, f"secret {name}")
    try:
        found = msgspec.json.decode(body, type=_Read)
    except msgspec.MsgspecError:
        raise unreadable(f"Vault's answer for secret {name}", "it holds no secret", VAULT) from None
    fields = found.data.data if found.data is not None else None
    if not fields or not all(isinstance(value, str) for value in fields.values()):
        raise RefusedError(f"secret {name} in Vault has no fields of text; is its engine KV version 2?")
    return Secret(fields, found.lease_duration)


def read_stored(status: int, body: bytes, name: str) -> StoredSecret:
    """The latest version with its number, no fields where there is none. Raises RefusedError, UnreachableError.

    A version that is deleted is answered with 404 and its number: the next write names that number.
    """
    fields = read_secret(status, body, name).fields if status != 404 else {}
    try:
        found = msgspec.json.decode(body, type=_Read)
    except msgspec.MsgspecError:
        raise unreadable(f"Vault's answer for secret {name}", "it holds no secret", VAULT) from None
    metadata = found.data.metadata if found.data is not None else None
    return StoredSecret(fields, str(metadata.version) if metadata is not None else "")


def write_body(fields: Mapping[str, str], version: str) -> bytes:
    """Order to write the version behind this one; with "cas" 0 only where there is none."""
    return msgspec.json.encode({"options": {"cas": int(version or 0)}, "data": dict(fields)})


def demand_written(status: int, body: bytes, name: str) -> None:
    """Raises ConflictError where another version is there, RefusedError, UnreachableError."""
    if status == 400 and b"check-and-set parameter did not match" in body:
        raise changed(name)
    if status == 403:
        ends = "let its policy allow `create` and `update` there, and renew the token"
        raise RefusedError(f"Vault denies to write secret {name}: {ends}")
    _demand_ok(status, f"secret {name}")


def changed(name: str) -> ConflictError:
    """Another version is there than the one that was read."""
    return ConflictError(f"secret {name} in Vault has changed since it was read; it is read and decided again")


def demand_erased(status: int, name: str) -> None:
    """Raises RefusedError, UnreachableError."""
    if status == 403:
        ends = "let its policy allow `delete` on the engine's metadata of it, and renew the token"
        raise RefusedError(f"Vault denies to delete secret {name}: {ends}")
    if status not in (204, 404):
        _demand_ok(status, f"secret {name}")


def read_login(status: int, body: bytes) -> Login:
    """The token that a login gave. Raises RefusedError, UnreachableError."""
    _demand_ok(status, "the login")
    try:
        return msgspec.json.decode(body, type=_Auth).auth
    except msgspec.MsgspecError:
        raise unreadable(
            "Vault's answer to the login", "it holds no token", "check Vault's address in secrets.json"
        ) from None


def _demand_ok(status: int, what: str) -> None:
    """Raises what the status means."""
    if status == 200:
        return
    if status == _SEALED:
        raise UnreachableError(f"Vault is sealed or down for maintenance: {what} cannot be read; unseal it")
    if status in _LATER or status >= 500:
        raise UnreachableError(f"Vault answered {status} for {what}; it will be asked again")
    if 300 <= status < 400:
        raise UnreachableError(f"Vault sends elsewhere for {what}: name its active node or its load balancer")
    if status == 404:
        raise RefusedError(f"Vault has no {what}, or its latest version is deleted; write it there (vault kv put)")
    if status == 403:
        raise RefusedError(f"Vault denies {what}: let its policy allow `read` there, and renew the token")
    raise RefusedError(f"Vault refuses {what} with {status}; see Vault's audit log for why")
