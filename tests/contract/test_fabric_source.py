"""What a source of discoveries promises, of the emulated one and of infiniband-diags before ibsim, to a controller."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import Kind
from hostler.core.fabric.rail_rule import RailRule
from hostler.core.fabric.validation import validate
from hostler.core.state.fabrics import DiscoverySource, FabricVerdict
from hostler.drivers.infiniband.fabric_source import InfinibandSource
from hostler.ports import FabricSource
from tests.fabric_cell import FabricCell
from tests.fabrics import FAULTS, LARGE, Fabric, a_fabric, misname_adapters, repaired
from tests.ibsim import required, simulated
from tests.kit import Drive

MIDDLE = RailRule(hosts=64, unit=16, radix=40, spines=20, rate="4xHDR", host_model="x")
"""64 hosts of 8 adapters, 32 leaves with four free lower ports, 20 spines."""

BY_HAND = {Kind.degraded, Kind.dark_device, Kind.swapped_devices, Kind.unidentified}
"""What moving plugs does not repair."""


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


SOURCES = [pytest.param(emulated, id="emulated"), pytest.param(real, id="infiniband-diags")]


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
@pytest.mark.parametrize("source", SOURCES)
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
