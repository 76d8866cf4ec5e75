"""NVSentinel's published experiment on Hostler: a burst of faults that need a reboot, from the kernel line to service.

10,005 nodes; 200 of them need a reboot in the same second; then 200 others do among 1,800 whose faults are not fatal.
NVSentinel publishes 70.0 s (P50) and 89.0 s (P99) from detection to service, with a reboot that is simulated.

Real: etcd, API server, its controllers and scheduler, `hostler serve` in a process of its own with a synced journal,
and for each of the 400 nodes that break an agent, its spool and operation log. Simulated: kubelets (kwok), the machines
under the agents (a reboot takes `--reboot-s`, the gate's checks `--gate-s`), and the other agents, which are one client
that posts inventories, heartbeats and the lines of faults that are not fatal. All share the machine's cores. The storm
brake and the budgets are opened, as 200 nodes at once would be held by either; NVSentinel's breaker holds at half.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct, field

from bench.figures import Figures
from bench.served_cluster import World, a_world, used
from hostler.agent.main import AgentSettings
from hostler.core.state.model import Observation
from hostler.drivers.kubernetes.wire import read_event, read_node, read_pod
from hostler.sim.bmc.emulated_machine import Delays
from hostler.sim.emulated.emulated_agent import AgentCrowd
from hostler.sim.emulated.emulated_server import CHECK_S, EmulatedHost, Trouble, gpu_address, h100
from tests.contract.kubernetes_world import Admin

FATAL = "NVRM: Xid (PCI:{}): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
NOT_FATAL = "NVRM: Xid (PCI:{}): 13, pid=1234, name=python3, Graphics Exception: ESR 0x404490=0x80000001"
RAISED = "gpu.reboot_required"
CORDON = "hostler.dev/cordon"
PEER_S = (70.0, 89.0)
"""NVSentinel's P50 and P99 from detection to service with a simulated reboot, as it publishes them for 10,005 nodes."""
PATIENCE_S = 1800.0
WATCHED_S = 3600.0


class Settings(Struct, frozen=True):
    """Size of the experiment, and how long the simulated machines take."""

    nodes: int = 10_005
    faults: int = 200
    beside: int = 1_800
    reboot_s: float = 30.0
    gate_s: float = 5.0

    @property
    def device_s(self) -> float:
        """The part of a node's way back takes of the machine's own time."""
        return self.reboot_s + self.gate_s


class Moments(Struct):
    """Moments by node, in seconds of the wall clock: what was said, and what an independent watch then saw."""

    said: dict[str, float] = field(default_factory=dict)
    cordoned: dict[str, float] = field(default_factory=dict)
    drained: dict[str, float] = field(default_factory=dict)
    down: dict[str, float] = field(default_factory=dict)
    booted: dict[str, float] = field(default_factory=dict)
    back: dict[str, float] = field(default_factory=dict)


def main() -> Figures:
    """Run it."""
    parser = argparse.ArgumentParser(description="Measures a burst of faults from the kernel line to service.")
    for name, value in msgspec.structs.asdict(Settings()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    settings = Settings(**given)
    if 2 * settings.faults + settings.beside > settings.nodes:
        parser.error(f"--nodes must be at least {2 * settings.faults + settings.beside}: each fault has its own node")
    figures = Figures(f"Burst to service: {settings.faults} of {settings.nodes} nodes need a reboot in the same second")
    asyncio.run(measure(settings, figures))
    return figures


async def measure(settings: Settings, figures: Figures) -> None:
    """Both bursts on one cluster, on different nodes."""
    names = [f"n{number:04}" for number in range(settings.nodes)]
    every = settings.nodes // (2 * settings.faults)
    fatal = names[::every][: 2 * settings.faults]
    others = [name for name in names if name not in frozenset(fatal)][: settings.beside]
    async with a_world(settings.nodes, frozenset(fatal)) as world, _machines(world, fatal, settings) as hosts:
        figures.add("simulated reboot", settings.reboot_s, "s", f"and {settings.gate_s:g} s of checks at the gate")
        await _burst(world, hosts, fatal[::2], [], settings, figures)
        await _burst(world, hosts, fatal[1::2], others, settings, figures)


@asynccontextmanager
async def _machines(world: World, names: list[str], settings: Settings) -> AsyncIterator[dict[str, EmulatedHost]]:
    """Emulated machines of these nodes, up, each with an agent of its own."""
    async with AgentCrowd() as crowd:
        with TemporaryDirectory() as folder:
            hosts, began = {name: _host(world, Path(folder), name, settings) for name in names}, datetime.now(UTC)
            for host in hosts.values():
                host.crowd = crowd
                host.wake()
            turning = asyncio.create_task(_turn(hosts.values()))
            try:
                await _known(world, len(names), began)
                yield hosts
            finally:
                turning.cancel()
                await crowd.hang_up()
                await asyncio.gather(turning, *(host.stop() for host in hosts.values()), return_exceptions=True)


def _host(world: World, folder: Path, name: str, settings: Settings) -> EmulatedHost:
    fleet, state = world.cell.fleet, folder / name
    state.mkdir()
    token = state / "token"
    token.touch(0o600)
    token.write_text(fleet.tokens[name])
    agent = AgentSettings(name, fleet.server, token, state, allow_actions=True)
    scale = CHECK_S["gate"] / settings.gate_s
    host = EmulatedHost(name, h100(f"S-{name}"), agent, lambda: datetime.now(UTC), scale)
    host.machine.delays = Delays(restart=(0.0, 0.0), boot=(settings.reboot_s, settings.reboot_s))
    return host


async def _turn(hosts: Iterable[EmulatedHost]) -> None:
    """Machines do what is due by now."""
    while True:
        now = datetime.now(UTC)
        for host in hosts:
            host.machine.advance(now)
        await asyncio.sleep(0.05)


async def _known(world: World, count: int, since: datetime) -> None:
    """Wait until the agents of all these machines have told their inventories; the others' did before."""
    async with asyncio.timeout(PATIENCE_S):
        while len(await _records(world, "inventory_seen", count, since)) < count:  # noqa: ASYNC110 - another process
            await asyncio.sleep(1.0)


async def _burst(  # noqa: PLR0913 - one experiment's own
    world: World,
    hosts: dict[str, EmulatedHost],
    victims: list[str],
    others: list[str],
    settings: Settings,
    figures: Figures,
) -> None:
    """Break the victims' GPUs and tell of the others' faults in the same second; wait until all victims serve again."""
    seen, began, before = Moments(), datetime.now(UTC), used(world.cell.pid)
    for host in hosts.values():
        _note_power(host, seen)
    version = (await world.admin.get("/api/v1/nodes?limit=1"))["metadata"]["resourceVersion"]
    watching = [
        asyncio.create_task(_watch_nodes(world.admin, version, seen)),
        asyncio.create_task(_watch_pods(world.admin, version, seen)),
    ]
    await asyncio.sleep(2.0)
    told = [asyncio.create_task(_tell(world, node)) for node in others]
    for node in victims:
        seen.said[node] = time.time()
        hosts[node].suffer(Trouble(RAISED, FATAL.format(gpu_address(0)), ("reboot",)))
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*told)
            while not all(node in seen.back for node in victims):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    raised = await _raised(world, began, len(victims))
    after = used(world.cell.pid)
    beside = f" among {len(others)} that are not fatal" if others else ""
    figures.add(f"{len(victims)} fatal{beside}: load", os.getloadavg()[0], "", f"{os.cpu_count()} cores")
    _told(figures, seen, raised, victims, settings)
    figures.add("CPU of serve", after.cpu_s - before.cpu_s, "s", f"in {after.at - before.at:.0f} s")
    figures.add("RSS of serve", after.rss_mb, "MB")


def _note_power(host: EmulatedHost, seen: Moments) -> None:
    """Note when the machine goes down, and when it has booted."""
    power, boot = type(host)._on_power, type(host)._on_boot  # noqa: SLF001 - the hooks that the host hangs up itself

    def switched(system: str, state: str, moment: datetime) -> None:
        if state == "Off":
            seen.down.setdefault(host.node, time.time())
        power(host, system, state, moment)

    def booted(system: str, source: str, moment: datetime) -> None:
        seen.booted.setdefault(host.node, time.time())
        boot(host, system, source, moment)

    host.machine.on_power, host.machine.on_boot = switched, booted


async def _tell(world: World, node: str) -> None:
    """Have the node's agent say the line of a fault that is not fatal."""
    line = NOT_FATAL.format(gpu_address(0))
    await world.cell.agents.say(node, Observation(node, "kernel_log", "agent", "", 2, text=line, facility=0))


async def _watch_nodes(admin: Admin, version: str, seen: Moments) -> None:
    async with admin.api.watch("/api/v1/nodes", {"resourceVersion": version}, WATCHED_S) as lines:
        async for line in lines:
            node = read_event(line, read_node).item
            if node is None:
                continue
            if any(taint.key == CORDON for taint in node.taints):
                seen.cordoned.setdefault(node.key, time.time())
            elif node.key in seen.cordoned:
                seen.back.setdefault(node.key, time.time())


async def _watch_pods(admin: Admin, version: str, seen: Moments) -> None:
    async with admin.api.watch("/api/v1/namespaces/acme/pods", {"resourceVersion": version}, WATCHED_S) as lines:
        async for line in lines:
            event = read_event(line, read_pod)
            if event.item is not None and event.type == "DELETED":
                seen.drained.setdefault(event.item.node, time.time())


async def _raised(world: World, began: datetime, count: int) -> dict[str, float]:
    """When the condition was recorded on each node, by the journal's moments."""
    found = await _records(world, "condition_raised", 4 * count, began)
    return {
        one["event"]["condition"]["node"]: datetime.fromisoformat(one["at"]).timestamp()
        for one in found
        if one["event"]["condition"]["type"] == RAISED
    }


async def _records(world: World, name: str, most: int, since: datetime | None = None) -> list[Any]:
    """Records of this name, oldest first, so many at most."""
    fleet, found, cursor = world.cell.fleet, list[Any](), ""
    while True:
        words = {"name": name, "order": "oldest", "limit": "1000", **({"cursor": cursor} if cursor else {})}
        words |= {"since": since.isoformat()} if since else {}
        url = f"{fleet.server}/v1/records"
        async with fleet.session.get(url, params=words, headers=fleet.as_operator) as answer:
            assert answer.status == 200, await answer.text()
            page = msgspec.json.decode(await answer.read())
        found += page["items"]
        cursor = page["cursor"]
        if not cursor or len(found) >= most:
            return found


def _told(figures: Figures, seen: Moments, raised: dict[str, float], victims: list[str], settings: Settings) -> None:
    """Each stage from the line on, the whole, and what must not have happened."""
    stages = (("detect", raised), ("cordon", seen.cordoned), ("drained", seen.drained), ("rebooted", seen.booted))
    for what, moments in (*stages, ("back", seen.back)):
        _quantiles(figures, f"line → {what}", [moments[n] - seen.said[n] for n in victims if n in moments], victims)
    whole = [seen.back[n] - raised[n] for n in victims if n in seen.back and n in raised]
    peer = f"NVSentinel publishes {PEER_S[0]:.1f} and {PEER_S[1]:.1f} s"
    _quantiles(figures, "detect → back in service", whole, victims, peer)
    _quantiles(figures, "… without the machine's own time", [s - settings.device_s for s in whole], victims)
    wrong = (seen.cordoned.keys() | seen.down.keys()) - set(victims)
    figures.add("wrong nodes cordoned or rebooted", len(wrong), "", "must be 0")
    early = [n for n in victims if n in seen.down and seen.down[n] <= seen.drained.get(n, float("inf"))]
    figures.add("rebooted before drained", len(early), "", "must be 0")


def _quantiles(figures: Figures, what: str, took: list[float], victims: list[str], note: str = "") -> None:
    found = f"{len(took)} of {len(victims)} seen"
    if len(took) < 2:
        figures.add(f"{what}: seen", len(took), "", f"of {len(victims)}: too few for a quantile")
        return
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    figures.add(f"{what}: P50", cuts[49], "s", note or found)
    figures.add("… P99", cuts[98], "s", found if note else "")


if __name__ == "__main__":
    print(main(), flush=True)
