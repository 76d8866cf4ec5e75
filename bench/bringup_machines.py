"""Machines for the bring-up benchmark: an emulated BMC behind real HTTP each, and an agent that takes a stated time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

import aiohttp
import msgspec
from aiohttp import web
from msgspec import Struct

from hostler.agent.controller_client import (
    About,
    ControllerClient,
    OperationOrder,
    RejectedError,
    UnavailableError,
    UnreadableOrder,
)
from hostler.agent.machine import emulated_erasure
from hostler.core.state.erasure import REPORT
from hostler.core.state.model import Facts, Observation, Operation, Outcome
from hostler.core.state.operations import RunChecks, Sanitise
from hostler.sim.bmc.emulated_machine import Delays, Machine, make_image
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.emulated.emulated_server import h100
from tests.kit import seen_all

T = TypeVar("T")
HEARTBEAT_S = 15.0
"""Real agents say every five seconds that they live; these share the cores with what is measured."""
TURN_S = 0.05
PROFILES = ("burn_in", "gate", "seatrial", "suspect")
USER, PASSWORD = "hostler", "secret"


class Timing(Struct, frozen=True):
    """How long a machine's own acts take, in seconds, before they are divided by `faster`.

    The first four are the middles of `sim.bmc.emulated_machine.Delays`, where their sources stand; the others are
    chosen: real burn-ins take a day and more, which only makes what Hostler adds a smaller part.
    """

    on: float = 3.5
    off: float = 6.0
    boot: float = 165.0
    write: float = 180.0
    seatrial: float = 600.0
    burn_in: float = 1200.0
    sanitise: float = 60.0
    faster: float = 1.0

    @property
    def device_s(self) -> float:
        """Sum on the way to production: start, Seatrial, BIOS written, power cycle, burn-in, erasing."""
        started, cycled = self.on + self.boot, self.off + self.on + self.boot
        return (started + self.seatrial + self.write + cycled + self.burn_in + self.sanitise) / self.faster

    @property
    def delays(self) -> Delays:
        """Of its BMC."""
        return Delays(
            scale=1 / self.faster,
            on=(self.on, self.on),
            off=(self.off, self.off),
            boot=(self.boot, self.boot),
            write=(self.write, self.write),
        )

    def of(self, operation: Operation) -> float:
        """Of an operation of its agent."""
        act = operation.act
        name = act.profile if isinstance(act, RunChecks) else act.kind
        return float(getattr(self, name, 0.0)) / self.faster


class Agent:
    """Plays the agent from a boot to the next power-off. It speaks as the real agent does and has no spool."""

    def __init__(self, node: str, machine: Machine, client: ControllerClient, timing: Timing) -> None:
        self._node = node
        self._machine = machine
        self._client = client
        self._timing = timing
        self._boot_id = ""
        self._living: asyncio.Task[None] | None = None
        machine.on_power, machine.on_boot = self._powered, self._booted

    def end(self) -> None:
        """Ends the agent without a word."""
        if self._living is not None:
            self._living.cancel()

    def _powered(self, _system: str, state: str, _moment: datetime) -> None:
        if state == "Off":
            self.end()

    def _booted(self, _system: str, _source: str, moment: datetime) -> None:
        self._boot_id = f"{self._node}-{moment.timestamp():.6f}"
        self._living = asyncio.get_running_loop().create_task(self._live())

    async def _live(self) -> None:
        spool = self._boot_id
        found = tuple(self._machine.parts)
        seen = Observation(self._node, "inventory", "agent", spool, 1, boot_id=self._boot_id, parts=found)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat())
            await _insist(lambda: self._client.observations(spool, self._boot_id, [seen]))
            begun: set[tuple[str, int]] = set()
            while True:
                for order in await _insist(self._client.operations):
                    if fresh := _fresh(order, begun):
                        tasks.create_task(self._perform(fresh))

    async def _beat(self) -> None:
        while True:
            await _insist(lambda: self._client.heartbeat(self._boot_id, About("bench", profiles=PROFILES)))
            await asyncio.sleep(HEARTBEAT_S)

    async def _perform(self, operation: Operation) -> None:
        await asyncio.sleep(self._timing.of(operation))
        facts: Facts = {}
        if isinstance(operation.act, RunChecks):
            facts = {**seen_all(operation), "profile": operation.act.profile, "verdict": "passed"}
        elif isinstance(operation.act, Sanitise):
            facts = {REPORT: msgspec.json.encode(emulated_erasure(operation.act)).decode()}
        said = Outcome(operation.id, self._node, "done", "as the benchmark has it", facts, attempt=operation.attempt)
        await _insist(lambda: self._client.outcomes([said]))


def _fresh(order: OperationOrder | UnreadableOrder, begun: set[tuple[str, int]]) -> Operation | None:
    """The operation to be performed, None for what was begun, and for questions about it."""
    if not isinstance(order, OperationOrder) or order.mode != "perform":
        return None
    key = (order.operation.id, order.operation.attempt)
    if key in begun:
        return None
    begun.add(key)
    return order.operation


async def _insist(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, asked for until there is one."""
    while True:
        try:
            return await ask()
        except (UnavailableError, RejectedError):
            await asyncio.sleep(1.0)


class Machines:
    """The machines; an async context manager, inside which they live."""

    def __init__(self, folder: Path, server: str, timing: Timing) -> None:
        self._folder = folder
        self._server = server
        self._timing = timing
        self._farm = Farm(_now, credentials=(USER, PASSWORD))
        self._stack = AsyncExitStack()
        self._machines: list[Machine] = []
        self._agents: list[Agent] = []

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0)
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        await self._stack.enter_async_context(self._farm)
        turning = asyncio.create_task(self._turn())
        self._stack.callback(turning.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        for agent in self._agents:
            agent.end()
        await self._stack.aclose()

    async def make(self, node: str, token: str) -> dict[str, str]:
        """A machine that is off, and what an inventory says of it."""
        file = self._folder / f"{node}.token"
        file.touch(0o600)
        file.write_text(token)
        machine = Machine(node, h100(f"S-{node}"), self._timing.delays)
        client = ControllerClient(self._session, self._server, file, node)
        self._machines.append(machine)
        self._agents.append(Agent(node, machine, client, self._timing))
        return {"id": node, "sku": "this", "serial": f"S-{node}", "bmc": await self._farm.serve(Service([machine]))}

    async def _turn(self) -> None:
        while True:
            now = _now()
            for machine in self._machines:
                machine.advance(now)
            await asyncio.sleep(TURN_S)


def _now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def depot() -> AsyncIterator[str]:
    """Address from which the BMCs fetch the BIOS of the baseline."""

    async def image(_request: web.Request) -> web.Response:
        return web.Response(body=make_image("BIOS", "1.1.0"))

    app = web.Application()
    app.router.add_get("/bios", image)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/bios"
    finally:
        await runner.cleanup()
