"""Answers of the Redfish operation driver where a BMC is quick, half-way, forgetful or shows little."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.core.state.model import Outcome
from hostler.drivers.redfish import operation_driver as redfish_hand
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import RefusedError, UnreachableError
from hostler.sim.bmc.emulated_machine import Delays, EmulatedBootOverride, Machine, Quirks, gpu_server
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.redfish_twin import RedfishTwin, images_by_name, in_memory
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.redfish_world import START, World, a_machine, emulated, node_at, operation

SYSTEM, MANAGER, TASK = "/redfish/v1/Systems/*", "/redfish/v1/Managers/*", "/redfish/v1/TaskService/Tasks/*"
BIOS = {"component": "BIOS", "version": "2.0.0"}


def running_machine(**quirks: Any) -> Machine:
    machine = a_machine(quirks=Quirks(**quirks))
    machine.start_powered()
    return machine


def shows(path: str, times: int = 0, **patch: Any) -> RequestFaultRule:
    """The BMC shows these keys of a document so, for ever or so many times."""
    return RequestFaultRule(path, "GET", patch=patch, times=times)


# power


async def test_power_that_is_there_at_once_is_done_at_once() -> None:
    """Mutant: a power change is never done before it is observed."""
    machine = Machine("sys-SN1", gpu_server("SN1"), Delays(scale=0))
    async with emulated("twin", machine) as world:
        outcome = await world.perform("power_on")
        assert (outcome.result, outcome.detail, outcome.facts["power"]) == (
            "done",
            "On was accepted; power is on",
            "on",
        )


@pytest.mark.parametrize(
    ("kind", "shown", "sent"),
    [
        ("power_on", "PoweringOn", {}),
        ("power_on", "PoweringOff", {"On": 1}),
        ("power_off", "PoweringOff", {"ForceOff": 1}),
    ],
)
async def test_what_is_on_its_way_is_not_asked_for_again_but_a_forced_power_off_is(
    kind: str, shown: str, sent: dict[str, int]
) -> None:
    """A machine that hangs while it shuts down is forced off. Mutants: either operand of that condition."""
    machine = running_machine(lenient=True)
    async with emulated("twin", machine, (shows(SYSTEM, PowerState=shown),)) as world:
        assert (await world.perform(kind)).result == "unknown"
        assert (await world.observe(kind)).result == "unknown"
    assert dict(machine.counts) == sent


@pytest.mark.parametrize("kind", ["power_on", "power_off"])
async def test_power_that_never_changed_is_seen_not_done_either_way(kind: str) -> None:
    machine = a_machine()
    if kind == "power_off":
        machine.start_powered()
    async with emulated("twin", machine) as world:
        seen = await world.observe(kind)
        assert (seen.result, seen.detail) == ("not_done", f"power is {seen.facts['power']}")


async def test_power_that_is_not_shown_is_unknown_in_the_facts_too() -> None:
    async with emulated("twin", running_machine(missing_keys=frozenset({"PowerState"}))) as world:
        assert (await world.perform("locate_on")).facts["power"] == "unknown"


@pytest.mark.parametrize(
    ("passed_s", "deadline_s", "result"), [(29.9, 60, "unknown"), (30, 60, "not_done"), (20, 20, "not_done")]
)
async def test_an_effect_may_appear_until_its_landing_time_or_its_deadline(
    passed_s: float, deadline_s: float, result: str
) -> None:
    """Mutants: the later of the two counts; the last moment still counts; the landing time is not looked up."""
    async with emulated("twin", running_machine(), (RequestFaultRule("*.Reset", drop="before"),)) as world:
        asked = replace(operation("power_off", world.node), deadline=START + timedelta(seconds=deadline_s))
        with pytest.raises(UnreachableError):
            await world.driver.perform(asked, world.node)
        await world.pass_by(passed_s)
        assert (await world.driver.observe(asked, world.node)).result == result


async def test_the_landing_time_counts_from_the_last_sending() -> None:
    """Mutant: it counts from the record although this process has sent later."""
    async with emulated("twin", running_machine(), (RequestFaultRule("*.Reset", drop="before", times=2),)) as world:
        asked = replace(operation("power_off", world.node), started=START)
        for _ in range(2):
            with pytest.raises(UnreachableError):
                await world.driver.perform(asked, world.node)
            await world.pass_by(20)
        assert (await world.driver.observe(asked, world.node)).result == "unknown"


def test_what_is_remembered_of_operations_is_bounded_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: nothing is forgotten; the newest is, whose effect is still to come."""
    monkeypatch.setattr(redfish_hand, "MAX_REMEMBERED", 2)
    rules = Service([running_machine()])
    rules.faults.add(RequestFaultRule("*.Reset", drop="before", times=0))
    twin, node = RedfishTwin({"https://b": rules}, images_by_name), node_at("https://b", "SN1")
    asked = [replace(operation("power_off", node), id=f"op{n}") for n in range(3)]
    for one in asked:
        with pytest.raises(UnreachableError):
            twin.perform(one, node, START)
    seen = [twin.observe(one, node, START).result for one in reversed(asked)]
    assert seen == ["unknown", "unknown", "not_done"], "of the first only the record is known, which is a day old"


# boot and light


@pytest.mark.parametrize(
    ("boot", "result"),
    [
        (EmulatedBootOverride("Once", "UefiHttp"), "done"),
        (EmulatedBootOverride("Continuous", "UefiHttp"), "done"),
        (EmulatedBootOverride("Once", "Pxe"), "not_done"),
        (EmulatedBootOverride("Disabled", "UefiHttp"), "not_done"),
    ],
)
async def test_the_boot_override_counts_where_it_is_on_and_for_this_target(
    boot: EmulatedBootOverride, result: str
) -> None:
    """Mutants: an override that is used up counts; one for another target does; one that stays does not."""
    machine = running_machine()
    machine.boot = boot
    async with emulated("twin", machine) as world:
        seen = await world.observe("set_boot_network", target="uefi_http")
        assert (seen.result, seen.facts["boot"]) == (result, f"{boot.enabled} {boot.target}")
        assert (await world.perform("set_boot_network", target="uefi_http")).result == "done"
    assert machine.counts["SetBoot"] == (result == "not_done"), "what is set already is not sent"


async def test_the_network_boot_without_a_target_is_pxe() -> None:
    async with emulated("twin", running_machine()) as world:
        assert (await world.perform("set_boot_network")).facts["boot"] == "Once Pxe"


@pytest.mark.parametrize("waits", [True, False])
async def test_a_boot_override_counts_as_it_is_and_as_it_waits_for_the_next_start(waits: bool) -> None:
    """Lenovo's settings wait in an object of their own. Mutants: only the first counts; it is not the one shown."""
    on = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}
    off = {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}
    rules = (
        shows("/redfish/v1/Systems/1", Boot=off if waits else on),
        shows("/redfish/v1/Systems/1/Pending", Boot=on if waits else off),
    )
    async with emulated("lenovo", rules=rules) as world:
        seen = await world.observe("set_boot_network")
        assert (seen.result, seen.facts["boot"]) == ("done", "Once Pxe")


@pytest.mark.parametrize(("kind", "other", "sent"), [("locate_on", "locate_off", 1), ("locate_off", "locate_on", 0)])
async def test_a_light_is_changed_once_and_told_as_it_is(kind: str, other: str, sent: int) -> None:
    """Mutants: a light that is as wanted is changed again; any light is the wanted one."""
    shown = f"locate LED is {'lit' if kind == 'locate_on' else 'dark'}"
    async with emulated("twin", running_machine()) as world:
        for _ in range(2):
            outcome = await world.perform(kind)
            assert (outcome.result, outcome.detail) == ("done", shown)
        assert world.ours.counts["Locate"] == sent
        seen = await world.observe(other)
        assert (seen.result, seen.detail) == ("not_done", shown)


async def test_a_light_that_the_bmc_does_not_show_is_unknown() -> None:
    """Mutant: a light that is not shown is taken for dark."""
    async with emulated("twin", running_machine(missing_keys=frozenset({"LocationIndicatorActive"}))) as world:
        seen = await world.observe("locate_off")
        assert (seen.result, seen.detail) == ("unknown", "the BMC shows no locate LED")


# firmware


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"component": "BIOS", "version": "2.0.0"}, "BIOS needs an image"),
        ({"component": "BIOS", "version": "", "image": "http://images/BIOS/2.0.0"}, "needs component and version"),
        ({"component": "", "version": "2.0.0", "image": "http://images/BIOS/2.0.0"}, "needs component and version"),
        ({"component": "FPGA", "version": "2.0.0", "image": "http://images/x"}, "lists no firmware component 'FPGA'"),
    ],
)
async def test_an_update_that_lacks_what_it_needs_is_refused_and_nothing_is_sent(
    args: dict[str, str], why: str
) -> None:
    async with emulated("twin", running_machine()) as world:
        with pytest.raises(RefusedError, match=why):
            await world.perform("update_firmware", **args)
        assert not world.ours.counts


async def test_versions_are_held_against_what_runs_in_the_spelling_that_was_asked_for() -> None:
    """Mutants: what runs is not told; what is not listed counts as right; one right version is enough."""
    async with emulated("twin", running_machine()) as world:
        right = await world.verified(bios="1.0.0")
        assert (right.result, right.facts) == ("done", {"bios": "1.0.0"})
        assert right.detail == "all versions are as wanted"
        one = await world.verified(BIOS="1.0.0", BMC="2.0.0")
        assert (one.result, one.detail) == ("failed", "BMC is 1.0.0, wanted 2.0.0")
        absent = await world.verified(FPGA="1.0.0")
        assert (absent.result, absent.detail) == ("failed", "FPGA is not listed, wanted 1.0.0")
        assert absent.facts == {"FPGA": ""}


async def test_without_wanted_versions_those_that_run_are_read() -> None:
    async with emulated("twin", running_machine()) as world:
        read = await world.perform("verify_firmware")
        assert (read.result, read.facts["BIOS"]) == ("done", "1.0.0")


async def test_an_update_that_may_not_have_arrived_is_unknown_for_as_long_as_it_may_land() -> None:
    """Mutant: the moment of sending is not noted, and the record is a day old."""
    async with emulated("twin", running_machine(), (RequestFaultRule("*.SimpleUpdate", drop="before"),)) as world:
        with pytest.raises(UnreachableError):
            await world.perform("update_firmware", image=world.image, **BIOS)
        assert (await world.observe("update_firmware", image=world.image, **BIOS)).result == "unknown"
        await world.pass_by(31)
        assert (await world.observe("update_firmware", image=world.image, **BIOS)).result == "not_done"


@pytest.mark.parametrize("task", ["vanished", "in a state of its own"])
async def test_a_task_that_says_nothing_leaves_an_update_open_while_it_may_land(task: str) -> None:
    """Mutant: whatever is neither running nor failed is a task that says done."""
    async with emulated("twin", running_machine(expands=0)) as world:
        await world.perform("update_firmware", image=world.image, **BIOS)
        if task == "vanished":
            world.ours.tasks.clear()
        world.faults.add(shows("/redfish/v1/TaskService/*", TaskState="Contemplating"))
        world.faults.add(shows("*/FirmwareInventory/BIOS", Status={"State": "Enabled"}))
        seen = await world.observe("update_firmware", image=world.image, **BIOS)
        assert (seen.result, "it may take 30 s" in seen.detail) == ("unknown", True)


async def test_what_runs_already_is_not_written_and_not_called_staged() -> None:
    """Mutant: what runs counts as staged."""
    async with emulated("twin", running_machine()) as world:
        args = {"component": "bios", "version": "1.0.0"}
        outcome = await world.perform("update_firmware", image=world.image, **args)
        assert (outcome.result, outcome.facts) == ("done", outcome.facts | {"bios": "1.0.0", "staged": False})
        assert not world.ours.counts


async def test_nothing_is_sent_into_an_update_under_way() -> None:
    """Mutant: whether the BMC writes is not looked at."""
    async with emulated("twin", running_machine()) as world:
        await world.perform("update_firmware", image=world.image, **BIOS)
        again = await world.perform("update_firmware", image=world.image, **BIOS)
        assert (again.result, again.facts["BIOS"]) == ("busy", "1.0.0")
        assert world.ours.counts["SimpleUpdate"] == 1


@pytest.mark.parametrize(
    ("targets", "result"), [(["another.BIOS"], "not_done"), (["another.BIOS", "BIOS"], "unknown"), ([], "unknown")]
)
async def test_a_task_is_waited_for_that_names_what_is_ours_or_nothing(targets: list[str], result: str) -> None:
    """Mutants: every running task is ours; none is that names anything; only one that names something is."""
    async with emulated("twin", running_machine(expands=0)) as world:
        await _another_tool_updates(world, targets)
        seen = await world.observe("update_firmware", image=world.image, **BIOS)
        assert (seen.result, "still writing" in seen.detail) == (result, result == "unknown")


async def _another_tool_updates(world: World, targets: list[str]) -> None:
    world.ours.start_update("BMC", "http://elsewhere", START)
    world.faults.add(shows("*/FirmwareInventory/BMC", Status={"State": "Enabled"}))
    paths = [f"/redfish/v1/UpdateService/FirmwareInventory/{target}" for target in targets]
    payload = {"JsonBody": msgspec.json.encode({"Targets": paths}).decode()}
    world.faults.add(shows(TASK, Payload=payload if targets else None))


async def test_firmware_that_cannot_be_listed_leaves_a_gap_in_the_inventory() -> None:
    """Mutants: the whole inventory fails with it; the gap is not told."""
    rule = RequestFaultRule("/redfish/v1/UpdateService*", "GET", status=404, times=0)
    async with emulated("twin", running_machine(), (rule,)) as world:
        outcome = await world.perform("collect_inventory")
        assert (outcome.result, len(outcome.parts) > 0) == ("done", True)
        assert outcome.facts["gaps"]
        assert str(outcome.facts["gaps"]) in outcome.detail
        assert not any(name.startswith("firmware.") for name in outcome.facts)


async def test_the_inventory_names_the_versions_that_run_and_says_where_it_is_incomplete() -> None:
    """Mutants: versions are not told; "incomplete" is said always, or never."""
    async with emulated("twin", running_machine()) as world:
        whole = await world.perform("collect_inventory")
        assert (whole.facts["complete"], whole.facts["firmware.BIOS"]) == (True, "1.0.0")
        assert whole.detail == f"{len(whole.parts)} parts"
        assert {part.node for part in whole.parts} == {world.node.id}
        world.faults.add(RequestFaultRule(f"{SYSTEM}/Memory*", "GET", status=500, times=0))
        partial = await world.perform("collect_inventory")
        assert partial.detail.startswith(f"{len(partial.parts)} parts, incomplete; ")


# the BMC's restart


async def _restarted(world: World) -> Outcome:
    world.ours.restart_manager(START)
    await world.pass_by(240)
    return await world.observe("reset_bmc")


async def test_a_restart_is_known_by_its_moment() -> None:
    """Mutants: the same moment as before counts; another one does not."""
    async with emulated(
        "twin", running_machine(), (RequestFaultRule("*/Actions/Manager.Reset", drop="before"),)
    ) as world:
        with pytest.raises(UnreachableError):
            await world.perform("reset_bmc")
        assert (await world.observe("reset_bmc")).result == "unknown", "it may still go away"
        await world.pass_by(61)
        assert (await world.observe("reset_bmc")).result == "not_done"
        assert (await _restarted(world)).result == "done"


async def test_a_restart_before_ours_was_sent_is_not_ours() -> None:
    """Mutants: any restart since the record counts, though this process knows the one before its own."""
    rules = (RequestFaultRule("*/Actions/Manager.Reset", drop="before"), shows(MANAGER, 1))
    async with emulated("twin", running_machine(), rules) as world:
        world.ours.manager_reset_at = START - timedelta(hours=1)
        with pytest.raises(UnreachableError):
            await world.perform("reset_bmc")
        assert (await world.observe("reset_bmc")).result == "unknown"
        world.faults.add(shows(MANAGER, 1, LastResetTime=None))
        forgot = await world.observe("reset_bmc")
        assert (forgot.result, "not told" in forgot.detail) == ("unknown", True), (
            "to say nothing is not to have restarted"
        )
        await world.pass_by(61)
        assert (await world.observe("reset_bmc")).result == "not_done"


async def test_after_a_restart_of_the_controller_the_record_says_since_when() -> None:
    """Mutants: any moment of a restart counts; only one that this process has asked for does."""
    async with emulated("twin", running_machine()) as world:
        world.ours.manager_reset_at = START - timedelta(days=2)
        assert (await world.observe("reset_bmc")).result == "not_done", "the operation was recorded a day ago"
        world.ours.manager_reset_at = START - timedelta(days=1)
        assert (await world.observe("reset_bmc")).result == "not_done", "at that very moment nothing was sent yet"
        assert (await _restarted(world)).result == "done"


async def test_a_bmc_that_tells_no_moment_has_restarted_once_it_was_away() -> None:
    """Mutants: it is done without having been away; having been away before it was asked counts."""
    async with emulated("twin", running_machine(), (shows(MANAGER, LastResetTime=None),)) as world:
        first = await world.observe("reset_bmc")
        assert (first.result, "not told" in first.detail) == ("unknown", True)
        world.ours.restart_manager(START)
        with pytest.raises(UnreachableError):
            await world.observe("reset_bmc")
        await world.pass_by(240)
        assert (await world.perform("reset_bmc")).result == "unknown"
        world.ours.restart_manager(START)
        await world.pass_by(480)
        assert (await world.observe("reset_bmc")).result == "unknown", "this time nobody saw it away"
        await world.perform("reset_bmc")
        with pytest.raises(UnreachableError):
            await world.observe("reset_bmc")
        await world.pass_by(240)
        assert (await world.observe("reset_bmc")).result == "done"


async def test_only_a_restart_may_reach_a_bmc_that_shows_no_serial_and_never_another_machines() -> None:
    """Mutants: a system without a serial is anybody's; a BMC that shows another serial may be restarted."""
    async with emulated("twin", running_machine(missing_keys=frozenset({"SerialNumber"}))) as world:
        with pytest.raises(RefusedError, match="no serial"):
            await world.perform("power_off")
        assert (await world.perform("reset_bmc")).result == "unknown"
    async with emulated("twin", a_machine("SN-OTHER")) as world:
        stranger = World(world.driver, node_at("https://twin", "SN1"), world.pass_by)
        with pytest.raises(RefusedError, match="binding mismatch"):
            await stranger.perform("reset_bmc")
        assert not world.ours.counts


async def test_a_reading_does_not_wait_for_an_act_and_each_has_a_budget_of_its_own() -> None:
    """Mutants: readings are taken one at a time with acts; what one operation has read is missing at the next."""
    service = Service([running_machine()])

    async def exchange(method: str, path: str, body: Body, _headers: dict[str, str]) -> HttpResponse:
        reply = service.handle(ServiceRequest(method, path.partition("?")[0], "", in_memory(body)), START)
        return HttpResponse(reply.status, msgspec.json.encode(reply.body))

    client = RedfishClient(exchange, "https://b")
    driver, node = RedfishDriver(lambda *_: client, lambda: START), node_at("https://b", "SN1")
    async with client.alone, asyncio.timeout(30):
        assert (await driver.observe(operation("power_on", node), node)).result == "done"
        spent = client.budget
        assert (await driver.observe(operation("power_on", node), node)).result == "done"
        assert client.budget is not spent


async def test_a_kind_that_is_not_ours_is_refused_with_what_there_is() -> None:
    async with emulated("twin") as world:
        with pytest.raises(RefusedError, match=r"no operation 'cordon'; it has power_on"):
            await world.perform("cordon")


async def test_a_node_without_the_bindings_that_name_its_machine_is_refused() -> None:
    async with emulated("twin") as world:
        for kind, why in (("serial", "no serial binding"), ("bmc", "no bmc binding")):
            node = replace(world.node, bindings=tuple(b for b in world.node.bindings if b.kind != kind))
            with pytest.raises(RefusedError, match=why):
                await world.driver.perform(operation("power_on", node), node)
