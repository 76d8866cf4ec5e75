"""For machines that watch the server: is it there, does it decide, and its numbers."""

import asyncio
from contextlib import suppress

from litestar import Response, get
from msgspec import Struct

from hostler.ports import JournalError, RouteCounts
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.boot_presence import BootEnds
from hostler.server.dependencies import TheAppState
from hostler.server.metrics import exposition
from hostler.server.node_metrics import node_exposition
from hostler.server.paging import Name
from hostler.server.rows import row_of


class Alive(Struct, frozen=True):
    """Health of the process and its controller; `why` says why it is not `ok`.

    `margin_s`: for how long an active controller may still act without renewing its lease. `active`: who holds it, and
    where that one is reached. `behind` records are known to be missing here, `behind_s` seconds ago none was.
    `controllers`: who has announced itself, and whether it still does. `disk`: why no observations are taken, or
    nothing is decided, for want of room on the journal's disk; "" where there is enough. `boot`: "up", or since when
    and why the boot listeners' process is down, which keeps no request out; "" where none listens. `boot_ends`: how
    often that process was started again, and why it last ended; None where none listens.
    """

    ok: bool
    role: str
    epoch: int
    seq: int
    why: str
    controller: str
    margin_s: float
    active: str
    active_address: str
    behind: int
    behind_s: float
    controllers: dict[str, bool]
    disk: str = ""
    boot: str = ""
    boot_ends: BootEnds | None = None


def _alive(app_state: AppState) -> Alive:
    health, boot = app_state.cell.health(), app_state.outside.boot()
    return row_of(
        Alive,
        health,
        margin_s=round(health.margin_s, 3),
        behind_s=round(health.behind_s, 3),
        controllers={peer.name: peer.alive for peer in health.peers},
        boot=boot.told() if boot is not None else "",
        boot_ends=boot.ends(app_state.now()) if boot is not None else None,
    )


@get("/healthz", tags=["health"])
async def healthz(app_state: TheAppState) -> Alive:
    """The process answers; always 200."""
    return _alive(app_state)


@get("/readyz", tags=["health"])
async def readyz(app_state: TheAppState) -> Response[Alive]:
    """200 where requests may be sent: to one that decides, or one that stands by and has read what is recorded."""
    alive = _alive(app_state)
    return Response(alive, status_code=200 if alive.ok and alive.role in ("active", "standby") else 503)


@get("/metrics", tags=["health"], guards=SEE_CELL, media_type="text/plain")
async def metrics(app_state: TheAppState) -> Response[bytes]:
    """The cell's numbers in Prometheus's text format."""
    log = app_state.outside.notifications
    queues: dict[str, RouteCounts] = {}
    if log is not None:
        with suppress(JournalError):  # the cell's other numbers are told all the same
            queues = await asyncio.to_thread(log.outbox.counts)
    return Response(exposition(app_state, queues), media_type="text/plain; version=0.0.4; charset=utf-8")


@get("/metrics/nodes", tags=["health"], guards=SEE_CELL, media_type="text/plain")
async def node_metrics(app_state: TheAppState, pool: Name = "", site: Name = "") -> Response[bytes]:
    """A series for each node in Prometheus's text format, of a pool or site where one is named."""
    nodes = app_state.fleet.nodes.values()
    chosen = [n for n in nodes if pool in ("", n.pool) and site in ("", n.position.site)]
    text = await asyncio.to_thread(node_exposition, chosen)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


handlers = [healthz, readyz, metrics, node_metrics]
