"""OpenStack's Redfish client as a judge of our emulated BMC, and the emulated machine's own behaviour."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sushy
from sushy import auth

from hostler.sim.bmc.emulated_machine import BmcRefusalError, EmulatedBootOverride, Machine, make_image
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.request_faults import RequestFaultRule, RequestFaults, merge
from tests.contract.redfish_world import CERTIFICATE, PASSWORD, START, USER, Clock, a_farm, a_machine


@dataclass
class Judge:
    """A sushy connection to a farm's only BMC, the machine behind it and its clock."""

    connection: Any
    machine: Machine
    clock: Clock

    @property
    def system(self) -> Any:
        return self.connection.get_system(f"/redfish/v1/Systems/{self.machine.id}")


@pytest.fixture
async def judge(tmp_path: Path) -> AsyncIterator[Judge]:
    clock, machine = Clock(), a_machine()
    trusted = tmp_path / "bmc.pem"
    trusted.write_bytes(CERTIFICATE.certificate)
    async with a_farm(clock, CERTIFICATE) as farm:
        origin = await farm.serve(Service([machine]))
        connection = await asyncio.to_thread(_connect, origin, str(trusted))
        yield Judge(connection, machine, clock)


def _connect(origin: str, trusted: str) -> Any:
    return sushy.Sushy(origin, auth=auth.BasicAuth(USER, PASSWORD), verify=trusted)


async def test_sushy_powers_the_machine(judge: Judge) -> None:
    def power_on() -> tuple[Any, ...]:
        system = judge.system
        before = system.power_state
        system.reset_system(sushy.RESET_TYPE_ON)
        judge.clock.pass_by(10)
        system.refresh(force=True)
        allowed = system.get_allowed_reset_system_values()
        with pytest.raises(sushy.exceptions.BadRequestError, match="power state is On"):
            system.reset_system(sushy.RESET_TYPE_ON)
        return before, system.power_state, sushy.RESET_TYPE_FORCE_OFF in allowed

    assert await asyncio.to_thread(power_on) == (sushy.POWER_STATE_OFF, sushy.POWER_STATE_ON, True)
    assert [seen.accepted for seen in judge.machine.received] == [True, False]


async def test_sushy_reads_identity_and_sets_the_boot_device(judge: Judge) -> None:
    def boot() -> tuple[Any, ...]:
        system = judge.system
        system.set_system_boot_options(
            sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE, mode=sushy.BOOT_SOURCE_MODE_UEFI
        )
        system.refresh(force=True)
        return system.serial_number, system.boot.target, system.boot.enabled, len(system.chassis), len(system.managers)

    expected = ("SN1", sushy.BOOT_SOURCE_TARGET_PXE, sushy.BOOT_SOURCE_ENABLED_ONCE, 1, 1)
    assert await asyncio.to_thread(boot) == expected
    assert judge.machine.boot == EmulatedBootOverride("Once", "Pxe")


async def test_sushy_reads_parts_firmware_bios_and_tasks(judge: Judge) -> None:
    def read() -> dict[str, Any]:
        system = judge.system
        update = judge.connection.get_update_service()
        update.simple_update("ftp://nowhere/image", targets=["/redfish/v1/UpdateService/FirmwareInventory/BIOS"])
        tasks = judge.connection.get_task_service().tasks.get_members()
        return {
            "processors": len(system.processors.get_members()),
            "drives": len(system.storage.get_members()[0].drives),
            "firmware": {item.identity: item.version for item in update.firmware_inventory.get_members()},
            "bios": system.bios.attributes,
            "tasks": len(tasks),
        }

    found = await asyncio.to_thread(read)
    assert found == {
        "processors": 10,
        "drives": 8,
        "firmware": dict.fromkeys(("BIOS", "BMC", "HMC", "GPU", "Retimer"), "1.0.0"),
        "bios": {"BootMode": "Uefi", "SriovEnable": "Enabled"},
        "tasks": 1,
    }
    assert judge.machine.counts["SimpleUpdate"] == 1


async def test_sushy_changes_bios_settings_that_hold_from_the_next_boot(judge: Judge) -> None:
    await asyncio.to_thread(lambda: judge.system.bios.set_attribute("SriovEnable", "Disabled"))
    assert judge.machine.bios == {"BootMode": "Uefi", "SriovEnable": "Enabled"}
    judge.machine.reset("On", judge.clock.now)
    judge.machine.advance(judge.clock.now + timedelta(minutes=10))
    assert judge.machine.bios == {"BootMode": "Uefi", "SriovEnable": "Disabled"}


async def test_sushy_resets_the_bmc(judge: Judge) -> None:
    await asyncio.to_thread(lambda: judge.system.managers[0].reset_manager(sushy.RESET_MANAGER_GRACEFUL_RESTART))
    assert judge.machine.counts["Manager.Reset"] == 1


# the machine itself


def test_a_machine_tells_its_fleet_what_happens_when_it_happened() -> None:
    told: list[tuple[str, str, datetime]] = []
    machine = a_machine()
    machine.on_power = machine.on_boot = lambda *event: told.append(event)
    machine.set_boot(EmulatedBootOverride("Once", "UefiHttp", "http://boot/x"), START)
    machine.reset("On", START)
    due = machine.next_due()
    machine.advance(START + timedelta(hours=1))
    machine.reset("PowerCycle", START + timedelta(hours=1))
    machine.advance(START + timedelta(hours=2))
    assert [(system, what) for system, what, _ in told] == [
        ("sys-SN1", what) for what in ("On", "UefiHttp", "Off", "On", "Hdd")
    ]
    assert told[0][2] == due
    assert [moment for *_, moment in told] == sorted(moment for *_, moment in told)
    assert machine.next_due() is None


def test_a_machine_repeats_itself_exactly() -> None:
    def run() -> list[datetime]:
        machine, moments = a_machine(), list[datetime]()
        machine.on_power = lambda *event: moments.append(event[2])
        machine.reset("On", START)
        machine.reset("ForceOff", START + timedelta(minutes=1))
        machine.advance(START + timedelta(minutes=2))
        return moments

    assert run() == run()
    on, off = run()
    assert timedelta(seconds=1) <= on - START <= timedelta(seconds=6)
    assert timedelta(seconds=1) <= off - START - timedelta(minutes=1) <= timedelta(seconds=11)


def test_lost_power_silences_server_and_bmc_until_it_is_back() -> None:
    machine = a_machine()
    machine.start_powered()
    machine.lose_power(START)
    assert (machine.power, machine.away(START + timedelta(days=400))) == ("Off", True)
    machine.restore_power(START + timedelta(days=400))
    back = START + timedelta(days=400, minutes=5)
    assert (machine.power, machine.away(back), machine.deaf(back)) == ("Off", False, False)


def test_power_lost_while_host_firmware_is_written_fails_the_update() -> None:
    machine = a_machine()
    machine.start_powered()
    task = machine.start_update("GPU", "http://x", START)
    machine.image_arrived(task.id, make_image("GPU", "2"), START)
    machine.reset("ForceOff", START)
    machine.advance(START + timedelta(seconds=12))
    assert (task.state, machine.firmware["GPU"], machine.firmware_staged) == ("Exception", "1.0.0", {})


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/redfish/v1/Systems/other", b"", 404),
        ("GET", "/redfish/v1/Nothing", b"", 404),
        ("DELETE", "/redfish/v1/Systems/sys-SN1", b"", 405),
        ("PATCH", "/redfish/v1/Systems/sys-SN1", b"{", 400),
        ("PATCH", "/redfish/v1/Systems/sys-SN1", b"[]", 400),
        ("PATCH", "/redfish/v1/Systems/sys-SN1", b"{}", 400),
        ("PATCH", "/redfish/v1/Chassis/sys-SN1", b"{}", 405),
        ("POST", "/redfish/v1/Systems/sys-SN1/Actions/ComputerSystem.Reset", b'{"ResetType":"Explode"}', 400),
        ("POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", b"{}", 400),
        ("POST", "/", b"", 405),
    ],
)
def test_a_service_answers_what_it_cannot_do(method: str, path: str, body: bytes, status: int) -> None:
    reply = Service([a_machine()]).handle(ServiceRequest(method, path, "", body), START)
    assert reply.status == status
    assert reply.body
    assert "error" in reply.body


def test_settings_the_bios_does_not_have_are_refused() -> None:
    with pytest.raises(BmcRefusalError, match="Turbo"):
        a_machine().set_bios({"Turbo": "On"}, START)


# fault rules


def test_a_rule_lets_some_pass_then_spoils_so_many() -> None:
    cache = RequestFaults(RequestFaultRule("/a/*", "GET", "s*", status=500, skip=1, times=2))
    hits = [cache.spoil("GET", "/a/b", "s1") is not None for _ in range(5)]
    assert hits == [False, True, True, False, False]
    assert cache.spoil("POST", "/a/b", "s1") is None
    assert cache.spoil("GET", "/b", "s1") is None
    assert cache.spoil("GET", "/a/b", "t1") is None
    cache.add(RequestFaultRule(status=503, times=0))
    assert [cache.spoil("PUT", "/x", "") is not None for _ in range(3)] == [True] * 3
    cache.clear()
    assert cache.spoil("PUT", "/x", "") is None


def test_a_patch_merges_as_rfc_7396_says() -> None:
    target = {"a": "b", "c": {"d": "e", "f": "g"}}
    assert merge(target, {"a": "z", "c": {"f": None}}) == {"a": "z", "c": {"d": "e"}}
    assert merge([1], {"a": {"b": None}}) == {"a": {}}
    assert target == {"a": "b", "c": {"d": "e", "f": "g"}}
