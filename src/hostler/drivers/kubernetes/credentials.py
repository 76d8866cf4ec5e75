"""Credentials for an API server: a token that never changes, one in a file, one that a program fetches."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from hostler.core.state.durations import duration
from hostler.drivers.unreadable_answers import unreadable
from hostler.ports import UnreachableError
from hostler.runtime.bounded_process import run

MAX_TOKEN = 64 * 1024
"""Bytes of a token file, and characters of a token."""
MAX_SAID = 1024 * 1024
PLUGIN_S = 30.0
"""A plug-in that logs in anew asks somebody far away; one that has not ended by then is ended."""
EARLY = timedelta(seconds=10)
"""A token is fetched anew so long before it expires."""
VERSIONS = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))


class Credentials(Protocol):
    """Credentials of requests."""

    async def header(self, refused: str = "") -> str:
        """The Authorization header, "" for none; another than `refused` where there is one by now.

        Raises UnreachableError where it cannot be had at the moment.
        """
        ...


class FixedCredentials:
    """A header that never changes."""

    def __init__(self, header: str) -> None:
        self._header = header

    async def header(self, refused: str = "") -> str:  # noqa: ARG002 - there is no other
        """The header."""
        return self._header


class TokenFile:
    """A token in a file that somebody renews: it is read anew when it is refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = ""

    async def header(self, refused: str = "") -> str:
        """The token that was read last, as long as it is taken."""
        if self._last == refused:
            self._last = f"Bearer {await asyncio.to_thread(self._read)}"
        return self._last

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            said = f"{self._path}: no token can be read there ({type(error).__name__}); let Hostler's user read it"
            raise UnreachableError(said) from error
        return _token(token, str(self._path))


class Variable(Struct, frozen=True):
    """Variable of a plug-in's environment."""

    name: str
    value: str = ""


class CredentialStatus(Struct, frozen=True, rename="camel"):
    """The token that a plug-in gave, and until when it is good; None for as long as it is taken."""

    token: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(Struct, frozen=True):
    status: CredentialStatus = CredentialStatus()


class ExecPlugin:
    """A program that prints an ExecCredential: run, once at a time, where no token is good or it was refused."""

    def __init__(self, command: str, args: Sequence[str], env: Sequence[Variable], version: str) -> None:
        if version not in VERSIONS:
            raise ValueError(f"exec: '{version[:100]}' is none of {', '.join(VERSIONS)}")
        self._command = (command, *args)
        self._env = {one.name: one.value for one in env}
        self._version = version
        self._last = ""
        self._until: datetime | None = None
        self._running = asyncio.Lock()

    async def header(self, refused: str = "") -> str:
        """The token that the program gave last, as long as it is good."""
        async with self._running:
            if self._last == refused or (self._until is not None and datetime.now(UTC) + EARLY >= self._until):
                given = await self._given()
                self._last, self._until = f"Bearer {given.token}", given.expiration_timestamp
            return self._last

    async def _given(self) -> CredentialStatus:
        output = await _output(self._command, os.environ | self._env | {"KUBERNETES_EXEC_INFO": self._info()})
        return read_credential(output, self._command[0])

    def _info(self) -> str:
        info = {"apiVersion": self._version, "kind": "ExecCredential", "spec": {"interactive": False}}
        return msgspec.json.encode(info).decode()


def read_credential(output: bytes, command: str) -> CredentialStatus:
    """Read the ExecCredential that `command` printed. Raises UnreachableError where it is none."""
    try:
        given = msgspec.json.decode(output, type=_ExecCredential).status
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise unreadable(f"the ExecCredential of `{command}`", error, "run it by hand as Hostler's user") from error
    _token(given.token, f"what `{command}` printed")
    if given.expiration_timestamp is not None and given.expiration_timestamp.tzinfo is None:
        raise UnreachableError(
            f"`{command}` gave a token that expires in no time zone; update that plugin: RFC 3339 wants a zone"
        )
    return given


async def _output(command: Sequence[str], env: Mapping[str, str]) -> bytes:
    """Run the program and return its output. Raises UnreachableError where it does not end well, or not in time."""
    try:
        ended = await run(tuple(command), env, PLUGIN_S, MAX_SAID)
    except (OSError, ValueError) as error:
        raise UnreachableError(
            f"`{command[0]}` cannot be run: {error}; install it, or name its full path in the kubeconfig"
        ) from error
    if ended.code is None:
        raise UnreachableError(
            f"`{command[0]}` did not end within {duration(PLUGIN_S)}; run it by hand as Hostler's user"
        )
    if ended.code:
        raise UnreachableError(
            f"`{command[0]}` ended with {ended.code}: {ended.errors[:300]}; run it by hand as Hostler's user"
        )
    return ended.output


def _token(found: str, where: str) -> str:
    if not found or len(found) > MAX_TOKEN or not found.isascii() or not found.isprintable() or " " in found:
        raise UnreachableError(f"{where}: there is no token; write the service account's token there")
    return found
