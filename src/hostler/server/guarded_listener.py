"""Listeners within limits: the one place in `serve` where connections of others are accepted (ADR 184).

Whoever listens does it by `GuardedServer`: each socket has its connection table, and each connection is a
`LimitedProtocol`. A TLS connection counts from its acceptance on, not from the end of its handshake: asyncio tells
nobody of a connection before that, so that silent ones would take every open file.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from ssl import Purpose, SSLContext, create_default_context
from typing import Any

import uvicorn

from hostler.logs.structured import logger
from hostler.server.connection_limits import LATE_HANDSHAKE, ConnectionTable, address_of
from hostler.server.http_limits import LimitedProtocol, Listener
from hostler.server.listener_watch import OpenFiles, watch_listeners
from hostler.server.open_file_limits import OUT_OF_FILES

log = logger()

BACKLOG = 1_024
KEEP_ALIVE_S = 60
START_S = 10.0
HANDSHAKE_S = 10.0
"""Time limit of a TLS handshake; asyncio's own limit is 60 s."""
ACCEPTED_AT_ONCE = 64
FILES_AGAIN_S = 1.0
"""So long nothing is accepted where no file is left to open."""


class GuardedServer(uvicorn.Server):
    """uvicorn over given sockets, each with its table; the process's signals are left to the one who runs the loop."""

    def __init__(
        self, config: uvicorn.Config, listeners: Mapping[socket.socket, Listener], tls: SSLContext | None
    ) -> None:
        super().__init__(config)
        self._listeners = listeners
        self._tls = tls

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does for given sockets, with a time limit for the TLS handshake."""
        await self.lifespan.startup()
        config, loop, self.servers = self.config, asyncio.get_running_loop(), []
        for one in sockets or ():
            listener = self._listeners[one]
            made = partial(LimitedProtocol, config, self.server_state, self.lifespan.state, listener)
            if self._tls is None:
                self.servers.append(await loop.create_server(made, sock=one, backlog=config.backlog))
            else:
                self.servers.append(_TlsAcceptor(one, self._tls, listener.table, made))  # type: ignore[arg-type]
        self.started = not self.lifespan.should_exit
        self.should_exit = not self.started


@asynccontextmanager
async def guarded(
    app: Any, listeners: Mapping[socket.socket, Listener], tls: SSLContext | None, files: OpenFiles, stop_s: float = 0.0
) -> AsyncIterator[GuardedServer]:
    """Serve an ASGI application on these sockets while the block runs; they are closed in the end.

    Leaving lets requests finish for `stop_s`, then closes; what they wait for is closed once `should_exit` is set.
    """
    server = GuardedServer(_config(app, stop_s), listeners, tls)
    task = asyncio.create_task(server.serve(sockets=list(listeners)), name="server")
    tables = [listener.table for listener in listeners.values()]
    watching = asyncio.create_task(watch_listeners(tables, files), name="listeners")
    try:
        await _started(server, task)
        yield server
    finally:
        watching.cancel()
        server.should_exit = True
        await task
        for one in listeners:
            one.close()


def _config(app: Any, stop_s: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="auto",
        ws="none",
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(stop_s)),
    )


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(START_S):
        while not server.started:
            if task.done():
                task.result()
                raise RuntimeError("the server ended before it had started; its log says why")
            await asyncio.sleep(0.01)


def bound(host: str, port: int) -> socket.socket:
    """A bound socket that says it is TCP: asyncio sends small answers without delay only on those that do.

    Raises OSError, which names the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{error.strerror}: {host}:{port}") from error
    return listener


def address(listener: socket.socket) -> str:
    """Host and port of a bound socket, as a URL has them."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Handshake:
    """A connection whose TLS handshake is under way, as the table counts it."""

    answering = False

    def __init__(self, accepted: socket.socket) -> None:
        self.accepted = accepted
        self.address = ""

    def end(self) -> None:
        """Hang up; the handshake fails by it."""
        with contextlib.suppress(OSError):
            self.accepted.shutdown(socket.SHUT_RDWR)


class _TlsAcceptor:
    """Accepts connections of one socket by TLS. Closed like a server of asyncio."""

    def __init__(self, listening: socket.socket, tls: SSLContext, table: ConnectionTable, made: Any) -> None:
        self._listening = listening
        self._tls = tls
        self._table = table
        self._made = made
        self._loop = asyncio.get_running_loop()
        self._shaking: dict[asyncio.Task[None], _Handshake] = {}
        self._again: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept nothing more, and end handshakes that are under way."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listening)
        for shaking in list(self._shaking.values()):
            shaking.end()

    async def wait_closed(self) -> None:
        """Wait for the handshakes that were under way."""
        await asyncio.gather(*self._shaking, return_exceptions=True)

    def _listen(self) -> None:
        self._again = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                self._loop.remove_reader(self._listening)  # else the loop would do nothing but try
                self._again = self._loop.call_later(FILES_AGAIN_S, self._listen)
                return
            accepted.setblocking(False)
            shaking = _Handshake(accepted)
            shaking.address = address_of(peer[0])
            if not self._table.opened(shaking):
                self._table.closed(shaking)
                accepted.close()
                continue
            task = self._loop.create_task(self._shake(shaking))
            self._shaking[task] = shaking
            task.add_done_callback(self._shaking.pop)

    async def _shake(self, shaking: _Handshake) -> None:
        """Carry out the handshake; the connection then counts as its protocol says."""
        try:
            await self._loop.connect_accepted_socket(
                partial(self._made, handshake=shaking),
                shaking.accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_S,
            )
        except OSError as error:  # TLS errors are among them
            late = isinstance(error, ConnectionAbortedError | TimeoutError)
            self._table.ended[LATE_HANDSHAKE] += late
            self._table.closed(shaking)
            shaking.accepted.close()


def server_tls(certificate: str, key: str) -> SSLContext:
    """The server's side of TLS by a certificate in files; `key` "" where it stands beside it. Raises OSError."""
    tls = create_default_context(Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key or None)
    return tls
