"""The laboratory: a served cell, and nodes whose agents are the real ones over machines that are not there.

`hostler serve` is a process of its own. Every agent has its own pipe of kernel-log records, its spool on disk, its
children that read NVML and the host, and posts over HTTP; BMCs answer over sockets. What is recorded is heard as any
client hears it, from the cell's stream of events.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
import traceback
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.detection.decided import POOLS, name_of, record
from bench.detection.plants import GPUS, gpu_address
from bench.detection.states import HEALTHY_FACTS, HEALTHY_HOST
from bench.detection.watched import HEALTHY, STATES, gpu_parts, machine_of, twin_addresses, write
from hostler.agent.child_process import Companion
from hostler.agent.collectors import gpu_state, host_state, network_ports
from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.machine import EmulatedHostMachine, Powers, RealHostMachine, SensorSources
from hostler.agent.main import AgentSettings, serve
from hostler.core.state.model import Facts
from hostler.journal.opening import open_journal
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.request_faults import RequestFaults
from tests.end_to_end.processes import HOSTLER, free_port, process
from tests.kit import POLICY

THREADS = 512
"""Agents block threads: a reader each, and their polls."""
UP_S = 60.0
HOST_S = 20.0
ASK_S = 0.2


class Machinery(EmulatedHostMachine):
    """The machine of one node: GPUs from a file, a host from a directory of files, both read by the real children.

    What a node does not need it does not have: `gpus` and `host` say which children it gets.
    """

    def __init__(self, number: int, place: Path, *, gpus: bool, host: bool) -> None:
        super().__init__(name_of(number), gpu_parts(number))
        self._addresses = twin_addresses() if gpus else tuple(gpu_address(gpu) for gpu in range(GPUS))
        self.twin, self.files = place / "gpus.json", place / "files"
        self._boot = str(uuid.uuid4())
        self.become(HEALTHY)
        write(self.files, HEALTHY_HOST)
        self._reads_gpus = gpus
        self._real = RealHostMachine(self.node, place, Powers(), SensorSources((), str(self.twin)))
        argv = (sys.executable, "-m", "hostler.agent.collectors.host_reader", str(self.files), "")
        self._host = Companion(argv) if host else None

    def become(self, state: str) -> None:
        """The GPUs are in a recorded state from now on."""
        fresh = self.twin.with_suffix(".new")
        fresh.write_text(json.dumps({"base": str(STATES / f"{state}.json")}))
        fresh.replace(self.twin)

    def boot_id(self) -> str:
        return self._boot

    def inventory(self) -> NodeInventory:
        addresses: Facts = {f"pci:{pci}": f"gpu{gpu}" for gpu, pci in enumerate(self._addresses)}
        return NodeInventory(self.parts, {"covers": "gpu", **addresses})

    def gpus(self) -> gpu_state.GpuPoll:
        return self._real.gpus() if self._reads_gpus else super().gpus()

    def host(self) -> Facts | None:
        return {**host_state.decoded(self._host.ask("read", HOST_S)), **HEALTHY_FACTS} if self._host else None

    def ports(self) -> dict[str, str]:
        return network_ports.read(self.files) if self._host else {}

    def close(self) -> None:
        """End the children."""
        self._real.close()
        if self._host:
            self._host.close()


class LabNode:
    """One node: its machine, its pipe of kernel-log records, its agent's settings, and where it has one its BMC.

    `stop` ends its agent, `spoilt` are rules that spoil what is asked of its BMC.
    """

    def __init__(self, number: int, place: Path, settings: AgentSettings, body: Machinery) -> None:
        self.number = number
        self.place = place
        self.settings = settings
        self.body = body
        self.bmc: Machine | None = None
        self.spoilt = RequestFaults()
        self.stop = asyncio.Event()
        os.mkfifo(settings.kernel_log, 0o600)
        self._log = os.open(settings.kernel_log, os.O_RDWR | os.O_NONBLOCK)
        self._records = 0

    def say(self, lines: tuple[str, ...], facility: int = 0) -> None:
        """Lines come into the kernel log, now."""
        for line in lines:
            os.write(self._log, record(line, self._records, time.monotonic(), facility))
            self._records += 1

    def lose(self, records: int) -> None:
        """So many records are overwritten before anybody reads them."""
        self._records += records
        self.say(("the first line after them",))

    def close(self) -> None:
        """Let go of the pipe and of the children."""
        os.close(self._log)
        self.body.close()


class Told(msgspec.Struct, frozen=True):
    """A condition that the stream told of: when it was heard (monotonic), of which node, type and part."""

    heard_s: float
    node: str
    type: str
    part: str
    severity: int


class Lab:
    """The running laboratory. `told` grows as the cell records conditions."""

    def __init__(self, nodes: list[LabNode], url: str, token: str, session: aiohttp.ClientSession) -> None:
        self.nodes = nodes
        self.told: list[Told] = []
        self._news = asyncio.Event()
        self._url = url
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}"}

    async def get(self, path: str) -> Any:
        """The API's answer. Raises RuntimeError for a refusal."""
        async with self._session.get(f"{self._url}{path}", headers=self._headers) as answer:
            return await _answered(answer)

    async def post(self, path: str, body: object) -> Any:
        """The API's answer. Raises RuntimeError for a refusal."""
        async with self._session.post(f"{self._url}{path}", headers=self._headers, json=body) as answer:
            return await _answered(answer)

    async def listen(self, begun: asyncio.Event) -> None:
        """Hear what is recorded, until cancelled."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=None)
        async with self._session.get(f"{self._url}/v1/events", headers=self._headers, timeout=timeout) as stream:
            begun.set()
            async for line in stream.content:
                if line.startswith(b"data: ") and b'"condition_' in line:
                    self._hear(json.loads(line[6:]), time.monotonic())

    def _hear(self, record_: Any, heard_s: float) -> None:
        condition = record_["event"].get("condition")
        if record_["name"] in ("condition_raised", "condition_updated") and isinstance(condition, dict):
            found = (condition["node"], condition["type"], condition.get("part", ""), int(condition["severity"]))
            self.told.append(Told(heard_s, *found))
            self._news.set()

    async def until(self, seen: Callable[[], bool], patience_s: float) -> None:
        """Return once it is seen in what is told, or patience is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while not seen():
                    self._news.clear()
                    await self._news.wait()

    async def until_up(self) -> None:
        """Every node is in production. Raises TimeoutError."""
        async with asyncio.timeout(UP_S):
            for node in self.nodes:
                await self.until_in_production(name_of(node.number))

    async def until_in_production(self, node: str) -> None:
        """The phase is asked for again and again: it may have changed before anybody listened. Raises TimeoutError."""
        for _ in range(int(UP_S / ASK_S)):
            if (await self.get(f"/v1/nodes/{node}"))["node"]["phase"] == "production":
                return
            await asyncio.sleep(ASK_S)
        raise TimeoutError(f"{node} is not in production after {UP_S:g} s")


async def _answered(answer: aiohttp.ClientResponse) -> Any:
    if answer.status not in (200, 201):
        raise RuntimeError(f"{answer.url}: {answer.status} {await answer.text()}")
    return await answer.json()


class Wanted(msgspec.Struct, frozen=True):
    """Facts that a node needs beside its kernel log."""

    gpus: bool = False
    host: bool = False
    bmc: bool = False


@asynccontextmanager
async def lab(place: Path, wanted: list[Wanted]) -> AsyncIterator[Lab]:
    """The laboratory with so many nodes, all up and healthy; everything ends with the context."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    data, port = place / "data", free_port()
    data.mkdir(mode=0o700)
    (place / "policy.yaml").write_text(POLICY)
    (place / "pools.yaml").write_text(POOLS.replace("target: 1", f"target: {len(wanted)}"))
    url = f"http://127.0.0.1:{port}"
    open_journal(data / "journal.db").close()  # tokens without a journal are a cell that has lost it
    store = TokenStore(data / "tokens.db")
    operator = store.create(Grant("bench", Role.operator))
    nodes = [_node(number, one, place, url, store) for number, one in enumerate(wanted)]
    store.close()
    serving = ("serve", "--data", str(data), "--listen", f"127.0.0.1:{port}")
    documents = ("--config", str(place / "policy.yaml"), "--config", str(place / "pools.yaml"))
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        Farm(lambda: datetime.now(UTC)) as farm,
        process(HOSTLER, *serving, *documents, log=place / "log"),
    ):
        running = Lab(nodes, url, operator, session)
        origins = [await _bmc(node, farm) if one.bmc else "" for node, one in zip(nodes, wanted, strict=True)]
        await ready(session, url, place / "log")
        await running.post("/v1/adopt", {"nodes": [_spec(*pair) for pair in enumerate(origins)], "reason": "bench"})
        begun = asyncio.Event()
        listening = asyncio.create_task(running.listen(begun))
        agents = [asyncio.create_task(serve(node.settings, node.body, node.stop)) for node in nodes]
        try:
            await begun.wait()
            await running.until_up()
            yield running
        finally:
            for node in nodes:
                node.stop.set()
            ended = await asyncio.gather(*agents, return_exceptions=True)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            for node, end in zip(nodes, ended, strict=True):
                node.close()
                if isinstance(end, BaseException):
                    traceback.print_exception(end)


def _node(number: int, one: Wanted, place: Path, url: str, store: TokenStore) -> LabNode:
    own = place / name_of(number)
    (own / "state").mkdir(parents=True)
    (own / "checks").mkdir(mode=0o755)
    name = name_of(number)
    (own / "token").write_text(store.create(Grant(f"agent-{name}", Role.agent, node=name)))
    (own / "token").chmod(0o600)
    settings = AgentSettings(
        name, url, own / "token", own / "state", kernel_log=str(own / "kmsg"), checks_dir=str(own / "checks")
    )
    return LabNode(number, own, settings, Machinery(number, own, gpus=one.gpus, host=one.host))


async def _bmc(node: LabNode, farm: Farm) -> str:
    node.bmc = machine_of(node.number)
    return await farm.serve(Service([node.bmc], node.spoilt))


def _spec(number: int, origin: str) -> dict[str, str]:
    spec = {"id": name_of(number), "sku": "h100", "serial": f"SN{number}", "pool": "train"}
    return spec | ({"bmc": origin} if origin else {})


async def ready(session: aiohttp.ClientSession, url: str, log: Path) -> None:
    """The server answers and decides. Raises RuntimeError with what it said where it does not."""
    try:
        async with asyncio.timeout(UP_S):
            await _until_ready(session, url)
    except TimeoutError as error:
        said = await asyncio.to_thread(log.read_text)
        raise RuntimeError(f"{url} does not answer after {UP_S:g} s; it said:\n{said[-4000:]}") from error


async def _until_ready(session: aiohttp.ClientSession, url: str) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get(f"{url}/readyz") as answer:
                if answer.status == 200:
                    return
        await asyncio.sleep(0.1)
