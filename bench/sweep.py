"""A sweep of many BMCs: emulated ones over TLS in a process of their own, looked at by the watch that a cell runs."""

import asyncio
import contextlib
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.figures import Figures
from hostler.core.configuration import Configuration
from hostler.core.model import Binding, Node, Observation, Phase, Position
from hostler.core.policy.documents import parse
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connections import Connections
from hostler.drivers.redfish.exchange import Access
from hostler.drivers.redfish.eyes import RedfishEyes, RedfishSight
from hostler.engine.intake import Input
from hostler.engine.ready import Reply
from hostler.engine.rota import Pace
from hostler.engine.watch import Watch
from hostler.sim.bmc.faults import FaultBook, Rule
from hostler.sim.bmc.http import Farm
from hostler.sim.bmc.machine import Hardware, Machine
from hostler.sim.bmc.service import Service
from hostler.sim.bmc.tls import Certificate, self_signed

BMCS = int(os.environ.get("BENCH_BMCS", "10000"))
HANGING_EVERY = 100
"""One BMC of so many accepts the connection and then says nothing."""
PORT = 18443
USER, PASSWORD = "admin", "bench"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SENSORS = {f"gpu{n}_temp_c": 40.0 + n for n in range(8)} | {"inlet_temp_c": 24.0, "total_power_w": 1900.0}
SENSORS |= {f"fan{n}_rpm": 8200.0 for n in range(1, 7)}


def host_of(number: int) -> str:
    """A loopback address of its own for each BMC, so that each is a host of its own to the pool."""
    return f"127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}"


async def _serve(count: int, certificate: Certificate, told: Connection) -> None:
    async with Farm(lambda: datetime.now(UTC), credentials=(USER, PASSWORD), certificate=certificate) as farm:
        for number in range(count):
            limits = {name: 92.0 for name in SENSORS if name.startswith("gpu")}
            machine = Machine(f"s{number}", Hardware(f"SN{number}", sensors=SENSORS, limits_c=limits))
            machine.start_powered()
            hangs = (Rule("*", latency_s=3600.0, times=0),) if number % HANGING_EVERY == HANGING_EVERY - 1 else ()
            await farm.serve(Service([machine], FaultBook(*hangs)), PORT, host_of(number))
        told.send("ready")
        await asyncio.to_thread(told.recv)
        told.send(time.process_time())


def _emulate(count: int, certificate: Certificate, told: Connection) -> None:
    asyncio.run(_serve(count, certificate, told))


class _View:
    """What the watch asks of a fleet."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.nodes = nodes
        policy = files("hostler.core.policy").joinpath("default_policy.yaml").read_text()
        self._configuration = parse({"policy.yaml": policy, "fleet.yaml": "skus: {h100: {gpus: 8}}"})

    def configuration_of(self, _node: Node) -> Configuration:
        return self._configuration


class _Journal:
    def cursors(self) -> dict[str, tuple[str, int]]:
        return {}


class _Cell:
    """A cell that counts what it is told; deciding has its own benchmark."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.view = _View(nodes)
        self.journal = _Journal()

    def tell(self, _one: Input) -> None:
        return

    async def observe(self, _node: str, seen: tuple[Observation, ...]) -> Reply:
        return Reply(0, acknowledged=seen[-1].sequence)


class _Counted:
    """The driver's eyes, and whose readings are complete."""

    def __init__(self, eyes: RedfishEyes, wanted: int) -> None:
        self._eyes = eyes
        self._wanted = wanted
        self.read: set[str] = set()
        self.looks = 0
        self.swept = asyncio.Event()

    async def look(self, node: Node) -> "_CountedSight":
        return _CountedSight(self, await self._eyes.look(node), node.id)

    def done(self, node: str) -> None:
        self.looks += 1
        self.read.add(node)
        if len(self.read) >= self._wanted:
            self.swept.set()


class _CountedSight:
    def __init__(self, counted: _Counted, sight: RedfishSight, node: str) -> None:
        self.power = sight.power
        self._counted, self._sight, self._node = counted, sight, node

    async def entries(self, cursor: str) -> tuple[tuple[Observation, ...], str]:
        return await self._sight.entries(cursor)

    async def sensors(self) -> Observation:
        read = await self._sight.sensors()
        assert len(read.facts) >= len(SENSORS), read.text
        self._counted.done(self._node)
        return read


def _nodes(count: int) -> dict[str, Node]:
    nodes = {}
    for number in range(count):
        origin = f"https://{host_of(number)}:{PORT}"
        bindings = (Binding("serial", f"SN{number}", NOW), Binding("bmc", origin, NOW))
        name = f"n{number}"
        nodes[name] = Node(name, Position("c"), "h100", Phase.production, NOW, NOW, bindings=bindings)
    return nodes


async def _sweep(figures: Figures, count: int, certificate: Certificate) -> None:
    nodes = _nodes(count)
    access = Access(USER, PASSWORD, fingerprint=certificate.fingerprint)
    flat_out = Pace(period_s=0.0, looks_per_s=1e9, close_s=1e9)
    async with Connections() as connections:
        eyes = RedfishEyes(Clients(connections, lambda _: access))
        await _round(
            figures, "flat out, nothing known", _Counted(eyes, count - count // HANGING_EVERY), nodes, flat_out
        )
        await _round(
            figures, "flat out, layouts known", _Counted(eyes, count - count // HANGING_EVERY), nodes, flat_out
        )


async def _round(figures: Figures, what: str, eyes: _Counted, nodes: dict[str, Node], pace: Pace) -> None:
    cell: Any = _Cell(nodes)
    watch = Watch(cell, eyes, lambda: datetime.now(UTC), pace)
    began, cpu = time.monotonic(), time.process_time()
    task = asyncio.ensure_future(watch.run())
    await asyncio.wait({task, asyncio.ensure_future(eyes.swept.wait())}, return_when=asyncio.FIRST_COMPLETED)
    took, used = time.monotonic() - began, time.process_time() - cpu
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print(f"sweep: {what}: {took:.1f} s, {used:.1f} s of CPU, {len(eyes.read)} read", file=sys.stderr, flush=True)
    figures.add(what, took, "s", f"{len(nodes)} BMCs over TLS, one in {HANGING_EVERY} of them hangs")
    figures.add("  BMCs a second", len(eyes.read) / took, "1/s", f"{eyes.looks} looks")
    figures.add("  CPU of the watching process", used, "s", f"{used / took * 100:.0f} % of a core")
    figures.add("  RSS after it", _rss_mib(), "MiB")


def _rss_mib() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize() / 1024**2


@contextlib.contextmanager
def _emulated(count: int, certificate: Certificate) -> Iterator[Connection]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_emulate, args=(count, certificate, there))
    process.start()
    try:
        here.recv()
        yield here
    finally:
        process.terminate()
        process.join()


def main() -> Figures:
    """Serve the BMCs, sweep them twice."""
    figures = Figures("sweep")
    count = BMCS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if count + 1024 > limit:
        print(f"sweep: {count} BMCs need as many open files, {limit} are allowed", file=sys.stderr)
        count = max(100, limit - 1024)
    certificate = self_signed(datetime.now(UTC))
    with _emulated(count, certificate) as there:
        asyncio.run(_sweep(figures, count, certificate))
        there.send("end")
        figures.add("CPU of the emulating process", there.recv(), "s", "starting included")
    return figures


if __name__ == "__main__":
    print(main())
