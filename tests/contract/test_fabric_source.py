"""Promises of a source of discoveries: of the emulated one, and of infiniband-diags before ibsim, to a controller."""

import asyncio
import base64
import lzma
import os
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace

from hostler.agent.machine import Powers, RealHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import Kind
from hostler.core.fabric.rail_rule import RailRule
from hostler.core.fabric.validation import validate
from hostler.core.state.fabrics import DiscoverySource, FabricVerdict
from hostler.core.state.fabrics import Fabric as Registered
from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.infiniband.agent_pages import VERB, AgentPages
from hostler.drivers.infiniband.fabric_source import InfinibandSource, LookPlaces, RegisteredSource
from hostler.ports import FabricSource, OperationDriver, RefusedError, Secret, UnreachableError
from hostler.sim.bmc.tls_certificates import self_signed
from tests.drawing import first_in_gate
from tests.fabric_cell import FabricCell
from tests.fabrics import (
    FAULTS,
    LARGE,
    Fabric,
    a_fabric,
    darken_host,
    diagnosed,
    lldp_of,
    misname_adapters,
    narrow,
    openconfig_of,
    printed,
    repaired,
    swap_at_host,
    swap_at_leaf,
    ufm_pages,
)
from tests.ibsim import required, simulated
from tests.kit import Drive, a_node

NOW = datetime(2026, 1, 1, tzinfo=UTC)

MIDDLE = RailRule(hosts=64, unit=16, radix=40, spines=20, rate="4xHDR", host_model="x")
"""64 hosts of 8 adapters, 32 leaves with four free lower ports, 20 spines."""

BY_HAND = {Kind.degraded, Kind.dark_device, Kind.swapped_devices, Kind.unidentified}
"""Faults that moving plugs does not repair."""


class EmulatedSource:
    """Answers as the network lies, and as badly as a tool may."""

    def __init__(self, cables: Fabric) -> None:
        self.cables = cables

    async def discover(self, fabric: object) -> Discovery:
        """One look."""
        return self.cables.discovery()


@asynccontextmanager
async def emulated(cables: Fabric) -> AsyncIterator[FabricSource]:
    yield EmulatedSource(cables)


@asynccontextmanager
async def real(cables: Fabric) -> AsyncIterator[FabricSource]:
    required()
    async with simulated(cables) as environment:
        yield InfinibandSource(environment=environment)


@asynccontextmanager
async def lines(cables: Fabric) -> AsyncIterator[FabricSource]:
    """By `iblinkinfo`, which names an adapter by its port's GUID."""
    required()
    async with simulated(cables) as environment:
        yield Asked(InfinibandSource(environment=environment), DiscoverySource(timeout_s=120.0, tool="iblinkinfo"))


def write_tool(folder: str, name: str, script: str) -> None:
    """A tool of this name that does this."""
    tool = Path(folder, name)
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


class Asked:
    """A source that is asked in another manner than by default."""

    def __init__(self, source: FabricSource, how: DiscoverySource) -> None:
        self._source = source
        self._how = how

    async def discover(self, fabric: Registered) -> Discovery:
        """One look."""
        return await self._source.discover(replace(fabric, source=self._how))


@asynccontextmanager
async def database(cables: Fabric) -> AsyncIterator[FabricSource]:
    """By an `ibdiagnet` that leaves the file which the real one, NVIDIA's own, would leave."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "found").write_text(diagnosed(cables))  # noqa: ASYNC240 - a test's own file
        write_tool(folder, "ibdiagnet", f'[ "$1" = -o ] && cp {folder}/found "$2/ibdiagnet2.db_csv"')
        yield Asked(InfinibandSource(folder), DiscoverySource(tool="ibdiagnet", timeout_s=120.0))


class Hand:
    """The hand of an agent that really runs: its orders reach the closed list of verbs of a real machine."""

    kinds = frozenset({VERB})

    def __init__(self, folder: Path) -> None:
        self.operation_log = OperationLog(folder / "marks.sqlite")
        machine = RealHostMachine("gpu-0001", folder, Powers())
        self.operations = NodeOperations("gpu-0001", machine, self.operation_log)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Performs the operation as the agent does."""
        assert node.id == operation.node
        return await asyncio.to_thread(self.operations.perform, operation, 1)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        raise UnreachableError("not asked")

    async def revoke(self, operation: Operation, node: Node) -> None:
        raise UnreachableError("not asked")


@asynccontextmanager
async def by_agent(cables: Fabric) -> AsyncIterator[FabricSource]:
    """By the agent of a node in the network, the second that is tried; the first is none of ours."""
    required()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        hand = Hand(Path(folder))
        fleet = Drive(nodes=(a_node("gpu-0001"),)).fleet
        pages = AgentPages(lambda: hand, lambda: NOW)
        source = RegisteredSource(InfinibandSource(), LookPlaces(pages, lambda: fleet, NoSecrets(), Path(folder)))
        async with simulated(cables) as environment:
            for name, value in environment.items():
                if name != "LD_PRELOAD":
                    patch.setenv(name, value)
            run = f'LD_PRELOAD={environment["LD_PRELOAD"]} exec /usr/sbin/ibnetdiscover "$@"'
            write_tool(folder, "ibnetdiscover", run)
            patch.setenv("PATH", folder, prepend=":")
            yield Asked(source, DiscoverySource(timeout_s=120.0, nodes=("gpu-9999", "gpu-0001")))
        hand.operation_log.close()


class NoSecrets:
    """A place with one secret."""

    async def read(self, name: str, *, anew: bool = False) -> Secret:
        """UFM's."""
        if name != "folder:ufm":
            raise RefusedError(f"there is no secret {name}")
        return Secret({"username": "hostler", "password": "pass"})


@asynccontextmanager
async def ufm(cables: Fabric) -> AsyncIterator[FabricSource]:
    """By a server that answers over TLS as UFM's documents have it, and knows its caller."""
    pages = ufm_pages(cables)

    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != aiohttp.encode_basic_auth("hostler", "pass"):
            return web.Response(status=401)
        return web.Response(text=pages[request.path], content_type="application/json")

    async with ufm_server(answer) as (url, ca):
        yield Asked(_registered(), DiscoverySource(tool="ufm", url=url, ca=ca, secret="folder:ufm", timeout_s=20.0))


def _registered() -> RegisteredSource:
    agents = AgentPages(lambda: None, lambda: NOW)
    return RegisteredSource(InfinibandSource(), LookPlaces(agents, Drive, NoSecrets(), Path("/nonexistent")))  # type: ignore[arg-type]


@asynccontextmanager
async def ufm_server(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[tuple[str, str]]:
    """Server's address and its authority."""
    certificate = self_signed(NOW, "localhost")
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.server_context())
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"https://127.0.0.1:{port}", certificate.certificate.decode()
    finally:
        await runner.cleanup()


SOURCES = [pytest.param(emulated, id="emulated"), pytest.param(real, id="infiniband-diags")]
OTHERS = [lines, database, by_agent, ufm]


@pytest.mark.parametrize("source", OTHERS, ids=lambda source: source.__name__)
async def test_every_other_source_finds_the_network_as_it_lies(source: Callable[..., object]) -> None:
    """Mutants: an adapter's port is taken for another device; a node that is not there ends the look."""
    cell = FabricCell(Drive(), a_fabric(7))
    await look(cell, source)
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.fabric.look.why) == (FabricVerdict.as_designed, "")
    kinds = [swap_at_leaf(cell.cables), narrow(cell.cables), darken_host(cell.cables)]
    await look(cell, source)
    assert Counter(ticket.fault for ticket in cell.tickets) == Counter(kind.value for kind in kinds)


async def test_agents_and_switches_tell_their_lldp_neighbours_together(tmp_path: Path) -> None:
    """Mutant: a host whose agent is silent is a host without cables."""
    cables = a_fabric(5)
    names = sorted(name for name, device in cables.design.devices.items() if device.kind == "host")
    drive = Drive(nodes=tuple(a_node(name) for name in names))
    cell = FabricCell(drive, cables, design=re.sub(",4xHDR", ",", render_csv(cables.design)))
    silent: set[str] = set()

    class Agents:
        async def perform(self, operation: Operation, node: Node) -> Outcome:
            if node.id in silent:
                raise UnreachableError(f"the agent of {node.id} never asked for it")
            page = base64.b64encode(lzma.compress(lldp_of(cables, node.id).encode())).decode()
            return Outcome(operation.id, node.id, "done", facts={"page": page})

    pages = AgentPages(lambda: cast("OperationDriver", Agents()), lambda: NOW)
    source = RegisteredSource(InfinibandSource(), LookPlaces(pages, lambda: drive.fleet, NoSecrets(), tmp_path))
    fabric = replace(cell.fabric, source=DiscoverySource(tool="lldp", timeout_s=120.0))
    documents = tmp_path / fabric.name
    documents.mkdir()
    for name, device in cables.design.devices.items():
        if device.kind == "switch":
            (documents / f"{name}.json").write_text(openconfig_of(cables, name))
    silent.add(names[0])
    cell.look(await source.discover(fabric))
    assert cell.fabric.look is not None
    assert cell.fabric.look.verdict is FabricVerdict.as_designed, "a switch tells of the cable too"
    swap_at_host(cables)
    for path in documents.iterdir():
        path.write_text(openconfig_of(cables, path.stem))
    cell.look(await source.discover(fabric))
    assert [ticket.fault for ticket in cell.tickets] == ["swapped"]
    aged = documents / "spine-001.json"
    os.utime(aged, (0, 0))
    assert "write it anew" in (await source.discover(fabric)).partial
    for path in documents.iterdir():
        path.unlink()
    assert f"1 hosts told no LLDP neighbours, {names[0]} first" in (await source.discover(fabric)).partial


UFM_SAYS: dict[str, tuple[Callable[[], web.StreamResponse], str]] = {
    "an error page with status 200": (lambda: web.Response(text="<html>log in</html>"), "no list that can be read"),
    "that it is somebody else": (lambda: web.Response(status=401), "UFM answered 401"),
    "to go elsewhere": (lambda: web.Response(status=302, headers={"Location": "https://example.net"}), "answered 302"),
    "an error": (lambda: web.Response(status=503), "UFM answered 503"),
}


@pytest.mark.parametrize("name", UFM_SAYS)
async def test_a_ufm_that_answers_badly_is_partial(name: str) -> None:
    made, said = UFM_SAYS[name]

    async def answer(_request: web.Request) -> web.StreamResponse:
        return made()

    async with ufm_server(answer) as (url, ca):
        how = DiscoverySource(tool="ufm", url=url, ca=ca, timeout_s=20.0)
        fabric = replace(FabricCell(Drive(), a_fabric()).fabric, source=how)
        assert said in (await _registered().discover(fabric)).partial
        unknown = replace(fabric, source=replace(how, ca=""))
        assert "UFM cannot be reached" in (await _registered().discover(unknown)).partial
        no_secret = replace(fabric, source=replace(how, secret="folder:none"))
        assert "there is no secret" in (await _registered().discover(no_secret)).partial


async def test_a_ufm_that_never_answers_or_never_ends_is_partial() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        return web.Response()

    async with ufm_server(never) as (url, ca):
        how = DiscoverySource(tool="ufm", url=url, ca=ca, timeout_s=0.5)
        fabric = replace(FabricCell(Drive(), a_fabric()).fabric, source=how)
        assert "no whole answer within 0.5 s" in (await _registered().discover(fabric)).partial


async def look(cell: FabricCell, source: Callable[..., object]) -> Discovery:
    """One validation by the source of the network as it lies now."""
    async with source(cell.cables) as asked:  # type: ignore[attr-defined]
        found: Discovery = await asked.discover(replace(cell.fabric, source=DiscoverySource(timeout_s=120.0)))
    cell.drive.wait(seconds=60)
    cell.drive.step(FabricSeen(cell.report(found)))
    return found


@pytest.mark.parametrize("source", SOURCES)
async def test_a_network_as_designed_is_found_so_and_tickets_nothing(source: Callable[..., object]) -> None:
    cell = FabricCell(Drive(), a_fabric())
    await look(cell, source)
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.fabric.look.why) == (FabricVerdict.as_designed, "")
    assert cell.fabric.look.found == cell.fabric.look.designed == 112
    assert (cell.cases, cell.tickets) == ([], [])


@pytest.mark.parametrize("fault", [*FAULTS, misname_adapters], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("source", SOURCES)
async def test_each_fault_is_one_ticket_of_its_kind_and_nothing_else(
    source: Callable[..., object], fault: Callable[[Fabric], Kind]
) -> None:
    cell = FabricCell(Drive(), a_fabric(7))
    kind = fault(cell.cables)
    await look(cell, source)
    assert [ticket.fault for ticket in cell.tickets] == [kind.value]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("source", SOURCES)
async def test_64_nodes_with_every_kind_of_fault_at_once(source: Callable[..., object]) -> None:
    cell = FabricCell(Drive(), a_fabric(64, MIDDLE))
    planted = Counter(fault(cell.cables).value for fault in FAULTS)
    await look(cell, source)
    assert Counter(ticket.fault for ticket in cell.tickets) == planted


@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", first_in_gate(SOURCES))
async def test_84_faults_are_84_tickets_and_repairing_half_leaves_the_rest(source: Callable[..., object]) -> None:
    """Mutants: one clean run ends a finding; what is left is opened anew under another key."""
    cables, rng = a_fabric(84, LARGE), Random(84)
    cell = FabricCell(Drive(), cables)
    planted = Counter(rng.choice(FAULTS)(cables).value for _ in range(84))
    seen = await look(cell, source)
    assert Counter(ticket.fault for ticket in cell.tickets) == planted
    before = {case.finding.key: case.ticket for case in cell.cases}
    findings = validate(cables.design, seen).findings
    mended = tuple(finding for finding in findings if finding.kind not in BY_HAND)[::2]
    for finding in mended:
        cell.close(cell.drive.fleet.tickets[before[finding.key]])
    repaired(cables, mended)
    await look(cell, source)
    await look(cell, source)
    left = {key: ticket for key, ticket in before.items() if key not in {finding.key for finding in mended}}
    assert {case.finding.key: case.ticket for case in cell.cases} == left
    assert {ticket.id for ticket in cell.tickets} == set(left.values())


async def test_a_tool_that_hangs_is_ended_and_its_network_partial(tmp_path: Path) -> None:
    cell = FabricCell(Drive(), a_fabric())
    tool = tmp_path / "ibnetdiscover"
    tool.write_text("#!/bin/sh\nsleep 600\n")
    tool.chmod(0o755)
    quick = replace(cell.fabric, source=DiscoverySource(timeout_s=0.3))
    found = await InfinibandSource(str(tmp_path)).discover(quick)
    assert "did not end within 0.3 s" in found.partial
    cell.drive.step(FabricSeen(cell.report(found)))
    assert (cell.tickets, cell.fabric.look and cell.fabric.look.verdict) == ([], FabricVerdict.partial)


@pytest.mark.parametrize("fate", ["busy", "refused", "unknown", "silent"])
async def test_an_agent_that_does_something_else_leaves_the_look_to_the_next_node(fate: str, tmp_path: Path) -> None:
    """Mutants: the first node's word ends the look; a busy agent makes the cables missing."""
    cables = a_fabric(3)
    asked: list[str] = []

    class Agents:
        kinds = frozenset({"discover_fabric"})

        async def perform(self, operation: Operation, node: Node) -> Outcome:
            asked.append(node.id)
            if node.id == "gpu-0002":
                page = base64.b64encode(lzma.compress(printed(cables).encode())).decode()
                return Outcome(operation.id, node.id, "done", facts={"page": page})
            if fate == "silent":
                raise UnreachableError("its agent is not heard")
            return Outcome(operation.id, node.id, fate, "burn_in is running")

        async def observe(self, operation: Operation, node: Node) -> Outcome:
            raise UnreachableError("not asked")

        async def revoke(self, operation: Operation, node: Node) -> None:
            raise UnreachableError("not asked")

    fleet = Drive(nodes=(a_node("gpu-0001"), a_node("gpu-0002"))).fleet
    pages = AgentPages(Agents, lambda: NOW)
    source = RegisteredSource(InfinibandSource(), LookPlaces(pages, lambda: fleet, NoSecrets(), tmp_path))
    how = DiscoverySource(timeout_s=60.0, nodes=("gpu-0001", "gpu-0002"))
    found = await source.discover(replace(FabricCell(Drive(), cables).fabric, source=how))
    assert (found.partial, asked) == ("", ["gpu-0001", "gpu-0002"])
    assert len(found.links) == len(cables.design.cables)
