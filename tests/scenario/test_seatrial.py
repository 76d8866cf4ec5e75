"""Seatrial and delivery hold what was seen of a node in this boot against its SKU: every kind, count, model, slot."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, NodeSeen
from hostler.core.conditions.sku_match import gaps
from hostler.core.state import events as e
from hostler.core.state.model import Facts, MostSeen, Part, Phase, Verdict
from hostler.core.state.most_parts_seen import raised
from tests.kit import NOW, Drive, a_node, configuration, pool_document

COUNTS = {"cpu": 2, "memory": 16, "drive": 4, "nic": 8, "psu": 6}
SLOTS = {kind: [f"{kind}{n}" for n in range(count)] for kind, count in {**COUNTS, "gpu": 8}.items()}
MODELS = {"nic": "ConnectX-7", "cpu": "8480", "drive": "7.68"}
NAMES = {**MODELS, "gpu": "NVIDIA H100 80GB HBM3", "memory": "DDR5 128 GB", "psu": "3000 W"}
CONFIG = configuration(
    {"train": pool_document(target=1)},
    parts=COUNTS,
    gpu_model="H100",
    memory_gib=2048.0,
    models=MODELS,
    slots=SLOTS,
)
COVERS = "cpu,memory,drive,nic,gpu"
BY_BMC = ("psu",)
"""Kinds that no agent sees."""
PAGE = Path(__file__).parents[2] / "docs/seatrial.md"


class Machine(Struct, frozen=True):
    """Describes a machine by the reports of its agent and BMC."""

    parts: tuple[Part, ...]
    memory_kib: int = 2048 * 2**20
    covers: str = COVERS
    supply: str = "ok"
    silent: bool = False


WHOLE = Machine(tuple(Part(f"S-{slot}", kind, NAMES[kind], slot) for kind, slots in SLOTS.items() for slot in slots))


def without(kind: str, left: int) -> Machine:
    """So many of the kind are left."""
    kept = SLOTS[kind][:left]
    return replace(WHOLE, parts=tuple(p for p in WHOLE.parts if p.kind != kind or p.slot in kept))


def another(kind: str, model: str, slot: str) -> Machine:
    """One part is of another model."""
    return replace(WHOLE, parts=tuple(replace(p, model=model) if p.slot == slot else p for p in WHOLE.parts))


SHORT: dict[str, tuple[Machine, str]] = {
    "7 of 8 GPUs": (without("gpu", 7), "gpu in gpu7: expected 8, found 7"),
    "A100 instead of H100": (another("gpu", "NVIDIA A100", "gpu3"), "gpu in gpu3: expected H100, found NVIDIA A100"),
    "6 of 8 NICs": (without("nic", 6), "nic in nic6, nic7: expected 8, found 6"),
    "another NIC": (another("nic", "ConnectX-6", "nic1"), "nic in nic1: expected ConnectX-7, found ConnectX-6"),
    "1 of 2 CPUs": (without("cpu", 1), "cpu in cpu1: expected 2, found 1"),
    "another CPU": (another("cpu", "Xeon 6430", "cpu0"), "cpu in cpu0: expected 8480, found Xeon 6430"),
    "0 of 4 drives": (without("drive", 0), "drive in drive0, drive1, drive2, drive3: expected 4, found 0"),
    "another drive": (another("drive", "NVMe 3.84 TB", "drive2"), "drive in drive2: expected 7.68, found NVMe 3.84 TB"),
    "half the modules": (without("memory", 8), "expected 16, found 8"),
    "half the memory": (replace(WHOLE, memory_kib=1024 * 2**20), "host memory: expected 2048 GiB, found 1024 GiB"),
    "memory unread": (replace(WHOLE, memory_kib=0), "host memory: expected 2048 GiB, found nothing"),
    "5 of 6 supplies": (without("psu", 5), "psu in psu5: expected 6, found 5"),
    "supplies unseen": (without("psu", 0), "psu: expected 6, found nothing: no source can see this kind"),
    "a dead supply": (replace(WHOLE, supply="critical"), "power.supply in psu2: expected a part that is well"),
    "drives not looked at": (
        replace(without("drive", 0), covers="cpu,memory,nic,gpu"),
        "drive: expected 4, found nothing: no source can see this kind",
    ),
    "no inventory at all": (replace(WHOLE, silent=True), "expected an inventory of this boot, found none at all"),
}
"""A fault of the machine → how it shows, and the step's text about it."""


def tell(drive: Drive, machine: Machine) -> None:
    """Agent and BMC show what they see."""
    if machine.silent:
        return
    drive.observe("a", "sensors", source="bmc", facts={"psu2_health": machine.supply})
    facts: Facts = {"covers": machine.covers, "memory_kib": machine.memory_kib}
    seen = tuple(p for p in machine.parts if p.kind not in BY_BMC)
    drive.observe("a", "inventory", parts=seen, facts=facts)
    supplies = tuple(p for p in machine.parts if p.kind in BY_BMC)
    drive.observe("a", "inventory", source="bmc", parts=supplies)


def at(phase: Phase, machine: Machine) -> Drive:
    """A machine that nobody has seen yet, switched on at this phase."""
    node = a_node("a", pool="", phase=phase, slots=(), addresses=(), inventory_at=None, inventory_boot="")
    drive = Drive(CONFIG, [replace(node, deadline=NOW + timedelta(hours=6))], quiet=True)
    drive.blind.add("a")
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"))
    drive.run()
    tell(drive, machine)
    drive.run()
    return drive


def said(drive: Drive) -> str:
    waiting = drive.node("a").waiting
    return "; ".join(b.text for b in waiting.blockers) if waiting is not None else ""


def test_a_machine_that_is_as_its_sku_passes_seatrial() -> None:
    """Mutant: nothing is enough."""
    drive = at(Phase.seatrial, WHOLE)
    drive.wait(hours=1)
    assert [c.check.verdict for c in drive.events(e.CheckRecorded) if c.check.profile == "inventory"] == ["passed"]
    assert "seatrial" not in drive.node("a").phase


@pytest.mark.parametrize("wrong", SHORT)
def test_what_is_missing_or_wrong_stops_at_seatrial_and_is_named(wrong: str) -> None:
    """Mutants: a kind is not compared; nothing seen is enough; the phase's limit moves it on; no model is looked at."""
    machine, text = SHORT[wrong]
    drive = at(Phase.seatrial, machine)
    drive.wait(days=30)
    node = drive.node("a")
    assert node.phase is Phase.seatrial
    assert text in said(drive)
    assert "run_checks" not in drive.operations("a")
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "check"]
    assert text in ticket.summary
    assert ticket.owner == "technician"
    assert not [m for m in drive.events(e.PhaseChanged) if m.node == "a"]


@pytest.mark.parametrize("wrong", SHORT)
def test_once_it_is_put_right_and_seen_it_goes_on(wrong: str) -> None:
    """Mutant: it is looked at once."""
    machine, _ = SHORT[wrong]
    drive = at(Phase.seatrial, machine)
    drive.wait(hours=30)
    tell(drive, WHOLE)
    drive.wait(hours=1)
    assert drive.node("a").phase is not Phase.seatrial
    assert not [t for t in drive.fleet.tickets.values() if t.kind == "check"]
    assert not [c for c in drive.node("a").conditions if c.type == "check.inconclusive"]


def bring_up(*machines: Machine, spare: bool = False) -> list[str]:
    """Machines of one SKU at Seatrial, one after the other; what the tickets say. `spare`: another is whole."""
    nodes = [
        a_node(
            f"n{number}", pool="", phase=Phase.seatrial, slots=(), addresses=(), inventory_at=None, inventory_boot=""
        )
        for number in range(len(machines))
    ]
    drive = Drive(CONFIG, [*nodes, *([a_node("whole", pool="")] if spare else [])], quiet=True)
    drive.blind.update(node.id for node in nodes)
    for node, machine in zip(nodes, machines, strict=True):
        drive.step(NodeSeen(node.id, "on"), AgentHeard(node.id, f"{node.id}-b1"))
        drive.run()
        parts = tuple(replace(p, serial=f"{node.id}-{p.serial}") for p in machine.parts)
        facts: Facts = {"covers": f"{machine.covers},psu", "memory_kib": machine.memory_kib}
        drive.observe(node.id, "inventory", parts=parts, facts=facts)
        drive.run()
    return [ticket.summary for ticket in drive.fleet.tickets.values()]


def test_machines_that_lack_the_same_make_their_sku_the_suspect() -> None:
    """Mutants: two are enough; any gap is like any other; a machine of the SKU that is whole says nothing."""
    doubt = "of SKU h100 show the same of nic: the SKU is likely wrong"
    few = without("nic", 6)
    said = bring_up(few, few, few)
    assert [doubt in text for text in said] == [False, False, True]
    assert f"n0, n1 {doubt}" in said[2]
    assert not any(doubt in text for text in bring_up(few, without("nic", 5), few))
    assert not any(doubt in text for text in bring_up(few, few, few, spare=True))


def test_a_dead_part_that_is_known_by_its_serial_is_named_by_its_slot() -> None:
    """A technician pulls a slot. Mutant: the condition's part is told as it stands."""
    drive = at(Phase.seatrial, without("nic", 6))
    words = {"health:drive:drive2": "critical", "serial:drive:drive2": "S-drive2"}
    drive.observe("a", "part_health", source="bmc", facts=words)
    assert [c.part for c in drive.node("a").conditions if c.type == "storage.failed"] == ["S-drive2"]
    assert [gap.slot for gap in gaps(drive.fleet, drive.node("a")) if gap.kind == "storage.failed"] == ["drive2"]


def test_the_table_is_in_the_documents() -> None:
    """Mutant: a row that nobody has written down, or that says otherwise."""
    page = PAGE.read_text(encoding="utf-8")
    for wrong, (_, text) in SHORT.items():
        assert f"| {wrong} | seatrial | {text}" in page
    rows = {line: line.rsplit("|", 2)[1].strip() for line in page.splitlines() if line.startswith("| ")}
    for case, (_, _, phase) in EXAMINED.items():
        assert [end for line, end in rows.items() if line.startswith(f"| {case}")] == [phase.value], case


def test_an_inventory_of_an_earlier_boot_is_none() -> None:
    """Mutant: what was seen before the restart counts."""
    drive = at(Phase.seatrial, WHOLE)
    stale = replace(drive.node("a"), boot_id="a-b2")
    assert [gap.found for gap in gaps(drive.fleet, stale)] == ["one of an earlier boot"]


def test_a_bmc_does_not_bring_back_what_the_agent_misses() -> None:
    """Within one boot. Mutant: who told last is believed."""
    drive = at(Phase.seatrial, without("nic", 6))
    drive.observe("a", "inventory", source="bmc", parts=tuple(p for p in WHOLE.parts if p.kind == "nic"))
    drive.wait(hours=1)
    assert "nic in nic6, nic7: expected 8, found 6" in said(drive)


def most_of(machine: Machine) -> MostSeen:
    """Returns the most that a machine has shown, where it was always as it is here."""
    seen = raised((), COVERS.split(","), machine.parts, machine.memory_kib / 2**20)
    return raised(seen, ("bmc:psu", "bmc:gpu"), machine.parts, 0)


EXAMINED: dict[str, tuple[Machine, Machine, Phase]] = {
    "NICs gone": (WHOLE, without("nic", 6), Phase.rma),
    "a drive gone": (WHOLE, without("drive", 3), Phase.rma),
    "memory gone": (WHOLE, replace(WHOLE, memory_kib=1024 * 2**20), Phase.rma),
    "a supply gone": (WHOLE, without("psu", 5), Phase.rma),
    "fewer NICs from the beginning": (without("nic", 6), without("nic", 6), Phase.triage),
    "one of the NICs it had gone": (without("nic", 6), without("nic", 5), Phase.rma),
    "less memory from the beginning": (
        replace(WHOLE, memory_kib=1024 * 2**20),
        replace(WHOLE, memory_kib=1024 * 2**20),
        Phase.triage,
    ),
    "never looked at before": (replace(WHOLE, parts=(), memory_kib=0), without("drive", 3), Phase.triage),
    "another model": (WHOLE, another("gpu", "NVIDIA A100", "gpu3"), Phase.triage),
    "no inventory of this boot": (WHOLE, replace(WHOLE, silent=True), Phase.triage),
    "kinds not looked at": (
        WHOLE,
        Machine(tuple(p for p in WHOLE.parts if p.kind == "gpu"), covers="gpu"),
        Phase.triage,
    ),
}
"""Parts that the node showed before → those after its examination's restart → where that leaves it."""


@pytest.mark.parametrize("case", EXAMINED)
def test_an_examination_convicts_of_what_was_there_and_is_gone(case: str) -> None:
    """A part that was never shown may be the SKU's error. Mutants: GPUs only; the SKU alone convicts; memory never."""
    before, machine, phase = EXAMINED[case]
    drive = in_triage(lambda drive: tell(drive, machine), before=before)
    drive.wait(hours=12)
    assert drive.node("a").phase is phase
    if phase is Phase.rma:
        assert "before" in drive.events(e.PhaseChanged)[-1].convicted


def test_a_sku_that_names_too_many_sends_no_node_of_a_sound_fleet_to_its_vendor() -> None:
    """A typo, then a fault: the node is treated as if the SKU were right of it. Mutant: the SKU's counts convict."""
    nodes = [a_node(name, most_seen=(("gpu", 8), ("nic", 8))) for name in ("a", "b", "c", "d")]
    drive = Drive(CONFIG_EIGHT, nodes)
    seen = tuple(p for p in WHOLE.parts if p.kind in ("gpu", "nic"))
    for node in nodes:
        own = tuple(replace(p, serial=f"{node.id}-{p.serial}") for p in seen)
        drive.observe(node.id, "inventory", parts=own, facts={"covers": "gpu,nic"})
    drive.activate(TYPO)
    for node in nodes:
        own = tuple(replace(p, serial=f"{node.id}-{p.serial}") for p in seen)
        drive.observe(node.id, "inventory", parts=own, facts={"covers": "gpu,nic"})
        drive.observe(node.id, "gpu_state", facts={"nvml": "answers", "gpus_in_nvml": 8, "gpus_on_pci": 8})
    assert {c.type for n in "abcd" for c in drive.node(n).conditions} == {"inventory.below_sku"}
    drive.wait(days=3)
    assert not [p for n in "abcd" for p in drive.plans(n)]
    assert {drive.node(n).phase for n in "abcd"} == {Phase.production}


CONFIG_EIGHT = configuration({"train": pool_document(target=4)}, parts={"nic": 8})
TYPO = configuration({"train": pool_document(target=4)}, gpus=16, parts={"nic": 10})


def spare_of(change: Callable[[Drive], None]) -> Drive:
    """A spare in a pool that wants one, after this has happened to it."""
    node = a_node("a", pool="", slots=(), addresses=(), inventory_at=None, inventory_boot="")
    drive = Drive(CONFIG, [node], quiet=True)
    drive.blind.add("a")
    change(drive)
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"), drive.view())
    drive.wait(minutes=10)
    return drive


def test_a_spare_that_nobody_has_seen_is_delivered_to_nobody_and_says_why() -> None:
    """Mutants: no inventory is no gap; the wait names nothing."""
    drive = spare_of(lambda _: None)
    assert drive.node("a").assignment is None
    assert "an inventory of this boot, found none at all" in said(drive)
    tell(drive, WHOLE)
    drive.wait(minutes=10)
    assert drive.node("a").pool == "train"


def test_a_spare_with_a_part_missing_is_delivered_to_nobody() -> None:
    """Mutant: delivery looks at conditions alone."""
    drive = spare_of(lambda _: None)
    tell(drive, without("drive", 3))
    drive.wait(minutes=10)
    assert drive.node("a").assignment is None
    assert "drive in drive3: expected 4, found 3" in said(drive) or drive.node("a").conditions


def test_a_person_may_vouch_for_a_machine_that_is_not_as_its_sku() -> None:
    """Mutant: the word is taken for every machine after it."""
    drive = at(Phase.seatrial, without("drive", 3))
    drive.wait(hours=1)
    assert drive.ask("vouch", "a", profile="inventory").granted
    drive.wait(hours=1)
    assert drive.node("a").phase is not Phase.seatrial
    assert [(c.check.verdict, c.check.person) for c in drive.events(e.CheckRecorded) if c.check.person] == [
        (Verdict.passed, "ann")
    ]


def in_triage(*seen: Callable[[Drive], None], before: Machine = WHOLE) -> Drive:
    """A node that is examined; after its restart these are told of it, one at once after the other."""
    node = a_node("a", pool="", phase=Phase.triage, slots=(), addresses=(), most_seen=most_of(before))
    drive = Drive(CONFIG, [node], quiet=True)
    drive.blind.add("a")
    drive.step(NodeSeen("a", "on"), AgentHeard("a", "a-b1"))
    drive.run()
    for one in seen:
        one(drive)
        drive.run()
    return drive


def bmc_lists(left: int) -> Callable[[Drive], None]:
    """A BMC that still lists its baseboard's GPUs."""
    parts = tuple(p for p in WHOLE.parts if p.kind == "gpu")[:left]
    return lambda drive: drive.observe("a", "inventory", source="bmc", parts=parts)


PIECES: dict[str, Callable[[Drive], None]] = {
    "a BMC that is slow": bmc_lists(6),
    "adapters that come up late": lambda drive: tell(drive, without("nic", 6)),
    "no drives yet": lambda drive: tell(drive, without("drive", 0)),
}


@pytest.mark.parametrize("piece", PIECES)
def test_an_inventory_that_comes_in_pieces_condemns_no_sound_node(piece: str) -> None:
    """Mutants: the first piece convicts; what the BMC listed first stands although the agent sees every part."""
    drive = in_triage(PIECES[piece])
    drive.wait(minutes=10)
    assert drive.node("a").phase is Phase.triage
    assert "still missing" in said(drive)
    tell(drive, WHOLE)
    drive.wait(hours=1)
    assert Phase.rma not in [m.after for m in drive.events(e.PhaseChanged)]
    assert drive.node("a").phase is not Phase.triage
    assert not drive.node("a").conditions


def test_each_piece_gives_the_next_its_time_and_what_is_missing_at_last_convicts() -> None:
    """Mutants: the time counts from the step's beginning; there is no end to it."""
    drive = in_triage(PIECES["no drives yet"])
    drive.wait(minutes=10)
    tell(drive, without("drive", 3))
    drive.wait(minutes=10)
    assert drive.node("a").phase is Phase.triage
    drive.wait(minutes=10)
    assert drive.node("a").phase is Phase.rma
    assert "drive in drive3: expected 4, found 3" in drive.events(e.PhaseChanged)[-1].convicted


def test_a_bmcs_list_accuses_no_part_that_the_agent_sees() -> None:
    """The node would be power-cycled for it, and in triage condemned. Mutant: who told last is believed."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    bmc_lists(6)(drive)
    drive.wait(days=1)
    assert not drive.node("a").conditions
    assert drive.plans("a") == []


def test_a_sku_that_is_put_right_sends_nobody_to_its_vendor() -> None:
    """Mutant: what was found missing of the SKU as it was leads to the vendor once the checks have passed."""
    drive = in_triage(lambda drive: tell(drive, without("drive", 3)))
    assert "inventory.missing_part" in [c.type for c in drive.node("a").conditions]
    drive.activate(configuration({"train": pool_document(target=1)}, parts={**COUNTS, "drive": 3}))
    drive.wait(hours=12)
    assert Phase.rma not in [m.after for m in drive.events(e.PhaseChanged)]
    assert drive.node("a").phase is Phase.production
