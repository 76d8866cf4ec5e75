"""Forwards requests from a standby to the active controller: bodies stream, tokens stay as sent.

The hop decides nothing: who asks is recognised here, so that strangers reach nobody, and again by the active, from
the very same token. A request is carried once; the active that has meanwhile stepped down says so itself.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import aiohttp
from litestar.datastructures import Headers
from litestar.types import HTTPScope, Receive, Send
from yarl import URL

from hostler.logs import traces
from hostler.runtime.reachable_addresses import NamedHosts, connector
from hostler.server.problems import standby
from hostler.server.server_settings import Settings, is_loopback

MARK = "hostler-forwarded-by"
"""Header of a carried request: it is not carried on."""

CONNECT_S = 3.0
TOTAL_S = 60.0
"""A long poll ends after 25 s, a large configuration is checked within seconds: what takes longer is lost."""

LOOK_S = 0.5
"""Interval at which a forwarded request checks that it still waits for the active controller."""

_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
    }
)
REQUEST_ID = "x-request-id"
"""Header that names a request: the active's log lines carry the same name as ours."""
_OURS = frozenset({"host", "origin", "referer", "accept-encoding", MARK, REQUEST_ID, traces.PARENT})
"""Judged or done here already: names under which this controller was called, and compression of what it answers."""


class Forwarder:
    """The way to the active controller. `counts` says how often it was taken, by what came of it."""

    def __init__(self, settings: Settings, controller: str) -> None:
        self.counts: Counter[str] = Counter()
        self._settings = settings
        self._controller = controller
        self._session: aiohttp.ClientSession | None = None
        self._hosts = NamedHosts()

    async def carry(self, scope: HTTPScope, receive: Receive, send: Send, active: Callable[[], str]) -> None:
        """Have the controller at the address that `active` gives answer.

        Raises ProblemError (503) where nothing was answered yet and nothing will be: also when another takes over.
        """
        address = active()
        if not self._safe(address):
            self.counts["unsafe"] += 1
            raise standby(address, "its address is plain HTTP to another machine, which would show your token", 5.0)
        body = _Body(scope, receive)
        answering = asyncio.ensure_future(self._answer(address, scope, body, send))
        leaving = asyncio.ensure_future(body.left())
        try:
            while not (answering.done() or leaving.done()):
                await asyncio.wait({answering, leaving}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                if active() != address and not (answering.done() or body.answered):
                    self.counts["failed"] += 1
                    raise standby(active(), f"{address} is active no more; what was sent may have been done")
            if answering.done():
                answering.result()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def close(self) -> None:
        """Let go of every connection."""
        if self._session is not None:
            await self._session.close()

    async def _answer(self, address: str, scope: HTTPScope, body: "_Body", send: Send) -> None:
        self._hosts.add(address)
        try:
            async with self._open().request(
                scope["method"],
                _url(address, scope),
                headers=[
                    *_kept(scope),
                    *traces.outgoing(Headers.from_scope(scope)),
                    (MARK, self._controller),
                    (REQUEST_ID, scope["state"]["request_id"]),
                ],
                data=body.chunks() if body.expected else None,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                allow_redirects=False,
            ) as answer:
                body.answered = True
                headers = [(k.lower(), v) for k, v in answer.raw_headers if k.lower().decode("latin-1") not in _HOP]
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                async for chunk in answer.content.iter_any():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                self.counts["answered"] += 1
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.counts["failed"] += 1
            if body.answered:
                raise
            why = "does not answer in time" if isinstance(error, TimeoutError) else f"cannot be reached ({error})"
            raise standby(address, f"it {why}; what was sent may have been done") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            ca = self._settings.peers_ca
            trust = ssl.create_default_context(cafile=str(ca) if ca else None)
            self._session = aiohttp.ClientSession(
                connector=connector(self._hosts.reach, ssl=trust, limit=0),
                timeout=aiohttp.ClientTimeout(total=TOTAL_S, connect=CONNECT_S),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _safe(self, address: str) -> bool:
        """Tokens are shown to nobody on the way."""
        parts = urlsplit(address)
        loopback = is_loopback(parts.hostname or "")
        return parts.scheme == "https" or (parts.scheme == "http" and (loopback or self._settings.insecure_plain_http))


class _Body:
    """A request's body as it comes, whether whoever sends it is still there, and whether its answer has begun."""

    def __init__(self, scope: HTTPScope, receive: Receive) -> None:
        headers = Headers.from_scope(scope)
        self.expected = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        self.answered = False
        self._receive = receive
        self._whole = asyncio.Event()
        if not self.expected:
            self._whole.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                self._whole.set()
                raise ConnectionResetError("the caller has gone")
            if message["body"]:
                yield message["body"]
            if not message["more_body"]:
                self._whole.set()
                return

    async def left(self) -> None:
        """Return when the caller has gone."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _url(address: str, scope: HTTPScope) -> URL:
    path = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    return URL(address.rstrip("/") + path + (f"?{query}" if query else ""), encoded=True)


def _kept(scope: HTTPScope) -> list[tuple[str, str]]:
    """The headers that go on: not those of this hop, nor those that it was judged by."""
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    named = {n.strip().lower() for name, value in headers if name == "connection" for n in value.split(",")}
    return [(name, value) for name, value in headers if name not in _HOP | _OURS | named]
