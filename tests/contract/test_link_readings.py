"""Readings of ports: by `ibqueryerrors` before ibsim, by agents from sysfs and mlxlink, joined at cables."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from hostler.agent.collectors import port_counters
from hostler.controller.inputs import LinksSeen
from hostler.core.fabric.binding import names_of
from hostler.core.fabric.design import Port
from hostler.core.fabric.discovery import Discovery, Forwarding, FoundPort
from hostler.core.state.fabrics import RouteSource
from hostler.core.state.links import LinkCheck, LinkFault, PortReading
from hostler.drivers.infiniband import error_counters, port_pages
from hostler.drivers.infiniband.diagnostics import Diagnostics, discover, error_counters_here
from hostler.polling import link_rounds
from hostler.polling.link_rounds import BoundCables, LinkRounds, LinkWatch, wiring_of
from hostler.ports import LinkReadings
from hostler.runtime.bounded_process import run
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import Fabric, a_fabric
from tests.ibsim import required, simulated, told
from tests.kit import Drive

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def wiring(cables: Fabric) -> BoundCables:
    return wired_by(cables, cables.discovery())


def wired_by(cables: Fabric, seen: Discovery) -> BoundCables:
    return wiring_of(cables.design, names_of(cables.design, seen), seen)


@pytest.mark.timeout(120)
async def test_ibqueryerrors_tells_the_counters_of_both_ends_of_a_link() -> None:
    required()
    cables = a_fabric()
    host = Port("gpu-0002", "mlx5_1")
    leaf = cables.links[host]
    watch = LinkWatch()
    async with simulated(cables) as environment:
        wired = wired_by(cables, await discover(Diagnostics(timeout_s=60.0), environment))
        opensm = ("/usr/sbin/opensm", "-o", "-F", "/dev/null", "-f", "/dev/null")
        assert (await run(opensm, environment | {"LC_ALL": "C"}, 60.0, 1 << 20)).code == 0
        faults: list[LinkFault] = []
        for flaps in (0, 5):
            for port, number in ((host, 1), (leaf, int(leaf.port))):
                guid = cables.guids[cables.identity(port)]
                kind = "H" if port == host else "S"
                await told(
                    environment, f'PerformanceSet "{kind}-{guid}"[{number}] PortCounters.LinkDownedCounter={flaps}'
                )
            page = await error_counters_here(Diagnostics(timeout_s=60.0), environment)
            assert (page.whole, page.why) == (True, "")
            faults, _ = watch.take(wired, LinkReadings(page.ports, {}, page.whole), {}, NOW)
    (fault,) = faults
    assert {fault.a, fault.z} == {str(host), str(leaf)}
    assert (fault.check, fault.text[:7]) == (LinkCheck.flaps, "5 flaps")
    assert len(watch.latest) == 224


PAGE = """\
Errors for 0x2c9000000003100 "MF0;leaf-001-1:MQM9700/U1"
   GUID 0x2c9000000003100 port ALL: [SymbolErrorCounter == 3] [LinkDownedCounter == 7]
   GUID 0x2c9000000003100 port 3: [SymbolErrorCounter == 3]
   GUID 0x2c9000000003100 port 4: [LinkDownedCounter == 255] [LinkDownedCounterExt == 300] [PortXmitWait == 9 (9.000)]

## Summary: 60 nodes checked, 1 bad nodes found
##          816 ports checked, 2 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""


def test_the_aggregate_is_no_port_and_extended_counters_are_preferred() -> None:
    page = error_counters.parse(PAGE)
    assert page.whole
    assert page.ports == {
        FoundPort("02c9000000003100", 3): PortReading(link_downed=0, symbol_errors=3),
        FoundPort("02c9000000003100", 4): PortReading(link_downed=300, symbol_errors=0),
    }


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("", "no summary"),
        (PAGE[: PAGE.index("##")], "no summary"),
        (PAGE.replace("## Thresholds:", "##          2 PMA query failures\n## Thresholds:"), "2 ports did not answer"),
        ("ibwarn: can't open UMAD port\n" + PAGE, 'line 1: "ibwarn: can\'t open UMAD port"'),
        ("\x1b[31m\n" + PAGE, "line 1: '?[31m'"),
    ],
    ids=["nothing", "cut off", "no answer of some", "a warning", "escape codes"],
)
def test_a_page_that_is_not_all_of_it_makes_no_port_clean(page: str, said: str) -> None:
    seen = error_counters.parse(page)
    assert not seen.whole
    assert said in seen.why
    watch = LinkWatch()
    faults, clean = watch.take(wiring(a_fabric()), LinkReadings(seen.ports, {}, seen.whole), {"x": None}, NOW)
    assert (faults, clean) == ([], [])


MLXLINK = {
    "result": {
        "output": {
            "Operational Info": {"State": "Active", "Speed": "IB-NDR", "Width": "4x"},
            "Troubleshooting Info": {"Status Opcode": "0", "Recommendation": "No issue was observed"},
            "Module Info": {
                "Vendor Serial Number": "MT2345X00001",
                "Temperature [C]": "72 [-10..80]",
                "Rx Power Current [dBm]": "0.5,0.4,0.6,-1.9 [-10..5]",
            },
            "Physical Counters and BER Info": {
                "Raw Physical BER Per Lane": {"values": ["1E-9", "1E-9", "1E-9", "2E-8"]}
            },
        }
    },
    "status": {"code": 0, "message": "success"},
}


@contextmanager
def a_node_with_ports(root: Path, monkeypatch: pytest.MonkeyPatch, mlxlink: str) -> Iterator[None]:
    port = root / "sys/class/infiniband/mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "counters/link_downed").write_text("7\n")
    (port / "counters/symbol_error").write_text("not a number\n")
    (root / "proc").mkdir()
    (root / "proc/uptime").write_text("5000.12 9000.00\n")
    tools = root / "tools"
    tools.mkdir()
    if mlxlink:
        (tools / "mlxlink").write_text(f"#!/bin/sh\n{mlxlink}\n")
        (tools / "mlxlink").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    yield


def test_an_agent_tells_sysfs_counters_and_what_mlxlink_says_of_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "said").write_text(json.dumps(MLXLINK))
    with a_node_with_ports(tmp_path, monkeypatch, f"cat {tmp_path}/said"):
        reading = port_pages.read(port_counters.read(tmp_path))["mlx5_0"]
    assert (reading.link_downed, reading.symbol_errors, reading.state, reading.up_s) == (7, None, "active", 5000.12)
    assert (reading.temperature_c, reading.temperature_limit_c, reading.module) == (72.0, 80.0, "MT2345X00001")
    assert (reading.rx_dbm, reading.lane_ber) == ((0.5, 0.4, 0.6, -1.9), (1e-9, 1e-9, 1e-9, 2e-8))


@pytest.mark.parametrize("mlxlink", ["", "exit 1", "echo no json", "echo 7", "echo '{\"result\": []}'"])
def test_a_node_without_mlxlink_or_with_a_bad_one_tells_its_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mlxlink: str
) -> None:
    with a_node_with_ports(tmp_path, monkeypatch, mlxlink):
        reading = port_pages.read(port_counters.read(tmp_path))["mlx5_0"]
    assert (reading.link_downed, reading.temperature_c, reading.lane_ber) == (7, None, ())


@pytest.mark.parametrize(
    "page",
    [b"", b"[]", b'{"up_s": "soon", "ports": {}}', b'{"up_s": 1, "ports": {"mlx5_0/1": {"link_downed": "many"}}}'],
)
def test_an_agents_page_that_is_none_is_refused(page: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expected|truncated|Input"):
        port_pages.read(page)


def test_what_one_end_alone_tells_is_no_flap_and_an_unread_link_is_not_clean() -> None:
    cables = a_fabric()
    wired, watch = wiring(cables), LinkWatch()
    host = Port("gpu-0001", "mlx5_0")
    key = "|".join(map(str, sorted((host, cables.links[host]))))
    for count in (0, 9):
        named = {str(host): PortReading(link_downed=count)}
        faults, clean = watch.take(wired, LinkReadings(named=named), {key: None, "a|b": None}, NOW)
        assert (faults, clean) == ([], [key])
    assert watch.take(wired, LinkReadings(), {key: None}, NOW) == ([], [])


async def test_rounds_are_told_to_the_controller_and_one_that_hangs_tells_nothing_of_a_link() -> None:
    cables = a_fabric()
    cell = FabricCell(Drive(), cables)
    heard: list[LinksSeen] = []
    enough = asyncio.Event()

    class Source:
        def __init__(self) -> None:
            self.asked = 0

        async def read(self, fabric: object) -> LinkReadings:
            self.asked += 1
            if self.asked == 2:
                return LinkReadings(why="the tool hangs")
            return LinkReadings(whole=True)

    def tell(one: LinksSeen) -> None:
        heard.append(one)
        if len(heard) == 3:
            enough.set()

    fake = SimpleNamespace(view=cell.drive.fleet, now=lambda: NOW + timedelta(hours=len(heard)), tell=tell)
    rounds = asyncio.create_task(LinkRounds(cast("Any", fake), Source(), {NAME: wiring(cables)}, round_s=0.001).run())
    async with asyncio.timeout(60):
        await enough.wait()
    rounds.cancel()
    await asyncio.gather(rounds, return_exceptions=True)
    assert [(one.round.ports, one.round.why) for one in heard[:3]] == [(224, ""), (0, "the tool hangs"), (224, "")]


async def test_a_hint_has_the_ports_read_after_half_a_round_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: each hint moves the round further; a hint is never forgotten."""
    cell, enough = FabricCell(Drive(), a_fabric()), asyncio.Event()
    times: list[float] = []
    monkeypatch.setattr(link_rounds, "LOOK_S", 0.01)

    class Source:
        async def read(self, fabric: object) -> LinkReadings:
            times.append(asyncio.get_running_loop().time())
            if len(times) == 1:
                rounds.hint(NAME)
                rounds.hint(NAME)
            if len(times) == 3:
                enough.set()
            return LinkReadings(whole=True)

    fake = SimpleNamespace(view=cell.drive.fleet, now=lambda: NOW, tell=lambda _one: None)
    rounds = LinkRounds(cast("Any", fake), Source(), {NAME: wiring(a_fabric())}, round_s=1.0)
    running = asyncio.create_task(rounds.run())
    async with asyncio.timeout(60):
        await enough.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert 0.5 <= times[1] - times[0] < times[2] - times[1]
    assert times[2] - times[1] >= 1.0


async def test_ways_that_are_not_known_are_said_where_operators_see_it() -> None:
    """Mutant: that tables were too large stands in the log alone."""
    cables, heard, enough = a_fabric(), list[LinksSeen](), asyncio.Event()
    cell, seen = FabricCell(Drive(), cables), cables.discovery()
    routed = replace(cell.fabric, source=replace(cell.fabric.source, routes=RouteSource.tables))

    class Source:
        async def read(self, fabric: object) -> LinkReadings:
            return LinkReadings(whole=True)

    def tell(one: LinksSeen) -> None:
        heard.append(one)
        enough.set()

    fleet = cell.drive.fleet
    view = SimpleNamespace(fabrics={NAME: routed}, link_cases=fleet.link_cases, resolve=fleet.resolve)
    fake = SimpleNamespace(view=view, now=lambda: NOW, tell=tell)
    unread = replace(seen, forwarding=Forwarding(partial="`dump_fts` wrote more than 2048 MiB"))
    looks = {NAME: wiring_of(cables.design, names_of(cables.design, unread), unread, RouteSource.tables)}
    rounds = asyncio.create_task(LinkRounds(cast("Any", fake), Source(), looks).run())
    async with asyncio.timeout(60):
        await enough.wait()
    rounds.cancel()
    await asyncio.gather(rounds, return_exceptions=True)
    assert heard[0].round.undecided == ("ways between nodes are not known: `dump_fts` wrote more than 2048 MiB",)
