"""A cluster of 5,000 nodes on a real API server: what following it costs, 200 faults at once, and an API outage.

etcd, API server, controllers, scheduler and kwok are real, and `hostler serve` is a process of its own with the rights
of our manifest. The agents are one client: an inventory each, heartbeats, and a line of kernel log from each victim.
All share the machine's cores.
"""

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import msgspec
from msgspec import Struct

from bench.figures import Figures
from bench.kubernetes import BRAKE, LINE, POLICY, POOLS
from hostler.core.model import Observation
from hostler.drivers.kubernetes.wire import read_event, read_node, read_pod
from hostler.engine.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.emulated.host import gpu_address, h100
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.processes import HOSTLER, answers, free_port, process, run

NODES = 5_000
VICTIMS = 200
AT_ONCE = 50
HEARTBEAT_S = 15.0
"""Real agents say every five seconds that they live; this client shares the cores with what is measured."""
STEADY_S = 60.0
OUTAGE_S = 30.0
PATIENCE_S = 300.0
TICKS = os.sysconf("SC_CLK_TCK")


class Used(Struct):
    """CPU seconds and MB of the served process, at a moment."""

    cpu_s: float
    rss_mb: float
    at: float


def used(pid: int) -> Used:
    """What the process has used until now (proc(5))."""
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
        """Each posts its inventory."""
        await _each(self._tokens, self._inventory)

    async def _inventory(self, node: str) -> None:
        await self.say(node, Observation(node, "inventory", "agent", "", 1, parts=tuple(h100(f"S-{node}").parts)))

    async def live(self) -> None:
        """Say so, each in its own moment, until cancelled."""
        loop, period = asyncio.get_running_loop(), HEARTBEAT_S / len(self._tokens)
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
    """A served cell: its process, its agents, and who asks it."""

    pid: int
    agents: Agents
    session: aiohttp.ClientSession
    server: str
    operator: str

    async def in_touch(self) -> bool:
        """Whether the cell knows what runs in its cluster."""
        headers = {"Authorization": f"Bearer {self.operator}"}
        async with self.session.get(f"{self.server}/v1/pools/train", headers=headers) as answer:
            said = msgspec.json.decode(await answer.read())
            return answer.status == 200 and said["in_use"] is not None


def main() -> Figures:
    """Run it."""
    figures = Figures(f"Kubernetes: a cluster of {NODES} nodes, each with a customer's pod")
    asyncio.run(_measure(figures))
    return figures


async def _measure(figures: Figures) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane = ControlPlane()
        stack.callback(plane.close)
        admin = await stack.enter_async_context(an_admin(plane))
        names = [f"n{number:04}" for number in range(NODES)]
        await admin.space("acme")
        await _each(names, admin.node)
        await _each(names, lambda name: _customer(admin, name))
        cell = await stack.enter_async_context(_served(folder, plane, admin, names))
        await _settled(admin, figures)
        await _steady(cell, figures)
        await _burst(cell, admin, names, figures)
        await _outage(cell, plane, figures)
        figures.add("heartbeats that failed meanwhile", cell.agents.missed, "")


async def _each(names: Iterable[str], do: Callable[[str], object]) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with free:
            await do(name)  # type: ignore[misc]

    await asyncio.gather(*(one(name) for name in names))


async def _customer(admin: Admin, name: str) -> None:
    await admin.pod("acme", f"w-{name}", name, gpus=8, annotations={"hostler.dev/interruptible": "true"})


@asynccontextmanager
async def _served(folder: Path, plane: ControlPlane, admin: Admin, names: list[str]) -> AsyncIterator[Cell]:
    """A served cell that has adopted the nodes, and their agents' heartbeats."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    policy = [BRAKE if line.startswith("  brake:") else line for line in POLICY.read_text().splitlines()]
    (folder / "policy.yaml").write_text("\n".join(policy))
    (folder / "pools.yaml").write_text(POOLS.replace("target: 200", f"target: {NODES}"))
    (folder / "fleet.json").write_text(json.dumps([{"id": name, "sku": "h100", "pool": "train"} for name in names]))
    server = f"http://127.0.0.1:{(port := free_port())}"
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    operator = folder / "operator"
    operator.write_text(store.create(Grant("ann", Role.operator)))
    made = store.create_all([Grant(name, Role.agent, node=name) for name in names])
    store.close()
    rights = await as_hostler(plane, admin)
    given = [f"--cluster=k1={rights}", f"--config={folder / 'policy.yaml'}", f"--config={folder / 'pools.yaml'}"]
    serve = [HOSTLER, "serve", f"--data={data}", f"--listen=127.0.0.1:{port}", *given]
    connector = aiohttp.TCPConnector(limit=200)
    async with aiohttp.ClientSession(connector=connector) as session, process(*serve, log=folder / "log") as child:
        await answers(session, f"{server}/readyz", PATIENCE_S)
        words = ("adopt", str(folder / "fleet.json"), "--reason", "bench", "--server", server)
        code, said = await run(HOSTLER, *words, "--token-file", str(operator))
        assert code == 0, said
        agents = Agents(session, server, dict(zip(names, made, strict=True)))
        living = asyncio.create_task(agents.live())
        await agents.introduce()
        yield Cell(child.pid, agents, session, server, operator.read_text())
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)


async def _settled(admin: Admin, figures: Figures) -> None:
    """Until Hostler's own labels on all nodes say that they are in production."""
    began, marked = time.monotonic(), "/api/v1/nodes?labelSelector=hostler.dev/phase%3Dproduction&limit=1"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page = await admin.get(marked)
            left = page["metadata"].get("remainingItemCount", 0) + len(page["items"])
            if left >= NODES:
                break
            await asyncio.sleep(1.0)
    figures.add("all adopted and labelled after", time.monotonic() - began, "s", "since the last inventory was posted")
    await asyncio.sleep(10.0)


async def _steady(cell: Cell, figures: Figures) -> None:
    before = used(cell.pid)
    await asyncio.sleep(STEADY_S)
    after = used(cell.pid)
    note = f"{NODES / HEARTBEAT_S:.0f} heartbeats/s among it; load {os.getloadavg()[0]:.1f}"
    figures.add("steady: CPU", (after.cpu_s - before.cpu_s) / (after.at - before.at) * 100, "% of a core", note)
    figures.add("steady: RSS", after.rss_mb, "MB")


async def _burst(cell: Cell, admin: Admin, names: list[str], figures: Figures) -> None:
    """A GPU of each victim falls off the bus in the same second: until the cordon, and until its pod is told to go."""
    victims = names[:: NODES // VICTIMS][:VICTIMS]
    said: dict[str, float] = {}
    cordoned: dict[str, float] = {}
    ended: dict[str, float] = {}
    version = (await admin.get("/api/v1/nodes?limit=1"))["metadata"]["resourceVersion"]
    watching = [
        asyncio.create_task(_watch_nodes(admin, version, cordoned)),
        asyncio.create_task(_watch_pods(admin, version, ended)),
    ]
    await asyncio.sleep(3.0)
    before = used(cell.pid)

    async def falls(node: str) -> None:
        said[node] = time.monotonic()
        seen = Observation(node, "kernel_log", "agent", "", 2, text=LINE.format(gpu_address(0)), facility=0)
        await cell.agents.say(node, seen)

    await asyncio.gather(*(falls(node) for node in victims))
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while not all(node in cordoned and node in ended for node in victims):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
    after = used(cell.pid)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    for what, seen in (("line to cordon", cordoned), ("line to the pod's eviction", ended)):
        took = [seen[node] - said[node] for node in victims if node in seen]
        cuts = statistics.quantiles(took, n=100)
        figures.add(f"burst of {VICTIMS}: {what}, P50", cuts[49], "s", f"{len(took)} of {VICTIMS} seen")
        figures.add("… P99", cuts[98], "s")
    healthy = len(cordoned.keys() - set(victims))
    figures.add("healthy nodes cordoned", healthy, "", "must be 0")
    figures.add("burst: CPU", after.cpu_s - before.cpu_s, "s", f"in {after.at - before.at:.1f} s")
    figures.add("burst: RSS", after.rss_mb, "MB")


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
