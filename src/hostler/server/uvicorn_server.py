"""Runs the application with uvicorn inside the caller's event loop: no signals taken, no process of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import uvicorn
from litestar import Litestar

from hostler.logs.structured import logger
from hostler.server.app_state import AppState
from hostler.server.connection_limits import ConnectionTable, limits
from hostler.server.http_limits import LimitedProtocol, Listener
from hostler.server.open_file_limits import for_connections, raise_limit
from hostler.server.server_settings import Settings
from hostler.server.token_revocation import end_revoked

log = logger()

BACKLOG = 1_024
KEEP_ALIVE_S = 60
START_S = 10.0
HANDSHAKE_S = 10.0
"""Time limit of a TLS handshake; asyncio's own limit is 60 s."""


class _Server(uvicorn.Server):
    """uvicorn without its hands on the process's signals: who runs the loop decides when it ends."""

    def __init__(self, config: uvicorn.Config, listeners: Mapping[socket.socket, Listener]) -> None:
        super().__init__(config)
        self._listeners = listeners

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does for given sockets, with a time limit for the TLS handshake."""
        await self.lifespan.startup()
        config, loop, self.servers = self.config, asyncio.get_running_loop(), []
        handshake_s = HANDSHAKE_S if config.ssl is not None else None
        for one in sockets or ():
            listening = await loop.create_server(
                partial(LimitedProtocol, config, self.server_state, self.lifespan.state, self._listeners[one]),
                sock=one,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=handshake_s,
            )
            self.servers.append(listening)
        self.started = not self.lifespan.should_exit
        self.should_exit = not self.started


@asynccontextmanager
async def serving(app: Litestar, settings: Settings) -> AsyncIterator[str]:
    """Serve while the block runs; gives the base URL (with port 0, a free one was taken).

    Raises UnsafeListenError, and OSError where the address cannot be had. Leaving ends streams and polls, lets
    requests finish for `stop_s`, then closes.
    """
    settings.check()
    app_state: AppState = app.state["app_state"]
    listeners = _listeners(settings)
    app_state.connections.extend(listener.table for listener in listeners.values())
    server = _Server(_config(app, settings), listeners)
    task = asyncio.create_task(server.serve(sockets=list(listeners)), name="server")
    revoking = asyncio.create_task(end_revoked(app_state), name="revocation")
    try:
        await _started(server, task)
        yield _url(settings, next(iter(listeners)))
    finally:
        revoking.cancel()
        app_state.streams.close()
        app_state.mailboxes.close()
        server.should_exit = True
        await task
        await app_state.forwarder.close()
        for one in listeners:
            one.close()


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(START_S):
        while not server.started:
            if task.done():
                task.result()
                raise RuntimeError("the server ended before it had started; its log says why")
            await asyncio.sleep(0.01)


def _listeners(settings: Settings) -> dict[socket.socket, Listener]:
    """The sockets that are listened to, the first for people; agents on their own have three quarters of all places."""
    files = raise_limit()
    most = min(settings.connections_max or for_connections(files), for_connections(files))
    log.info("listens", connections_most=most, open_files_most=files)
    first = _listen(settings.host, settings.port)
    if settings.agents is None:
        return {first: Listener(ConnectionTable(limits(most)))}
    try:
        second = _listen(*settings.agents)
    except OSError:
        first.close()
        raise
    return {
        first: Listener(ConnectionTable(limits(most // 4)), "people"),
        second: Listener(ConnectionTable(limits(most - most // 4)), "agents"),
    }


def _config(app: Litestar, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.stop_s)),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket that says it is TCP: asyncio sends small answers without delay only on those that do."""
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


def _url(settings: Settings, listener: socket.socket) -> str:
    scheme = "https" if settings.tls_certificate else "http"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
