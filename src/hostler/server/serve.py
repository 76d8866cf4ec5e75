"""Runs the application with uvicorn inside the caller's event loop: no signals taken, no process of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from litestar import Litestar

from hostler.server.room import Room
from hostler.server.settings import Settings

BACKLOG = 1_024
KEEP_ALIVE_S = 60
START_S = 10.0


class _Server(uvicorn.Server):
    """uvicorn without its hands on the process's signals: who runs the loop decides when it ends."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(app: Litestar, settings: Settings) -> AsyncIterator[str]:
    """Serve while the block runs; gives the base URL (with port 0, a free one was taken).

    Raises UnsafeListenError, and OSError where the address cannot be had. Leaving ends streams and polls, lets
    requests finish for `stop_s`, then closes.
    """
    settings.check()
    listener = _listen(settings)
    server = _Server(_config(app, settings))
    task = asyncio.create_task(server.serve(sockets=[listener]), name="server")
    try:
        await _started(server, task)
        yield _url(settings, listener)
    finally:
        room: Room = app.state["room"]
        room.streams.close()
        room.desk.close()
        server.should_exit = True
        await task
        await room.forwarder.close()
        listener.close()


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(START_S):
        while not server.started:
            if task.done():
                task.result()
                raise RuntimeError("the server ended before it had started; its log says why")
            await asyncio.sleep(0.01)


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
        limit_concurrency=settings.connections_max,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.stop_s)),
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


def _listen(settings: Settings) -> socket.socket:
    """A bound socket that says it is TCP: asyncio sends small answers without delay only on those that do."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _url(settings: Settings, listener: socket.socket) -> str:
    scheme = "https" if settings.tls_certificate else "http"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
