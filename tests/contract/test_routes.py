"""Ways between hosts by a real subnet manager's tables, read by the real tool, to one finding about a slow spine."""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import LinksSeen
from hostler.core.fabric.binding import names_of
from hostler.core.fabric.design import Design
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.path_blame import PairResult
from hostler.core.fabric.routes import Routes
from hostler.core.state.fabrics import DiscoverySource, RouteSource
from hostler.core.state.fabrics import Fabric as Registered
from hostler.core.state.links import LinkCheck, LinkRound
from hostler.drivers.infiniband import fabric_source
from hostler.drivers.infiniband.agent_pages import AgentPages
from hostler.drivers.infiniband.fabric_source import InfinibandSource, LookPlaces, RegisteredSource
from hostler.polling.link_rounds import BoundCables, wiring_of, with_paths
from hostler.polling.pair_results import PairResults
from tests.contract.test_fabric_source import MIDDLE, Hand, NoSecrets, write_tool
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import Fabric, a_fabric, printed, swap_at_leaf
from tests.ibsim import manager_required, routed, simulated
from tests.kit import Drive, a_node, configuration, pool_document

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ASKED = DiscoverySource(timeout_s=120.0, routes=RouteSource.tables)
HOP = re.compile(r"\] -> (?:switch|ca) port \{0x([0-9a-f]{16})\}\[(\d+)\]")


def source_of(folder: Path, here: InfinibandSource, hand: Hand | None = None) -> RegisteredSource:
    fleet = Drive(nodes=(a_node("gpu-0001"),)).fleet
    pages = AgentPages(lambda: hand, lambda: NOW)
    return RegisteredSource(here, LookPlaces(pages, lambda: fleet, NoSecrets(), folder / "lldp"))


def asked_of(cables: Fabric, how: DiscoverySource = ASKED) -> Registered:
    return replace(FabricCell(Drive(), cables).fabric, source=how)


def wiring(design: Design, seen: Discovery) -> BoundCables:
    return wiring_of(design, names_of(design, seen), seen, RouteSource.tables)


@asynccontextmanager
async def managed(cables: Fabric, folder: Path) -> AsyncIterator[dict[str, str]]:
    """The network before ibsim, with LIDs and tables by opensm."""
    manager_required()
    async with simulated(cables) as environment:
        await routed(environment, folder)
        yield environment


async def traced(environment: dict[str, str], folder: Path, cables: Fabric, lids: tuple[int, int]) -> list[str]:
    """Ports at which a way enters each device, as `ibtracert` tells it."""
    child = await asyncio.create_subprocess_exec(
        "/usr/sbin/ibtracert",
        *map(str, lids),
        env=os.environ | environment,
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    said, _ = await asyncio.wait_for(child.communicate(), 30)
    by_guid = {guid: at for at, guid in cables.guids.items()} | {
        f"{int(guid, 16) + 1:016x}": at for at, guid in cables.guids.items() if at.port
    }
    entered = [(by_guid[guid], number) for guid, number in HOP.findall(said.decode())]
    return [str(at) if at.port else f"{at.device}:{number}" for at, number in entered]


def walked(routes: Routes, a: str, z: str) -> list[str]:
    """The same by the tables that were read."""
    way = routes.between(a, z, NOW)
    assert way is not None, f"there is no way from {a} to {z}"
    return [str(routes.far[a]), *(str(routes.above[port.device][int(port.port)]) for port in way)]


def screened(cables: Fabric, routes: Routes, slow: str) -> list[PairResult]:
    """Each host beside three others over each rail; what passes the switch reaches half."""
    names, chance = sorted(cables.design.devices), Random(1)
    hosts = [name for name in names if name.startswith("gpu")]
    found = []
    for host in hosts:
        for port in cables.ports(host):
            for other in chance.sample([name for name in hosts if name != host], 3):
                far = f"{other}:{port.port}"
                passed = {entered.rpartition(":")[0] for entered in walked(routes, str(port), far)}
                found.append(PairResult(str(port), far, 95.0 if slow in passed else chance.uniform(184, 192), NOW))
    return found


@pytest.mark.timeout(240)
async def test_ways_are_those_that_ibtracert_walks_and_a_slow_spine_is_one_finding(tmp_path: Path) -> None:
    """64 hosts of 8 adapters, opensm's own tables; three cables are swapped, as a network is.

    Mutants: a table of another switch is walked; a way goes by the design's cables; each host is a finding.
    """
    cables = a_fabric(64, MIDDLE)
    swap_at_leaf(cables)
    async with managed(cables, tmp_path) as environment:
        source = source_of(tmp_path, InfinibandSource(environment=environment))
        fabric = asked_of(cables)
        seen = await source.discover(fabric)
        assert seen.partial == ""
        bound = wiring(cables.design, seen)
        routes = bound.routes
        assert (routes.why, len(routes.tables)) == ("", 52)
        ports, chance = sorted(routes.lids), Random(2)
        for _ in range(40):
            a, z = chance.sample(ports, 2)
            told = await traced(environment, tmp_path, cables, (routes.lids[a], routes.lids[z]))
            assert walked(routes, a, z) == told
        dumps = tmp_path / "routes" / NAME
        dumps.mkdir(parents=True)
        shutil.copy(tmp_path / "opensm-lfts.dump", dumps)
        by_dump = wiring(cables.design, await source.discover(fabric)).routes
        assert all(walked(routes, *pair) == walked(by_dump, *pair) for pair in zip(ports, ports[9:], strict=False))
    one_finding(cables, bound, screened(cables, routes, "spine-007"), "spine-007")


def one_finding(cables: Fabric, bound: BoundCables, measured: list[PairResult], spine: str) -> None:
    """By the results of 64 hosts the controller has one case, one ticket, one incident, and nothing at a node."""
    names = sorted(name for name in cables.design.devices if name.startswith("gpu"))
    pools = configuration({"train": pool_document(target=len(names), modes={"*": "act"})})
    cell = FabricCell(Drive(pools, nodes=tuple(a_node(name, pool="train") for name in names)), cables)
    results = PairResults()
    results.add(measured)
    verdict = results.judged(bound.cables, lambda name: name, NOW, bound.routes)
    faults, clean = with_paths((), [], [], verdict)
    cell.drive.step(LinksSeen(LinkRound(NAME, cell.drive.now, 0, tuple(faults), tuple(clean))))
    (case,) = cell.drive.fleet.link_cases.values()
    assert (case.fault.switch, case.fault.check) == (spine, LinkCheck.slow)
    (ticket,) = [one for one in cell.drive.fleet.tickets.values() if one.kind == "link"]
    (incident,) = cell.drive.fleet.incidents.values()
    assert (ticket.component, incident.scope.text) == (spine, f"switch:{spine}")
    assert not any(cell.drive.node(name).conditions for name in names)
    undecided = results.judged(bound.cables, lambda name: name, NOW)
    assert undecided.faults == ()
    assert "register it with --routes" in undecided.undecided[0]


@pytest.mark.timeout(120)
async def test_the_agent_of_a_node_dumps_the_tables_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cables = a_fabric(3)
    hand = Hand(tmp_path)
    async with managed(cables, tmp_path) as environment:
        for name, value in environment.items():
            if name != "LD_PRELOAD":
                monkeypatch.setenv(name, value)
        for tool in ("ibnetdiscover", "dump_fts"):
            run = f'cd {tmp_path}; LD_PRELOAD={environment["LD_PRELOAD"]} exec /usr/sbin/{tool} "$@"'
            write_tool(str(tmp_path), tool, run)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        source = source_of(tmp_path, InfinibandSource(), hand)
        fabric = asked_of(cables, replace(ASKED, nodes=("gpu-9999", "gpu-0001")))
        routes = wiring(cables.design, await source.discover(fabric)).routes
    hand.operation_log.close()
    assert (routes.why, len(routes.tables), len(routes.lids)) == ("", 12, 48)


BAD: dict[str, tuple[str, str]] = {
    "hangs": ("sleep 600", "did not end within"),
    "fails": ("echo no >&2; exit 255", "`dump_fts` ended with 255: no"),
    "writes a gigabyte": ("head -c 300000000 /dev/zero", "a line of more than 4,096 characters"),
    "writes an error page": ("echo '<html>'", "is nothing that dump_fts prints"),
    "writes nothing": ("true", "no forwarding table on the page"),
}


@pytest.mark.parametrize("name", BAD)
async def test_tables_that_cannot_be_read_leave_the_cables_as_they_were_found(tmp_path: Path, name: str) -> None:
    """Mutant: a discovery whose routes fail is partial, and no cable is looked at."""
    script, said = BAD[name]
    cables = a_fabric(1)
    (tmp_path / "page").write_text(printed(cables))
    write_tool(str(tmp_path), "ibnetdiscover", f"cat {tmp_path}/page")
    write_tool(str(tmp_path), "dump_fts", script)
    source = source_of(tmp_path, InfinibandSource(str(tmp_path)))
    seen = await source.discover(asked_of(cables, replace(ASKED, timeout_s=2.0 if name == "hangs" else 120.0)))
    assert (seen.partial, len(seen.links)) == ("", 112)
    routes = wiring(cables.design, seen).routes
    assert said in routes.why
    assert routes.between("gpu-0001:mlx5_0", "gpu-0002:mlx5_0", NOW) is None


async def test_tables_that_take_too_long_to_read_leave_the_cables_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the schedule's own limit comes first, and the whole discovery is left."""
    cables = a_fabric(1)
    (tmp_path / "page").write_text(printed(cables))
    write_tool(str(tmp_path), "ibnetdiscover", f"cat {tmp_path}/page")
    write_tool(str(tmp_path), "dump_fts", "sleep 600")
    monkeypatch.setattr(fabric_source, "READ_S", -1.5)
    source = source_of(tmp_path, InfinibandSource(str(tmp_path)))
    seen = await source.discover(asked_of(cables, replace(ASKED, timeout_s=2.0)))
    assert (seen.partial, len(seen.links)) == ("", 112)
    assert seen.forwarding is not None
    assert seen.forwarding.partial == fabric_source.NO_TIME


def _old(folder: Path) -> None:
    (folder / "a.dump").write_text("")
    os.utime(folder / "a.dump", (0, 0))


def _twice(folder: Path) -> None:
    block = "Unicast lids [0-1] of switch Lid 1 guid 0x0000000000000001 (x):\n0x0001 001\n1 lids dumped\n"
    for name in ("a.dump", "b.dump"):
        (folder / name).write_text(block)


@pytest.mark.parametrize(
    ("dumped", "said"),
    [
        (lambda _folder: None, "0 dumps of forwarding tables"),
        (_old, "at most an hour is believed"),
        (_twice, "dump b.dump: a switch is told in another dump too"),
        (lambda folder: (folder / "a.dump").write_text("<html>"), "dump a.dump: forwarding tables, line 1"),
        (lambda folder: (folder / "a.dump").mkdir(), "dump a.dump: "),
    ],
)
async def test_dumps_that_cannot_count_are_not_believed(
    tmp_path: Path, dumped: Callable[[Path], object], said: str
) -> None:
    cables = a_fabric(1)
    (tmp_path / "page").write_text(printed(cables))
    write_tool(str(tmp_path), "ibnetdiscover", f"cat {tmp_path}/page")
    folder = tmp_path / "routes" / NAME
    folder.mkdir(parents=True)
    dumped(folder)
    seen = await source_of(tmp_path, InfinibandSource(str(tmp_path))).discover(asked_of(cables))
    assert seen.partial == ""
    assert seen.forwarding is not None
    assert said in seen.forwarding.partial
