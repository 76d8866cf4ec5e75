"""A sweep of many BMCs: emulated ones over TLS in a process of their own, looked at by the watch that a cell runs."""

import asyncio
import gc
import os
import resource
import sys
import time
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvloop

from bench.bmcs import HANGING_EVERY, PORT, emulated, host_of, machine
from bench.figures import Figures
from hostler.controller.inputs import Input
from hostler.controller.step_output import Reply
from hostler.core.policy.documents import parse
from hostler.core.state.assets import Binding, Position
from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.configuration import Configuration
from hostler.core.state.model import Node, Observation, Phase
from hostler.core.state.packed_strings import pairs
from hostler.drivers.redfish.bmc_reader import BmcLook, RedfishReader
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.polling import bmc_readings
from hostler.polling.bmc_poller import BmcPoller
from hostler.polling.bmc_schedule import Pace
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.sim.bmc.tls_certificates import Certificate, self_signed

BMCS = int(os.environ.get("BENCH_BMCS", "10000"))
ALL_OF = 500
"""Of so many BMCs everything is read once: what is asked every half hour and every hour."""
USER, PASSWORD = "admin", "bench"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
READINGS = 39
"""Of each BMC: temperatures, their limits, speeds and words of fans, words of supplies, redundancy, a leak detector."""


class _View:
    """View of a fleet that the watch asks."""

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

    def __init__(self, reader: RedfishReader, wanted: int) -> None:
        self._reader = reader
        self._wanted = wanted
        self.read: set[str] = set()
        self.looks = 0
        self.swept = asyncio.Event()

    async def look(self, node: Node) -> "_CountedSight":
        return _CountedSight(self, await self._reader.look(node), node.id)

    def done(self, node: str) -> None:
        self.looks += 1
        self.read.add(node)
        if len(self.read) >= self._wanted:
            self.swept.set()


class _CountedSight:
    def __init__(self, counted: _Counted, reader: BmcLook, node: str) -> None:
        self.power, self.health, self.version = reader.power, reader.health, reader.version
        self._counted, self._sight, self._node = counted, reader, node

    async def certificate(self) -> ShownCertificate | None:
        return await self._sight.certificate()

    async def entries(self, cursor: str) -> tuple[tuple[Observation, ...], str]:
        return await self._sight.entries(cursor)

    async def parts(self) -> Observation:
        return await self._sight.parts()

    async def inventory(self) -> Observation:
        return await self._sight.inventory()

    async def firmware(self) -> Observation:
        return await self._sight.firmware()

    async def sensors(self) -> Observation:
        read = await self._sight.sensors()
        assert len(read.facts) >= READINGS, (len(read.facts), read.text)
        self._counted.done(self._node)
        return read


def _nodes(count: int) -> dict[str, Node]:
    nodes = {}
    for number in range(count):
        origin, serial = f"https://{host_of(number)}:{PORT}", f"SN{number}"
        bindings = (Binding("serial", serial, NOW), Binding("bmc", origin, NOW))
        name, slots = f"n{number}", pairs((part.slot, part.serial) for part in machine(serial).parts)
        nodes[name] = Node(name, Position("c"), "h100", Phase.production, NOW, NOW, bindings=bindings, slots=slots)
    return nodes


async def _sweep(figures: Figures, count: int, certificate: Certificate) -> None:
    nodes = _nodes(count)
    gc.collect()
    gc.freeze()  # as the runner does with its fleet
    gc.set_threshold(*COLLECTIONS)
    access = Access(USER, PASSWORD, fingerprint=certificate.fingerprint)
    flat_out = Pace(period_s=0.0, looks_per_s=1e9, close_s=1e9)
    async with Connections() as connections:
        reader = RedfishReader(Clients(connections, lambda _: access))
        for what in ("flat out, nothing known", "flat out, layouts known"):
            await _round(figures, what, _Counted(reader, count - count // HANGING_EVERY), nodes, flat_out)
        bmc_readings.PARTS_S = bmc_readings.FIRMWARE_S = bmc_readings.LOG_S = 0.0
        some = dict(list(nodes.items())[:ALL_OF])
        what = "with parts, firmware and log of each"
        await _round(figures, what, _Counted(reader, len(some) - len(some) // HANGING_EVERY), some, flat_out)


async def _round(figures: Figures, what: str, reader: _Counted, nodes: dict[str, Node], pace: Pace) -> None:
    cell: Any = _Cell(nodes)
    watch = BmcPoller(cell, reader, lambda: datetime.now(UTC), pace)
    began, cpu = time.monotonic(), time.process_time()
    task = asyncio.ensure_future(watch.run())
    await asyncio.wait({task, asyncio.ensure_future(reader.swept.wait())}, return_when=asyncio.FIRST_COMPLETED)
    took, used = time.monotonic() - began, time.process_time() - cpu
    if task.done():
        task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print(f"sweep: {what}: {took:.1f} s, {used:.1f} s of CPU, {len(reader.read)} read", file=sys.stderr, flush=True)
    figures.add(what, took, "s", f"{len(nodes)} BMCs over TLS, one in {HANGING_EVERY} of them hangs")
    figures.add("  CPU of the watching process", used, "s", f"{used / took * 100:.0f} % of a core")
    figures.add("  CPU of a look", used / max(1, reader.looks) * 1000, "ms", f"{reader.looks} looks")
    figures.add("  RSS after it", _rss_mib(), "MiB")


def _rss_mib() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize() / 1024**2


def main() -> Figures:
    """Serve the BMCs, sweep them twice."""
    figures = Figures("sweep")
    certificate = self_signed(datetime.now(UTC))
    with emulated(certificate) as there:
        there.send("cpu")
        before = there.recv()
        uvloop.run(_sweep(figures, BMCS, certificate))
        there.send("cpu")
        figures.add("CPU of the emulating process", there.recv() - before, "s", "both sweeps")
    figures.add("load of the machine", os.getloadavg()[0], "", "over the last minute")
    return figures


if __name__ == "__main__":
    print(main())
