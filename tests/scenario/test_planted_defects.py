"""64 machines of two SKUs come up, twelve of them with a planted defect: those twelve stop, each for its own reason."""

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.model import Facts, Phase
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks, gpu_server, make_image, sku_of_server
from tests.kit import POLICY
from tests.scenario.planted_fleet import PlantedFleet, Played

BASELINE = {
    "small": {"BMC": "2.0.0", "BIOS": "2.0.0"},
    "large": dict.fromkeys(("BMC", "HMC", "BIOS", "GPU", "Retimer"), "2.0.0"),
}
GPUS = {"small": 4, "large": 8}
WRITES_S = {"small": (60.0, 300.0), "large": (60.0, 300.0), "slow": (5290.0, 5290.0)}
NODES = 64


def update(component: str) -> dict[str, object]:
    image = hashlib.sha256(make_image(component, "2.0.0")).hexdigest()
    first = component in ("BMC", "HMC")
    return {
        "image": f"http://images/{component}/2.0.0",
        "sha256": image,
        "order": 0 if first else 1,
        "activate": "none" if first else "dc_cycle",
    }


def a_sku(name: str) -> dict[str, object]:
    made = sku_of_server(GPUS[name])
    parts = {**made["parts"], "psu": 6}  # type: ignore[dict-item]
    adapters = [f"nic{n}" for n in range(GPUS[name])]
    hardware = {
        "pcie": dict.fromkeys([*adapters, *(f"gpu{n}" for n in range(GPUS[name]))], "x16 32 GT/s"),
        "bios": {"BootMode": "Uefi", "SriovEnable": "Enabled"},
        "neighbours": {slot: f"rail-{n} Ethernet{{u}}" for n, slot in enumerate(adapters)},
        "memory_gib": {f"memory{n}": 64 for n in range(32)},
        "supplies_needed": 4,
        "sensors_s": 900,
        "drives": True,
        "serials": True,
    }
    baseline = {"firmware": BASELINE[name], "updates": {c: update(c) for c in BASELINE[name]}}
    return {**made, "parts": parts, "hardware": hardware, **baseline}


SKUS = {"skus": {name: a_sku(name) for name in BASELINE}, "pools": {}}
CONFIG = documents.parse({"policy.yaml": POLICY, "skus.yaml": yaml.safe_dump(SKUS)})


class Defect(Struct, frozen=True):
    """Describes a machine's fault: where it leaves its node, the text about it, and the command that goes on."""

    sku: str
    stops: Phase
    says: str
    command: str
    hardware: Callable[[Hardware], Hardware] = lambda h: h
    quirks: Quirks = Quirks()
    supply: str = ""
    played: Played = Played()
    writes: str = "small"


def without(slot: str) -> Callable[[Hardware], Hardware]:
    return lambda h: replace(h, parts=tuple(p for p in h.parts if p.slot != slot))


def another(slot: str, model: str) -> Callable[[Hardware], Hardware]:
    return lambda h: replace(h, parts=tuple(replace(p, model=model) if p.slot == slot else p for p in h.parts))


def misset(h: Hardware) -> Hardware:
    return replace(h, bios={**h.bios, "SriovEnable": "Disabled"})


VOUCH, VOUCH_HARDWARE = "hostler node vouch NODE --profile inventory", "hostler node vouch NODE --profile hardware"
ZAP = "hostler node zap-again NODE"
SEATRIAL, FAILED = Phase.seatrial, Phase.zap_fail
CROSSED: Facts = {"lldp.nic1": "rail-2 Ethernet7", "lldp.nic2": "rail-1 Ethernet7"}
DEFECTS: dict[str, Defect] = {
    "a GPU is missing": Defect("large", SEATRIAL, "gpu: expected 8, found 7", VOUCH, without("gpu7")),
    "another module": Defect(
        "large", SEATRIAL, "expected 64 GB, found DDR5 32 GB", VOUCH, another("memory5", "DDR5 32 GB")
    ),
    "a dead supply": Defect("small", SEATRIAL, "power.supply in psu2", VOUCH, supply="psu2"),
    "success that is none": Defect(
        "large", FAILED, "GPU is 1.0.0, wanted 2.0.0", ZAP, quirks=Quirks(lies_about=frozenset({"GPU"}))
    ),
    "a write that hangs at 5 h 59 min": Defect("large", FAILED, "did not finish in time", ZAP, writes="slow"),
    "a cable in the wrong rail": Defect(
        "small",
        SEATRIAL,
        "cable in nic1: expected rail-1 Ethernet7, found rail-2 Ethernet7",
        VOUCH_HARDWARE,
        played=Played(readings=CROSSED),
    ),
    "a GPU at x8": Defect(
        "large",
        SEATRIAL,
        "PCIe link in gpu2: expected x16 32 GT/s, found x8 32 GT/s",
        VOUCH_HARDWARE,
        played=Played(readings={"pcie.gpu2": "x8 32 GT/s"}),
    ),
    "a blank serial": Defect(
        "small",
        SEATRIAL,
        "serial number in DMI: expected SN035, found a blank one",
        VOUCH_HARDWARE,
        played=Played(readings={"dmi.product_serial": ""}),
    ),
    "a BIOS setting": Defect(
        "large", SEATRIAL, "SriovEnable: expected Enabled, found Disabled", VOUCH_HARDWARE, hardware=misset
    ),
    "a drive that fails": Defect(
        "small",
        SEATRIAL,
        "drive in drive4: expected ok, found failing: reliability is degraded",
        VOUCH_HARDWARE,
        played=Played(readings={"drive.drive4": "failing: reliability is degraded"}),
    ),
    "a GPU too hot": Defect(
        "small",
        SEATRIAL,
        "expected all in range for 15 min, found gpu3_temp is at 97 °C",
        VOUCH_HARDWARE,
        played=Played(hot="gpu3_temp_c"),
    ),
    "a version that flaps": Defect(
        "small", FAILED, "read right in between", ZAP, quirks=Quirks(flaps=frozenset({"BIOS"}))
    ),
}


def a_fleet(nodes: int = NODES) -> tuple[PlantedFleet, dict[str, str]]:
    """The fleet, and which node has which defect: they stand among sound ones of both SKUs, as far as there are any."""
    machines: dict[str, tuple[str, Machine]] = {}
    planted: dict[str, str] = {}
    defects = list(DEFECTS)
    every = nodes // len(DEFECTS)
    for number in range(nodes):
        name, sku = f"n{number:02d}", ("small", "large")[number % 2]
        defect = Defect(sku, Phase.production, "", "")
        if number % every == 0 and number // every < len(defects):
            planted[name] = defects[number // every]
            defect = DEFECTS[planted[name]]
        delays = Delays(write=WRITES_S[defect.writes])
        hardware = defect.hardware(gpu_server(f"SN{number:03d}", GPUS[defect.sku]))
        machines[name] = (defect.sku, Machine(name, hardware, delays, defect.quirks))
        if defect.supply:
            machines[name][1].sicken(defect.supply)
    return PlantedFleet(CONFIG, machines, {n: DEFECTS[d].played for n, d in planted.items()}), planted


@pytest.fixture(scope="module")
def lived() -> tuple[PlantedFleet, dict[str, str]]:
    """The fleet half a day later; the slow BMC has stopped answering in between."""
    fleet, planted = a_fleet()
    slow = next(name for name, defect in planted.items() if DEFECTS[defect].writes == "slow")
    fleet.live(hours=1)
    assert fleet.node(slow).phase is Phase.zap
    begun = fleet.node(slow).phase_since
    fleet.live(seconds=(begun + timedelta(hours=5, minutes=59) - fleet.now).total_seconds())
    fleet.machines[slow].hang()
    fleet.live(hours=6)
    return fleet, planted


def test_exactly_the_planted_ones_stop(lived: tuple[PlantedFleet, dict[str, str]]) -> None:
    """Mutants: a sound machine is stopped; a defect is let through."""
    fleet, planted = lived
    assert (len(fleet.machines), len(planted), {fleet.node(name).sku for name in planted}) == (64, 12, {*BASELINE})
    stands = {name: fleet.node(name).phase for name in fleet.machines}
    assert {n: p for n, p in stands.items() if p is not Phase.production} == {
        name: DEFECTS[defect].stops for name, defect in planted.items()
    }
    assert {*planted.values()} == {*DEFECTS}
    written = {n: m.firmware for n, m in fleet.machines.items() if n not in planted}
    assert all(firmware[c] == "2.0.0" for n, firmware in written.items() for c in BASELINE[fleet.node(n).sku])


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_says_why_and_has_a_ticket_with_the_command_that_goes_on(
    lived: tuple[PlantedFleet, dict[str, str]], defect: str
) -> None:
    """Mutants: the reason is another's; no ticket; a ticket without a command."""
    fleet, planted = lived
    name, wanted = next(n for n, d in planted.items() if d == defect), DEFECTS[defect]
    (ticket,) = fleet.fleet.tickets_about(name)
    assert wanted.says in ticket.summary
    assert wanted.command.replace("NODE", name) in ticket.action
    if wanted.stops is Phase.zap_fail:
        evidence = [f.detail for f in fleet.events(e.OperationFinished, name) if f.result in ("failed", "refused")]
        assert any(wanted.says in detail for detail in evidence) or "in time" in wanted.says


def test_the_command_of_each_ticket_is_taken_and_leads_to_production() -> None:
    """A person's word for what Seatrial found; zap again once the firmware is put right, and its BMC restarted.

    Mutants: a ticket's command is refused as it stands; the node stays where it was; a second ticket asks for no more.
    """
    fleet, planted = a_fleet(len(DEFECTS))
    fleet.live(hours=13)
    assert {fleet.node(name).phase for name in planted} == {SEATRIAL, FAILED}
    for name, machine in fleet.machines.items():
        machine.quirks, machine.delays = Quirks(), Delays()
        if fleet.node(name).phase is FAILED:
            machine.restart_manager(fleet.now)
    for _ in range(3):
        for ticket in [one for name in planted for one in fleet.fleet.tickets_about(name) if one.kind != "condition"]:
            asked = COMMAND.search(ticket.action)
            assert asked is not None, ticket
            profile = {"profile": asked["profile"]} if asked["profile"] else {}
            assert fleet.ask(asked["verb"], ticket.node, **profile).granted
        fleet.live(hours=8)
    assert {name: fleet.node(name).phase for name in planted} == dict.fromkeys(planted, Phase.production)
    left = [ticket for name in planted for ticket in fleet.fleet.tickets_about(name)]
    assert {ticket.kind for ticket in left} <= {"condition"}, "what a person has vouched for is still shown as it is"


COMMAND = re.compile(r"hostler node (?P<verb>vouch|zap-again) n[0-9]+(?: --profile (?P<profile>[a-z_]+))?")


def test_a_machine_goes_on_once_it_is_put_right() -> None:
    """Mutants: the ticket stays; zap does not begin anew."""
    machine = Machine("a", gpu_server("SN1", GPUS["small"]), Delays(), Quirks(lies_about=frozenset({"BIOS"})))
    fleet = PlantedFleet(CONFIG, {"a": ("small", machine)}, {})
    fleet.live(hours=6)
    assert fleet.node("a").phase is Phase.zap_fail
    machine.quirks = Quirks()
    fleet.ask("zap-again", "a")
    fleet.live(hours=3)
    assert fleet.node("a").phase is Phase.production
    assert not fleet.fleet.tickets_about("a")
    assert dict(fleet.node("a").versions)["BIOS"] == "2.0.0"
