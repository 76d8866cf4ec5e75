"""A served cell over a real API server with a customer's pod on each node: what the cluster benchmarks measure on.

etcd, API server, controllers, scheduler and kwok are real, and `hostler serve` is a process of its own with the rights
of our manifest. The agents are one client: an inventory each, heartbeats, and what a benchmark has them say. All share
the machine's cores, so agents and kubelets are heard less often the more there are. `BENCH_NODES` (5,000) sets the
size.
"""

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Container, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from bench.kubernetes import POOLS, brakeless
from hostler.core.state.model import Observation
from hostler.ports import UnreachableError
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
RENEWALS_PER_S = 50
"""Leases a second that kwok renews at most. 2,000 nodes every 10 s were two thirds of what the API server was asked."""
PATIENCE_S = 600.0
SETTLING_S = 5.0
MADE_MOST = 5
NAMED = 10
"""Nodes that a message names, at most."""
TICKS = os.sysconf("SC_CLK_TCK")


class StandsStillError(Exception):
    """Raised where nothing moves any more: it names the nodes that wait, and for what."""


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

    async def waits(self, names: Collection[str]) -> str:
        """Returns what these nodes wait for, in Hostler's own words, a line a node."""
        wanted, cursor, said = frozenset(names), "", list[str]()
        try:
            while len(said) < NAMED:
                words = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
                page = await self._asked("nodes", words)
                said += [_standing(row) for row in page["items"] if row["id"] in wanted]
                cursor = page["cursor"]
                if not cursor:
                    break
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"hostler serve does not answer ({error!r})"
        more = len(wanted) - len(said[:NAMED])
        return "\n".join([*said[:NAMED], *([f"and {more} more"] if more else [])])

    async def _asked(self, what: str, words: dict[str, str]) -> dict[str, Any]:
        fleet, url = self.fleet, f"{self.fleet.server}/v1/{what}"
        async with fleet.session.get(url, params=words, headers=fleet.as_operator) as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = msgspec.json.decode(await answer.read())
            return found


def _standing(row: dict[str, Any]) -> str:
    """The place where a node stands, and what it waits for."""
    does = f"{row['plan']} at {row['step']}" if row["plan"] else "no plan"
    stands = [row["phase"], *(["cordoned"] if row["cordoned"] else []), *row["conditions"], does]
    waits = f"waits since {row['waiting_since']}: {row['waiting']}" if row["waiting"] else "waits for nothing"
    return f"{row['id']} ({', '.join(stands)}) {waits}"


async def reached(  # noqa: PLR0913 - one wait's own
    cell: Cell,
    what: str,
    left: Callable[[], Awaitable[Collection[str]]],
    patience_s: float,
    moves: Callable[[], object] = lambda: None,
    pause_s: float = 1.0,
) -> None:
    """Wait until no node is `left`. Raises StandsStillError where neither these nor `moves` change for so long."""
    seen, since = object(), time.monotonic()
    while missing := await left():
        now, stand = time.monotonic(), (len(missing), moves())
        if stand != seen:
            seen, since = stand, now
        if now - since > patience_s:
            waits = await cell.waits(missing)
            raise StandsStillError(f"{what}: nothing has moved for {patience_s:g} s, {len(missing)} are left\n{waits}")
        await asyncio.sleep(pause_s)


class World(Struct):
    """World of a benchmark: the control plane, its admin, the served cell, the nodes, when all had settled."""

    plane: ControlPlane
    admin: Admin
    cell: Cell
    names: list[str]
    settled_s: float = 0.0

    async def settled(self, names: Collection[str], patience_s: float = PATIENCE_S) -> float:
        """Seconds until Hostler's own labels on these nodes say that they are in production."""
        began, wanted = time.monotonic(), frozenset(names)

        async def left() -> set[str]:
            return set(wanted) & await self._unsettled()

        await reached(self.cell, "nodes that come into production", left, patience_s, pause_s=SETTLING_S)
        took_s = time.monotonic() - began
        await asyncio.sleep(10.0)
        return took_s

    async def _unsettled(self) -> set[str]:
        """Nodes without the label; all where the API server does not answer in time, which a busy machine's may not."""
        found, cursor = set[str](), ""
        selector = "/api/v1/nodes?labelSelector=hostler.dev/phase%21%3Dproduction&limit=500"
        try:
            while True:
                page = await self.admin.get(f"{selector}&continue={cursor}" if cursor else selector)
                found |= {node["metadata"]["name"] for node in page["items"]}
                cursor = page["metadata"].get("continue", "")
                if not cursor:
                    return found
        except UnreachableError:
            return set(self.names)


@asynccontextmanager
async def a_world(nodes: int = NODES, apart: Container[str] = ()) -> AsyncIterator[World]:
    """A cluster whose nodes are all adopted, and labelled as in production.

    Nodes `apart` have agents of their own, which the benchmark begins: their tokens are in `World.cell.fleet`. They
    are adopted only when these have told their inventory, so this does not wait for them: see `World.settled`.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane = ControlPlane(lease_s=max(40, 4 * nodes // RENEWALS_PER_S))
        stack.callback(plane.close)
        admin = await stack.enter_async_context(an_admin(plane))
        names = [f"n{number:04}" for number in range(nodes)]
        await admin.space("acme")
        await _each(names, lambda name: _made(lambda: admin.node(name)))
        await _each(names, lambda name: _made(lambda: _customer(admin, name)))
        say(f"{nodes} nodes and their customers' pods are made")
        cell = await stack.enter_async_context(_served(folder, plane, admin, names, apart))
        world = World(plane, admin, cell, names)
        world.settled_s = await world.settled([name for name in names if name not in apart])
        say(f"they are in production, {world.settled_s:.0f} s after their inventories")
        yield world


def say(what: str) -> None:
    """Tell how far the benchmark is, for it may take an hour."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


async def _made(make: Callable[[], Awaitable[object]]) -> None:
    """Make an object of the cluster. An API server that did not answer in time is asked again, and may have made it."""
    for turn in range(MADE_MOST):
        try:
            await make()
        except UnreachableError:
            if turn == MADE_MOST - 1:
                raise
        except AssertionError as refused:
            if turn and ": 409 " in str(refused):
                return
            raise
        else:
            return


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
        try:
            await agents.introduce()
            say("the inventories of the nodes without an agent of their own are told")
            yield Cell(fleet, agents)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)


def _beat_s(nodes: int) -> float:
    """Period of each agent's heartbeats."""
    return max(HEARTBEAT_S, nodes / BEATS_PER_S)
