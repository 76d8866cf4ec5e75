"""Secrets in Vault's KV engine, version 2: read and written with a token from a file, or with one that a login gives.

Plain HTTP with the client that everything else uses: a few requests do not want a library that blocks (hvac).
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from hostler.core.state.durations import duration
from hostler.drivers.bounded_body import read_body
from hostler.drivers.secrets import vault_wire
from hostler.ports import RefusedError, Secret, StoredSecret, UnreachableError

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024
MAX_TOKEN_BYTES = 64 * 1024
RENEWED_AT = 0.8
"""A token is replaced when this share of its time is over."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class VaultSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Address of Vault and its login: `token_file`, which Vault's own agent may renew, or `role` of a login.

    `ca` is a PEM file, "" for the system's store; `login` the path of the Kubernetes method; `jwt_file` who we are.
    """

    address: str
    ca: str = ""
    namespace: str = ""
    token_file: str = ""
    role: str = ""
    login: str = "kubernetes"
    jwt_file: str = _SERVICE_ACCOUNT
    timeout_s: float = TIMEOUT_S

    def problem(self) -> str:
        """Name what is wrong with the settings, "" for nothing."""
        try:
            parts = urlsplit(self.address)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            return "address is no URL; write https://vault.example:8200"
        if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.path not in ("", "/"):
            return "address is not https://host:port"
        if parts.scheme == "http" and host not in _LOOPBACK:
            return "address is plain http: a token and secrets would be read on the way; write https://…"
        return "" if bool(self.token_file) != bool(self.role) else "give token_file or role, one of them"


class Vault:
    """Reads and writes secrets by "MOUNT/PATH". Raises PortError; no error tells a token or a field."""

    def __init__(self, session: aiohttp.ClientSession, settings: VaultSettings, now: Callable[[], float]) -> None:
        self._session = session
        self._settings = settings
        self._now = now
        self._trust = ssl.create_default_context(cafile=settings.ca or None)
        self._entered: tuple[str, float] | None = None
        self._entering = asyncio.Lock()

    async def read(self, name: str, *, anew: bool = False) -> Secret:  # noqa: ARG002 - it is always read anew
        """The latest version of a secret. A token that is not taken any more is replaced once."""
        return vault_wire.read_secret(*await self._entered_ask("GET", name), name)

    async def fetch(self, name: str) -> StoredSecret:
        """The latest version now; no fields where there is none, or it is deleted."""
        return vault_wire.read_stored(*await self._entered_ask("GET", name), name)

    async def store(self, name: str, fields: Mapping[str, str], version: str) -> None:
        """Write the next version behind `version`, "" for a first one. Raises ConflictError where another is there."""
        body = vault_wire.write_body(fields, version)
        vault_wire.demand_written(*await self._entered_ask("POST", name, body), name)

    async def erase(self, name: str, version: str) -> None:
        """Delete the secret with all its versions. Vault compares none: that one is read just before.

        Raises ConflictError, RefusedError, UnreachableError.
        """
        if (await self.fetch(name)).version != version:
            raise vault_wire.changed(name)
        if not version:
            return
        vault_wire.demand_erased((await self._entered_ask("DELETE", name, engine="metadata"))[0], name)

    async def _entered_ask(
        self, method: str, name: str, body: bytes | None = None, engine: str = "data"
    ) -> tuple[int, bytes]:
        """Status and body about a secret. With a role, a token that is not taken any more is replaced once."""
        mount, _, path = name.partition("/")
        if not mount or not path or ".." in name.split("/"):
            raise RefusedError(f"'{name[:100]}' is not a path in Vault; write MOUNT/PATH")
        where = f"/v1/{quote(mount, safe='')}/{engine}/{quote(path, safe='/')}"
        status, said = await self._ask(method, where, await self._token(), body)
        if status == 403 and self._settings.role:
            self._entered = None
            status, said = await self._ask(method, where, await self._token(), body)
        return status, said

    async def _token(self) -> str:
        if self._settings.token_file:
            return await _text_of(self._settings.token_file)
        async with self._entering:
            if self._entered is None or self._entered[1] <= self._now():
                asked = self._now()
                order = {"role": self._settings.role, "jwt": await _text_of(self._settings.jwt_file)}
                where = f"/v1/auth/{quote(self._settings.login, safe='/')}/login"
                login = vault_wire.read_login(*await self._ask("POST", where, "", msgspec.json.encode(order)))
                good_s = login.lease_duration * RENEWED_AT if login.lease_duration else float("inf")
                self._entered = (login.client_token, asked + good_s)
            return self._entered[0]

    async def _ask(self, method: str, path: str, token: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body. A redirect is not followed: a token is shown to nobody else."""
        headers = {"X-Vault-Token": token} if token else {}
        headers |= {"X-Vault-Namespace": self._settings.namespace} if self._settings.namespace else {}
        address = self._settings.address.rstrip("/")
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
        try:
            async with self._session.request(
                method,
                URL(address + path, encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=timeout,
                ssl=self._trust,
            ) as answer:
                return answer.status, await read_body(answer, MAX_ANSWER_BYTES, f"the answer of Vault at {address}")
        except TimeoutError as error:
            raise UnreachableError(
                f"Vault at {address} gave no answer within {duration(timeout.total or 0)}"
                "; check its address in secrets.json and the network between"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(
                f"Vault at {address} cannot be reached: {type(error).__name__}"
                "; check its address in secrets.json and the network between"
            ) from error


async def _text_of(path: str) -> str:
    """Raises UnreachableError: a token that is renewed may be missing for a moment."""
    try:
        text = await asyncio.to_thread(Path(path).read_text, encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreachableError(
            f"{path}: no token can be read there ({type(error).__name__}); let Hostler's user read it"
        ) from error
    if not text.strip() or len(text) > MAX_TOKEN_BYTES or not text.strip().isprintable():
        raise UnreachableError(f"{path}: there is no token; write one there, or let vault agent do so")
    return text.strip()
