"""From observations to findings: who is convicted, who is cleared, and who is neither."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.judge import KINDS, judge
from hostler.core.diagnose.kernel_log import TEXT_LIMIT_CHARS
from hostler.core.state.assets import Binding, Position
from hostler.core.state.configuration import Sku
from hostler.core.state.firmware_updates import FirmwareUpdate
from hostler.core.state.model import Condition, Facts, Node, Observation, Part, Phase, Severity
from hostler.core.state.packed_strings import pairs
from hostler.core.tables.conditions import CONDITIONS

NOW = datetime(2025, 3, 4, tzinfo=UTC)
NODE = Node(
    id="n1",
    position=Position("c1"),
    sku="h100",
    phase=Phase.production,
    phase_since=NOW,
    registered_at=NOW,
    boot_id="b2",
    boots=("b1", "b2"),
    slots=pairs((("pci:0000:4c:00", "GPU-S3"), ("gpu0", "G0"), ("gpu1", "G1"))),
    most_seen=(("bmc:gpu", 2), ("gpu", 2), ("nic", 1)),
)
SKU = Sku("h100", gpus=2, parts={"nic": 1}, firmware={"bios": "2.1", "gpu": "96.00"}, gpu_model="H100")
XID_79 = "NVRM: Xid (PCI:0000:4c:00): 79, pid=1, name=a, GPU has fallen off the bus."


def seen(kind: str, facts: Facts | None = None, *, source: str = "agent", text: str = "") -> Observation:
    return Observation("n1", kind, source, "s", 1, boot_id="b2", text=text, facts=facts or {})


def kernel(text: str, *, facility: int | None = 0, boot_id: str = "b2", count: int = 1) -> Observation:
    return Observation("n1", "kernel_log", "agent", "s", 1, boot_id=boot_id, text=text, facility=facility, count=count)


def told(findings: tuple[Finding, ...]) -> set[tuple[str, str, bool]]:
    return {(finding.type, finding.part, finding.standing) for finding in findings}


# --- kernel log


def test_an_xid_convicts_the_part_in_that_slot() -> None:
    (finding,) = judge(kernel(XID_79, count=3), NODE, SKU)
    assert (finding.type, finding.part, finding.severity) == ("gpu.fallen_off_bus", "GPU-S3", Severity.critical)
    assert (finding.facts["code"], finding.facts["count"]) == (79, 3)
    assert finding.facts["line"] == XID_79


def test_a_gpu_without_a_known_serial_is_named_by_its_address() -> None:
    (finding,) = judge(kernel(XID_79.replace("4c", "9b")), NODE, SKU)
    assert finding.part == "pci:0000:9b:00"


@pytest.mark.parametrize("facility", [1, 3, 23, None])
def test_user_space_convicts_nobody(facility: int | None) -> None:
    """Mutant: treat an unknown facility as the kernel's; any container could then cost its node."""
    assert told(judge(kernel(XID_79, facility=facility), NODE, SKU)) == {("kernel_log.userspace_origin", "", True)}
    assert judge(kernel("systemd[1]: Started.", facility=facility), NODE, SKU) == ()


def test_an_earlier_boot_is_history() -> None:
    (finding,) = judge(kernel(XID_79, boot_id="b1"), NODE, SKU)
    assert finding.facts["earlier_boot"] is True
    for boot_id in ("b2", "b3", ""):
        (finding,) = judge(kernel(XID_79, boot_id=boot_id), NODE, SKU)
        assert "earlier_boot" not in finding.facts


def test_many_lines_of_one_fault_are_one_finding() -> None:
    text = "\n".join(["NVRM: Xid (PCI:0000:4c:00): 13"] * 5 + ["NVRM: Xid (PCI:0000:4c:00): 48"])
    findings = judge(kernel(text, count=2), NODE, SKU)
    assert [(f.type, f.facts["count"]) for f in findings] == [
        ("gpu.application_error", 10),
        ("gpu.ecc_uncorrectable", 2),
    ]


def test_what_was_not_read_is_told() -> None:
    assert told(judge(kernel("x" * (TEXT_LIMIT_CHARS + 1)), NODE, SKU)) == {
        ("observation.unreadable", "kernel_log", True)
    }


# --- inventory


def inventory(*parts: Part, facts: Facts | None = None, source: str = "agent") -> Observation:
    return replace(seen("inventory", facts, source=source), parts=parts)


def gpu(n: int, model: str = "NVIDIA H100 80GB HBM3", firmware: str = "96.00") -> Part:
    return Part(f"G{n}", "gpu", model, f"gpu{n}", firmware)


NIC = Part("N0", "nic", "ConnectX-7", "nic0")


def test_a_complete_node_clears_what_its_inventory_can_clear() -> None:
    findings = judge(inventory(gpu(0), gpu(1), NIC, facts={"firmware.bios": "2.1"}), NODE, SKU)
    assert told(findings) == {
        ("inventory.mismatch", "sku", False),
        ("inventory.mismatch", "gpu", False),
        ("inventory.unseen_kind", "", False),
        ("inventory.missing_part", "gpu", False),
        ("inventory.below_sku", "gpu", False),
        ("inventory.unexpected_part", "gpu", False),
        ("inventory.missing_part", "nic", False),
        ("inventory.below_sku", "nic", False),
        ("inventory.unexpected_part", "nic", False),
        ("inventory.serial_unclear", "gpu", False),
        ("inventory.serial_unclear", "nic", False),
        ("firmware.drift", "bios", False),
        ("firmware.drift", "gpu", False),
    }


def test_a_missing_gpu_is_critical_and_its_slot_is_named() -> None:
    standing = [f for f in judge(inventory(gpu(0)), NODE, SKU) if f.standing]
    assert [(f.type, f.part, f.severity) for f in standing] == [
        ("inventory.missing_part", "gpu", Severity.critical),
        ("inventory.missing_part", "nic", Severity.degraded),
    ]
    assert standing[0].facts["slots"] == "gpu1"


@pytest.mark.parametrize(
    ("before", "count", "source", "shown"),
    [
        ((("gpu", 2),), 1, "agent", "inventory.missing_part"),
        ((("gpu", 1),), 1, "agent", "inventory.below_sku"),
        ((), 0, "agent", "inventory.below_sku"),
        ((("bmc:gpu", 2),), 1, "agent", "inventory.below_sku"),
        ((("bmc:gpu", 2),), 1, "bmc", "inventory.missing_part"),
        ((("gpu", 2),), 1, "bmc", "inventory.below_sku"),
        ((("gpu", 9),), 2, "agent", ""),
        ((("gpu", 2),), 3, "agent", "inventory.unexpected_part"),
    ],
)
def test_only_what_the_same_observer_has_seen_before_is_missing(
    before: tuple[tuple[str, float], ...], count: int, source: str, shown: str
) -> None:
    """Mutants: the SKU alone accuses; a BMC's way of counting accuses for the agent; the others are left to stand."""
    parts = tuple(gpu(n) for n in range(count))
    observation = inventory(*parts, facts={"covers": "gpu"}, source=source)
    found = told(judge(observation, replace(NODE, most_seen=before), replace(SKU, parts={})))
    counted = {(kind, stands) for kind, part, stands in found if part == "gpu" and kind in COUNTED}
    assert counted == {(kind, kind == shown) for kind in COUNTED}


@pytest.mark.parametrize(
    ("source", "covers", "before", "bmc", "told"),
    [
        ("agent", "gpu,nic", (), True, None),  # its BMC may still list supplies
        ("agent", "gpu,nic", (), False, ""),  # only a BMC lists supplies, and there is none
        ("agent", "gpu", (), False, "nic"),
        ("agent", "gpu,nic", ("bmc:psu",), True, ""),
        ("agent", "gpu", ("bmc:gpu",), True, "nic, psu"),
        ("agent", "gpu", ("bmc:nic", "bmc:psu"), True, ""),
        ("bmc", "gpu", (), True, "psu"),  # its agent may still list adapters
        ("bmc", "gpu", ("gpu",), True, "nic, psu"),
        ("bmc", "psu", ("gpu", "nic"), True, ""),
    ],
)
def test_a_kind_that_nobody_lists_is_told_once_everybody_has_spoken(
    source: str, covers: str, before: tuple[str, ...], bmc: bool, told: str | None
) -> None:
    """Mutants: the first word accuses; what is not looked at counts as there; an earlier boot counts."""
    bindings = (Binding("bmc", "https://b", NODE.registered_at),) if bmc else ()
    node = replace(NODE, inventory_boot="b2", inventory_covers=before, bindings=bindings)
    sku = replace(SKU, parts={"nic": 1, "psu": 2})
    seen = inventory(facts={"covers": covers}, source=source)
    found = [f for f in judge(seen, node, sku) if f.type == "inventory.unseen_kind"]
    assert [str(f.facts.get("kinds", "")) for f in found] == ([] if told is None else [told])
    assert [f.standing for f in found] == ([] if told is None else [told != ""])
    earlier = replace(node, inventory_boot="b1")
    again = [f for f in judge(seen, earlier, sku) if f.type == "inventory.unseen_kind" and not f.standing]
    assert bool(again) is (told == "" and not before)


COUNTED = ("inventory.missing_part", "inventory.below_sku", "inventory.unexpected_part")


def test_one_serial_seen_twice_is_one_part() -> None:
    findings = judge(inventory(gpu(0), gpu(0), NIC), NODE, SKU)
    assert ("inventory.missing_part", "gpu", True) in told(findings)


def test_a_bmc_is_asked_only_about_what_it_names() -> None:
    findings = judge(inventory(NIC, source="bmc"), NODE, SKU)
    assert not any(f.part == "gpu" and f.type.startswith("inventory.") for f in findings)
    findings = judge(inventory(NIC, facts={"covers": "gpu, nic"}, source="bmc"), NODE, SKU)
    assert ("inventory.missing_part", "gpu", True) in told(findings)


def test_surplus_and_other_models_are_told() -> None:
    findings = told(judge(inventory(gpu(0), gpu(1, "NVIDIA A100"), gpu(2), NIC), NODE, SKU))
    assert {("inventory.unexpected_part", "gpu", True), ("inventory.mismatch", "gpu", True)} <= findings


def test_without_a_sku_nothing_is_cleared() -> None:
    assert told(judge(inventory(gpu(0), gpu(1), NIC), NODE, None)) == {("inventory.mismatch", "sku", True)}


@pytest.mark.parametrize(
    ("runs", "drifts"), [("2.1", False), ("2.0.5", False), ("1.9", True), ("2.2", None), ("odd", None)]
)
def test_what_is_allowed_or_may_not_be_written_over_empties_no_node(runs: str, drifts: bool | None) -> None:
    """Mutants: only the target counts as right; a node is drained for an update that is refused."""
    sku = replace(SKU, firmware={"bios": "2.1"}, updates={"bios": FirmwareUpdate(allowed=("2.0.5",))})
    found = told(judge(Observation("n1", "firmware", "bmc", "b", 1, facts={"firmware.bios": runs}), NODE, sku))
    assert found == (set() if drifts is None else {("firmware.drift", "bios", drifts)})


def test_firmware_drifts_in_production_only_and_silence_is_no_baseline() -> None:
    observation = inventory(gpu(0, firmware="95.00"), gpu(1), NIC)
    assert ("firmware.drift", "gpu", True) in told(judge(observation, NODE, SKU))
    assert not any(p == "bios" for _, p, _ in told(judge(observation, NODE, SKU)))
    zap = replace(NODE, phase=Phase.zap)
    assert not any(t == "firmware.drift" for t, _, _ in told(judge(observation, zap, SKU)))
    unknown = inventory(gpu(0, firmware=""), gpu(1), NIC)
    assert not any(t == "firmware.drift" for t, _, _ in told(judge(unknown, NODE, SKU)))


# --- sensors


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, 0, 127, 255.0, -40, 10**400, "52", True])
def test_an_impossible_temperature_neither_convicts_nor_clears(value: float | str | None) -> None:
    """Mutant: drop the bound HOTTEST_C; a dead sensor that reads 255 then powers a node off."""
    assert told(judge(seen("sensors", {"gpu0_temp_c": value}), NODE, SKU)) == {
        ("observation.unreadable", "sensors", True)
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [(91.0, {True}), (90.0, set()), (88, set()), (85.0, {False}), (40, {False})],
)
def test_a_temperature_convicts_above_its_limit_and_clears_well_below(value: float, expected: set[bool]) -> None:
    findings = judge(seen("sensors", {"gpu0_temp_c": value}), NODE, SKU)
    assert {f.standing for f in findings if f.type == "thermal.over_limit"} == expected
    assert {f.type for f in findings} <= {"thermal.over_limit", "thermal.near_limit"}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"gpu0_temp_c": 87.0}, {True}),
        ({"gpu0_temp_c": 85.0}, set()),
        ({"gpu0_temp_c": 80.0}, {False}),
        ({"gpu0_temp_c": 78.0, "gpu0_temp_caution_c": 77.0}, {True}),
        ({"gpu0_temp_c": 78.0, "gpu0_temp_caution_c": 300.0}, {False}),
    ],
)
def test_a_temperature_close_to_its_limit_is_told(facts: Facts, expected: set[bool]) -> None:
    """Mutant: `near_limit` without hysteresis; it flickers at its threshold."""
    findings = judge(seen("sensors", facts), NODE, SKU)
    assert {f.standing for f in findings if f.type == "thermal.near_limit"} == expected


def test_a_sensor_may_bring_its_own_limit_but_not_an_absurd_one() -> None:
    facts: Facts = {"vr_c": 100.0, "vr_limit_c": 110.0}
    assert not any(f.standing for f in judge(seen("sensors", facts), NODE, SKU))
    assert told(judge(seen("sensors", {"a_c": 40.0, "a_limit_c": 0.0}), NODE, SKU)) == {
        ("thermal.over_limit", "a", False),
        ("thermal.near_limit", "a", False),
    }
    assert told(judge(seen("sensors", {"a_c": 40.0}), NODE, None)) == {("observation.unreadable", "sensors", True)}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("leak_detected", True, {("cooling.leak", "", True)}),
        ("tray1_leak_detected", True, {("cooling.leak", "tray1", True)}),
        ("leak_tray1", "critical", {("cooling.leak", "tray1", True)}),
        ("leak_tray1", "warning", {("cooling.leak_suspected", "tray1", True)}),
        ("leak_tray1", "ok", {("cooling.leak_suspected", "tray1", False)}),
        ("leak_detected", False, {("cooling.leak_suspected", "", False)}),
        ("leak_detected", None, {("observation.unreadable", "sensors", True)}),
        ("leak_detected", 1, {("observation.unreadable", "sensors", True)}),
        ("leak_tray1", "dunno", {("observation.unreadable", "sensors", True)}),
        ("psu0", "ok", {("power.supply", "psu0", False)}),
        ("psu0_state", "failed", {("power.supply", "psu0", True)}),
        ("power_supply_bay_1_health", "critical", {("power.supply", "power_supply_bay_1", True)}),
        ("psu1_health", "OK", {("power.supply", "psu1", False)}),
        ("psu1_health", None, {("observation.unreadable", "sensors", True)}),
        ("psu1_w", 400.0, set()),
        ("fan0_rpm", 9000, set()),
        ("fan3_health", "critical", {("cooling.fan", "fan3", True)}),
        ("power_redundancy_health", "warning", {("power.redundancy", "power_redundancy", True)}),
        ("cooling_redundancy_health", "ok", {("cooling.redundancy", "cooling_redundancy", False)}),
    ],
)
def test_leaks_and_supplies(name: str, value: str | float | None, expected: set[tuple[str, str, bool]]) -> None:
    """A dry detector never ends a leak by itself: that is a named person's to say."""
    assert told(judge(seen("sensors", {name: value}), NODE, SKU)) == expected


def test_the_worst_word_about_a_supply_counts() -> None:
    findings = judge(seen("sensors", {"psu0_state": "enabled", "psu0_health": "critical"}), NODE, SKU)
    assert told(findings) == {("power.supply", "psu0", True)}


# --- verdicts, agents, power


def test_only_passed_clears() -> None:
    passed = told(judge(seen("verdict", {"check": "gemm_perf", "verdict": "passed"}), NODE, SKU))
    assert passed == {
        ("check.failed", "check:gemm_perf", False),
        ("check.inconclusive", "check:gemm_perf", False),
        ("check.warning", "check:gemm_perf", False),
    }
    warned = told(judge(seen("verdict", {"check": "psu", "verdict": "failed", "severity": "warning"}), NODE, SKU))
    assert ("check.warning", "check:psu", True) in warned
    assert ("check.failed", "check:psu", True) not in warned
    for verdict in ("stale", "never_verified", "inconclusive", "fine", "PASSED", None, 1):
        findings = judge(seen("verdict", {"check": "gemm_perf", "verdict": verdict}), NODE, SKU)
        assert told(findings) == {("check.inconclusive", "check:gemm_perf", True)}


def test_a_failed_check_stands_for_its_part_and_for_no_other() -> None:
    facts: Facts = {"profile": "gate", "verdict": "failed", "part": "gpu3"}
    findings = judge(seen("verdict", facts, text="212 of 700 TFLOP/s"), NODE, SKU)
    assert ("check.failed", "check:gate/gpu3", True) in told(findings)
    assert findings[0].facts["part"] == "gpu3"
    assert "212" in findings[0].text


def test_a_verdict_of_an_earlier_boot_clears_nothing() -> None:
    observation = replace(seen("verdict", {"check": "gate", "verdict": "passed"}), boot_id="b1")
    assert judge(observation, NODE, SKU) == ()


def test_agents_speak_of_themselves() -> None:
    assert told(judge(seen("agent", {"event": "kernel_log.overrun"}), NODE, SKU)) == {("kernel_log.overrun", "", True)}
    dead: Facts = {"event": "collector_failed", "collector": "kernel_log"}
    assert told(judge(seen("agent", dead), NODE, SKU)) == {("agent.collector_failed", "collector:kernel_log", True)}
    assert told(judge(seen("agent", {**dead, "event": "collector_started"}), NODE, SKU)) == {
        ("agent.collector_failed", "collector:kernel_log", False)
    }
    assert judge(seen("agent", {"event": "heartbeat"}), NODE, SKU) == ()
    assert {f.type for f in judge(seen("agent", {"event": "gpu.ecc_contained"}), NODE, SKU)} == {
        "observation.unreadable"
    }


def test_off_is_unexpected_only_where_nobody_meant_it() -> None:
    off = seen("power", {"power": "off"}, source="bmc")
    assert told(judge(off, NODE, SKU)) == {("power.off_unexpected", "", True)}
    assert judge(off, replace(NODE, phase=Phase.zap), SKU) == ()
    leak = Condition("c", "cooling.leak", "n1", Severity.catastrophic, NOW, NOW, "operator", "hostler")
    assert judge(off, replace(NODE, conditions=(leak,)), SKU) == ()
    on = seen("power", {"power": "on"}, source="bmc")
    assert told(judge(on, NODE, SKU)) == {("power.off_unexpected", "", False)}
    unknown = seen("power", {"power": "unknown"}, source="bmc")
    assert {(f.type, f.standing) for f in judge(unknown, NODE, SKU)} == {("observation.unreadable", True)}


def test_an_unknown_kind_is_visible() -> None:
    (finding,) = judge(seen("tea_leaves"), NODE, SKU)
    assert (finding.type, finding.severity) == ("observation.unreadable", Severity.info)


# --- all of them

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
WORDS = st.sampled_from(
    (
        "gpu0_c",
        "gpu0_limit_c",
        "leak_detected",
        "leak_a",
        "psu0",
        "a_health",
        "check",
        "verdict",
        "part",
        "event",
        "collector",
        "power",
        "covers",
        "firmware.bios",
    )
)
VALUES = SCALARS | st.sampled_from(("passed", "failed", "ok", "critical", "off", "collector_failed", "gpu"))
PARTS = st.builds(
    Part, st.text(max_size=3), st.sampled_from(("gpu", "nic", "")), st.text(max_size=3), st.text(max_size=3)
)
OBSERVATIONS = st.builds(
    Observation,
    node=st.just("n1"),
    kind=st.sampled_from((*KINDS, "", "?")),
    source=st.sampled_from(("agent", "bmc", "")),
    spool=st.just("s"),
    sequence=st.just(1),
    boot_id=st.sampled_from(("", "b1", "b2", "b3")),
    text=st.text(max_size=20) | st.just(XID_79) | st.just(XID_79 + "\udcff"),
    count=st.integers(-1, 10**9),
    facility=st.none() | st.integers(-1, 24),
    facts=st.dictionaries(WORDS | st.text(max_size=5), VALUES, max_size=6),
    parts=st.lists(PARTS, max_size=4).map(tuple),
)


@given(OBSERVATIONS, st.sampled_from(tuple(Phase)), st.sampled_from((SKU, None)))
def test_no_observation_raises_and_only_believable_ones_clear(
    observation: Observation, phase: Phase, sku: Sku | None
) -> None:
    findings = judge(observation, replace(NODE, phase=phase), sku)
    places = [(finding.type, finding.part) for finding in findings]
    assert len(places) == len(set(places)), "an observation says one thing about one condition of one part"
    for finding in findings:
        assert finding.type in CONDITIONS
        finding.text.encode()
        if not finding.standing:
            assert CONDITIONS[finding.type].clears == "observation"
            assert observation.boot_id != "b1"
            assert observation.kind != "kernel_log"
