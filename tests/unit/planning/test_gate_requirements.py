"""Requirements of a gate, computed from node, SKU and plan; and what its answer must say before it counts."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.agent.checks import emulated_gate
from hostler.core.diagnose.gate.faults import NOBODY, READERS
from hostler.core.diagnose.gate.readings import GPUS_SEEN, GateLook, KernelLine, worst
from hostler.core.planning import gate_requirements
from hostler.core.state.configuration import REMEDIES
from hostler.core.state.fleet import Fleet
from hostler.core.state.gate_expectation import Expected, ExpectedGpu
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Condition, Facts, Node, Operation, Outcome, Part, Plan, Step, Verdict
from hostler.core.state.operations import IdleCheck, RunChecks
from hostler.core.state.packed_strings import pairs
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.recipe_facts import rules_of
from hostler.core.tables.recipes import RECIPES
from tests.kit import NOW, Drive, a_node, configuration, gpu_part, pool_document, seen_all

SKU: dict[str, Any] = {
    "parts": {"nic": 8},
    "memory_gib": 2048.0,
    "reset": {"links": 18, "fabric": "nvidia-fabricmanager.service"},
}

ONE = {"train": pool_document(target=1)}


def a_fleet(node: Node, parts: tuple[Part, ...] = (), **sku: Any) -> Fleet:
    fleet = Fleet(configuration(**{**SKU, **sku}))
    fleet.put_node(node.id, node)
    for part in parts or tuple(gpu_part(node.id, n) for n in range(8)):
        fleet.put_part(part.serial, replace(part, node=node.id))
    return fleet


def a_condition(kind: str, part: str = "", **fields: Any) -> Condition:
    row = CONDITIONS[kind]
    fields = {"clears": row.clears, "owner": "hostler", "part": part, **fields}
    return Condition(f"a/{kind}/{part}", kind, "a", row.severity, NOW, NOW, **fields)


def sees(node: Node, plan: str = "gpu_reset", *causes: Condition, fleet: Fleet | None = None) -> Expected:
    sick = replace(node, conditions=causes)
    return gate_requirements.expectation(fleet or a_fleet(sick), sick, rules_of(plan), [c.id for c in causes])


def gate_ends_it(remedy: str) -> bool:
    """Whether this remedy, or a rung above it that may follow, has a gate."""
    ladder = REMEDIES[REMEDIES.index(remedy) :] if remedy in REMEDIES else (remedy,)
    steps = [step for name in ladder if name in RECIPES for step in RECIPES[name].steps]
    return any(step.act == RunChecks("gate") for step in steps)


def test_every_condition_whose_remedy_ends_in_a_gate_has_a_row() -> None:
    """Exhaustive over the table of conditions and the default policy. Mutant: a row is taken out."""
    rules = configuration().policy.rules
    for kind in CONDITIONS:
        if gate_ends_it(rules[kind].remedy):
            assert NOBODY not in gate_requirements.readers_of(kind), kind
            assert CONDITIONS[kind].gate is not None, kind


def test_every_reader_of_a_row_is_one_and_a_part_has_two_of_them() -> None:
    """By the means that convicted it and one other. Mutant: a row of a part is left with one reader."""
    for kind in CONDITIONS.values():
        assert set(kind.gate or ()) <= READERS.keys(), kind.type
        assert len(kind.gate or ()) != 1, kind.type


def test_what_has_no_row_is_seen_by_nobody_unless_its_own_observer_ends_it() -> None:
    """Mutant: what has no row needs no reader."""
    assert gate_requirements.readers_of("accelerator.failed") == (NOBODY,)
    assert gate_requirements.readers_of("storage.failed") == (NOBODY,)
    assert gate_requirements.readers_of("never.heard.of") == (NOBODY,)
    assert gate_requirements.readers_of("power.supply") == ()
    assert gate_requirements.readers_of("inventory.missing_part", "gpu") == ("inventory", "pci")
    assert gate_requirements.readers_of("gpu.gsp_timeout") == ("nvml", "pci", "kernel_log")
    assert gate_requirements.readers_of("gpu.missing") == ("nvml", "pci")


def test_the_record_says_what_is_expected() -> None:
    """Mutants: the SKU's number alone; only what has an address; the fault without its other names."""
    node = a_node("a", addresses=(("pci:0000:03:00", "a-G3"), ("uuid:GPU-3", "a-G3")))
    want = sees(node, "gpu_reset", a_condition("gpu.gsp_timeout", "a-G3"))
    assert (want.gpus, want.links, want.fabric, want.same) == (8, 18, True, True)
    assert want.parts == {"nic": 8, "gpu": 8}
    assert want.memory_gib == 2048.0
    third = ExpectedGpu("gpu3", "a-G3", "GPU-3", "0000:03:00")
    assert want.known[3] == third
    (fault,) = want.faulted
    assert (fault.name, fault.gpu, fault.readers) == (
        "gpu.gsp_timeout a-G3",
        third,
        ("nvml", "pci", "kernel_log"),
    )


def test_a_gate_asks_for_no_more_than_the_node_has_ever_shown() -> None:
    """A SKU that names too many would fail every gate. Mutants: the SKU's counts; what is there now."""
    node = replace(a_node("a"), most_seen=(("bmc:nic", 4), ("gpu", 8), ("host memory", 1024.0), ("nic", 6)))
    want = sees(node)
    assert (want.gpus, want.parts, want.memory_gib) == (8, {"nic": 6, "gpu": 8}, 1024.0)
    fewer = sees(replace(node, slots=pairs(list(node.slots)[:7])))
    assert fewer.gpus == 8
    lowered = sees(replace(node, most_seen=(("gpu", 4),)))
    assert (lowered.gpus, lowered.parts, lowered.memory_gib) == (8, {"nic": 8, "gpu": 4}, 2048.0)


def test_a_made_up_serial_is_not_waited_for() -> None:
    """A GPU that NVML did not show goes by its address; once it is back it has a serial. Mutant: it is compared."""
    made_up = "pci:0000:03:00.0@S-a"
    node = a_node("a", slots=(("gpu0", "a-G0"), ("gpu1", made_up)), addresses=(("pci:0000:03:00", made_up),))
    node = replace(node, most_seen=(("gpu", 8),))
    parts = (gpu_part("a", 0), Part(made_up, "gpu", slot="gpu1"))
    want = sees(node, fleet=a_fleet(node, parts))
    assert [gpu.name for gpu in want.known] == ["a-G0", "0000:03:00"]
    assert want.gpus == 8


def test_slots_in_a_bmcs_words_and_parts_of_other_kinds_are_no_gpus() -> None:
    """NVML would show none of them, and a sound node would fail. Mutant: every slot is a GPU."""
    slots = (("HGX_GPU_SXM_1", "bmc-serial"), ("gpu0", "a-NIC"), ("pci:0000:1b:00", "a-G0"))
    parts = (Part("bmc-serial", "gpu"), Part("a-NIC", "nic"), gpu_part("a", 0))
    node = a_node("a", slots=slots, addresses=())
    assert [gpu.name for gpu in sees(node, fleet=a_fleet(node, parts)).known] == ["a-G0"]
    assert sees(node, fleet=a_fleet(node, parts)).known[0].pci == "0000:1b:00"


def test_hands_in_the_machine_may_have_changed_a_serial() -> None:
    node = a_node("a")
    assert not sees(node, "return_to_service").same
    assert not sees(node, "seatrial").same
    assert sees(node, "deliver").same


def test_a_return_to_service_answers_for_what_a_remedy_was_to_clear() -> None:
    """Mutant: only causes are looked for, and a return has none."""
    node = replace(
        a_node("a"), conditions=(a_condition("gpu.gsp_timeout", "a-G3"), a_condition("power.supply", "psu1"))
    )
    want = gate_requirements.expectation(a_fleet(node), node, rules_of("return_to_service"), ())
    assert [fault.type for fault in want.faulted] == ["gpu.gsp_timeout"]


def test_an_unknown_sku_expects_what_is_on_record() -> None:
    node = a_node("a", sku="unheard of")
    assert (sees(node).gpus, len(sees(node).known)) == (8, 8)
    bare = a_node("a", sku="unheard of", slots=(), addresses=())
    assert sees(bare) == Expected(same=True)


def test_a_sku_may_be_without_readings_that_there_are() -> None:
    """Mutants: any word is taken; `without` is not handed on."""
    assert sees(a_node("a"), fleet=a_fleet(a_node("a"), without=["ecc"])).without == ("ecc",)
    with pytest.raises(InvalidInputError) as refused:
        a_fleet(a_node("a"), without=["eec"])
    assert "a gate knows no reading 'eec'" in str(refused.value)


def an_order(expected: Expected, profile: str = "gate") -> Operation:
    return Operation("o1", RunChecks(profile, expected), "a", "p1", 0, NOW, NOW)


def answered(operation: Operation, facts: Facts) -> Outcome:
    return gate_requirements.as_seen(operation, Outcome("o1", "a", "done", "4 parts", {"verdict": "passed", **facts}))


def test_passed_counts_only_with_what_was_seen() -> None:
    """Mutants: `passed` is believed; one expected name is left out; the number is not compared."""
    want = sees(a_node("a"), "gpu_reset", a_condition("gpu.gsp_timeout", "a-G3"))
    order = an_order(want)
    whole = seen_all(order)
    assert answered(order, whole).facts["verdict"] == "passed"
    for name in whole:
        short = {key: value for key, value in whole.items() if key != name}
        said = answered(order, short)
        assert said.facts["verdict"] == "inconclusive", name
        assert "it does not say that it saw" in said.detail
        assert "its own word: 4 parts" in said.detail
    for name, lie in ((GPUS_SEEN, 7), (GPUS_SEEN, True), (GPUS_SEEN, "8"), ("look:gpu a-G3", "failed: off")):
        assert answered(order, {**whole, name: lie}).facts["verdict"] == "inconclusive", (name, lie)
    assert answered(order, {}).facts["verdict"] == "inconclusive"


def test_failed_stays_failed_and_other_operations_are_left_alone() -> None:
    order = an_order(Expected(gpus=8))
    failed = Outcome("o1", "a", "done", "x", {"verdict": "failed"})
    assert gate_requirements.as_seen(order, failed) is failed
    other = Outcome("o1", "a", "done", "", {"verdict": "passed"})
    assert gate_requirements.as_seen(replace(order, act=IdleCheck()), other) is other
    assert gate_requirements.as_seen(an_order(Expected(gpus=8), "burn_in"), other) is other
    assert gate_requirements.as_seen(replace(order, act=RunChecks("gate")), other).facts["verdict"] == "inconclusive"


PARTS = tuple(gpu_part("a", n) for n in range(8))


def seen_by_an_emulated_machine(parts: tuple[Part, ...] = PARTS, **otherwise: Any) -> Outcome:
    want = sees(a_node("a"), "gpu_reset", a_condition("gpu.gsp_timeout", "a-G3"))
    readings = emulated_gate.readings(parts, {f"gpu{n}": f"0000:{n:02x}:00" for n in range(8)}, **otherwise)
    report = emulated_gate.answer(want, readings)
    return answered(an_order(want), {**report.facts, "verdict": report.verdict.value})


LOST: Facts = {"nvlinks_active": 17}


@pytest.mark.parametrize(
    ("otherwise", "verdict"),
    [
        ({}, "passed"),
        ({"parts": PARTS[:7]}, "failed"),
        ({"parts": (*PARTS[:7], Part("other", "gpu", slot="gpu7"))}, "failed"),
        ({"changes": {"gpu5": LOST}}, "failed"),
        ({"changes": {"gpu5": {"remap_pending": True}}}, "failed"),
        ({"changes": {"gpu5": {"pcie_width": 8}}}, "failed"),
        ({"changes": {"gpu5": {"fabric_state": "in_progress"}}}, "failed"),
        ({"changes": {"gpu5": {"clock_event_reasons": 0x88}}}, "failed"),
        ({"changes": {"gpu5": {"ecc_uncorrectable": "many"}}}, "inconclusive"),
        ({"kernel": (KernelLine("gpu.gsp_timeout", "0000:03:00", "again"),)}, "failed"),
    ],
)
def test_an_emulated_machine_is_no_kinder(otherwise: dict[str, Any], verdict: str) -> None:
    """Parts and troubles of it are read by the rules for real ones. Mutant: it answers what it was told to expect."""
    assert seen_by_an_emulated_machine(**otherwise).facts["verdict"] == verdict


def of_all(**links: Any) -> dict[str, Any]:
    return {"changes": {f"gpu{n}": links for n in range(8)}}


@pytest.mark.parametrize(
    ("otherwise", "verdict"),
    [
        (of_all(nvlinks_active=12), "inconclusive"),
        (of_all(nvlinks_active=12, nvlinks_down="12,13,14,15,16,17"), "failed"),
        (of_all(nvlinks_active=0, nvlinks_down=",".join(map(str, range(18)))), "failed"),
        ({"changes": {**of_all(nvlinks_active=12)["changes"], "gpu5": {"nvlinks_active": 11}}}, "failed"),
        (of_all(nvlinks_active=18), "passed"),
    ],
)
def test_more_nvlinks_than_any_gpu_has_doubt_the_sku_and_convict_nobody(
    otherwise: dict[str, Any], verdict: str
) -> None:
    """Links that are there and down convict. Mutants: the SKU is believed; what is down on all of them passes."""
    said = seen_by_an_emulated_machine(**otherwise)
    assert said.facts["verdict"] == verdict
    doubted = [text for text in said.facts.values() if "the SKU names 18 NVLinks" in str(text)]
    assert bool(doubted) or verdict != "inconclusive"


def test_a_gate_that_doubts_the_links_of_its_sku_opens_a_ticket_that_says_so() -> None:
    """As a real agent answers. Mutant: the gate fails, and the next remedy follows."""
    drive = Drive(configuration(ONE, reset={"links": 24}), [a_node("a")])
    drive.script("run_checks", "late")
    drive.fault("a", "ecc")
    drive.run()
    order = gate_of(drive)
    readings = emulated_gate.readings(PARTS, {f"gpu{n}": f"0000:{n:02x}:00" for n in range(8)})
    report = emulated_gate.answer(expected_of(order), readings)
    assert report.verdict is Verdict.inconclusive
    assert "the SKU names 24 NVLinks, no GPU of this node has more than 18" in report.detail


def expected_of(one: Operation | Step) -> Expected:
    assert isinstance(one.act, RunChecks)
    assert one.act.expects is not None
    return one.act.expects


def gate_of(drive: Drive, node: str = "a") -> Operation:
    return next(s.operation for s in reversed(drive.sent) if s.operation.kind == "run_checks" and s.node.id == node)


def test_what_is_frozen_is_what_was_known_when_the_plan_was_laid_down() -> None:
    """An inventory that has lost the GPU meanwhile changes nothing. Mutant: the order is made up when it is sent."""
    drive = Drive(configuration(ONE, reset={"links": 18}), [a_node("a")])
    drive.fault("a", "off_bus", gpu=3)
    assert drive.node("a").plan is not None
    drive.observe("a", "inventory", parts=tuple(gpu_part("a", n) for n in range(8) if n != 3), facts={"covers": "gpu"})
    drive.activate(configuration(ONE, reset={"links": 4}))
    drive.wait(seconds=30)
    expected = expected_of(gate_of(drive))
    assert (expected.links, len(expected.known), expected.gpus) == (18, 8, 8)
    assert [fault.name for fault in expected.faulted] == ["gpu.fallen_off_bus a-G3"]


def test_a_reset_of_one_gpu_looks_into_that_one() -> None:
    """On the others customers' work runs hot and fast, and nobody asks them to. Mutant: `only` is left out."""
    drive = Drive(configuration(ONE, reset={"domain": "gpu"}), [a_node("a")])
    drive.fault("a", "ecc", gpu=3)
    drive.wait(minutes=10)
    expected = expected_of(gate_of(drive))
    assert expected.only == ("gpu3",)
    addresses = {f"gpu{n}": f"0000:{n:02x}:00" for n in range(8)}
    busy = emulated_gate.readings(PARTS, addresses, {"gpu5": {"clock_event_reasons": 0x40}})
    assert emulated_gate.answer(expected, busy).verdict == "passed"
    sick = emulated_gate.readings(PARTS, addresses, {"gpu3": {"clock_event_reasons": 0x40}})
    assert emulated_gate.answer(expected, sick).verdict == "failed"
    assert emulated_gate.answer(expected, emulated_gate.readings(PARTS[:7], addresses)).verdict == "failed"


def test_a_plan_of_an_older_version_gets_its_expectation_when_its_gate_begins() -> None:
    """Mutant: such a gate expects nothing."""
    node = a_node("a")
    fleet = a_fleet(node)
    step = Step(RunChecks("gate"), 300)
    plan = msgspec.convert(
        {"id": "p", "node": "a", "name": "reboot", "act_class": "pending", "steps": [], "undo": [], "causes": [],
         "rule": "r", "config": "c", "radius": {"nodes": ["a"]}, "recorded_at": NOW}, Plan,
    )  # fmt: skip
    laid = gate_requirements.seeing(fleet, node, replace(plan, steps=(step,)))
    assert expected_of(laid.steps[0]).gpus == 8
    assert gate_requirements.seeing(fleet, node, laid) is laid


def test_nothing_looked_at_is_inconclusive() -> None:
    """Mutant: an empty list has passed."""
    assert worst([]) == "inconclusive"
    assert worst([GateLook("compute", Verdict.never_verified)]) == "inconclusive"
