"""The whole emulated fleet: 64 servers by default, of two SKUs, an NVL72-like rack among them, with jobs and faults."""

import asyncio
import random
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent.main import AgentSettings
from hostler.core.intents.registration import NodeSpec
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import Verdict
from hostler.sim.bmc.emulated_machine import make_image
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.emulated.emulated_agent import AgentCrowd
from hostler.sim.emulated.emulated_scheduler import JobSpec
from hostler.sim.emulated.emulated_server import EmulatedHost, Trouble, gb200, gpu_address, h100
from hostler.sim.emulated.kernel_messages import NAME, KernelMessages
from hostler.sim.emulated.lab_pace import pace_of

TRAYS = 18
GPUS_OF_POOLS = {"train": 8, "serve": 8, "nvl72": 4}
"""GPUs in a node of each pool."""

STORY = frozenset({"BIOS"})
"""Components that the BMC of the fleet's last node fails to write, until a person has seen to it."""

BASELINE = {"BIOS": "1.1.0", "BMC": "1.1.0", "GPU": "1.1.0"}


class FleetSettings(Struct, frozen=True):
    """Size and sources of the emulated fleet.

    `tokens` gives credentials of nodes' agents; `faults_per_hour` is for the whole fleet; `origins` are the BMCs'
    addresses of an earlier run, taken again where they are free. `real_agents`: they have the abilities of real ones.
    `adopted`: nodes serve their pools already, as many as each pool's target says; the others have never been on.
    """

    nodes: int
    scale: float
    seed: int
    faults_per_hour: float
    data: Path
    server: str
    tokens: Callable[[Sequence[str]], Sequence[str]]
    origins: dict[str, str] = {}
    real_agents: bool = False
    adopted: bool = False


class EmulatedFleet:
    """An async context manager: inside it the BMCs answer, and machines live as they are switched on."""

    def __init__(self, settings: FleetSettings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._random = random.Random(settings.seed)
        self.password = secrets.token_urlsafe(12)
        self.hosts: dict[str, EmulatedHost] = {}
        self.specs: list[NodeSpec] = []
        self.crowd = AgentCrowd()
        self._farm = Farm(clock, credentials=("hostler", self.password))
        self._depot: web.AppRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._messages = KernelMessages(settings.data / NAME, lambda node, line: self.hosts[node].say(line))
        self.images: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        await self._farm.__aenter__()
        await self._open_depot()
        await self.crowd.__aenter__()
        trays = trays_of(self._settings.nodes)
        names = [f"c1-n{number + 1:04d}" for number in range(self._settings.nodes)]
        for number, (name, token) in enumerate(zip(names, self._settings.tokens(names), strict=True)):
            await self._add(number, name, token, tray=number < trays)
        if not self._settings.origins:
            self._begin_story(self.specs[-1])
        self._messages.open()
        self._tasks = [asyncio.create_task(self._turn()), asyncio.create_task(self._break())]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._messages.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.crowd.hang_up()
        await asyncio.gather(*(host.stop() for host in self.hosts.values()), return_exceptions=True)
        await self.crowd.__aexit__()
        await self._farm.__aexit__(None, None, None)
        if self._depot is not None:
            await self._depot.cleanup()

    def gpus(self, node: str) -> tuple[str, ...]:
        """The serial numbers of a node's GPUs."""
        return tuple(part.serial for part in self.hosts[node].machine.parts if part.kind == "gpu")

    def configuration(self) -> str:
        """SKUs and pools of this fleet as a configuration document."""
        firmware = ", ".join(f"{name}: {version}" for name, version in BASELINE.items())
        images = ", ".join(f"{name}: '{url}'" for name, url in self.images.items())
        lines = ["skus:"]
        for name, gpus, model in (("h100-8", 8, "H100"), ("gb200-nvl72", 4, "GB200")):
            lines += [f"  {name}:", f"    gpus: {gpus}", f"    gpu_model: {model}"]
            lines += [f"    parts: {{gpu: {gpus}, cpu: 2, nic: {gpus}}}", "    models: {nic: ConnectX-7}"]
            lines += [f"    firmware: {{{firmware}}}", f"    images: {{{images}}}"]
        lines += ["pools:"]
        targets = targets_of(len(self.specs))
        for pool, sku, tenant in (
            ("train", "h100-8", "tenant-a"),
            ("serve", "h100-8", "tenant-b"),
            ("nvl72", "gb200-nvl72", "tenant-a"),
        ):
            lines += [f"  {pool}:", f"    sku: {sku}", f"    target: {targets[pool]}", f"    tenant: {tenant}"]
            lines += ["    cluster: lab", "    modes: {'*': act, idle_check: act}", f"    owner: {tenant} on-call"]
            lines += ["    budget: {count: 3, percent: 20, reserve: 1}", "    drain_deadline_s: 864000"]
        return "\n".join(lines) + "\n"

    def _begin_story(self, spec: NodeSpec) -> None:
        """The fleet's last node, a spare where others serve, fails its first firmware update."""
        if not spec.pool:
            machine = self.hosts[spec.id or ""].machine
            machine.quirks = replace(machine.quirks, fails_on=STORY)

    def mend_firmware(self, node: str) -> None:
        """A person clears the staging area of the node's BMC, which has refused an image: it takes the next."""
        machine = self.hosts[node].machine
        machine.quirks = replace(machine.quirks, fails_on=frozenset())

    def idle_verdict(self, node: str) -> tuple[Verdict, str]:
        """Verdict of a check on an idle node there."""
        standing = [trouble for trouble in self.hosts[node].trouble if trouble.cures]
        return (Verdict.failed, f"{standing[0].name} is there") if standing else (Verdict.passed, "emulated")

    async def _add(self, number: int, identity: str, token: str, *, tray: bool) -> None:
        serial = f"EMU{number + 1:05d}"
        rack = "nvl1" if tray else f"r{number // 8:02d}"
        state = self._settings.data / "agents" / identity
        state.mkdir(parents=True, exist_ok=True)
        token_file = state / "token"
        token_file.write_text(token)
        token_file.chmod(0o600)
        agent = AgentSettings(
            node=identity,
            server=self._settings.server,
            token_file=token_file,
            state_dir=state,
            allow_actions=True,
            pace=pace_of(self._settings.nodes),
        )
        hardware = gb200(serial) if tray else h100(serial)
        host = EmulatedHost(identity, hardware, agent, self._clock, self._settings.scale)
        host.real_abilities, host.crowd = self._settings.real_agents, self.crowd
        origin = await self._serve(identity, Service([host.machine]))
        self.hosts[identity] = host
        self.specs.append(
            NodeSpec(
                sku="gb200-nvl72" if tray else "h100-8",
                id=identity,
                serial=serial,
                bmc=origin,
                site="lab",
                row="a",
                rack=rack,
                u=1 + number % 40,
                domains=("nvlink:nvl1", "power:a") if tray else (f"leaf:l{number // 16}", f"power:b{number // 64}"),
                pool=pool_of(number, self._settings.nodes) if self._settings.adopted else "",
            )
        )

    async def _serve(self, identity: str, service: Service) -> str:
        """Serves it where it was served before, if that port is free; else on any."""
        before = self._settings.origins.get(identity, "").rpartition(":")[2]
        try:
            return await self._farm.serve(service, int(before or 0))
        except OSError:
            return await self._farm.serve(service)

    async def _open_depot(self) -> None:
        """A small file server with the baseline's firmware images, for the BMCs to fetch."""
        app = web.Application()

        async def image(request: web.Request) -> web.Response:
            name = request.match_info["component"]
            if name not in BASELINE:
                raise web.HTTPNotFound
            return web.Response(body=make_image(name, BASELINE[name]))

        app.router.add_get("/images/{component}", image)
        self._depot = web.AppRunner(app, access_log=None)
        await self._depot.setup()
        site = web.TCPSite(self._depot, "127.0.0.1", 0)
        await site.start()
        assert self._depot.addresses, "a started site has an address"
        port = self._depot.addresses[0][1]
        self.images = {name: f"http://127.0.0.1:{port}/images/{name}" for name in BASELINE}

    async def _turn(self) -> None:
        """Machines do what is due by now."""
        while True:
            now = self._clock()
            for host in self.hosts.values():
                host.machine.advance(now)
            await asyncio.sleep(0.1)

    async def _break(self) -> None:
        """Faults arrive at random on machines that are up."""
        if self._settings.faults_per_hour <= 0:
            return
        while True:
            await asyncio.sleep(self._random.expovariate(self._settings.faults_per_hour / 3600.0))
            up = [host for host in self.hosts.values() if host.up and not host.trouble]
            if up:
                self.break_one(self._random.choice(up))

    def break_one(self, host: EmulatedHost) -> None:
        """Give a host one of the faults that real fleets have, at about their shares."""
        gpus = sum(1 for part in host.machine.parts if part.kind == "gpu")
        address = gpu_address(self._random.randrange(gpus))
        kinds, weights = zip(*((make, weight) for make, weight in TROUBLES), strict=True)
        host.suffer(self._random.choices(kinds, weights)[0](address))


def jobs_of(nodes: int) -> list[JobSpec]:
    """Jobs of customers on a fleet of so many nodes: training over many of them, inference on single ones."""
    trays = trays_of(nodes)
    servers = nodes - trays
    return [
        JobSpec("pretrain", "train", "tenant-a", max(1, servers * 4 // 10), WorkClass.uninterruptible, 120.0),
        JobSpec("finetune", "train", "tenant-a", max(1, servers // 10), WorkClass.uninterruptible, 45.0),
        *(
            JobSpec(f"chat-{number}", "serve", "tenant-b", 1, WorkClass.graceful, 1e9)
            for number in range(max(1, servers * 2 // 10))
        ),
        JobSpec("moe", "nvl72", "tenant-a", max(1, trays - 4), WorkClass.uninterruptible, 90.0),
    ]


def trays_of(nodes: int) -> int:
    """How many of the nodes are trays of the NVL72-like rack."""
    return TRAYS if nodes >= 2 * TRAYS else nodes // 3


def targets_of(nodes: int) -> dict[str, int]:
    """How many of the nodes each pool is to have."""
    trays = trays_of(nodes)
    servers = nodes - trays
    return {"train": servers * 6 // 10, "serve": servers * 3 // 10, "nvl72": max(0, trays - 2)}


def pool_of(number: int, nodes: int) -> str:
    """The pool that a node of an adopted fleet serves, "" for spares. Trays come first, then servers."""
    targets, trays = targets_of(nodes), trays_of(nodes)
    if number < trays:
        return "nvl72" if number < targets["nvl72"] else ""
    server = number - trays
    if server < targets["train"]:
        return "train"
    return "serve" if server < targets["train"] + targets["serve"] else ""


def _xid(name: str, rest: str, *cures: str) -> Callable[[str], Trouble]:
    return lambda address: Trouble(name, f"NVRM: Xid (PCI:{address}): {rest}", cures)


TROUBLES: tuple[tuple[Callable[[str], Trouble], float], ...] = (
    (_xid("gpu.fallen_off_bus", "79, pid=1234, name=python3, GPU has fallen off the bus.", "power_cycle"), 3),
    (_xid("gpu.gsp_timeout", "119, pid=1234, name=python3, Timeout waiting for RPC from GSP!", "gpu_reset"), 3),
    (_xid("gpu.ecc_contained", "94, pid=1234, name=python3, Contained: CE User Channel (0x9).", "gpu_reset"), 3),
    (_xid("gpu.nvlink_error", "74, pid=1234, name=python3, NVLink: fatal error detected on link 4", "gpu_reset"), 1),
    (_xid("gpu.row_remap_failure", "64, pid=1234, name=python3, Row Remapper: failed", "repair"), 1),
    (_xid("gpu.application_error", "13, pid=1234, name=python3, Graphics Exception: ESR 0x404490=0x80000001"), 3),
    (lambda _address: Trouble("host.crash", "", ("power_cycle",), crashes=True), 2),
)
"""Faults, and the share of each."""
