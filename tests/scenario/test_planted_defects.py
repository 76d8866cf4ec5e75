"""64 machines of two SKUs come up, twelve of them with a planted defect: those twelve stop, each for its own reason."""

import hashlib
from collections.abc import Callable

import pytest
import yaml
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.policy import documents
from hostler.core.state import events as e
from hostler.core.state.model import Phase
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks, gpu_server, make_image, sku_of_server
from tests.kit import POLICY
from tests.scenario.planted_fleet import PlantedFleet

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
    return {**made, "parts": parts, "firmware": BASELINE[name], "updates": {c: update(c) for c in BASELINE[name]}}


SKUS = {"skus": {name: a_sku(name) for name in BASELINE}, "pools": {}}
CONFIG = documents.parse({"policy.yaml": POLICY, "skus.yaml": yaml.safe_dump(SKUS)})


class Defect(Struct, frozen=True):
    """What is wrong with a machine; where that leaves its node, what is said of it, and the command that goes on."""

    sku: str
    stops: Phase
    says: str
    command: str
    hardware: Callable[[Hardware], Hardware] = lambda h: h
    quirks: Quirks = Quirks()
    supply: str = ""
    memory_gib: float = 2048.0
    writes: str = "small"


def without(slot: str) -> Callable[[Hardware], Hardware]:
    return lambda h: replace(h, parts=tuple(p for p in h.parts if p.slot != slot))


def another(slot: str, model: str) -> Callable[[Hardware], Hardware]:
    return lambda h: replace(h, parts=tuple(replace(p, model=model) if p.slot == slot else p for p in h.parts))


def newer(h: Hardware) -> Hardware:
    return replace(h, firmware={**h.firmware, "BIOS": "2.1.0"})


VOUCH, ZAP = "hostler node vouch NODE --profile inventory", "hostler node zap-again NODE"
SEATRIAL, FAILED = Phase.seatrial, Phase.zap_fail
DEFECTS: dict[str, Defect] = {
    "a GPU is missing": Defect("large", SEATRIAL, "gpu: expected 8, found 7", VOUCH, without("gpu7")),
    "another GPU": Defect("small", SEATRIAL, "expected H100, found NVIDIA A100", VOUCH, another("gpu3", "NVIDIA A100")),
    "another module": Defect(
        "large", SEATRIAL, "expected 64 GB, found DDR5 32 GB", VOUCH, another("memory5", "DDR5 32 GB")
    ),
    "a dead supply": Defect("small", SEATRIAL, "power.supply in psu2", VOUCH, supply="psu2"),
    "a drive is missing": Defect("large", SEATRIAL, "drive: expected 8, found 7", VOUCH, without("drive4")),
    "an adapter is missing": Defect("small", SEATRIAL, "nic: expected 4, found 3", VOUCH, without("nic1")),
    "half the memory": Defect("large", SEATRIAL, "host memory: expected 2048 GiB", VOUCH, memory_gib=1024.0),
    "success that is none": Defect(
        "large", FAILED, "GPU is 1.0.0, wanted 2.0.0", ZAP, quirks=Quirks(lies_about=frozenset({"GPU"}))
    ),
    "a version that flaps": Defect(
        "small", FAILED, "read right in between", ZAP, quirks=Quirks(flaps=frozenset({"BIOS"}))
    ),
    "a newer version": Defect("small", FAILED, "2.1.0 is newer than the baseline 2.0.0", ZAP, newer),
    "a BMC that takes no image": Defect(
        "small", FAILED, "not of an acceptable location", ZAP, quirks=Quirks(refuses_images=True)
    ),
    "a write that hangs at 5 h 58 min": Defect("large", FAILED, "did not finish in time", ZAP, writes="slow"),
}
EVERY = NODES // len(DEFECTS)


def a_fleet() -> tuple[PlantedFleet, dict[str, str]]:
    """The fleet, and which node has which defect: they stand among sound ones of both SKUs."""
    machines: dict[str, tuple[str, Machine]] = {}
    planted: dict[str, str] = {}
    defects = list(DEFECTS)
    for number in range(NODES):
        name, sku = f"n{number:02d}", ("small", "large")[number % 2]
        defect = Defect(sku, Phase.production, "", "")
        if number % EVERY == 0 and number // EVERY < len(defects):
            planted[name] = defects[number // EVERY]
            defect = DEFECTS[planted[name]]
        delays = Delays(write=WRITES_S[defect.writes])
        hardware = defect.hardware(gpu_server(f"SN{number:03d}", GPUS[defect.sku]))
        machines[name] = (defect.sku, Machine(name, hardware, delays, defect.quirks))
        if defect.supply:
            machines[name][1].sicken(defect.supply)
    return PlantedFleet(CONFIG, machines, {n: DEFECTS[d].memory_gib for n, d in planted.items()}), planted


@pytest.fixture(scope="module")
def lived() -> tuple[PlantedFleet, dict[str, str]]:
    """The fleet half a day later; the slow BMC has stopped answering in between."""
    fleet, planted = a_fleet()
    slow = next(name for name, defect in planted.items() if DEFECTS[defect].writes == "slow")
    fleet.live(hours=5, minutes=58)
    fleet.machines[slow].hang()
    fleet.live(hours=6)
    return fleet, planted


def test_exactly_the_planted_ones_stop(lived: tuple[PlantedFleet, dict[str, str]]) -> None:
    """Mutants: a sound machine is stopped; a defect is let through."""
    fleet, planted = lived
    stands = {name: fleet.node(name).phase for name in fleet.machines}
    assert {n: p for n, p in stands.items() if p is not Phase.production} == {
        name: DEFECTS[defect].stops for name, defect in planted.items()
    }
    assert len(planted) == len(DEFECTS)
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
