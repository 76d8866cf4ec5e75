"""One cluster's API server: requests with lightkube's credentials and TLS, and every failure named.

lightkube reads the kubeconfig (contexts, tokens in files that rotate, client certificates, exec plugins, a pod's own
service account) and makes the HTTP client; what is said over it is ours.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import msgspec
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError
from msgspec import Struct

from hostler.core.errors import InvalidInputError, Problem
from hostler.drivers.kubernetes.door import door_of
from hostler.drivers.kubernetes.turns import ACT, Turn, Turns
from hostler.drivers.kubernetes.wire import Status, read_status
from hostler.engine.ports import ConflictError, RefusedError, UnreachableError

TIMEOUT_S = 10.0
OK, REDIRECTED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, UNPROCESSABLE = 200, 300, 403, 404, 409, 410, 422
TOO_MANY, INTERNAL = 429, 500
"""HTTP's answers that mean something to us."""

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGER = "hostler"
MAX_BODY = 512 * 1024 * 1024
MAX_LINE = 16 * 1024 * 1024
"""The largest answer (a list in one piece of a large cluster) and the longest line of a watch that are read."""

BROKEN = (httpx2.HTTPError, httpx2.InvalidURL, ConfigError, OSError)
"""What the way to the API server raises: its HTTP, and the credentials that are fetched for it."""

logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each request tells nobody anything

IN_CLUSTER = "in-cluster"
"""In the place of a kubeconfig's path: the service account of the pod that Hostler runs in."""


class Answer(Struct, frozen=True):
    """A complete answer, whatever its status."""

    status: int
    body: bytes = b""
    retry_after_s: float = 0.0

    def said(self) -> Status:
        """What the API says where it has not done as asked."""
        return read_status(self.body)


def load_kubeconfig(path: str, context: str = "") -> SingleConfig:
    """Which cluster, as whom. Raises InvalidInputError for a file or context that cannot be used."""
    try:
        if path == IN_CLUSTER:
            found = KubeConfig.from_service_account().get()
        else:
            found = KubeConfig.from_file(path).get(context or None)
    except (ConfigError, OSError, KeyError, TypeError, ValueError) as wrong:
        instead = "name a kubeconfig that `kubectl --kubeconfig` accepts, and one of its contexts"
        raise InvalidInputError((Problem(path, 0, f"no usable kubeconfig: {wrong}", instead),)) from wrong
    if found is None or found.user is None:
        raise InvalidInputError((Problem(path, 0, "its context names no user", "give the context a user"),))
    if path != IN_CLUSTER and Path(path).expanduser().stat().st_mode & 0o077 and _has_secret(found):
        raise InvalidInputError((Problem(path, 0, "others can read the secret in it", f"chmod 600 {path}"),))
    return found


def _has_secret(config: SingleConfig) -> bool:
    user = config.user
    return user is not None and bool(user.token or user.password or user.client_key_data)


class Api:
    """Requests to one API server; an async context manager. `fence` raises where nothing may be changed any more.

    `door` is where nodes reach it, as the kubeconfig says; None where that is no way for nodes.
    """

    def __init__(self, config: SingleConfig, fence: Callable[[], None]) -> None:
        self._fence = fence
        self.door = door_of(config)
        self.turn = ACT
        self._turns = Turns()
        limits = httpx2.Timeout(TIMEOUT_S)
        self._client = AsyncClient(config, ConnectionParams(timeout=limits, trust_env=False))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _bad: BaseException | None, _at: TracebackType | None
    ) -> None:
        await self._client.aclose()

    def at(self, turn: Turn) -> Self:
        """The same API server, asked in this turn rather than in that of an act."""
        other = copy(self)
        other.turn = turn
        return other

    async def get(self, path: str, **query: str) -> Answer:
        """Read, in its turn. Raises UnreachableError where no complete answer came."""
        async with self._turns.taken(self.turn):
            return await self._ask("GET", path, query)

    async def change(
        self, method: str, path: str, body: Any, kind: str = "application/json", query: Mapping[str, str] | None = None
    ) -> Answer:
        """Change something, once, in its turn, behind the fence. Raises UnreachableError where no whole answer came."""
        asked = {"fieldManager": MANAGER, **(query or {})} if method in ("POST", "PATCH", "PUT") else dict(query or {})
        async with self._turns.taken(self.turn):
            self._fence()
            return await self._ask(method, path, asked, msgspec.json.encode(body), kind)

    @asynccontextmanager
    async def watch(self, path: str, query: dict[str, str], silence_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch, as long as none takes more than `silence_s`.

        Raises UnreachableError where it breaks off, SilenceError where it falls silent, StatusError where it was
        not begun.
        """
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        limits = httpx2.Timeout(TIMEOUT_S, read=silence_s)
        try:
            async with self._client.stream("GET", path, params=asked, timeout=limits) as response:
                if response.status_code != OK:
                    raise StatusError(_answer(response, await _whole(response)))
                yield _lines(response)
        except httpx2.ReadTimeout as silent:
            raise SilenceError(f"the watch was silent for {silence_s:g} s") from silent
        except BROKEN as broken:
            raise UnreachableError(f"{type(broken).__name__}: {broken}"[:200]) from broken

    async def _ask(
        self, method: str, path: str, query: Mapping[str, str], content: bytes | None = None, kind: str = ""
    ) -> Answer:
        typed = {"Content-Type": kind} if kind else {}
        try:
            asked = self._client.stream(method, path, params=dict(query), content=content, headers=typed)
            async with asked as response:
                return _answer(response, await _whole(response))
        except BROKEN as broken:
            raise UnreachableError(f"{type(broken).__name__}: {broken}"[:200]) from broken


class SilenceError(UnreachableError):
    """A watch said nothing for longer than bookmarks take: what it would have told is unknown."""


class StatusError(Exception):
    """A watch or list was answered with a status that is no success."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}: {answer.said().message[:200]}")
        self.answer = answer


def checked(answer: Answer, what: str) -> bytes:
    """The body of a success.

    Raises ConflictError (409), UnreachableError (429 and 5xx: it may work later, or has worked), RefusedError (the
    rest: asking again does not help).
    """
    if answer.status < REDIRECTED:
        return answer.body
    said = f"{what}: HTTP {answer.status}: {answer.said().message[:300]}"
    if answer.status == CONFLICT:
        raise ConflictError(said)
    if answer.status == TOO_MANY or answer.status >= INTERNAL:
        raise UnreachableError(said)
    raise RefusedError(said)


def _answer(response: httpx2.Response, body: bytes) -> Answer:
    asked = response.headers.get("Retry-After", "")
    return Answer(response.status_code, body, float(asked) if asked.isdigit() else 0.0)


async def _whole(response: httpx2.Response) -> bytes:
    """The body. Raises UnreachableError for one that does not end."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_BODY:
            raise UnreachableError(f"an answer of more than {MAX_BODY} bytes")
    return bytes(body)


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The stream's lines; what is left without an end at its end was cut off, and is given as it is.

    Raises UnreachableError for a line that does not end.
    """
    left = bytearray()
    async for piece in response.aiter_bytes():
        left += piece
        if b"\n" in piece:
            *whole, rest = bytes(left).split(b"\n")
            left = bytearray(rest)
            for line in whole:
                if line:
                    yield line
        if len(left) > MAX_LINE:
            raise UnreachableError(f"a line of more than {MAX_LINE} bytes")
    if left:
        yield bytes(left)
