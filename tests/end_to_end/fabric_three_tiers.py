"""256 hosts in three tiers before ibsim with a real opensm: every kind of fault, 84 at once (`make test-fabric`)."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.discovery import Discovery, Forwarding
from hostler.core.fabric.rail_rule import RailRule
from hostler.core.fabric.validation import validate
from hostler.core.state.fabrics import DiscoverySource, FabricVerdict
from hostler.drivers.infiniband.fabric_source import InfinibandSource
from tests.contract.test_fabric_source import BY_HAND
from tests.fabric_cell import FabricCell
from tests.fabrics import FAULTS, a_fabric, misname_adapters, repaired
from tests.ibsim import manager_required, routed, simulated
from tests.kit import Drive

NIGHTLY = RailRule(hosts=256, unit=22, rate="4xHDR", host_model="x")
"""256 hosts of eight adapters, 96 leaves in three groups of equal spines, in three tiers of switches of 64 ports."""
PLANTED = 84
LIMIT_S = 300.0


async def look(cell: FabricCell, folder: Path, tool: str = "ibnetdiscover") -> tuple[Discovery, Forwarding]:
    """One validation of the network as it lies now, once a subnet manager has routed it; its tables are read too."""
    async with simulated(cell.cables) as environment:
        await routed(environment, folder, "updn")
        source = InfinibandSource(environment=environment)
        fabric = replace(cell.fabric, source=DiscoverySource(tool=tool, timeout_s=LIMIT_S))
        found = await source.discover(fabric)
        tables = await source.tables(fabric)
    cell.drive.wait(seconds=60)
    cell.drive.step(FabricSeen(cell.report(found)))
    return found, tables


@pytest.mark.timeout(3600)
async def test_84_faults_of_every_kind_are_84_tickets_and_half_a_repair_leaves_the_rest(tmp_path: Path) -> None:
    """Mutants: one clean run ends a finding; a third tier's switches are leaves; what is left gets another key."""
    manager_required()
    cables, rng = a_fabric(256, NIGHTLY), Random(256)
    cell = FabricCell(Drive(), cables)
    before, tables = await look(cell, tmp_path)
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.fabric.look.why, cell.tickets) == (FabricVerdict.as_designed, "", [])
    assert not tables.partial
    assert tables.tables.keys() == {device.guid for device in before.devices.values() if device.switch}

    planted = Counter(fault(cables).value for fault in FAULTS)  # each of the thirteen ways at least once
    planted += Counter(rng.choice(FAULTS)(cables).value for _ in range(PLANTED - len(FAULTS)))
    seen, _ = await look(cell, tmp_path)
    assert Counter(ticket.fault for ticket in cell.tickets) == planted
    assert len(cell.tickets) == PLANTED
    tickets = {case.finding.key: case.ticket for case in cell.cases}
    await look(cell, tmp_path, "iblinkinfo")
    assert {case.finding.key: case.ticket for case in cell.cases} == tickets

    findings = validate(cables.design, seen).findings
    mended = tuple(finding for finding in findings if finding.kind not in BY_HAND)[::2]
    repaired(cables, mended)
    await look(cell, tmp_path)
    await look(cell, tmp_path)
    gone = {finding.key for finding in mended}
    left = {key: ticket for key, ticket in tickets.items() if key not in gone}
    assert {case.finding.key: case.ticket for case in cell.cases} == left
    assert {ticket.id for ticket in cell.tickets} == set(left.values())


@pytest.mark.timeout(1200)
async def test_a_wrong_map_of_256_hosts_adapters_is_one_ticket(tmp_path: Path) -> None:
    """512 cables lie elsewhere, and nobody is asked to move one."""
    manager_required()
    cell = FabricCell(Drive(), a_fabric(257, NIGHTLY))
    kind = misname_adapters(cell.cables)
    await look(cell, tmp_path)
    assert [ticket.fault for ticket in cell.tickets] == [kind.value]
