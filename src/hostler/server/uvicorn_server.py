"""Serves the API inside the caller's event loop: no signals taken, no process of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Litestar

from hostler.logs.structured import logger
from hostler.server.app_state import AppState
from hostler.server.connection_limits import ConnectionTable, limits
from hostler.server.guarded_listener import address, bound, guarded, server_tls
from hostler.server.http_limits import Listener
from hostler.server.open_file_limits import for_connections, raise_limit
from hostler.server.server_settings import Settings
from hostler.server.token_revocation import end_revoked

log = logger()


@asynccontextmanager
async def serving(app: Litestar, settings: Settings) -> AsyncIterator[str]:
    """Serve while the block runs; gives the base URL (with port 0, a free one was taken).

    Raises UnsafeListenError, and OSError where the address or the certificate cannot be had. Leaving ends streams and
    polls, lets requests finish for `stop_s`, then closes.
    """
    settings.check()
    app_state: AppState = app.state["app_state"]
    tls = server_tls(str(settings.tls_certificate), str(settings.tls_key)) if settings.tls_certificate else None
    listeners = _listeners(settings)
    app_state.connections.extend(listener.table for listener in listeners.values())
    revoking = asyncio.create_task(end_revoked(app_state), name="revocation")
    try:
        async with guarded(app, listeners, tls, app_state.open_files, settings.stop_s) as server:
            try:
                yield f"{'https' if tls else 'http'}://{address(next(iter(listeners)))}"
            finally:
                server.should_exit = True  # nobody begins a stream that nobody ends
                app_state.streams.close()
                app_state.mailboxes.close()
    finally:
        revoking.cancel()
        await app_state.forwarder.close()
        for one in listeners:
            one.close()


def _listeners(settings: Settings) -> dict[socket.socket, Listener]:
    """The sockets that are listened to, the first for people; agents on their own have three quarters of all places."""
    files = raise_limit()
    most = min(settings.connections_max or for_connections(files), for_connections(files))
    log.info("listens", connections_most=most, open_files_most=files)
    first = bound(settings.host, settings.port)
    if settings.agents is None:
        return {first: Listener(ConnectionTable(limits(most)))}
    try:
        second = bound(*settings.agents)
    except OSError:
        first.close()
        raise
    return {
        first: Listener(ConnectionTable(limits(most // 4), "people"), "people"),
        second: Listener(ConnectionTable(limits(most - most // 4), "agents"), "agents"),
    }
