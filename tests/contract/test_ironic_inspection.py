"""Inspection by the `redfish` interface of a real Ironic; sushy-tools shows processors, memory, drives and NICs.

What was found goes through Hostler's controller and is held against the SKU. Ironic's states and errors are its own.
What the Redfish driver and Ironic can both do is asked of both, by the same tests, on machines of one BMC. Most of the
module's time goes into the start of Ironic and seven machines that it verifies at once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from hostler.core.state.model import Node, Operation, Outcome, Part
from hostler.core.state.operations import (
    AnyAct,
    CollectInventory,
    InspectMachine,
    PowerOn,
    SetBootNetwork,
    SwitchOff,
)
from hostler.drivers.ironic.client import IronicAccess, IronicClient
from hostler.drivers.ironic.ironic_nodes import IronicNodes
from hostler.drivers.ironic.wire_inventory import inspected
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.ports import OperationDriver, RefusedError, UnreachableError
from tests.contract.ironic_cell import IronicCell
from tests.contract.ironic_world import RealIronic, real_ironic, system_ids, until_done
from tests.contract.pypi_programs import MissingError
from tests.contract.redfish_world import a_hand, node_at
from tests.contract.shown_hardware import Hardware, as_configuration, hang
from tests.contract.test_ironic_work import Work

pytestmark = pytest.mark.nightly("a real Ironic runs beside it")

MACHINES = {
    "i1": Hardware(),
    "i2": Hardware(memory_gib=256, drives=(), macs=("52:54:00:00:02:01",)),
    "i3": Hardware(memory_gib=None, macs=("52:54:00:00:03:01", "52:54:00:00:03:02")),
    "i4": Hardware(macs=("52:54:00:00:04:01", "52:54:00:00:04:02")),
    "i5": Hardware(macs=("52:54:00:00:05:01", "52:54:00:00:05:02")),
    "i6": Hardware(macs=("52:54:00:00:06:01", "52:54:00:00:06:02")),
    "i7": Hardware(macs=("52:54:00:00:07:01", "52:54:00:00:07:02")),
}
SKU: dict[str, Any] = {"parts": {"drive": 1, "nic_port": 2}, "memory_gib": 512}


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealIronic]:
    folder, names = tmp_path_factory.mktemp("ironic"), tuple(MACHINES)
    ids = system_ids(names)
    shown = as_configuration(folder, {ids[name]: one for name, one in MACHINES.items()})
    try:
        with real_ironic(folder, names, bmc=shown) as there:
            for name in names:
                there.enrol(name)
                there.call("PUT", f"/v1/nodes/{name}/states/provision", {"target": "manage"})
            for name in names:
                there.until(name, provision_state="manageable", reservation=None)
            yield there
    except MissingError as missing:
        pytest.skip(f"Ironic is not here and cannot be installed: {missing}")


@pytest.fixture
async def work(ironic: RealIronic) -> AsyncIterator[Work]:
    async with aiohttp.ClientSession() as session:
        yield Work(ironic, session)


async def test_what_an_inspection_found_is_the_nodes_inventory(work: Work) -> None:
    """Mutants: the parts are not read; the memory is told in MiB; what Ironic lists is not recorded."""
    one = IronicCell(work, "i1", **SKU)
    outcome = await one.ended(one.ask("inspect"))
    assert (outcome.result, work.state("i1")) == ("done", "manageable"), outcome
    parts = {(part.kind, part.slot, part.serial, part.model) for part in outcome.parts}
    macs = MACHINES["i1"].macs
    assert parts == {("drive", "Bay1", "1234570", "C123"), *(("nic_port", mac, mac, "") for mac in macs)}
    assert one.node.memory_gib == 512
    assert one.gaps() == []
    assert one.conditions() == {}
    assert (one.told.told["memory_mb"], one.told.told["cpu_arch"]) == ("524288", "x86_64")


async def test_half_an_inventory_is_told_beside_the_sku_like_any_other(work: Work) -> None:
    """No drives, a port and half the memory too few. Mutants: a list that is not shown is one without parts; nothing
    is compared."""
    one = IronicCell(work, "i2", **SKU)
    outcome = await one.ended(one.ask("inspect"))
    assert outcome.result == "done"
    assert "no drive is listed" in outcome.detail
    assert one.gaps() == [
        "drive: expected 1, found nothing: no source can see this kind",
        "nic_port: expected 2, found 1",
        "host memory: expected 512 GiB, found 256 GiB",
    ]
    said = one.conditions()
    assert "1 of 2 nic_port seen" in said["inventory.below_sku nic_port"]
    assert "the SKU names drive" in said["inventory.unseen_kind"]
    assert one.node.conditions[0].evidence[-1].observation == "", "no observation of it is stored"


async def test_a_property_that_the_bmc_does_not_show_fails_it_with_ironics_words(work: Work) -> None:
    """Mutants: an inventory of an inspection that failed counts; the next command is left out."""
    one = IronicCell(work, "i3", **SKU)
    before = one.node.slots, one.node.memory_gib
    outcome = await one.ended(one.ask("inspect"))
    assert (outcome.result, outcome.parts, work.state("i3")) == ("failed", (), "inspect failed")
    assert "Failed to discover the following properties: memory_mb" in outcome.detail
    assert "openstack baremetal node manage i3" in outcome.detail
    assert (one.node.slots, one.node.memory_gib) == before


async def test_an_inspection_that_does_not_end_is_waited_for_and_read_when_it_does(
    work: Work, ironic: RealIronic
) -> None:
    """The BMC answers nothing of its hardware for a while. Mutants: silence is an end; it is asked for twice."""
    folder = ironic.http.parent.parent
    one = IronicCell(work, "i4", **SKU)
    operation = one.ask("inspect")
    hang(folder, ironic.systems["i4"])
    ending = asyncio.create_task(one.ended(operation))
    try:
        await asyncio.to_thread(ironic.until, "i4", provision_state="inspecting")
        await asyncio.sleep(2)
        assert not ending.done()
        seen = await work.ask("i4", InspectMachine(), "observe", operation.id)
        assert (seen.result, "'inspecting'" in seen.detail) == ("unknown", True)
    finally:
        hang(folder, ironic.systems["i4"], on=False)
    assert (await ending).result == "done"
    log, uuid = (ironic.http.parent / "ironic.log").read_text(), work.there.state("i4")["uuid"]
    assert log.count(f'Node {uuid} moved to provision state "inspecting"') == 1
    assert one.gaps() == []


class Hand:
    """A driver before a machine of its own, asked as the runner asks: once, and then observed."""

    def __init__(self, driver: OperationDriver, node: Node, listing: AnyAct) -> None:
        self.driver, self.node, self.listing = driver, node, listing

    async def ask(self, act: AnyAct, how: str = "perform") -> Outcome:
        now = datetime.now(UTC)
        asked = Operation(f"o-{type(act).__name__}", act, self.node.id, "p", 0, now, now + timedelta(minutes=3))
        outcome: Outcome = await getattr(self.driver, how)(asked, self.node)
        return outcome

    async def until_done(self, act: AnyAct) -> Outcome:
        return await until_done(partial(self.ask, act))


@pytest.fixture(params=["redfish", "ironic"])
async def hand(request: pytest.FixtureRequest, ironic: RealIronic) -> AsyncIterator[Hand]:
    name = "i6" if request.param == "redfish" else "i7"
    node = node_at(ironic.address(name), ironic.systems[name], name)
    async with aiohttp.ClientSession() as session, a_hand(Access(timeout_s=30), lambda: datetime.now(UTC)) as redfish:
        if request.param == "redfish":
            yield Hand(redfish, node, CollectInventory())
        else:
            client = IronicClient(session, IronicAccess(ironic.url), KeptSecrets({}, lambda: 0.0))
            yield Hand(IronicNodes(redfish, client), replace(node, provisioner="ironic"), InspectMachine())


async def test_both_set_the_next_boot_and_switch_the_machine(hand: Hand, ironic: RealIronic) -> None:
    """The BMC is asked by the test. Mutants: what was taken is done; what is on is switched on again."""
    await hand.until_done(SetBootNetwork())
    boot = ironic.shown(hand.node.id)["Boot"]
    assert boot["BootSourceOverrideTarget"] == "Pxe"
    await hand.until_done(PowerOn())
    assert ironic.shown(hand.node.id)["PowerState"] == "On"
    assert "already" in (await hand.ask(PowerOn())).detail
    assert (await hand.ask(SwitchOff(), "observe")).result in ("unknown", "not_done")
    await hand.until_done(SwitchOff())
    assert ironic.shown(hand.node.id)["PowerState"] == "Off"


async def test_both_list_the_same_drives_and_ports(hand: Hand) -> None:
    """Mutants: a slot is named otherwise by one; MAC addresses are in capitals."""
    outcome = await hand.until_done(hand.listing)
    found = {(part.kind, part.slot, part.serial) for part in outcome.parts if part.kind in ("drive", "nic_port")}
    macs = MACHINES[hand.node.id].macs
    assert found == {("drive", "Bay1", "1234570"), *(("nic_port", mac, mac) for mac in macs)}


async def test_both_refuse_a_machine_that_is_not_the_node_s(hand: Hand, ironic: RealIronic) -> None:
    """The node's BMC shows another system. Mutant: the address is enough."""
    other = node_at(ironic.address("i1"), "another-serial", hand.node.id)
    hand.node = replace(other, provisioner=hand.node.provisioner)
    with pytest.raises(RefusedError, match="binding mismatch"):
        await hand.ask(PowerOn())
    assert ironic.shown("i1")["PowerState"] == "Off"


async def test_an_ironic_that_dies_in_between_has_failed_it_when_it_is_back(work: Work, ironic: RealIronic) -> None:
    """Last of its module. Mutants: an Ironic that is away has refused; what it gave up is begun again by itself."""
    folder = ironic.http.parent.parent
    one = IronicCell(work, "i5", **SKU)
    operation = one.ask("inspect")
    hang(folder, ironic.systems["i5"])
    try:
        await work.ask("i5", InspectMachine(), operation=operation.id)
        await asyncio.to_thread(ironic.until, "i5", provision_state="inspecting")
        await asyncio.to_thread(ironic.kill, "ironic")
        with pytest.raises(UnreachableError, match="Ironic does not answer"):
            await work.ask("i5", InspectMachine(), "observe", operation.id)
    finally:
        hang(folder, ironic.systems["i5"], on=False)
        ironic.start("ironic")
        await asyncio.to_thread(ironic.until_up)
    outcome = await one.ended(operation)
    assert (outcome.result, outcome.parts) == ("failed", ()), outcome
    assert "openstack baremetal node manage i5" in outcome.detail


@pytest.mark.parametrize("hostile", [b"", b"[]", b"{}", b'{"inventory": 1}', b"[" * 5000, b"\xff"])
def test_an_answer_that_is_no_inventory_has_no_parts(hostile: bytes) -> None:
    assert inspected(hostile).gaps == ("Ironic's inventory cannot be read",)


def test_what_is_wrong_in_an_inventory_is_left_out() -> None:
    """Mutants: a drive without a name of any kind; memory of minus one; a placeholder as a serial."""
    wrong = b"""{"inventory": {"memory": {"physical_mb": -1}, "disks": [7, {}, {"name": "sda", "serial": "None"}],
        "interfaces": [{"mac_address": null}, {"mac_address": "AA:BB:CC:00:00:01", "name": 3}],
        "storage_controllers": {}}}"""
    found = inspected(wrong)
    assert found.parts == (Part("", "drive", slot="sda"), Part("aa:bb:cc:00:00:01", "nic_port"))
    assert found.facts == {"covers": "drive,nic_port"}
    assert found.gaps == ("no amount of memory is told",)
