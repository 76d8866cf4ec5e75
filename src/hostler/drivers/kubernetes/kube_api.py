"""One cluster's API server: requests, watches, and every failure named."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from hostler.core.state.durations import duration
from hostler.drivers.at_most_once import send_once
from hostler.drivers.bounded_body import read_body
from hostler.drivers.kubernetes.api_endpoint import door_of
from hostler.drivers.kubernetes.kubeconfig import KubernetesAccess
from hostler.drivers.kubernetes.request_queue import ACT, RequestQueue, RequestRank
from hostler.drivers.kubernetes.wire import ApiStatus, read_status
from hostler.ports import ConflictError, RefusedError, UnreachableError
from hostler.runtime.reachable_addresses import connector, site

TIMEOUT_S = 10.0
OK, REDIRECTED, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, UNPROCESSABLE = (
    200,
    300,
    401,
    403,
    404,
    409,
    410,
    422,
)
TOO_MANY, INTERNAL = 429, 500
"""HTTP's answers that mean something to us."""

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
MANAGER = "hostler"
MAX_BODY = 512 * 1024 * 1024
MAX_LINE = 16 * 1024 * 1024
"""The largest answer (a list in one piece of a large cluster) and the longest line of a watch that are read."""

KEPT_S = 75.0
"""A connection without a request is kept so long."""

BROKEN = (aiohttp.ClientError, OSError)
"""Errors on the way to the API server, timeouts among them."""


class KubeResponse(Struct, frozen=True):
    """A complete answer, whatever its status."""

    status: int
    body: bytes = b""
    retry_after_s: float = 0.0

    def said(self) -> ApiStatus:
        """Explanation of the API for a request that it did not carry out."""
        return read_status(self.body)


class _HttpRequest(Struct, frozen=True):
    """One request; a `kind` of content makes it a change. `silence_s`: the longest wait for the next piece."""

    method: str
    path: str
    content: bytes | None = None
    kind: str = ""
    silence_s: float = TIMEOUT_S

    @property
    def changes(self) -> bool:
        """Whether something is changed by it."""
        return bool(self.kind)


class Api:
    """Requests to one API server; an async context manager. `fence` raises where nothing may be changed any more.

    `api_endpoint` is where nodes reach it, as the kubeconfig says; None where that is no way for nodes.
    """

    def __init__(self, access: KubernetesAccess, fence: Callable[[], None]) -> None:
        self._fence = fence
        self._access = access
        self.endpoint = door_of(access)
        self.turn = ACT
        self._turns = RequestQueue()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connections = connector(site(self._access.server), limit=0, keepalive_timeout=KEPT_S, ssl=self._access.tls)
        self._session = aiohttp.ClientSession(connector=connections, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _bad: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def at(self, turn: RequestRank) -> Self:
        """The same API server, asked in this turn rather than in that of an act."""
        other = copy(self)
        other.turn = turn
        return other

    async def get(self, path: str, **query: str) -> KubeResponse:
        """Read, in its turn. Raises UnreachableError where no complete answer came."""
        async with self._turns.taken(self.turn):
            return await self._ask(_HttpRequest("GET", _with(path, query)))

    async def change(
        self, method: str, path: str, body: Any, kind: str = "application/json", query: Mapping[str, str] | None = None
    ) -> KubeResponse:
        """Change something, once, in its turn, behind the fence. Raises UnreachableError where no whole answer came."""
        asked = {"fieldManager": MANAGER, **(query or {})} if method in ("POST", "PATCH", "PUT") else dict(query or {})
        async with self._turns.taken(self.turn):
            return await self._ask(_HttpRequest(method, _with(path, asked), msgspec.json.encode(body), kind))

    @asynccontextmanager
    async def watch(self, path: str, query: dict[str, str], silence_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch, as long as none takes more than `silence_s`.

        Raises UnreachableError where it breaks off, SilenceError where it falls silent, StatusError where it was
        not begun.
        """
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        try:
            async with self._answered(_HttpRequest("GET", _with(path, asked), silence_s=silence_s)) as response:
                if response.status != OK:
                    raise StatusError(_answer(response, await read_body(response, MAX_BODY, f"the answer to {path}")))
                yield _lines(response)
        except aiohttp.SocketTimeoutError as silent:
            raise SilenceError(f"the watch was silent for {duration(silence_s)}; it is begun again") from silent
        except BROKEN as broken:
            raise _unreachable(broken) from broken

    async def _ask(self, request: _HttpRequest) -> KubeResponse:
        try:
            async with self._answered(request) as response:
                return _answer(response, await read_body(response, MAX_BODY, f"the answer to {request.path}"))
        except BROKEN as broken:
            raise _unreachable(broken) from broken

    @asynccontextmanager
    async def _answered(self, request: _HttpRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer's beginning. What was asked as nobody is asked again where there are other credentials by now."""
        known_by = await self._access.credentials.header()
        response = await self._send(request, known_by)
        if response.status == UNAUTHORIZED:
            other = await self._access.credentials.header(refused=known_by)
            if other != known_by:
                response.close()
                response = await self._send(request, other)
        async with response:
            yield response

    async def _send(self, request: _HttpRequest, known_by: str) -> aiohttp.ClientResponse:
        assert self._session is not None, "enter it first"
        headers = {"Authorization": known_by} if known_by else {}
        if request.changes:
            headers["Content-Type"] = request.kind
            self._fence()
        return await self._session.request(
            request.method,
            URL(self._access.server + request.path, encoded=True),
            data=request.content,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_S, sock_read=request.silence_s),
            middlewares=(send_once,) if request.changes else (),
        )


def _with(path: str, query: Mapping[str, str]) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query)}" if query else path


def _unreachable(broken: Exception) -> UnreachableError:
    return UnreachableError(f"{type(broken).__name__}: {broken}"[:200])


class SilenceError(UnreachableError):
    """A watch said nothing for longer than bookmarks take: what it would have told is unknown."""


class StatusError(Exception):
    """A watch or list was answered with a status that is no success."""

    def __init__(self, answer: KubeResponse) -> None:
        super().__init__(f"HTTP {answer.status}: {answer.said().message[:200]}")
        self.answer = answer


def checked(answer: KubeResponse, what: str) -> bytes:
    """The body of a success.

    Raises ConflictError (409), UnreachableError (429 and 5xx: it may work later, or has worked), RefusedError (the
    rest: asking again does not help).
    """
    if answer.status < REDIRECTED:
        return answer.body
    said = f"{what}: HTTP {answer.status}: {answer.said().message[:300]}"
    if answer.status == CONFLICT:
        raise ConflictError(f"{said}; it is read and decided again")
    if answer.status == TOO_MANY or answer.status >= INTERNAL:
        raise UnreachableError(f"{said}; it is asked again")
    if answer.status in (UNAUTHORIZED, FORBIDDEN):
        raise RefusedError(f"{said}; `hostler doctor` tells what the account lacks")
    raise RefusedError(f"{said}; see the API server's log")


def _answer(response: aiohttp.ClientResponse, body: bytes) -> KubeResponse:
    asked = response.headers.get("Retry-After", "")
    return KubeResponse(response.status, body, float(asked) if asked.isdigit() else 0.0)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The stream's lines; what is left without an end at its end was cut off, and is given as it is.

    Raises UnreachableError for a line that does not end.
    """
    left = bytearray()
    async for piece in response.content.iter_any():
        left += piece
        if b"\n" in piece:
            *whole, rest = bytes(left).split(b"\n")
            left = bytearray(rest)
            for line in whole:
                if line:
                    yield line
        if len(left) > MAX_LINE:
            raise UnreachableError(
                f"a watch sent a line of more than {MAX_LINE} bytes; find and shrink the object of that size"
            )
    if left:
        yield bytes(left)
