"""From a line of kernel log to a cordon that an independent watch sees on a real API server: two paces of faults.

Two a second leave the remedies of the faults before most of their way behind; with about ten a second a dozen
remedies run at the same time, from eviction to the node's removal, and the API server has the machine to itself.

All is real but the hardware: etcd, API server, controllers and scheduler; `hostler serve` in a process of its own,
with the rights of our manifest and a journal that is synced to the disk; and an agent for each node, which reads the
line from a pipe, spools it durably and posts it. All share the machine's cores.
"""

import asyncio
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.figures import Figures
from hostler.agent.main import AgentSettings
from hostler.drivers.kubernetes.wire import read_event, read_node, read_page
from hostler.sim.emulated.emulated_server import EmulatedHost, gpu_address, h100
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.served_fleet import POLICY, Layout, a_served_fleet

FAULTS = 200
PAUSE_S = 0.5
CROWDED = 100
CROWDED_PAUSE_S = 0.05
CLUSTER = 5_000
LINE = "NVRM: Xid (PCI:{}): 79, pid=1234, name=python3, GPU has fallen off the bus."
BRAKE = "  brake: {disruptions: 1000, percent: 100, window_s: 3600}"
POOLS = """
skus:
  h100: {gpus: 8}
pools:
  train:
    sku: h100
    target: 300
    tenant: acme
    cluster: k1
    modes: {"*": act}
    budget: {count: 1000, percent: 100, reserve: 0, removals_per_day: 1000}
"""
PATIENCE_S = 60.0


def main() -> Figures:
    """Run it."""
    figures = asyncio.run(_measure())
    _costs(figures)
    return figures


def _costs(figures: Figures) -> None:
    """Measures what a large cluster costs to follow: Nodes as long as real ones are, read into what is kept of them."""
    words = {f"label-{number}.example/x": "v" * 20 for number in range(60)}
    notes = {f"note-{number}.example/x": "v" * 60 for number in range(25)}
    managed = [{"manager": "m", "fieldsV1": {f"f:{number}": {} for number in range(60)}}] * 5
    meta = {"name": "gpu-0001", "uid": "u" * 36, "resourceVersion": "1", "labels": words, "annotations": notes}
    conditions = [{"type": kind, "status": "True", "reason": "r", "message": "m" * 40} for kind in ("Ready", "A", "B")]
    status = {"conditions": conditions, "images": [{"names": ["n" * 80] * 2}] * 20, "nodeInfo": {"bootID": "b" * 36}}
    node = {"metadata": {**meta, "managedFields": managed}, "spec": {}, "status": status}
    line = msgspec.json.encode({"type": "MODIFIED", "object": node})
    page = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [node] * 500})
    began = time.process_time()
    for _ in range(CLUSTER):
        read_event(line, read_node)
    size = f"a Node of {len(line) / 1000:.1f} kB"
    figures.add("CPU of a watch event", (time.process_time() - began) / CLUSTER * 1e6, "µs", size)
    began = time.process_time()
    for _ in range(CLUSTER // 500):
        read_page(page, read_node)
    figures.add(f"CPU of a list of {CLUSTER}", (time.process_time() - began) * 1000, "ms", "pages of 500")
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [read_event(line, read_node).item for _ in range(CLUSTER)]
    figures.add("kept of a Node", (tracemalloc.get_traced_memory()[0] - before) / len(kept) / 1000, "kB")
    tracemalloc.stop()


async def _measure() -> Figures:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(3 * (FAULTS + CROWDED)))
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane = ControlPlane()
        stack.callback(plane.close)
        admin = await stack.enter_async_context(an_admin(plane))
        names = [f"n{number:03}" for number in range(FAULTS + CROWDED)]
        await admin.nodes(*names)
        hosts = await stack.enter_async_context(_served(folder, plane, admin, names))
        figures = Figures("Kubernetes: a kernel line until an independent watch sees the cordon")
        _add(figures, f"{FAULTS} faults, two a second", await _faults(admin, hosts[:FAULTS], PAUSE_S))
        _add(figures, f"{CROWDED} faults, some ten a second", await _faults(admin, hosts[FAULTS:], CROWDED_PAUSE_S))
    return figures


def _add(figures: Figures, pace: str, took: list[float]) -> None:
    cuts = statistics.quantiles(took, n=100)
    note = f"load {os.getloadavg()[0]:.1f}"
    for name, value in (("P50", cuts[49]), ("P90", cuts[89]), ("P99", cuts[98]), ("longest", max(took))):
        figures.add(f"{pace}: {name}", value * 1000, "ms", note)
        note = ""


@asynccontextmanager
async def _served(
    folder: Path, plane: ControlPlane, admin: Admin, names: list[str]
) -> AsyncIterator[list[EmulatedHost]]:
    """A served cell with these nodes in production, and the machines under them."""
    given = [f"--cluster=k1={await as_hostler(plane, admin)}"]
    async with a_served_fleet(folder, Layout(POOLS, names, "h100", policy=brakeless(), given=given)) as fleet:
        settings = [_agent(folder, fleet.server, name, token) for name, token in fleet.tokens.items()]
        hosts = [EmulatedHost(s.node, h100(f"S-{s.node}"), s, lambda: datetime.now(UTC), 1.0) for s in settings]
        for host in hosts:
            host.wake()
        try:
            await _in_production(admin, len(names))
            yield hosts
        finally:
            await asyncio.gather(*(host.stop() for host in hosts), return_exceptions=True)


def brakeless() -> str:
    """The default policy, whose storm brake nothing here sets off."""
    return "\n".join(BRAKE if line.startswith("  brake:") else line for line in POLICY.read_text().splitlines())


def _agent(folder: Path, server: str, name: str, token: str) -> AgentSettings:
    state = folder / "agents" / name
    state.mkdir(parents=True)
    (state / "token").write_text(token)
    (state / "token").chmod(0o600)
    return AgentSettings(name, server, state / "token", state, kernel_log=str(state / "kmsg"))


async def _in_production(admin: Admin, number: int) -> None:
    """Hostler's own labels say so on the nodes."""
    async with asyncio.timeout(3 * PATIENCE_S):
        while True:
            nodes = (await admin.get("/api/v1/nodes?labelSelector=hostler.dev/phase%3Dproduction"))["items"]
            if len(nodes) == number:
                return
            await asyncio.sleep(1.0)


async def _faults(admin: Admin, hosts: list[EmulatedHost], pause_s: float) -> list[float]:
    """Seconds from the write of each line until the watch tells of the taint; `pause_s` between it and the next."""
    cordoned: dict[str, asyncio.Future[float]] = {
        host.node: asyncio.get_running_loop().create_future() for host in hosts
    }
    version = (await admin.get("/api/v1/nodes?limit=1"))["metadata"]["resourceVersion"]
    watching = asyncio.ensure_future(_watch(admin, version, cordoned))
    await asyncio.sleep(5.0)
    took = []
    for host in hosts:
        began = time.perf_counter()
        host.say(LINE.format(gpu_address(0)))
        async with asyncio.timeout(PATIENCE_S):
            took.append(await cordoned[host.node] - began)
        await asyncio.sleep(pause_s)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return took


async def _watch(admin: Admin, version: str, cordoned: dict[str, asyncio.Future[float]]) -> None:
    async with admin.api.watch("/api/v1/nodes", {"resourceVersion": version}, PATIENCE_S * 5) as lines:
        async for line in lines:
            node = read_event(line, read_node).item
            told = cordoned.get(node.key) if node is not None else None
            if node is None or told is None or told.done():
                continue
            if any(taint.key == "hostler.dev/cordon" for taint in node.taints):
                told.set_result(time.perf_counter())
