"""NVSentinel's published experiment on Hostler: a burst of faults that need a reboot, from the kernel line to service.

10,005 nodes; 200 of them need a reboot in the same second; then 200 others do among 1,800 whose faults are not fatal.
NVSentinel publishes 70.0 s (P50) and 89.0 s (P99) from detection to service, with a simulated reboot of 5 s.

Real: etcd, API server, its controllers and scheduler, `hostler serve` in a process of its own with a synced journal,
and for each of the 400 nodes that break an agent, its spool and operation log. Simulated: kubelets (kwok), the machines
under the agents (a reboot takes `--reboot-s`, the gate's checks `--gate-s`), and the other agents, which are one client
that posts inventories, heartbeats and the lines of faults that are not fatal. All share the machine's cores. The storm
brake and the budgets are opened, as 200 nodes at once would be held by either; NVSentinel's breaker holds at half.

It ends with exit code 1, and says which nodes wait for what, where nothing has moved for `--patience-s`.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct, field

from bench.figures import Figures
from bench.served_cluster import StandsStillError, World, a_world, reached, say, used
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
"""NVSentinel's P50 and P99 from detection to service under a burst of 200 nodes, with a simulated reboot of 5 s.

https://github.com/NVIDIA/NVSentinel/issues/1705, and its report in pull request 1789 as of 2026-09-17.
"""
WATCHED_S = 4 * 3600.0
STILL_S = 5.0
"""So long the watches go on after the last node serves again."""


class Settings(Struct, frozen=True):
    """Size of the experiment, and how long the simulated machines take."""

    nodes: int = 10_005
    faults: int = 200
    beside: int = 1_800
    reboot_s: float = 5.0
    gate_s: float = 5.0
    patience_s: float = 300.0

    @property
    def device_s(self) -> float:
        """The part of a node's way back takes of the machine's own time."""
        return self.reboot_s + self.gate_s


class Moments(Struct):
    """Moments by node, in seconds of the wall clock: what was said, and what an independent watch then saw.

    `again` are nodes that were cordoned once more; `late_s` is by how much the watch itself came late, at most.
    """

    said: dict[str, float] = field(default_factory=dict)
    cordoned: dict[str, float] = field(default_factory=dict)
    drained: dict[str, float] = field(default_factory=dict)
    down: dict[str, float] = field(default_factory=dict)
    booted: dict[str, float] = field(default_factory=dict)
    back: dict[str, float] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    late_s: float = 0.0

    def stages(self) -> tuple[int, ...]:
        """How many nodes have come how far."""
        return tuple(len(one) for one in (self.cordoned, self.drained, self.down, self.booted, self.back))


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
    try:
        asyncio.run(measure(settings, figures))
    except StandsStillError as still:
        print(figures, flush=True)
        sys.exit(str(still))
    return figures


async def measure(settings: Settings, figures: Figures) -> None:
    """Both bursts on one cluster, on different nodes."""
    # Each agent's checks and writes block a thread of their own, as they do on nodes of their own.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * settings.faults + 16))
    names = [f"n{number:04}" for number in range(settings.nodes)]
    every = settings.nodes // (2 * settings.faults)
    fatal = names[::every][: 2 * settings.faults]
    others = [name for name in names if name not in frozenset(fatal)][: settings.beside]
    async with a_world(settings.nodes, frozenset(fatal)) as world, _machines(world, fatal, settings) as hosts:
        figures.add("nodes", settings.nodes, "", f"{len(fatal)} of them with an agent of their own")
        figures.add("simulated reboot", settings.reboot_s, "s", f"and {settings.gate_s:g} s of checks at the gate")
        await _burst(world, hosts, fatal[::2], [], settings, figures)
        await _burst(world, hosts, fatal[1::2], others, settings, figures)


@asynccontextmanager
async def _machines(world: World, names: list[str], settings: Settings) -> AsyncIterator[dict[str, EmulatedHost]]:
    """Emulated machines of these nodes, up, each with an agent of its own."""
    async with AgentCrowd() as crowd:
        with TemporaryDirectory() as folder:
            hosts = {name: _host(world, Path(folder), name, settings) for name in names}
            for host in hosts.values():
                host.crowd = crowd
                host.wake()
            turning = asyncio.create_task(_turn(hosts.values()))
            try:
                took_s = await world.settled(names, settings.patience_s)  # each has told its inventory
                say(f"{len(names)} agents of their own told theirs, their nodes are in production after {took_s:.0f} s")
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
    watching.append(asyncio.create_task(_watch_clock(seen)))
    await asyncio.sleep(2.0)
    say(f"{len(victims)} nodes need a reboot, {len(others)} have another fault")
    told = [asyncio.create_task(_tell(world, node)) for node in others]
    for node in victims:
        seen.said[node] = time.time()
        hosts[node].suffer(Trouble(RAISED, FATAL.format(gpu_address(0)), ("reboot",)))

    async def left() -> list[str]:
        """Victims that do not serve again; raises what broke a watch or a telling."""
        for task in (*watching, *told):
            if task.done():
                task.result()
                assert task in told, "a watch has ended before its time"
        return [node for node in victims if node not in seen.back]

    try:
        await reached(world.cell, "nodes that serve again", left, settings.patience_s, seen.stages, 0.2)
        await asyncio.gather(*told)
        await asyncio.sleep(STILL_S)  # what is done to a node that should be left alone is seen, too
    except StandsStillError:
        _told(figures, seen, await _raised(world, began), victims, settings)
        raise
    finally:
        for task in (*watching, *told):
            task.cancel()
        await asyncio.gather(*watching, *told, return_exceptions=True)
    raised = await _raised(world, began)
    after = used(world.cell.pid)
    beside = f" among {len(others)} that are not fatal" if others else ""
    figures.add(f"{len(victims)} fatal{beside}: load", os.getloadavg()[0], "", f"{os.cpu_count()} cores")
    _told(figures, seen, raised, victims, settings)
    figures.add("this client came late by at most", seen.late_s, "s", "no figure is finer")
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
                if node.key in seen.back:
                    seen.again.add(node.key)
            elif node.key in seen.cordoned:
                seen.back.setdefault(node.key, time.time())


async def _watch_clock(seen: Moments) -> None:
    """Note how late this process itself comes: no figure is finer than that."""
    while True:
        due = time.monotonic() + 0.05
        await asyncio.sleep(0.05)
        seen.late_s = max(seen.late_s, time.monotonic() - due)


async def _watch_pods(admin: Admin, version: str, seen: Moments) -> None:
    async with admin.api.watch("/api/v1/namespaces/acme/pods", {"resourceVersion": version}, WATCHED_S) as lines:
        async for line in lines:
            event = read_event(line, read_pod)
            if event.item is not None and event.type == "DELETED":
                seen.drained.setdefault(event.item.node, time.time())


async def _raised(world: World, began: datetime) -> dict[str, float]:
    """When the condition was recorded on each node, by the journal's moments."""
    found = await _records(world, "condition_raised", began)
    return {
        one["event"]["condition"]["node"]: datetime.fromisoformat(one["at"]).timestamp()
        for one in found
        if one["event"]["condition"]["type"] == RAISED
    }


async def _records(world: World, name: str, since: datetime) -> list[Any]:
    """Records of this name from this moment on, oldest first."""
    fleet, found, cursor = world.cell.fleet, list[Any](), ""
    while True:
        words = {"name": name, "since": since.isoformat(), "order": "oldest", "limit": "1000"}
        words |= {"cursor": cursor} if cursor else {}
        url = f"{fleet.server}/v1/records"
        async with fleet.session.get(url, params=words, headers=fleet.as_operator) as answer:
            assert answer.status == 200, await answer.text()
            page = msgspec.json.decode(await answer.read())
        found += page["items"]
        cursor = page["cursor"]
        if not cursor:
            return found


def _told(figures: Figures, seen: Moments, raised: dict[str, float], victims: list[str], settings: Settings) -> None:
    """Each stage from detection on, the whole, and what must not have happened."""
    found = [raised[n] - seen.said[n] for n in victims if n in raised]
    _quantiles(figures, "line → detected", found, victims)
    for what, moments in (("cordoned", seen.cordoned), ("drained", seen.drained), ("rebooted", seen.booted)):
        took = [moments[n] - raised[n] for n in victims if n in moments and n in raised]
        _quantiles(figures, f"detected → {what}", took, victims)
    whole = [seen.back[n] - raised[n] for n in victims if n in seen.back and n in raised]
    peer = f"; NVSentinel publishes {PEER_S[0]:.1f} and {PEER_S[1]:.1f} s"
    _quantiles(figures, "detected → back in service", whole, victims, peer)
    _quantiles(figures, "… without the machine's own time", [s - settings.device_s for s in whole], victims)
    wrong = (seen.cordoned.keys() | seen.drained.keys() | seen.down.keys()) - set(victims)
    figures.add("wrong nodes cordoned, drained or rebooted", len(wrong), "", "must be 0")
    early = [n for n in victims if n in seen.down and seen.down[n] <= seen.drained.get(n, float("inf"))]
    figures.add("remediated before drained", len(early), "", "must be 0")
    figures.add("cordoned again after they were back", len(seen.again), "", "must be 0")


def _quantiles(figures: Figures, what: str, took: list[float], victims: list[str], note: str = "") -> None:
    found = f"{len(took)} of {len(victims)} seen"
    if len(took) < 2:
        figures.add(f"{what}: seen", len(took), "", f"of {len(victims)}: too few for a quantile")
        return
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    figures.add(f"{what}: P50", cuts[49], "s", f"{found}{note}")
    figures.add("… P99", cuts[98], "s")


if __name__ == "__main__":
    print(main(), flush=True)
