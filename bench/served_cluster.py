"""A served cell over a real API server with a customer's pod on each node: what the cluster benchmarks measure on.

etcd, API server, controllers, scheduler and kwok are real, and `hostler serve` is a process of its own with the rights
of our manifest. The agents are one client: an inventory each, heartbeats, and what a benchmark has them say. All share
the machine's cores. `BENCH_NODES` (5,000) sets the size.
"""

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Container, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from bench.kubernetes import POOLS, brakeless
from hostler.core.state.model import Observation
from hostler.sim.emulated.emulated_server import h100
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.served_fleet import Layout, ServedFleet, a_served_fleet

NODES = int(os.environ.get("BENCH_NODES", "5000"))
AT_ONCE = 50
CONNECTIONS = 200
HEARTBEAT_S = 15.0
"""Real agents say every five seconds that they live; this client shares the cores with what is measured."""
BEATS_PER_S = 334.0
"""Heartbeats a second that this client sends at most: of a larger fleet each agent is heard, and missed, less often."""
PATIENCE_S = 600.0
TICKS = os.sysconf("SC_CLK_TCK")


class Used(Struct):
    """CPU seconds and MB of the served process, at a moment."""

    cpu_s: float
    rss_mb: float
    at: float


def used(pid: int) -> Used:
    """Returns what the process has used until now (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Used((int(fields[11]) + int(fields[12])) / TICKS, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, time.monotonic())


class Agents:
    """All nodes' agents, as one client."""

    def __init__(self, session: aiohttp.ClientSession, server: str, tokens: dict[str, str]) -> None:
        self._session = session
        self._server = server
        self._tokens = tokens
        self.missed = 0

    async def introduce(self) -> None:
        """Have each node post its inventory."""
        await _each(self._tokens, self._inventory)

    async def _inventory(self, node: str) -> None:
        await self.say(node, Observation(node, "inventory", "agent", "", 1, parts=tuple(h100(f"S-{node}").parts)))

    async def live(self) -> None:
        """Say so, each in its own moment, until cancelled."""
        loop, period = asyncio.get_running_loop(), _beat_s(len(self._tokens)) / len(self._tokens)
        due, out = loop.time(), set[asyncio.Task[None]]()
        while True:
            for node in self._tokens:
                due += period
                await asyncio.sleep(max(0.0, due - loop.time()))
                task = asyncio.create_task(self._beat(node))
                out.add(task)
                task.add_done_callback(out.discard)

    async def _beat(self, node: str) -> None:
        try:
            await self._post(node, "heartbeat", {"node": node, "boot_id": f"boot-{node}", "version": "0.1.0"})
        except (aiohttp.ClientError, TimeoutError):
            self.missed += 1

    async def say(self, node: str, seen: Observation) -> None:
        """Post it until it is taken."""
        seen = msgspec.structs.replace(seen, spool=f"s-{node}", boot_id=f"boot-{node}")
        body = {"node": node, "spool": seen.spool, "boot_id": seen.boot_id, "observations": [seen]}
        while (status := await self._post(node, "observations", body)) >= 300:
            assert status in (429, 503), f"{node}: {status}"
            await asyncio.sleep(0.5)

    async def _post(self, node: str, what: str, body: object) -> int:
        headers = {"Authorization": f"Bearer {self._tokens[node]}", "Content-Type": "application/json"}
        url = f"{self._server}/v1/agent/{what}"
        async with self._session.post(url, data=msgspec.json.encode(body), headers=headers) as answer:
            await answer.read()
            return answer.status


class Cell(Struct):
    """A served fleet and its agents."""

    fleet: ServedFleet
    agents: Agents

    @property
    def pid(self) -> int:
        """The served process."""
        return self.fleet.pid

    async def in_touch(self) -> bool:
        """Whether the cell knows what runs in its cluster."""
        fleet = self.fleet
        async with fleet.session.get(f"{fleet.server}/v1/pools/train", headers=fleet.as_operator) as answer:
            said = msgspec.json.decode(await answer.read())
            return answer.status == 200 and said["in_use"] is not None


class World(Struct):
    """World of a benchmark: the control plane, its admin, the served cell, the nodes, when all had settled."""

    plane: ControlPlane
    admin: Admin
    cell: Cell
    names: list[str]
    settled_s: float


@asynccontextmanager
async def a_world(nodes: int = NODES, apart: Container[str] = ()) -> AsyncIterator[World]:
    """A cluster whose nodes are all adopted and labelled as in production.

    Nodes `apart` have agents of their own, which whoever measures begins: their tokens are in `World.cell.fleet`.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane = ControlPlane()
        stack.callback(plane.close)
        admin = await stack.enter_async_context(an_admin(plane))
        names = [f"n{number:04}" for number in range(nodes)]
        await admin.space("acme")
        await _each(names, admin.node)
        await _each(names, lambda name: _customer(admin, name))
        cell = await stack.enter_async_context(_served(folder, plane, admin, names, apart))
        yield World(plane, admin, cell, names, await _settled(admin, nodes))


async def _each(names: Iterable[str], do: Callable[[str], object]) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with free:
            await do(name)  # type: ignore[misc]

    await asyncio.gather(*(one(name) for name in names))


async def _customer(admin: Admin, name: str) -> None:
    await admin.pod("acme", f"w-{name}", name, gpus=8, annotations={"hostler.dev/interruptible": "true"})


@asynccontextmanager
async def _served(
    folder: Path, plane: ControlPlane, admin: Admin, names: list[str], apart: Container[str]
) -> AsyncIterator[Cell]:
    """A served cell that has adopted the nodes, and their agents' heartbeats."""
    given = [f"--cluster=k1={await as_hostler(plane, admin)}"]
    pools = POOLS.replace("target: 300", f"target: {len(names)}")
    silence = f"agent_silence_s: {max(30.0, 2 * _beat_s(len(names))):g}"
    policy = re.sub(r"agent_silence_s: [\d.]+", silence, brakeless())
    layout = Layout(pools, names, "h100", policy=policy, given=given, connections=CONNECTIONS)
    async with a_served_fleet(folder, layout) as fleet:
        played = {name: token for name, token in fleet.tokens.items() if name not in apart}
        agents = Agents(fleet.session, fleet.server, played)
        living = asyncio.create_task(agents.live())
        await agents.introduce()
        yield Cell(fleet, agents)
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)


def _beat_s(nodes: int) -> float:
    """Period of each agent's heartbeats."""
    return max(HEARTBEAT_S, nodes / BEATS_PER_S)


async def _settled(admin: Admin, nodes: int) -> float:
    """Seconds until Hostler's own labels on all nodes say that they are in production."""
    began, marked = time.monotonic(), "/api/v1/nodes?labelSelector=hostler.dev/phase%3Dproduction"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if len((await admin.get(marked))["items"]) >= nodes:
                break
            await asyncio.sleep(5.0)
    took_s = time.monotonic() - began
    await asyncio.sleep(10.0)
    return took_s
