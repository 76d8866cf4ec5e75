"""For machines that watch the server: is it there, does it decide, and its numbers."""

from litestar import Response, get
from msgspec import Struct

from hostler.server.auth import Permission, needs
from hostler.server.given import TheRoom
from hostler.server.metrics import exposition
from hostler.server.room import Room


class Alive(Struct, frozen=True):
    """How the process and its controller are."""

    ok: bool
    role: str
    epoch: int
    seq: int
    why: str


def _alive(room: Room) -> Alive:
    health = room.cell.health()
    return Alive(health.ok, health.role, health.epoch, health.seq, health.why)


@get("/healthz", tags=["health"])
async def healthz(room: TheRoom) -> Alive:
    """The process answers; always 200."""
    return _alive(room)


@get("/readyz", tags=["health"])
async def readyz(room: TheRoom) -> Response[Alive]:
    """200 while the controller is active and decides, 503 otherwise."""
    alive = _alive(room)
    return Response(alive, status_code=200 if alive.ok and alive.role == "active" else 503)


@get("/metrics", tags=["health"], guards=[needs(Permission.see_cell)], media_type="text/plain")
async def metrics(room: TheRoom) -> Response[bytes]:
    """The cell's numbers in Prometheus's text format."""
    return Response(exposition(room.cell, room.streams), media_type="text/plain; version=0.0.4; charset=utf-8")


handlers = [healthz, readyz, metrics]
