"""Serves emulated BMCs on loopback, many in one process: a port for each service, HTTP or HTTPS, basic auth."""

import asyncio
import base64
import hmac
import socket
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from aiohttp import web

from hostler.sim.bmc.rack_equipment import RackEquipment
from hostler.sim.bmc.rack_pdu import RackPdu
from hostler.sim.bmc.redfish_service import Fetch, Service, ServiceRequest, ServiceResponse
from hostler.sim.bmc.resource_parts import ROOT
from hostler.sim.bmc.tls_certificates import Certificate

EmulatedBmc = Service | RackPdu | RackEquipment
MAX_IMAGE_BYTES = 64 * 1024 * 1024
FETCH_TIMEOUT_S = 60.0
_OPEN_PATHS = {"/redfish", ROOT}


class Farm:
    """Emulated BMCs behind real sockets. An async context manager; `clock` gives the moment of each request.

    `credentials` are (user, password) for every BMC; None lets everybody in. With a `certificate` all speak TLS.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        credentials: tuple[str, str] | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self._clock = clock
        self._expected = _basic(*credentials) if credentials else ""
        self._services: dict[tuple[str, int], EmulatedBmc] = {}
        self._context = certificate.server_context() if certificate else None
        self._fetching: set[asyncio.Task[None]] = set()
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=FETCH_TIMEOUT_S))
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=1.0)
        await self._runner.setup()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in list(self._fetching):
            task.cancel()
        await asyncio.gather(*self._fetching, return_exceptions=True)
        if self._runner:
            await self._runner.cleanup()
        if self._session:
            await self._session.close()

    async def serve(self, service: EmulatedBmc, port: int = 0, host: str = "127.0.0.1") -> str:
        """Serve a service on a port of its own (0: a free one) and return its origin, as in a node's bmc binding."""
        assert self._runner, "enter the farm first"
        listener = _bound(host, port)
        taken: int = listener.getsockname()[1]
        own = service.certificates.server_context() if service.certificates else None
        context = own or self._context
        await web.SockSite(self._runner, listener, ssl_context=context, backlog=512).start()
        self._services[host, taken] = service
        return f"{'https' if context else 'http'}://{host}:{taken}"

    def swap(self, one: str, other: str) -> None:
        """Let two origins serve each other's service: somebody exchanged the cables of two BMCs."""
        a, b = (_place_of(origin) for origin in (one, other))
        self._services[a], self._services[b] = self._services[b], self._services[a]

    def cut_off(self) -> None:
        """End every open connection at once, as BMCs that lose power do."""
        assert self._runner, "enter the farm first"
        assert self._runner.server, "enter the farm first"
        for connection in self._runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def fetched(self) -> None:
        """Wait until all images under way have arrived."""
        await asyncio.gather(*self._fetching)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            return web.Response(status=500)
        service = self._services[transport.get_extra_info("sockname")[:2]]
        if refused := self._turned_away(service, request):
            return refused
        body = await request.read()
        reply = service.handle(
            ServiceRequest(request.method, request.path, request.query_string, body, request.headers), self._clock()
        )
        if reply.fetch:
            self._begin(reply.fetch)
        if reply.latency_s:
            await asyncio.sleep(reply.latency_s)
        if reply.dropped:
            transport.abort()
        return await _streamed(reply, request) if reply.times > 1 else _response(reply)

    def _turned_away(self, service: EmulatedBmc, request: web.BaseRequest) -> web.Response | None:
        """The answer to who may not enter, None for who may."""
        if service.accounts is None or request.path.rstrip("/") in _OPEN_PATHS:
            unknown = web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="Redfish"'})
            return None if self._admitted(request) else unknown
        if service.only is not None and service.only.away(self._clock()):
            return None  # nobody is asked for a password by what does not answer
        username, password = _shown(request.headers.get("Authorization", ""))
        status = service.accounts.admit(username, password, request.path)
        body = msgspec.json.encode(_CHANGE_FIRST) if status == 403 else b""
        return web.Response(status=status, body=body) if status else None

    def _admitted(self, request: web.BaseRequest) -> bool:
        if not self._expected or request.path.rstrip("/") in _OPEN_PATHS:
            return True
        return hmac.compare_digest(request.headers.get("Authorization", "").encode(), self._expected.encode())

    def _begin(self, fetch: Fetch) -> None:
        task = asyncio.create_task(self._fetch(fetch))
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

    async def _fetch(self, fetch: Fetch) -> None:
        """Download the image as a BMC does: whatever goes wrong is told by the task, not to the caller."""
        assert self._session, "enter the farm first"
        body: bytes | None = None
        try:
            async with self._session.get(fetch.image, ssl=False) as response:  # BMCs look at no server's certificate
                if response.status == 200 and (response.content_length or 0) <= MAX_IMAGE_BYTES:
                    body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            body = None
        fetch.machine.image_arrived(fetch.task, body, self._clock())


def _place_of(origin: str) -> tuple[str, int]:
    host, _, port = origin.rpartition("//")[2].rpartition(":")
    return host, int(port)


def _bound(host: str, port: int) -> socket.socket:
    """A bound socket, so that its port is known whatever event loop serves it. Raises OSError where it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


async def _streamed(reply: ServiceResponse, request: web.BaseRequest) -> web.StreamResponse:
    """Send the same bytes again and again, until all are sent or whoever asked goes away."""
    stream = web.StreamResponse(status=reply.status)
    await stream.prepare(request)
    for _ in range(reply.times):
        await stream.write(reply.data or b"")
    return stream


def _response(reply: ServiceResponse) -> web.Response:
    if reply.data is not None:
        return web.Response(status=reply.status, body=reply.data, content_type="application/octet-stream")
    body = msgspec.json.encode(reply.body) if reply.body is not None else b""
    headers = {"OData-Version": "4.0"} | reply.headers
    return web.Response(
        status=reply.status or 500, body=body, headers=headers, content_type="application/json" if body else None
    )


_CHANGE_FIRST = {
    "error": {
        "code": "Base.1.12.PasswordChangeRequired",
        "message": "The password must be changed before any other request.",
        "@Message.ExtendedInfo": [{"MessageId": "Base.1.12.PasswordChangeRequired"}],
    }
}


def _shown(header: str) -> tuple[str, str]:
    """User name and password of a basic authorization, "" for what is none."""
    try:
        username, _, password = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    except ValueError:
        return "", ""
    return username, password


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
