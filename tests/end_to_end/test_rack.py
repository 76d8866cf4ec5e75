"""A whole rack over real HTTP: shelves, a coolant unit, switch trays and their own systems, from off to certified.

The controller is driven in virtual time; every look and every act goes over sockets to emulated BMCs.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from hostler.controller.inputs import FellowsSeen, RackSeen, Replied, Tick
from hostler.controller.step_output import Send
from hostler.core.state import events as e
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Outcome
from hostler.core.state.rack_runs import RACK_FAILED, Rack
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.drivers.redfish.rack_reader import CONTROLLER, RackReader
from hostler.ports import PortError
from hostler.runtime.dispatcher import fate
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks
from hostler.sim.bmc.http_farm import Farm
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import images_by_name
from tests.contract.redfish_world import PASSWORD, USER, Clock, image_server
from tests.contract.test_rack_reader import collection, link, serving, shelf_pages, unit_pages
from tests.kit import Drive, configuration

RACK = "r7"
WELL = {f"psu{n}": "OK" for n in range(6)}
DRY = {"manifold": "OK", "floor": "OK"}
Pages = dict[str, Any]


class HttpRack(Drive):
    """A drive whose looks and acts at assets go over HTTP; time passes as the agenda asks."""

    def __init__(self, config: Any, reader: RackReader, driver: RedfishDriver, clock: Clock, farm: Farm) -> None:
        super().__init__(config)
        self.reader, self.driver, self.clock, self.farm = reader, driver, clock, farm

    @property
    def rack(self) -> Rack:
        return self.fleet.racks[RACK]

    async def look(self) -> None:
        for asset in list(self.fleet.assets.values()):
            self.step(RackSeen(asset.id, await self.reader.look(asset, self.now)))

    async def send_all(self) -> None:
        while self.pending:
            send = self.pending.pop(0)
            self.clock.now = self.now
            outcome = await self._ask(send)
            await self.farm.fetched()
            self.step(Replied(outcome))

    async def _ask(self, send: Send) -> Outcome:
        ask = self.driver.observe if send.how == "observe" else self.driver.perform
        try:
            return await ask(send.operation, send.node)
        except PortError as error:
            return fate(send, error)

    async def until_over(self, hours: float = 12.0) -> Rack:
        """Let time pass, looking every ten minutes, until the bring-up has ended."""
        end = self.now.timestamp() + hours * 3600
        look_at = 0.0
        while self.rack.run is not None and self.now.timestamp() < end:
            if self.now.timestamp() >= look_at:
                look_at = self.now.timestamp() + 600
                self.clock.now = self.now
                await self.look()
            await self.send_all()
            wake = self.controller.agenda.next()
            later = self.now.fromtimestamp(look_at, self.now.tzinfo)
            self.now = max(self.now, min(later, wake) if wake is not None else later)
            self.clock.now = self.now
            self.step(Tick())
        return self.rack


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
        system = await stack.enter_async_context(serving(manager or nvos()))

        def image(component: str) -> dict[str, Any]:
            url = f"{images}/{component}/2.0.0"
            body = images_by_name(url)
            assert body is not None
            return {"image": url, "sha256": hashlib.sha256(body).hexdigest(), "activate": "none"}

        manifest = {
            "bundle": "b2",
            "power_shelves": 2,
            "supplies_needed": 4,
            "coolant_units": 1,
            "leak_detectors": 2,
            "switch_trays": 2,
            "control_planes": 1,
            "shelf_firmware": {"PMC": "2.0.0"},
            "switch_firmware": {"HMC": "2.0.0"},
            "updates": {"HMC": image("HMC"), "PMC": image("PMC")},
        }
        connections = await stack.enter_async_context(Connections())
        clients = Clients(connections, lambda _: Access(USER, PASSWORD, timeout_s=2.0))
        config = configuration({}, rack=manifest)
        drive = HttpRack(config, RackReader(clients), RedfishDriver(clients, clock), clock, farm)
        drive.now = clock.now
        drive.step(FellowsSeen((Fellow("this", Release().reads),)))
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
