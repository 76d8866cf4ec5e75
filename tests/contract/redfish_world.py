"""Worlds in which the Redfish driver is tried: each gives a node, a Hand for it, and a way to let time pass."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp.web
from msgspec.structs import replace

from hostler.core.state.assets import Binding, Position
from hostler.core.state.model import Node, Operation, Outcome, Phase
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import OperationDriver
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import RedfishTwin, images_by_name
from hostler.sim.bmc.request_faults import RequestFaultRule, RequestFaults
from hostler.sim.bmc.tls_certificates import Certificate, self_signed
from hostler.sim.bmc.vendors import VENDORS
from tests.acts import an_act
from tests.end_to_end.processes import free_port
from tests.tied_processes import tied

START = datetime(2026, 11, 1, tzinfo=UTC)
USER, PASSWORD = "admin", "correct horse"
ACCESS = Access(USER, PASSWORD)
CERTIFICATE = self_signed(datetime.now(UTC))


@dataclass
class Clock:
    """Virtual time for emulated BMCs behind real sockets: nothing is waited for."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class World:
    """A node whose BMC answers, and the Hand that reaches it. `machine` is None where the BMC is not ours."""

    driver: OperationDriver
    node: Node
    pass_by: Callable[[float], Awaitable[None]]
    machine: Machine | None = None
    image: str = ""
    faults: RequestFaults = field(default_factory=RequestFaults)
    numbers: Iterator[int] = field(default_factory=count)

    async def perform(self, kind: str, **args: Any) -> Outcome:
        return await self.driver.perform(operation(kind, self.node, **args), self.node)

    async def observe(self, kind: str, **args: Any) -> Outcome:
        return await self.driver.observe(operation(kind, self.node, **args), self.node)

    async def observe_until(self, result: str, kind: str, *, within_s: float = 30, **args: Any) -> Outcome:
        """Observe every second of the world's time until this result comes; the last one seen if it never does."""
        seen = await self.observe(kind, **args)
        for _ in range(int(within_s)):
            if seen.result == result:
                break
            await self.pass_by(1)
            seen = await self.observe(kind, **args)
        return seen

    async def verified(self, **versions: str | tuple[str, ...]) -> Outcome:
        """Outcome of a verification of its own, once it has read often enough to be sure."""
        asked = operation(
            "verify_firmware",
            self.node,
            wanted={name: (good,) if isinstance(good, str) else good for name, good in versions.items()},
        )
        asked = replace(asked, id=f"op-verify-{next(self.numbers)}")
        seen = await self.driver.perform(asked, self.node)
        for _ in range(40):
            if seen.result != "unknown":
                break
            await self.pass_by(10)
            seen = await self.driver.observe(asked, self.node)
        return seen

    @property
    def ours(self) -> Machine:
        assert self.machine, "only emulated BMCs of ours can be looked into"
        return self.machine


def operation(kind: str, node: Node, **args: Any) -> Operation:
    """An operation recorded long before START; its deadline is far from being reached."""
    started, deadline = START - timedelta(days=1), START + timedelta(days=3650)
    return Operation(f"op-{kind}", an_act(kind, **args), node.id, "plan", 0, started, deadline)


def node_at(address: str, serial: str, name: str = "n1") -> Node:
    bindings = (Binding("serial", serial, START), Binding("bmc", address, START))
    return Node(name, Position("cell"), "sku", Phase.zap, START, START, bindings=bindings)


def a_machine(serial: str = "SN1", quirks: Quirks | None = None, hardware: Hardware | None = None) -> Machine:
    return Machine(f"sys-{serial}", hardware or gpu_server(serial), Delays(), quirks or Quirks())


@asynccontextmanager
async def a_farm(clock: Clock, certificate: Certificate | None = None) -> AsyncIterator[Farm]:
    async with Farm(clock, credentials=(USER, PASSWORD), certificate=certificate) as farm:
        yield farm


@asynccontextmanager
async def a_hand(
    access: Access = ACCESS, clock: Callable[[], datetime] = lambda: START
) -> AsyncIterator[RedfishDriver]:
    async with Connections() as connections:
        yield RedfishDriver(Clients(connections, lambda _: access), clock)


@asynccontextmanager
async def emulated(
    backend: str = "http",
    machine: Machine | None = None,
    rules: tuple[RequestFaultRule, ...] = (),
    timeout_s: float = 30,
) -> AsyncIterator[World]:
    """Hostler's emulated BMC: over "http", "https", as one of many systems in a "shared" service, or as the "twin".

    A vendor's name: over HTTP, laid out as that vendor's are.
    """
    machine = machine or a_machine(quirks=Quirks(vendor=backend) if backend in VENDORS else None)
    clock, faults = Clock(), RequestFaults(*rules)
    others = [a_machine(f"OTHER{n}") for n in range(3)] if backend == "shared" else []
    service = Service([*others, machine], faults)

    async def pass_by(seconds: float) -> None:
        clock.pass_by(seconds)

    if backend == "twin":
        twin = _TwinHand(RedfishTwin({"https://twin": service}, images_by_name), clock)
        node = node_at("https://twin", machine.hardware.serial)
        yield World(twin, node, pass_by, machine, "http://images/BIOS/2.0.0", faults)
        return
    async with AsyncExitStack() as stack:
        farm = await stack.enter_async_context(a_farm(clock, CERTIFICATE if backend == "https" else None))
        fingerprint = CERTIFICATE.fingerprint if backend == "https" else ""
        access = Access(USER, PASSWORD, fingerprint=fingerprint, timeout_s=timeout_s)
        driver = await stack.enter_async_context(a_hand(access, clock))
        origin = await farm.serve(service)
        images = await stack.enter_async_context(image_server())

        async def pass_by_real(seconds: float) -> None:
            await farm.fetched()
            clock.pass_by(seconds)

        address = f"{origin}#{machine.id}" if backend == "shared" else origin
        yield World(
            driver, node_at(address, machine.hardware.serial), pass_by_real, machine, f"{images}/BIOS/2.0.0", faults
        )


@asynccontextmanager
async def image_server() -> AsyncIterator[str]:
    async def send(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(body=images_by_name(request.path))

    app = aiohttp.web.Application()
    app.router.add_get("/{component}/{version}", send)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


class _TwinHand:
    """The twin in the shape of a Hand, so that one suite tries both."""

    def __init__(self, twin: RedfishTwin, clock: Clock) -> None:
        self.kinds = twin.kinds
        self._twin = twin
        self._clock = clock

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        return self._twin.perform(operation, node, self._clock.now)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        return self._twin.observe(operation, node, self._clock.now)

    async def revoke(self, operation: Operation, node: Node) -> None:
        return None


@dataclass
class SushyTools:
    """OpenStack's emulator as a process of its own; every test takes a fresh system from it."""

    origin: str
    systems: list[str]

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        system = self.systems.pop()
        async with a_hand(Access(timeout_s=30), lambda: datetime.now(UTC)) as driver:
            yield World(driver, node_at(f"{self.origin}/redfish/v1/Systems/{system}", system), asyncio.sleep)


def start_sushy_tools(folder: Path, systems: int = 40) -> tuple[SushyTools, subprocess.Popen[bytes]]:
    """Start `sushy-emulator` with its fake driver on a free port and wait until it answers."""
    names = [str(uuid.uuid5(uuid.NAMESPACE_DNS, f"system-{n}")) for n in range(systems)]
    fakes = [
        {
            "uuid": name,
            "name": f"fake-{n}",
            "power_state": "Off",
            "external_notifier": False,
            "nics": [{"mac": f"00:5c:52:31:3a:{n:02x}", "ip": "172.22.0.100"}],
        }
        for n, name in enumerate(names)
    ]
    config = folder / "emulator.conf"
    config.write_text(
        "SUSHY_EMULATOR_FAKE_DRIVER = True\n"
        f"SUSHY_EMULATOR_FAKE_SYSTEMS = {fakes!r}\n"
        f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n"
    )
    port = free_port()
    program = Path(sys.executable).with_name("sushy-emulator")
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(
            tied(str(program), "--config", str(config), "-i", "127.0.0.1", "-p", str(port)),
            stdout=log,
            stderr=log,
            cwd=folder,
            env={"TMPDIR": tempfile.gettempdir(), "PATH": "/usr/bin:/bin"},
        )
    _wait_for(port, process, folder / "emulator.log")
    return SushyTools(f"http://127.0.0.1:{port}", names), process


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path, within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise AssertionError(f"sushy-emulator did not start: {log.read_text()[-2000:]}")
