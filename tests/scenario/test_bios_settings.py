"""BIOS settings from SKU to production: written in Zap, applied by its reset, read back; or a ticket says why not."""

import hashlib
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen
from hostler.controller.step_output import Send
from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase
from hostler.sim.bmc.emulated_machine import Delays, Machine, Quirks, gpu_server, make_image
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import RedfishTwin, images_by_name
from hostler.sim.bmc.vendors import VENDORS
from tests.kit import POLICY
from tests.scenario.planted_fleet import PlantedFleet

WANTED = {"SriovEnable": "Enabled", "NumaNodes": "4", "BootOrder": "Hdd"}
FOUND: dict[str, object] = {"BootMode": "Uefi", "SriovEnable": "Disabled", "NumaNodes": 1, "BootOrder": "Hdd"}
HOSTS = [name for name in VENDORS if name not in ("bluefield3", "nvswitch")]


class Dying(PlantedFleet):
    """A fleet whose controller dies as it sends the first operation of a kind in Zap; what it remembered is gone.

    `happens`: what it sent has reached the BMC.
    """

    dies_at = ""
    happens = False

    def serve(self, send: Send) -> None:
        """Let the controller die, once."""
        in_zap = self.node(send.operation.node).phase is Phase.zap
        if not in_zap or send.operation.kind != self.dies_at or send.how != "perform":
            super().serve(send)
            return
        self.dies_at = ""
        if self.happens:
            self.twin.perform(send.operation, send.node, self.now)
        services = {f"https://{name}": Service([machine]) for name, machine in self.machines.items()}
        self.twin = RedfishTwin(services, images_by_name)
        self.restart()
        self.step(FellowsSeen((Fellow("this", Release().reads),)))


def a_fleet(
    vendor: str = "dell",
    *,
    writes: bool = True,
    found: dict[str, object] = FOUND,
    made: type[PlantedFleet] = PlantedFleet,
    brought: dict[str, dict[str, object]] | None = None,
    sku: dict[str, Any] | None = None,
    **faults: str,
) -> PlantedFleet:
    """One machine at Seatrial, whose settings differ from its SKU's."""
    hardware = {"bios": WANTED, **({"writes_bios": True} if writes else {})}
    whole = {"gpus": 1, "gpu_model": "H100", "hardware": hardware, **(sku or {})}
    config = documents.parse({"policy.yaml": POLICY, "sku.yaml": yaml.safe_dump({"skus": {"x": whole}, "pools": {}})})
    server = replace(gpu_server("SN1", 1), bios=dict(found), bios_brings=brought or {})
    machine = Machine("m1", server, Delays(), Quirks(vendor=vendor, bios=faults))
    return made(config, {"a": ("x", machine)}, {})


def story(fleet: PlantedFleet) -> str:
    """The ends of what was asked, for a failure's message."""
    return "\n".join(f"{one.kind} {one.result}: {one.detail}" for one in fleet.events(e.OperationFinished, "a"))


@pytest.mark.parametrize("vendor", HOSTS)
def test_settings_that_differ_are_written_with_one_reset_and_the_node_serves(vendor: str) -> None:
    """Mutants: Seatrial stops what Zap writes; a reset of its own for the settings; it is never read back."""
    fleet = a_fleet(vendor)
    fleet.live(hours=8)
    machine = fleet.machines["a"]
    assert fleet.node("a").phase is Phase.production, story(fleet)
    assert machine.bios == {**FOUND, "SriovEnable": "Enabled", "NumaNodes": 4}
    assert (machine.counts["SetBios"], machine.counts["ForceOff"]) == (1, 1)
    (read,) = (one for one in fleet.events(e.OperationFinished, "a") if one.kind == "verify_bios_settings")
    assert (read.result, read.facts) == ("done", {"SriovEnable": "Enabled", "NumaNodes": "4"})
    (looked,) = (c for c in fleet.node("a").checks if c.profile == "hardware.bios")
    assert "Zap writes 2: NumaNodes is 1, SriovEnable is Disabled" in looked.detail
    assert not fleet.fleet.tickets_about("a")


def test_a_sku_that_does_not_ask_for_it_has_nothing_written() -> None:
    """Mutant: attributes that are only compared are written."""
    fleet = a_fleet(writes=False)
    fleet.live(hours=8)
    assert fleet.node("a").phase is Phase.seatrial
    assert "SetBios" not in fleet.machines["a"].counts


def test_the_order_of_boots_is_compared_and_never_written() -> None:
    """Mutant: what a SKU names is written whatever it is."""
    fleet = a_fleet(found={**FOUND, "BootOrder": "Pxe"})
    fleet.live(hours=8)
    assert fleet.node("a").phase is Phase.seatrial
    (ticket,) = fleet.fleet.tickets_about("a")
    assert "BootOrder: expected Hdd, found Pxe" in ticket.summary
    assert "SetBios" not in fleet.machines["a"].counts


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("read_only", "write_bios_settings: the BMC took no change of NumaNodes: expected 4, found 1; SriovEnable: "),
        ("locked", "A setup password is set"),
        ("ignored", "verify_bios_settings: NumaNodes: expected 4, found 1"),
        ("stuck", "NumaNodes: expected 4, found 1, and 4 still waits in"),
    ],
)
def test_what_is_refused_or_not_so_stops_with_a_ticket_whose_command_goes_on(fault: str, says: str) -> None:
    """Mutants: the ticket speaks of firmware; it names no attribute; zap again finds nothing to do."""
    fleet = a_fleet("lenovo", NumaNodes=fault)
    fleet.live(hours=8)
    assert fleet.node("a").phase is Phase.zap_fail, story(fleet)
    (ticket,) = fleet.fleet.tickets_about("a")
    assert says in ticket.summary
    assert ticket.summary.startswith("BIOS settings of a failed: ")
    assert "set it in the BIOS setup" in ticket.action
    assert "hostler node zap-again a" in ticket.action
    fleet.machines["a"].quirks = Quirks(vendor="lenovo")
    fleet.ask("zap-again", "a")
    fleet.live(hours=8)
    assert fleet.node("a").phase is Phase.production, story(fleet)
    assert fleet.machines["a"].bios["NumaNodes"] == 4
    assert not fleet.fleet.tickets_about("a")


@pytest.mark.parametrize("happens", [False, True], ids=["lost", "arrives"])
@pytest.mark.parametrize("kind", ["write_bios_settings", "power_off", "power_on", "verify_bios_settings"])
def test_a_controller_that_dies_at_any_step_goes_on_from_there(kind: str, happens: bool) -> None:
    """The order may have reached the BMC or not. Mutants: the change is sent blindly; a step is skipped."""
    fleet = a_fleet(made=type("DyingHere", (Dying,), {"dies_at": kind, "happens": happens}))
    fleet.live(hours=8)
    assert isinstance(fleet, Dying)
    assert not fleet.dies_at, story(fleet)
    assert fleet.node("a").phase is Phase.production, story(fleet)
    machine = fleet.machines["a"]
    assert machine.bios == {**FOUND, "SriovEnable": "Enabled", "NumaNodes": 4}
    assert machine.counts["SetBios"] == 1


def test_a_new_bios_runs_before_its_settings_are_written() -> None:
    """A new BIOS brings an attribute, and forgets another. Mutant: both share the last reset; the attribute is refused,
    and zap again is refused for ever."""
    found = {name: value for name, value in FOUND.items() if name != "NumaNodes"}
    brought = {"2.0.0": {"NumaNodes": 1, "SriovEnable": "Disabled"}}
    update = {"image": "http://images/BIOS/2.0.0", "sha256": hashlib.sha256(make_image("BIOS", "2.0.0")).hexdigest()}
    firmware = {"firmware": {"BIOS": "2.0.0"}, "updates": {"BIOS": update}}
    fleet = a_fleet(found=found, brought=brought, sku=firmware)
    fleet.live(hours=8)
    machine = fleet.machines["a"]
    assert fleet.node("a").phase is Phase.production, story(fleet)
    assert (machine.firmware["BIOS"], machine.bios) == ("2.0.0", {**FOUND, "SriovEnable": "Enabled", "NumaNodes": 4})
    assert (machine.counts["SetBios"], machine.counts["ForceOff"]) == (1, 2)
