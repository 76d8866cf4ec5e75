"""200 GPUs of a cluster fall off the bus in the same second: until the cordons stand, until the pods are told to go.

The cluster is `bench.served_cluster`'s. `BENCH_ROUNDS` (1) bursts follow each other on different nodes, so that a
shared machine's moods show.
"""

import asyncio
import os
import statistics
import time
from contextlib import suppress

from bench.figures import Figures
from bench.kubernetes import LINE
from bench.served_cluster import NODES, PATIENCE_S, World, a_world, used
from hostler.core.state.model import Observation
from hostler.drivers.kubernetes.wire import read_event, read_node, read_pod
from hostler.sim.emulated.emulated_server import gpu_address
from tests.contract.kubernetes_world import Admin

VICTIMS = 200
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "1"))
REST_S = 20.0
"""Between two bursts: what the one before still does (reboots, repairs) is not the next one's."""


def main() -> Figures:
    """Run it."""
    figures = Figures(f"Kubernetes: {VICTIMS} of {NODES} nodes lose a GPU in the same second")
    asyncio.run(_measure(figures))
    return figures


async def _measure(figures: Figures) -> None:
    async with a_world() as world:
        for turn in range(ROUNDS):
            if turn:
                await asyncio.sleep(REST_S)
            victims = world.names[turn :: NODES // VICTIMS][:VICTIMS]
            await _burst(world, victims, figures)


async def _burst(world: World, victims: list[str], figures: Figures) -> None:
    """A GPU of each victim falls off the bus: until the cordon, and until its pod is told to go."""
    said: dict[str, float] = {}
    taken: dict[str, float] = {}
    cordoned: dict[str, float] = {}
    ended: dict[str, float] = {}
    version = (await world.admin.get("/api/v1/nodes?limit=1"))["metadata"]["resourceVersion"]
    watching = [
        asyncio.create_task(_watch_nodes(world.admin, version, cordoned)),
        asyncio.create_task(_watch_pods(world.admin, version, ended)),
    ]
    await asyncio.sleep(3.0)
    before = used(world.cell.pid)

    async def falls(node: str) -> None:
        said[node] = time.monotonic()
        seen = Observation(node, "kernel_log", "agent", "", 2, text=LINE.format(gpu_address(0)), facility=0)
        await world.cell.agents.say(node, seen)
        taken[node] = time.monotonic()

    await asyncio.gather(*(falls(node) for node in victims))
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while not all(node in cordoned and node in ended for node in victims):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
    after = used(world.cell.pid)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    first = min(said.values())
    figures.add("last line said after", max(said.values()) - first, "s", f"load {os.getloadavg()[0]:.1f}")
    for what, seen in (("line to taken", taken), ("line to cordon", cordoned), ("line to the pod's eviction", ended)):
        took = [seen[node] - said[node] for node in victims if node in seen]
        cuts = statistics.quantiles(took, n=100)
        figures.add(f"{what}: first", min(took), "s", f"{len(took)} of {len(victims)} seen")
        figures.add("… P50", cuts[49], "s")
        figures.add("… P99", cuts[98], "s")
    healthy = len(cordoned.keys() - set(victims))
    figures.add("healthy nodes cordoned", healthy, "", "must be 0")
    figures.add("CPU", after.cpu_s - before.cpu_s, "s", f"in {after.at - before.at:.1f} s")
    figures.add("RSS", after.rss_mb, "MB")


async def _watch_nodes(admin: Admin, version: str, cordoned: dict[str, float]) -> None:
    async with admin.api.watch("/api/v1/nodes", {"resourceVersion": version}, PATIENCE_S * 2) as lines:
        async for line in lines:
            node = read_event(line, read_node).item
            if node is not None and any(taint.key == "hostler.dev/cordon" for taint in node.taints):
                cordoned.setdefault(node.key, time.monotonic())


async def _watch_pods(admin: Admin, version: str, ended: dict[str, float]) -> None:
    async with admin.api.watch("/api/v1/namespaces/acme/pods", {"resourceVersion": version}, PATIENCE_S * 2) as lines:
        async for line in lines:
            event = read_event(line, read_pod)
            if event.item is not None and (event.item.ends or event.type == "DELETED"):
                ended.setdefault(event.item.node, time.monotonic())
