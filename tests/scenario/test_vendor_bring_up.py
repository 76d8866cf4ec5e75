"""The whole bring-up behind each vendor's BMC: a machine that is off is booted, seen, flashed and put into service.

Each BMC has the layout, resets, etags, settings objects and update paths of its vendor (`sim/bmc/vendors`), and lies
that are known of that vendor. `docs/redfish-vendors.md` names the source of each.
"""

import hashlib
from typing import Any

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.sim.bmc.emulated_machine import Delays, Machine, Quirks, gpu_server, make_image
from hostler.sim.bmc.vendors import VENDORS
from tests.kit import POLICY
from tests.scenario.planted_fleet import PlantedFleet

NVIDIA = {"BMC": "HGX_FW_BMC_0", "GPU": "HGX_FW_GPU_0", "BIOS": "UEFI"}
"""Names under which NVIDIA's own BMCs list firmware."""
HOSTS = {"dell": 8, "hpe": 8, "lenovo": 8, "supermicro": 8, "dgx_h100": 8, "gh200": 1, "gb200": 4, "gb300": 4}
HOSTS |= {"openbmc": 8}
"""GPUs of each vendor's machine. BlueField cards and switch trays are no hosts: they have no boot and no agent."""
assert HOSTS.keys() == VENDORS.keys() - {"bluefield3", "nvswitch"}

LIES: dict[str, dict[str, Any]] = {
    "dell": {"forgets_tasks": True},
    "hpe": {"taskless": True},
    "lenovo": {"forgets_tasks": True, "recovery": {"BMC": "0.9.0"}},
    "supermicro": {"hides": frozenset({"BIOS"})},
    "dgx_h100": {"unstaged": True, "missing_keys": frozenset({"BiosVersion"})},
    "gh200": {"unstaged": True, "needs_ac": frozenset({"GPU"})},
    "gb200": {"needs_ac": frozenset({"GPU"}), "recovery": {"BMC": "0.9.0"}},
    "gb300": {"forgets_tasks": True, "unstaged": True},
    "openbmc": {"forgets_tasks": True, "unstaged": True},
}
"""Known lies: a task that is gone once it is read or has succeeded (Dell, Lenovo), none at all (HPE's own upload),
versions that are not listed until the BMC restarts (Supermicro), keys that are missing until then (DGX), what is
written and nowhere listed, and what runs after the mains were off alone (NVIDIA)."""


class Lived(Struct):
    """A vendor's machine, and the fleet of one that it is."""

    fleet: PlantedFleet
    machine: Machine

    def has_reached(self, phase: Phase) -> bool:
        """Whether the node stands there."""
        return self.fleet.node("a").phase is phase


def a_sku(vendor: str, bad: bool) -> dict[str, Any]:
    gpus, lies = HOSTS[vendor], LIES[vendor]
    names = NVIDIA if vendor in ("gh200", "gb200", "gb300") else {part: part for part in NVIDIA}
    updates = {}
    for part, name in names.items():
        late = bad and part in lies.get("needs_ac", ())
        updates[name] = {
            "image": f"http://images/{part}/2.0.0",
            "sha256": hashlib.sha256(make_image(part, "2.0.0")).hexdigest(),
            "order": 0 if part == "BMC" else 1,
            "activate": "none" if part == "BMC" else "ac_cycle" if late else "dc_cycle",
        }
    firmware = dict.fromkeys(names.values(), "2.0.0")
    hardware = {"bios": {"BootMode": "Uefi", "SriovEnable": "Enabled"}, "sensors_s": 600}
    return {"gpus": gpus, "gpu_model": "H100", "firmware": firmware, "updates": updates, "hardware": hardware}


def off(vendor: str, *, lying: bool) -> Lived:
    """A machine that nobody has touched: registered, dark, with old firmware."""
    config = documents.parse(
        {"policy.yaml": POLICY, "sku.yaml": yaml.safe_dump({"skus": {"x": a_sku(vendor, lying)}, "pools": {}})}
    )
    lies = LIES[vendor] if lying else {}
    machine = Machine("m1", gpu_server("SN1", HOSTS[vendor]), Delays(), Quirks(vendor=vendor, **lies))
    return Lived(PlantedFleet(config, {"a": ("x", machine)}, {}, begins=Phase.registered), machine)


def story(lived: Lived) -> str:
    """The ends of what was asked, for a failure's message."""
    ends = [f"{one.kind} {one.result}: {one.detail}" for one in lived.fleet.events(e.OperationFinished, "a")]
    return "\n".join(ends[-8:])


@pytest.mark.parametrize("vendor", HOSTS)
@pytest.mark.parametrize("lying", [False, True], ids=["honest", "lying"])
def test_a_machine_behind_this_vendor_s_bmc_comes_from_off_to_production(vendor: str, lying: bool) -> None:
    """Mutants: the boot override goes to the system where it waits in settings; the first of all resets is sent; a
    vanished task is a failure; a version that is not listed yet fails the update."""
    lived = off(vendor, lying=lying)
    lived.fleet.live(hours=1)
    assert lived.has_reached(Phase.onboard)
    assert lived.machine.counts["SetBoot"] == 1
    assert lived.machine.power == "On"
    assert lived.fleet.ask("certify", "a").granted
    lived.fleet.live(hours=12)
    assert lived.has_reached(Phase.production), story(lived)
    written = {part: lived.machine.firmware[part] for part in NVIDIA}
    assert written == dict.fromkeys(NVIDIA, "2.0.0")
    assert (
        dict(lived.fleet.node("a").versions).items() >= dict.fromkeys(a_sku(vendor, lying)["firmware"], "2.0.0").items()
    )
    kinds = {one.kind for one in lived.machine.received if one.accepted}
    assert kinds <= {"SetBoot", "SetBios", "SimpleUpdate", "Manager.Reset", "AcCycle", *VENDORS[vendor].resets}
    assert not lived.fleet.fleet.tickets_about("a")


@pytest.mark.parametrize("vendor", HOSTS)
def test_success_that_is_none_stops_behind_every_vendor_s_bmc(vendor: str) -> None:
    """Mutant: a vendor's task, or its absence, is believed."""
    lived = off(vendor, lying=True)
    lived.machine.quirks = replace(lived.machine.quirks, lies_about=frozenset({"BIOS"}))
    lived.fleet.live(hours=1)
    assert lived.fleet.ask("certify", "a").granted
    lived.fleet.live(hours=12)
    assert lived.has_reached(Phase.zap_fail), story(lived)
    (ticket,) = lived.fleet.fleet.tickets_about("a")
    name = "UEFI" if vendor in ("gh200", "gb200", "gb300") else "BIOS"
    assert f"{name} is 1.0.0, wanted 2.0.0" in ticket.summary
    assert "hostler node zap-again a" in ticket.action
