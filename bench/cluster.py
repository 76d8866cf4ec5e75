"""A cluster of 5,000 nodes on a real API server: what following it costs, and an outage of its API."""

import asyncio
import os

from bench.figures import Figures
from bench.served_cluster import HEARTBEAT_S, NODES, PATIENCE_S, Cell, a_world, used
from tests.controlplane.plane import ControlPlane

STEADY_S = 60.0
OUTAGE_S = 30.0


def main() -> Figures:
    """Run it."""
    figures = Figures(f"Kubernetes: a cluster of {NODES} nodes, each with a customer's pod")
    asyncio.run(_measure(figures))
    return figures


async def _measure(figures: Figures) -> None:
    async with a_world() as world:
        figures.add("all adopted and labelled after", world.settled_s, "s", "since the last inventory was posted")
        await _steady(world.cell, figures)
        await _outage(world.cell, world.plane, figures)
        figures.add("heartbeats that failed meanwhile", world.cell.agents.missed, "")


async def _steady(cell: Cell, figures: Figures) -> None:
    before = used(cell.pid)
    await asyncio.sleep(STEADY_S)
    after = used(cell.pid)
    note = f"{NODES / HEARTBEAT_S:.0f} heartbeats/s among it; load {os.getloadavg()[0]:.1f}"
    figures.add("steady: CPU", (after.cpu_s - before.cpu_s) / (after.at - before.at) * 100, "% of a core", note)
    figures.add("steady: RSS", after.rss_mb, "MB")


async def _outage(cell: Cell, plane: ControlPlane, figures: Figures) -> None:
    """The API server is away for a while; then until Hostler knows again what runs where."""
    await asyncio.to_thread(plane.stop_api)
    await asyncio.sleep(OUTAGE_S)
    assert not await cell.in_touch(), "what is not heard is not known"
    await asyncio.to_thread(plane.start_api)
    before = used(cell.pid)
    async with asyncio.timeout(PATIENCE_S):
        while not await cell.in_touch():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)
    after = used(cell.pid)
    note = f"the API server was away for {OUTAGE_S:.0f} s"
    figures.add("API back to everything known again", after.at - before.at, "s", note)
    figures.add("… CPU", after.cpu_s - before.cpu_s, "s")
