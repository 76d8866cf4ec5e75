"""A whole rack over real HTTP: shelves, a coolant unit, switch trays and their own systems, from off to certified.

The controller is driven in virtual time; every look and every act goes over sockets to emulated BMCs.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import RackSeen, Replied, Tick
from hostler.controller.step_output import Send
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.model import Node, Outcome, Phase
from hostler.core.state.rack_runs import RACK_FAILED, Rack
from hostler.core.state.scopes import Scope
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.drivers.redfish.rack_reader import CONTROLLER, RackReader
from hostler.drivers.redfish.system_image_driver import SystemImageDriver
from hostler.ports import PortError
from hostler.runtime.dispatcher import fate
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks, gpu_server
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import images_by_name
from tests.contract.nvos_switch import NvosSwitch
from tests.contract.redfish_world import PASSWORD, USER, Clock, image_server
from tests.contract.test_rack_reader import collection, link, serving, shelf_pages, unit_pages
from tests.contract.test_system_image import served
from tests.kit import NOW, Drive, configuration
from tests.scenario.planted_fleet import PlantedFleet

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

RACK = "r7"
WELL = {f"psu{n}": "OK" for n in range(6)}
DRY = {"manifold": "OK", "floor": "OK"}
Pages = dict[str, Any]


class HttpRack(PlantedFleet):
    """A fleet whose looks and acts at BMCs go over HTTP; time passes as the agenda and the machines ask.

    `trays` are its compute trays by node, each behind the BMC at its address; nobody has powered them on yet.
    """

    def __init__(self, config: Any, ways: "Ways", trays: dict[str, tuple[Machine, str]]) -> None:
        self.reader, self.driver, self.clock, self.farm = ways.reader, ways.driver, ways.clock, ways.farm
        self.systems = ways.systems
        self.addresses = {name: address for name, (_, address) in trays.items()}
        machines = {name: ("h100", machine) for name, (machine, _) in trays.items()}
        super().__init__(config, machines, {}, Phase.registered)

    def node_at_first(self, name: str, sku: str, machine: Machine) -> Node:
        """The node of a compute tray, in its rack."""
        node = super().node_at_first(name, sku, machine)
        bindings = (Binding("serial", machine.hardware.serial, NOW), Binding("bmc", self.addresses[name], NOW))
        place = replace(node.position, rack=RACK)
        return replace(node, bindings=bindings, position=place, domains=(Scope("rack", RACK),))

    def look(self, name: str) -> None:
        """Leave sensors alone: their looks are those of `tests/scenario`."""

    @property
    def rack(self) -> Rack:
        return self.fleet.racks[RACK]

    @property
    def step_at(self) -> str:
        """The step at which the bring-up stands, "" where it has ended."""
        run = self.rack.run
        return run.steps[run.index].name if run is not None else ""

    async def look_at_assets(self) -> None:
        for asset in list(self.fleet.assets.values()):
            self.step(RackSeen(asset.id, await self.reader.look(asset, self.now)))

    async def send_all(self) -> None:
        while self.pending:
            send = self.pending.pop(0)
            self.clock.now = self.now
            if send.operation.kind not in self.driver.kinds | self.systems.kinds:
                Drive.serve(self, send)  # its agent's
                continue
            outcome = await self._ask(send)
            await self.farm.fetched()
            self._advance()
            news = self._news(send.operation.node) if send.operation.node in self.machines else []
            self.step(Replied(outcome), *news)

    async def _ask(self, send: Send) -> Outcome:
        driver = self.systems if send.operation.kind in self.systems.kinds else self.driver
        ask = driver.observe if send.how == "observe" else driver.perform
        try:
            return await ask(send.operation, send.node)
        except PortError as error:
            return fate(send, error)

    async def until_over(self, hours: float = 12.0) -> Rack:
        """Let time pass until the bring-up has ended."""
        await self.until(lambda: self.rack.run is None, hours)
        return self.rack

    async def until(self, holds: Callable[[], bool], hours: float = 12.0) -> None:
        """Let time pass, looking at the assets every ten minutes, until this is so."""
        end, look_at = self.now + timedelta(hours=hours), self.now
        while not holds() and self.now < end:
            if self.now >= look_at:
                look_at = self.now + timedelta(minutes=10)
                self.clock.now = self.now
                await self.look_at_assets()
            await self.send_all()
            due = [machine.next_due() for machine in self.machines.values()]
            moments = [at for at in (look_at, self.controller.agenda.next(), *due) if at is not None]
            self.now = self.clock.now = max(self.now, min(moments))
            self._advance()
            self.step(Tick())


class Ways(Struct, frozen=True):
    """A reader and a driver, with the time and the BMCs behind them."""

    reader: RackReader
    driver: RedfishDriver
    systems: SystemImageDriver
    clock: Clock
    farm: Farm


GPUS = 4
NVOS = "nvos-25.02.4282"
FIRMWARE = {"HGX_FW_BMC_0": ("BMC", "none"), "HGX_FW_GPU_0": ("GPU", "ac_cycle"), "UEFI": ("BIOS", "dc_cycle")}
"""Firmware of a compute tray by the name under which a GB200's BMC lists it: its part, and what makes it run."""


def a_compute_tray(serial: str, **lies: Any) -> Machine:
    """A GB200's compute tray that nobody has powered on."""
    quirks = Quirks(vendor="gb200", needs_ac=frozenset({"GPU"}), **lies)
    return Machine("System_0", gpu_server(serial, GPUS), Delays(), quirks)


def nvos(status: str = "ok", state: str = "CONFIGURED") -> Pages:
    return {CONTROLLER: {"status": status, "addition-info": f"CONTROL_PLANE_STATE_{state}", "reason": ""}}


def a_shelf(supplies: dict[str, str | None]) -> Pages:
    """A shelf with an update service beside its equipment, at the bundle's version already."""
    place = "/UpdateService/FirmwareInventory"
    pages = shelf_pages(supplies)
    pages[""] |= {"UpdateService": link("/UpdateService")}
    return pages | {
        "/UpdateService": {"FirmwareInventory": link(place)},
        place: collection(place, ["PMC"]),
        f"{place}/PMC": {**link(f"{place}/PMC"), "Id": "PMC", "Name": "PMC", "Version": "2.0.0"},
    }


def a_tray(serial: str, quirks: Quirks = Quirks()) -> Machine:  # noqa: B008 - frozen
    hardware = Hardware(serial, firmware={"HMC": "1.0.0", "BMC": "1.0.0"}, staged=frozenset(), leaks={})
    return Machine("System_0", hardware, Delays(), quirks)


@asynccontextmanager
async def a_rack(
    *,
    shelf: Pages | None = None,
    unit: Pages | None = None,
    manager: Pages | None = None,
    quirks: Quirks = Quirks(),  # noqa: B008 - frozen
    serial: str = "TR-1",
    supplies: dict[str, str] | None = None,
    trays: dict[str, Machine] | None = None,
    switch: NvosSwitch | None = None,
) -> AsyncIterator[HttpRack]:
    clock = Clock()
    async with AsyncExitStack() as stack:
        farm = await stack.enter_async_context(Farm(clock, credentials=(USER, PASSWORD)))
        images = await stack.enter_async_context(image_server())
        pmc = Machine("system", Hardware("SH-2", firmware={"PMC": "1.0.0"}, staged=frozenset(), leaks={}))
        pmc.supplies.update(supplies or {})
        addresses = {
            "ps1": await stack.enter_async_context(serving(shelf or a_shelf(dict(WELL)))),
            "ps2": await farm.serve(Service([pmc])),
            "cdu1": await stack.enter_async_context(serving(unit or unit_pages(dict(DRY)))),
            "sw1": await farm.serve(Service([a_tray(serial, quirks)])),
            "sw2": await farm.serve(Service([a_tray("TR-2")])),
        }
        if switch is not None:
            switch.clock = clock
            system = await stack.enter_async_context(served(switch.app()))
        else:
            system = await stack.enter_async_context(serving(manager or nvos()))
        behind = {name: (tray, await farm.serve(Service([tray]))) for name, tray in (trays or {}).items()}

        def image(component: str) -> dict[str, Any]:
            url = f"{images}/{component}/2.0.0"
            body = images_by_name(url)
            assert body is not None
            return {"image": url, "sha256": hashlib.sha256(body).hexdigest(), "activate": "none"}

        manifest: dict[str, Any] = {
            "bundle": "b2",
            "power_shelves": 2,
            "supplies_needed": 4,
            "coolant_units": 1,
            "leak_detectors": 2,
            "switch_trays": 2,
            "control_planes": 1,
            "compute_trays": len(behind),
            "shelf_firmware": {"PMC": "2.0.0"},
            "switch_firmware": {"HMC": "2.0.0"},
            "updates": {"HMC": image("HMC"), "PMC": image("PMC")},
        }
        if switch is not None:
            manifest |= {"switch_trays": 1, "switch_firmware": {"HMC": "2.0.0", "NVOS": NVOS}}
            manifest["updates"] |= {"NVOS": image("NVOS")}
            switch.library = {"2.0.0": NVOS}
            del addresses["sw2"]
        connections = await stack.enter_async_context(Connections())
        clients = Clients(connections, lambda _: Access(USER, PASSWORD, timeout_s=2.0))
        sku: dict[str, Any] = {}
        if behind:
            sku = {"gpus": GPUS, "firmware": dict.fromkeys(FIRMWARE, "2.0.0")}
            sku["updates"] = {name: image(part) | {"activate": how} for name, (part, how) in FIRMWARE.items()}
        config = configuration({}, rack=manifest, **sku)
        systems = SystemImageDriver(clients, clock)
        ways = Ways(RackReader(clients), RedfishDriver(clients, clock), systems, clock, farm)
        drive = HttpRack(config, ways, behind)
        kinds = {"ps": "power_shelf", "cd": "coolant_unit", "sw": "switch_tray"}
        serials = {"ps1": "SH-1", "ps2": "SH-2", "cdu1": "CDU-1", "sw1": "TR-1", "sw2": "TR-2"}
        assets = [
            {"id": name, "kind": kinds[name[:2]], "rack": RACK, "serial": serials[name], "bmc": url}
            | ({"nvos": system} if name == "sw1" else {})
            for name, url in addresses.items()
        ]
        assert drive.ask("register-assets", "fleet", assets=json.dumps(assets)).granted
        reply = drive.ask("rack-bring-up", f"rack:{RACK}", sku="h100")
        assert reply.granted, reply.text
        yield drive


async def test_a_rack_comes_up_over_http_and_is_certified() -> None:
    """Mutants: an act without a record before it; a version that nobody wrote is certified."""
    async with a_rack() as drive:
        rack = await drive.until_over()
        assert rack.ended is not None
        assert (rack.ended.result, rack.ended.why) == ("done", "")
        written = {one.operation.node for one in drive.events(e.AssetOperationStarted)}
        assert written == {"ps2", "sw1", "sw2"}
        reply = drive.ask("rack-certify", f"rack:{RACK}", "tess")
        assert reply.granted, reply.text
        paper = drive.rack.certificate
        assert paper is not None
        assert {one.name: one.serial for one in paper.evidence}["sw1"] == "TR-1"
        assert dict({one.name: one.firmware for one in paper.evidence}["sw2"])["HMC"] == "2.0.0"


LIES: dict[str, tuple[Callable[[], dict[str, Any]], str, str]] = {
    "a shelf says OK with a failed supply": (
        lambda: {"shelf": a_shelf({**WELL, "psu3": "Critical"})}, "power_shelves_seen", "psu3 critical",
    ),
    "a supply says nothing": (
        lambda: {"shelf": a_shelf({**WELL, "psu3": None})}, "power_shelves_seen", "psu3 says nothing",
    ),
    "a shelf without supplies": (lambda: {"shelf": a_shelf({})}, "power_shelves_seen", "ps1 lists no supplies"),
    "another shelf's BMC says OK": (
        lambda: {"supplies": {"psu1": "Critical"}}, "power_shelves_seen", "ps2: psu1 critical",
    ),
    "a leak": (lambda: {"unit": unit_pages({**DRY, "floor": "Critical"})}, "leak_detectors", "floor says critical"),
    "a silent detector": (lambda: {"unit": unit_pages({**DRY, "floor": None})}, "leak_detectors", "silent: cdu1 floor"),
    "a detector is gone": (lambda: {"unit": unit_pages({"floor": "OK"})}, "leak_detectors", "1 of 2 leak detectors"),
    "another tray answers": (lambda: {"serial": "TR-9"}, "switch_trays_seen", "sw1 shows serial TR-9"),
    "an update reports success and changed nothing": (
        lambda: {"quirks": Quirks(lies_about=frozenset({"HMC"}))}, "switch_tray_firmware", "the version contradicts",
    ),
    "an update fails and says so": (
        lambda: {"quirks": Quirks(fails_on=frozenset({"HMC"}))}, "switch_tray_firmware", "its task failed",
    ),
    "no image is taken": (lambda: {"quirks": Quirks(refuses_images=True)}, "switch_tray_firmware", "sw1"),
    "a version flaps": (lambda: {"quirks": Quirks(flaps=frozenset({"HMC"}))}, "switch_tray_firmware", "1.0.0"),
    "a fabric manager is not configured": (
        lambda: {"manager": nvos("not ok", "UNCONFIGURED")}, "fabric_managers", "sw1: not ok unconfigured",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
async def test_each_lie_ends_in_a_ticket_with_its_reason_and_the_command_that_goes_on(case: str) -> None:
    """Mutant: a BMC's word for the whole, or a task's, is the truth."""
    lie, step, says = LIES[case]
    async with a_rack(**lie()) as drive:
        rack = await drive.until_over()
        assert rack.ended is not None
        assert (rack.ended.result, rack.ended.step) == ("failed", step)
        (ticket,) = drive.fleet.tickets_about(f"rack:{RACK}")
        assert ticket.kind == RACK_FAILED
        assert says in ticket.fault
        assert "hostler rack bring-up r7 --sku h100" in ticket.action


@pytest.mark.parametrize("quirks", [Quirks(forgets_tasks=True), Quirks(taskless=True)])
async def test_a_bmc_that_forgets_its_task_or_has_none_is_believed_by_its_version(quirks: Quirks) -> None:
    async with a_rack(quirks=quirks) as drive:
        rack = await drive.until_over()
        assert rack.ended is not None
        assert rack.ended.result == "done"


async def test_a_rack_comes_up_with_its_compute_trays_from_off_to_production() -> None:
    """Trays are behind their own BMCs, their agents are played. Mutants: a tray is certified before the switches that
    it needs; the rack is up while a tray is in Day 1."""
    trays = {f"n{number}": a_compute_tray(f"CT-{number}") for number in (1, 2)}
    async with a_rack(trays=trays) as drive:
        await drive.until(lambda: all(drive.node(name).phase is Phase.onboard for name in trays), hours=2)
        refused = drive.ask("certify", "n1")
        assert not refused.granted
        assert "rack" in refused.text
        await drive.until(lambda: drive.step_at == "compute_trays")
        for name in trays:
            assert drive.ask("certify", name).granted
        assert drive.rack.ended is None
        rack = await drive.until_over(hours=72)
        assert rack.ended is not None
        assert (rack.ended.result, rack.ended.why) == ("done", "")
        for name, tray in trays.items():
            assert drive.node(name).phase is Phase.production, drive.transcript(name)
            assert {tray.firmware[part] for part, _ in FIRMWARE.values()} == {"2.0.0"}
            assert tray.counts["AcCycle"] == 1
        assert drive.ask("rack-certify", f"rack:{RACK}", "tess").granted


async def test_a_compute_tray_that_fails_keeps_its_rack_waiting_and_is_named() -> None:
    """Mutant: the rack is up when most of its trays are."""
    trays = {"n1": a_compute_tray("CT-1"), "n2": a_compute_tray("CT-2", lies_about=frozenset({"BIOS"}))}
    async with a_rack(trays=trays) as drive:
        await drive.until(lambda: drive.step_at == "compute_trays")
        for name in trays:
            assert drive.ask("certify", name).granted
        ends = (Phase.production, Phase.zap_fail)
        await drive.until(lambda: (drive.node("n1").phase, drive.node("n2").phase) == ends, hours=72)
        assert (drive.node("n1").phase, drive.node("n2").phase) == ends, drive.transcript("n2")
        assert drive.rack.run is not None, drive.rack.ended
        trays["n2"].quirks = replace(trays["n2"].quirks, lies_about=frozenset())
        assert drive.ask("zap-again", "n2").granted
        rack = await drive.until_over(hours=72)
        assert rack.ended is not None
        assert rack.ended.result == "done"


def a_switch(**lies: Any) -> NvosSwitch:
    """A switch tray's own system with an older image, whose fabric manager is configured."""
    word = {"status": "ok", "addition-info": "CONTROL_PLANE_STATE_CONFIGURED", "reason": ""}
    return NvosSwitch(lambda: NOW, manager=word, **lies)


async def test_a_switch_trays_own_system_comes_to_the_racks_bundle_and_is_on_its_certificate() -> None:
    """Mutants: the system is written before its BMC; the tray's stage stands while an older system runs."""
    switch = a_switch()
    async with a_rack(switch=switch) as drive:
        rack = await drive.until_over()
        assert rack.ended is not None
        assert rack.ended.result == "done", rack.ended
        begun = [one.operation for one in drive.events(e.AssetOperationStarted)]
        acts = [one.kind for one in begun if one.node == "sw1"]
        assert acts == ["update_firmware", "verify_firmware", "fetch_system_image", "install_system_image"]
        assert switch.runs == NVOS
        assert drive.ask("rack-certify", f"rack:{RACK}").granted
        paper = drive.rack.certificate
        assert paper is not None
        (tray,) = (one for one in paper.evidence if one.name == "sw1")
        assert ("NVOS", NVOS) in tray.firmware
        switch.runs = "nvos-25.02.1884"
        await drive.look_at_assets()
        assert drive.rack.certificate is not None
        assert "sw1 NVOS runs nvos-25.02.1884" in drive.rack.certificate.void_why


@pytest.mark.parametrize(("lies", "says"), [
    ({"lie": "install fails"}, "install_system_image of sw1: NVOS runs nvos-25.02.1884; its action failed"),
    ({"lie": "installed, never booted"}, f"{NVOS} is installed and was not booted"),
    ({"serial": "TR-9"}, "bound to serial 'TR-1', but NVOS at"),
])  # fmt: skip
async def test_a_system_that_is_not_written_ends_the_bring_up_with_its_reason(lies: dict[str, Any], says: str) -> None:
    """Mutant: the fabric manager of an older system is believed."""
    async with a_rack(switch=a_switch(**lies)) as drive:
        rack = await drive.until_over()
        assert rack.ended is not None
        assert (rack.ended.result, rack.ended.step) == ("failed", "switch_tray_firmware")
        assert says in rack.ended.why
        (ticket,) = drive.fleet.tickets_about(f"rack:{RACK}")
        assert "hostler rack bring-up" in ticket.action
