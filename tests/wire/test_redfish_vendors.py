"""BMCs of eleven kinds of machine as they lay out what they know, read and driven by the real driver."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.serials import identified
from hostler.core.state.model import Observation, Outcome
from hostler.drivers.redfish import bmc_event_logs, firmware_inventory, part_inventory, sensor_reader
from hostler.drivers.redfish.client import PreconditionError
from hostler.ports import RefusedError
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.request_faults import RequestFaultRule
from hostler.sim.bmc.vendors import VENDORS
from tests.contract.redfish_vendors import SERIAL, Bmc, in_the_document, read_by_the_driver, table
from tests.contract.redfish_world import START, a_machine, operation
from tests.kit import a_node, configuration

PAGE = Path(__file__).parents[2] / "docs/redfish-vendors.md"
SKU = configuration().skus["h100"]
UNSEEN = a_node("a", inventory_covers=())
each_vendor = pytest.mark.parametrize("vendor", VENDORS)


# what is shown is read


@each_vendor
async def test_all_that_a_bmc_shows_of_a_machine_is_read(vendor: str) -> None:
    """Mutants: only chassis that the system names; only firmware related to the system itself; only the host's system;
    the first log, entries or not; the system's logs only; PCIe devices are not asked; names are taken from Id alone."""
    bmc = Bmc(vendor)
    assert await read_by_the_driver(bmc) == in_the_document(bmc)


async def test_the_page_shows_the_table_as_it_is() -> None:
    assert await table() in PAGE.read_text(encoding="utf-8"), "run python -m bench.redfish_vendors"


async def test_a_bmc_of_two_systems_needs_no_name_of_one() -> None:
    """Mutant: the first system counts; a GB300 lists its baseboard first."""
    for vendor in ("dgx_h100", "gh200", "gb200", "gb300"):
        bmc = Bmc(vendor)
        assert (await bmc.client.system()).id == VENDORS[vendor].system
        assert (await bmc.reader.look(bmc.node)).power == "on"


async def test_the_word_of_a_board_that_no_system_names_is_heard() -> None:
    """Chassis/HGX_CPU_0 Critical on a GB200. Mutant: chassis are asked for serial numbers only."""
    bmc = Bmc("gb200")
    bmc.service.faults.add(RequestFaultRule("/redfish/v1", patch={"ProtocolFeaturesSupported": None}, times=0))
    bad = {"Status": {"State": "Enabled", "Health": "Critical"}}
    for board in ("HGX_CPU_0", "PDB_0"):
        bmc.service.faults.add(RequestFaultRule(f"*/Chassis/{board}", patch=bad, times=0))
    read = await (await bmc.reader.look(bmc.node)).parts()
    standing = {(f.type, f.part) for f in judge(read, a_node("a", slots=()), SKU) if f.standing}
    assert standing == {("part.unhealthy", f"{SERIAL}-CPU0"), ("part.unhealthy", f"P{SERIAL}")}


@pytest.mark.parametrize(("vendor", "why"), [("gb200", "show none"), ("gb300", "show one serial number")])
async def test_gpus_without_numbers_of_their_own_are_counted_and_known_by_slot(vendor: str, why: str) -> None:
    """Mutant: parts are kept by serial; two GPUs of one board are one, four without numbers none."""
    bmc = Bmc(vendor)
    found = await part_inventory.inventory(bmc.client, await bmc.client.system())
    gpus = [part for part in identified(found.parts, SERIAL) if part.kind == "gpu"]
    assert {part.serial for part in gpus} == {f"GPU_{number}@{SERIAL}" for number in range(4)}
    seen = Observation("a", "inventory", "bmc", "s", 1, facts={"covers": "gpu"}, parts=found.parts)
    told = {f.type: f.text for f in judge(seen, UNSEEN, SKU) if f.standing and f.part == "gpu"}
    assert why in told["inventory.serial_unclear"]
    assert told["inventory.below_sku"].startswith("4 of 8 gpu")


async def test_a_root_of_trust_is_not_asked_by_itself() -> None:
    """A resource that never answers costs the look. Mutant: every chassis is asked."""
    bmc = Bmc("nvswitch")
    bmc.service.faults.add(RequestFaultRule("*ERoT*", drop="before", times=0))
    assert (await (await bmc.reader.look(bmc.node)).sensors()).facts
    await part_inventory.inventory(bmc.client, await bmc.client.system())
    assert not any("ERoT" in path for _, path in bmc.asked)


async def test_a_baseboard_that_is_not_up_yet_hides_nothing_of_the_host() -> None:
    """Minutes after its BMC a baseboard still answers 503. Mutant: it counts as a machine; the choice is refused."""
    bmc = Bmc("dgx_h100")
    bmc.service.faults.add(RequestFaultRule("*/HGX_Baseboard_0", status=503, times=0))
    system = await bmc.client.system()
    assert system.id == "DGX"
    read = await part_inventory.health(bmc.client, system)
    assert (read.complete, "health:gpu:HGX_GPU_SXM_3" in read.facts) == (False, True)
    bmc.service.faults.add(RequestFaultRule("*/Managers/HGX_BMC_0", status=503, times=0))
    assert len((await bmc_event_logs.read(bmc.client, system))[0]) == 3
    assert any(name.startswith("gpu7") for name in (await sensor_reader.sensors(bmc.client, system)).facts)


async def test_two_boards_that_call_a_sensor_alike_are_told_apart() -> None:
    """Mutant: the later counts; a hot board hides behind a cool one."""
    bmc = Bmc("dgx_h100")
    for number in range(8):
        path = f"*/HGX_GPU_SXM_{number + 1}/Sensors/gpu{number}_temp_c"
        bmc.service.faults.add(RequestFaultRule(path, patch={"Name": "Temp"}, times=0))
    bmc.service.faults.add(RequestFaultRule("/redfish/v1", patch={"ProtocolFeaturesSupported": None}, times=0))
    read = (await sensor_reader.sensors(bmc.client, await bmc.client.system())).facts
    temps = [name for name in read if name.endswith("temp_c") and "inlet" not in name]
    assert len(temps) == 8
    assert {"temp_c", "hgx_gpu_sxm_8_temp_c", "hgx_gpu_sxm_8_temp_limit_c"} <= read.keys()


# several machines behind one BMC


async def test_each_of_two_machines_behind_one_bmc_has_its_own_chassis_and_firmware() -> None:
    """Mutant: all chassis of a BMC are everybody's; each machine then has its neighbour's parts."""
    service = Service([a_machine("SN1"), a_machine("SN2")])
    bmc = Bmc("dell")
    bmc.service = service
    system = await bmc.client.system("sys-SN2")
    found = await part_inventory.inventory(bmc.client, system)
    assert {part.serial.partition("-")[0] for part in found.parts} == {"SN2"}
    assert (await part_inventory.inventory(bmc.client, await bmc.client.system("sys-SN1"))).parts != found.parts
    with pytest.raises(RefusedError, match=r"serves 2 systems .*sys-SN1 with serial SN1, .*sys-SN2 with serial SN2"):
        await bmc.client.system()


# words of the machine and its cover


async def _twice(bmc: Bmc) -> dict[str, str]:
    """Conditions that stand, by type, and the part."""
    read = await (await bmc.reader.look(bmc.node)).parts()
    return {f.type: f.part for f in judge(read, a_node("a", slots=()), SKU) if f.standing}


async def test_a_machine_that_is_called_critical_while_no_part_is_becomes_a_condition() -> None:
    """Mutants: the machine's own word is not judged; it is told although a part explains it."""
    bmc = Bmc("lenovo")
    bmc.machine.sicken("system")
    assert await _twice(bmc) == {"system.unhealthy": "system"}
    bmc.machine.sicken("memory3")
    assert "system.unhealthy" not in await _twice(bmc)
    bmc.machine.heal("memory3")
    bmc.machine.heal("system")
    assert await _twice(bmc) == {}


async def test_an_opened_cover_is_a_condition() -> None:
    """Mutant: PhysicalSecurity is not read."""
    bmc = Bmc("dell")
    assert await _twice(bmc) == {}
    bmc.machine.sicken("cover")
    assert await _twice(bmc) == {"chassis.intrusion": "cover System.Embedded.1"}


# what a BMC is told


async def _done(bmc: Bmc, kind: str, **args: Any) -> Outcome:
    """Perform, and observe until it has landed."""
    outcome = await bmc.driver.perform(operation(kind, bmc.node, **args), bmc.node)
    for _ in range(120):
        if outcome.result == "done":
            break
        bmc.now = bmc.now.replace(microsecond=0) + (START.replace(minute=1) - START) / 60
        outcome = await bmc.driver.observe(operation(kind, bmc.node, **args), bmc.node)
    return outcome


@each_vendor
async def test_power_goes_off_and_on_by_what_the_bmc_offers(vendor: str) -> None:
    """Off is observed, then on: a cycle is never sent. Mutant: the first of the names is sent, offered or not."""
    bmc = Bmc(vendor)
    assert (await _done(bmc, "power_off")).facts["power"] == "off"
    assert (await _done(bmc, "power_on")).facts["power"] == "on"
    kinds = [body["ResetType"] for _, _, body in bmc.sent if isinstance(body, dict)]
    assert kinds == ["ForceOff", "On"]
    assert set(kinds) <= set(VENDORS[vendor].resets)


async def test_a_reset_that_only_the_action_info_rules_out_is_refused_and_not_sent() -> None:
    """Mutant: ActionInfo is not read; ForceOff is sent to a BMC that does not have it, and On instead of ForceOn."""
    bmc = Bmc("dgx_h100")
    few = [{"Name": "ResetType", "AllowableValues": ["ForceOn", "PushPowerButton"]}]
    bmc.service.faults.add(RequestFaultRule("*/ResetActionInfo", patch={"Parameters": few}, times=0))
    with pytest.raises(RefusedError, match="does not offer the reset ForceOff; it offers ForceOn, PushPowerButton"):
        await bmc.driver.perform(operation("power_off", bmc.node), bmc.node)
    assert bmc.sent == []
    bmc.machine.power = "Off"
    with pytest.raises(RefusedError, match="ForceOn"):
        await bmc.driver.perform(operation("power_on", bmc.node), bmc.node)
    assert [body for _, _, body in bmc.sent] == [{"ResetType": "ForceOn"}]


@each_vendor
async def test_the_next_boot_is_set_where_the_bmc_takes_it(vendor: str) -> None:
    """Mutants: settings objects are not looked for; what waits there is not seen; a demanded etag is not named."""
    bmc, row = Bmc(vendor), VENDORS[vendor]
    assert (await _done(bmc, "set_boot_network", target="pxe")).result == "done"
    assert (bmc.machine.boot.enabled, bmc.machine.boot.target) == ("Once", "Pxe")
    place = f"/redfish/v1/Systems/{row.system}" + (f"/{row.settings}" if row.settings else "")
    assert {path for path, _, _ in bmc.sent} == {place}
    assert len(bmc.sent) == (2 if row.demands and row.etag == "weak" else 1)
    named = bmc.sent[-1][1].get("If-Match", "")
    assert bool(named) == (row.etag == "strong" or row.demands)
    assert not named.startswith("W/")


async def test_a_settings_object_that_does_not_list_the_property_is_not_used() -> None:
    """Mutant: every change goes to the settings object; one that does not know it drops it without a word."""
    bmc = Bmc("lenovo")
    bmc.service.faults.add(RequestFaultRule("*/Pending", patch={"Boot": None}, times=0))
    with pytest.raises(RefusedError, match="read-only"):
        await bmc.driver.perform(operation("set_boot_network", bmc.node, target="pxe"), bmc.node)
    assert [path for path, _, _ in bmc.sent] == ["/redfish/v1/Systems/1"]


async def test_a_state_that_changed_is_fetched_once_more_and_named() -> None:
    """Mutant: a 412 ends the operation; it is then tried again in a minute, and for ever."""
    bmc = Bmc("gb200")
    system = await bmc.client.system()
    bmc.machine.locate = True
    bmc.asked.clear()
    async with bmc.client.alone:
        await bmc.client.locate(system, False)
    assert bmc.machine.locate is False
    assert [method for method, _ in bmc.asked] == ["PATCH", "GET", "PATCH"]
    first, second = (headers["If-Match"] for _, headers, _ in bmc.sent)
    assert first != second


async def test_a_bmc_that_takes_no_etag_is_not_asked_for_ever() -> None:
    """Mutant: no bound."""
    bmc = Bmc("gh200")
    bmc.service.faults.add(RequestFaultRule("*/Settings", method="PATCH", status=412, times=0))
    with pytest.raises(PreconditionError):
        await bmc.driver.perform(operation("set_boot_network", bmc.node, target="pxe"), bmc.node)
    assert len(bmc.sent) == 2
    assert [headers.get("If-Match", "") != "" for _, headers, _ in bmc.sent] == [True, False]


async def test_a_supermicro_bios_is_verified_and_updated() -> None:
    """The BIOS's firmware is related to Systems/1/Bios. Mutant: what lies under a system is another's."""
    bmc = Bmc("supermicro")
    verified = await bmc.driver.perform(operation("verify_firmware", bmc.node, wanted={"BIOS": ("1.0.0",)}), bmc.node)
    assert (verified.result, verified.facts) == ("unknown", {"BIOS": "1.0.0"}), "a reading has to repeat itself"
    wanted = {"component": "BIOS", "version": "2.0.0", "image": "http://images/BIOS/2.0.0"}
    sent = await bmc.driver.perform(operation("update_firmware", bmc.node, **wanted), bmc.node)
    assert sent.result == "unknown"
    assert bmc.machine.counts["SimpleUpdate"] == 1
    assert (await _observed(bmc, wanted)).detail.startswith("still writing")


PUSHED_ONLY = {"gh200", "gb200", "nvswitch", "openbmc"}
"""Kinds of machine whose BMCs take firmware by multipart push and not by SimpleUpdate."""


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_bmc_without_simple_update_is_asked_for_none_and_pushed_to(vendor: str) -> None:
    """Mutants: the emulated BMC takes what a real one does not; the driver makes an address up."""
    bmc = Bmc(vendor)
    listed = await firmware_inventory.components(bmc.client, await bmc.client.system())
    name = listed[0].name
    written = next(c for c in bmc.machine.firmware if bmc.machine.firmware[c] == listed[0].version)
    wanted = {"component": name, "version": "2.0.0", "image": f"http://images/{written}/2.0.0"}
    action = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate"
    if vendor not in PUSHED_ONLY:
        sent = await bmc.driver.perform(operation("update_firmware", bmc.node, **wanted), bmc.node)
        assert sent.result == "unknown"
        assert [path for path, _, _ in bmc.sent] == [action]
        return
    sent = await bmc.driver.perform(operation("update_firmware", bmc.node, **wanted), bmc.node)
    assert sent.result == "unknown"
    ((path, _, pushed),) = bmc.sent
    assert path == "/redfish/v1/UpdateService/update-multipart"
    assert isinstance(pushed, bytes)
    assert listed[0].path.encode() in pushed
    assert {task.image for task in bmc.machine.tasks.values()} == {"pushed"}
    body = msgspec.json.encode({"ImageURI": wanted["image"], "Targets": [listed[0].path]})
    assert (await bmc.exchange("POST", action, body, {})).status == 404
    assert bmc.machine.counts["SimpleUpdate"] == 1, "the push alone"


async def _observed(bmc: Bmc, wanted: dict[str, str]) -> Outcome:
    return await bmc.driver.observe(operation("update_firmware", bmc.node, **wanted), bmc.node)


# logs


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_log_is_read_on_wherever_it_is(vendor: str) -> None:
    """Mutants: a mark is kept for one log only; the log of the manager is not looked for."""
    bmc = Bmc(vendor)
    system = await bmc.client.system()
    first, cursor = await bmc_event_logs.read(bmc.client, system)
    assert [entry.message for entry in first] == ["Entry 0", "Entry 1", "Entry 2"]
    assert await bmc_event_logs.read(bmc.client, system, cursor) == ((), cursor)
    bmc.machine.write_log("Critical", "A voltage is out of range.", START)
    again, cursor = await bmc_event_logs.read(bmc.client, system, cursor)
    assert [entry.message for entry in again] == ["A voltage is out of range."]


async def test_a_cursor_of_one_log_is_read_on_and_a_log_that_is_new_to_us_is_history() -> None:
    """Mutants: a cursor of an older version starts all anew; a log that was found later floods with what it held."""
    bmc = Bmc("hpe")
    system = await bmc.client.system()
    _, cursor = await bmc_event_logs.read(bmc.client, system)
    mark = cursor.split(" ", 1)[1]
    bmc.machine.write_log("Warning", "Fan 2 is slow.", START)
    entries, _ = await bmc_event_logs.read(bmc.client, system, mark)
    assert [entry.message for entry in entries] == ["Fan 2 is slow."]
    elsewhere, now = await bmc_event_logs.read(bmc.client, system, "/redfish/v1/Systems/1/LogServices/OLD/Entries 4@x")
    assert (elsewhere, "IML" in now) == ((), True)


async def test_a_page_that_was_read_already_ends_a_list() -> None:
    """Mutant: only the number of pages is bounded; fifty copies of each entry are told."""
    bmc = Bmc("hpe")
    entries = "/redfish/v1/Systems/1/LogServices/IML/Entries"
    loop = {"Members@odata.nextLink": f"{entries}?$skip=3"}
    bmc.service.faults.add(RequestFaultRule(f"*{entries}", patch=loop, times=0))
    found, _ = await bmc_event_logs.read(bmc.client, await bmc.client.system())
    assert len(found) == 6, "the page and the next one, which is the same again"
    asked = [path for _, path in bmc.asked if path.partition("?")[0] == entries]
    assert asked == [entries, f"{entries}?$skip=3"]


async def test_a_plain_bmc_is_asked_no_more_than_before() -> None:
    """Mutant: the tree is learned at each look."""
    bmc = Bmc("dell")
    for requests in (7, 3, 3):
        bmc.asked.clear()
        await (await bmc.reader.look(bmc.node)).sensors()
        assert len(bmc.asked) == requests


@pytest.mark.parametrize(
    ("method", "path", "body", "named", "status"),
    [
        ("POST", "/DGX/Actions/ComputerSystem.Reset", {"ResetType": "PowerCycle"}, "", 400),
        ("POST", "/HGX_Baseboard_0/Actions/ComputerSystem.Reset", {"ResetType": "ForceOff"}, "", 400),
        ("PATCH", "/DGX/SD", {"Boot": {"BootSourceOverrideTarget": "Pxe"}}, "", 428),
        ("PATCH", "/DGX/SD", {"Boot": {"BootSourceOverrideTarget": "Pxe"}}, '"of another day"', 412),
        ("PATCH", "/DGX", {"Boot": {"BootSourceOverrideTarget": "Pxe"}}, "*", 400),
        ("PATCH", "/DGX/SD", {"Boot": {"BootSourceOverrideTarget": "Pxe"}}, "*", 204),
    ],
)
def test_an_emulated_bmc_is_no_kinder_than_its_vendors(
    method: str, path: str, body: dict[str, object], named: str, status: int
) -> None:
    """Mutants: any reset is taken; an etag is not compared; a baseboard can be switched off."""
    bmc = Bmc("dgx_h100")
    asked = ServiceRequest(method, f"/redfish/v1/Systems{path}", "", msgspec.json.encode(body), {"If-Match": named})
    assert bmc.service.handle(asked, START).status == status
    assert (bmc.machine.boot.target == "Pxe") == (status == 204)
    assert bmc.machine.power == "On"
