"""A part's health in the BMC's words beside what the node itself shows of it: one fault, one condition; firmware."""

from datetime import timedelta

import pytest

from hostler.core.diagnose.bmc_evidence import UNHEALTHY, explains
from hostler.core.diagnose.judge import judge
from hostler.core.diagnose.part_health import FAILED
from hostler.core.state.model import Condition, Facts, Observation, Severity
from hostler.core.tables.conditions import CONDITIONS
from tests.kit import NOW, Drive, a_node, a_workload, configuration, pool_document

UNWELL = "a/part.unhealthy/a-G0"
OFF_BUS = "a/gpu.fallen_off_bus/a-G0"
SLOW: Facts = {"gpu": "gpu0", "clock_event_reasons": 0x40, "temperature_c": 90.0}
COOL: Facts = {"gpu": "gpu0", "clock_event_reasons": 0, "temperature_c": 40.0}


def drive_of(node: str = "a") -> Drive:
    return Drive(configuration({"train": pool_document(target=1, modes={"*": "observe"})}), [a_node(node)])


def bmc_says(drive: Drive, word: str, place: str = "gpu:GPU_SXM_1", serial: str = "a-G0", says: str = "") -> None:
    facts: Facts = {f"health:{place}": word, f"serial:{place}": serial, "complete": True}
    drive.observe("a", "part_health", source="bmc", facts=facts | ({f"says:{place}": says} if says else {}))


def conditions(drive: Drive) -> dict[str, tuple[str, ...]]:
    return {condition.id: condition.paths for condition in drive.node("a").conditions}


def severity(drive: Drive, identity: str) -> Severity:
    return next(c.severity for c in drive.node("a").conditions if c.id == identity)


def test_the_bmcs_word_alone_is_shown_and_disturbs_nobody() -> None:
    """Mutant: a word that is not known counts as well; a part that is "degraded" is then taken for healthy."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    bmc_says(drive, "warning")
    assert severity(drive, UNWELL) == Severity.warning
    bmc_says(drive, "critical", says="NVIDIA.1.0.GpuFault: the GPU failed")
    assert severity(drive, UNWELL) == Severity.degraded
    drive.wait(hours=2)
    assert drive.operations("a") == []
    bmc_says(drive, "degraded")
    assert list(conditions(drive)) == [UNWELL, "a/observation.unreadable/sensors"]
    bmc_says(drive, "ok")
    assert UNWELL not in conditions(drive)


@pytest.mark.parametrize("bmc_first", [True, False])
def test_what_the_kernel_names_and_the_bmc_calls_unwell_is_one_condition(bmc_first: bool) -> None:
    """Mutants: `take_in` gives nothing; `_joined` returns its finding as it is. One fault is then two."""
    drive = drive_of()
    for kernel in (False, True) if bmc_first else (True, False):
        if kernel:
            drive.fault("a")
        else:
            bmc_says(drive, "critical")
    (joined,) = drive.node("a").conditions
    assert (joined.id, set(joined.paths)) == (OFF_BUS, {"kernel_log", "bmc"})
    assert {seen.path for seen in joined.evidence} == {"kernel_log", "bmc"}
    assert joined.severity == CONDITIONS["gpu.fallen_off_bus"].severity, "the BMC's word makes it no milder"


def test_a_bmc_that_says_ok_takes_nothing_back_that_is_seen_from_inside() -> None:
    """Mutant: "ok" ends every condition of the part."""
    drive = drive_of()
    drive.fault("a")
    bmc_says(drive, "critical")
    bmc_says(drive, "ok")
    assert list(conditions(drive)) == [OFF_BUS]


def test_the_bmc_takes_back_its_own_word_and_nobody_elses() -> None:
    """Mutant: `_joined` ends a condition of which the BMC never was a witness."""
    drive = drive_of()
    hot = "a/gpu.thermal/a-G0"
    drive.observe("a", "gpu_state", facts=SLOW)
    for word, witnesses in (("ok", {"gpu_state"}), ("critical", {"gpu_state", "bmc"}), ("ok", {"gpu_state"})):
        bmc_says(drive, word)
        assert set(conditions(drive)[hot]) == witnesses


@pytest.mark.parametrize(
    ("paths", "ended"),
    [(("bmc",), True), (("gpu_state", "bmc"), True), (("kernel_log",), False), (("kernel_log", "bmc"), False)],
)
def test_a_log_that_cannot_take_back_is_not_taken_back_by_the_bmc(paths: tuple[str, ...], ended: bool) -> None:
    """Mutants of `_may_leave`: the BMC need not be a witness; a kernel log beside it is as good as no witness."""
    hot = Condition(
        "a/gpu.thermal/a-G0",
        "gpu.thermal",
        "a",
        Severity.degraded,
        NOW,
        NOW,
        "observation",
        "hostler",
        part="a-G0",
        paths=paths,
    )
    seen = Observation("a", "part_health", "bmc", "bmc", 1, facts={"health:gpu:gpu0": "ok"})
    over = [finding.type for finding in judge(seen, a_node("a", conditions=(hot,)), configuration().skus["h100"])]
    assert ("gpu.thermal" in over) is ended


def test_what_is_well_from_inside_takes_nothing_back_that_the_bmc_says() -> None:
    """Mutant: any path that is well ends the condition."""
    drive = drive_of()
    drive.observe("a", "gpu_state", facts=SLOW)
    bmc_says(drive, "critical")
    drive.observe("a", "gpu_state", facts=COOL)
    assert conditions(drive)["a/gpu.thermal/a-G0"] == ("bmc",)
    bmc_says(drive, "ok")
    assert "a/gpu.thermal/a-G0" not in conditions(drive)


@pytest.mark.parametrize("bmc_first", [True, False])
def test_a_gpu_that_is_hot_from_both_sides_is_hot_once(bmc_first: bool) -> None:
    """Mutants: `judge_sensors` joins nothing; `take_in` knows UNHEALTHY only. Heat past the limit stays its own."""
    drive = drive_of()
    hot, near, past = "a/gpu.thermal/a-G0", "a/thermal.near_limit/a-G0", "a/thermal.over_limit/a-G0"
    for nvml in (False, True) if bmc_first else (True, False):
        if nvml:
            drive.observe("a", "gpu_state", facts=SLOW)
        else:
            drive.observe("a", "sensors", source="bmc", facts={"gpu0_temp_c": 88.0})
    assert set(conditions(drive)[hot]) == {"gpu_state", "bmc"}
    assert near not in conditions(drive)
    drive.observe("a", "sensors", source="bmc", facts={"gpu0_temp_c": 40.0})
    assert conditions(drive)[hot] == ("gpu_state",)
    drive.observe("a", "sensors", source="bmc", facts={"gpu0_temp_c": 99.0})
    assert {hot, past} <= conditions(drive).keys()


def test_a_drive_that_fails_is_the_same_condition_from_inside_and_outside() -> None:
    """Mutant: `FAILED` is empty. "ok" ends it from neither side: a drive that failed once is replaced."""
    node = a_node("a", slots=(*a_node("a").slots, ("nvme0n1", "D1")))
    drive = Drive(configuration({"train": pool_document(target=1, modes={"*": "observe"})}), [node])
    bmc_says(drive, "critical", "drive:Disk.Bay.3", "D1", "it predicts its own failure")
    drive.observe("a", "host_state", facts={"drive:nvme0n1": "failing: spare"})
    failed = "a/storage.failed/D1"
    assert set(conditions(drive)[failed]) == {"bmc", "host_state"}
    assert [c for c in conditions(drive) if "D1" in c] == [failed]
    bmc_says(drive, "warning", "drive:Disk.Bay.3", "D1")
    bmc_says(drive, "ok", "drive:Disk.Bay.3", "D1")
    drive.observe("a", "host_state", facts={"drive:nvme0n1": "ok"})
    assert failed in conditions(drive)


def test_a_part_without_a_serial_is_joined_by_the_slot_that_the_sku_names() -> None:
    """Mutant: the BMC's own name stands although the slot is known; a CPU's two conditions then never meet."""
    drive = drive_of()
    drive.observe("a", "part_health", source="bmc", facts={"health:gpu:gpu0": "critical"})
    assert list(conditions(drive)) == [UNWELL]
    bmc_says(drive, "ok", "gpu:gpu0", "a serial that no inventory holds")
    assert conditions(drive) == {}
    drive.observe("a", "part_health", source="bmc", facts={"health:memory:A1": "critical"})
    assert list(conditions(drive)) == ["a/part.unhealthy/A1"]


def test_a_word_that_is_told_each_hour_is_no_new_fault() -> None:
    """Mutant: what the BMC says again is counted as what happened again; three hours then make any GPU suspect."""
    drive = drive_of()
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 94, pid=1, Contained ECC error.", facility=0)
    before = [c.count for c in drive.node("a").conditions]
    for _ in range(30):
        drive.now += timedelta(hours=1)
        bmc_says(drive, "critical")
    assert [c.type for c in drive.node("a").conditions if c.type.endswith("suspect")] == []
    assert len(before) == len(drive.node("a").conditions)


def test_every_kind_of_part_has_its_own_faults_and_no_other() -> None:
    """Mutant: the families overlap; a NIC's failure then explains a drive."""
    kinds = ("cpu", "memory", "drive", "gpu")
    for condition in CONDITIONS:
        said = [kind for kind in kinds if explains(condition, UNHEALTHY, kind)]
        assert len(said) <= 1
        assert not explains(condition, UNHEALTHY, "nic") or said in ([], ["gpu"]), "both are on PCIe"
    assert not any(explains(UNHEALTHY, UNHEALTHY, kind) for kind in kinds)
    assert all(explains(condition, UNHEALTHY, kind) for kind, condition in FAILED.items())
    assert not explains("gpu.application_error", UNHEALTHY, "gpu"), "a program that failed explains no broken GPU"


# firmware


def with_baseline() -> Drive:
    config = configuration({"train": pool_document(target=1)}, firmware={"HGX_FW_BIOS": "2.0"})
    return Drive(config, [a_node("a")])


def test_firmware_that_drifts_waits_for_the_customers_work() -> None:
    """Mutant: the rule's timing is immediate. A version alone ends nobody's job."""
    drive = with_baseline()
    drive.see_work("a", a_workload("job"))
    drive.observe("a", "firmware", source="bmc", facts={"firmware.hgx-fw-bios": "1.9", "firmware.other": "7"})
    drive.wait(hours=6)
    assert "a/firmware.drift/HGX_FW_BIOS" in conditions(drive)
    assert drive.evicted == []
    assert "update_firmware" not in drive.operations("a")
    drive.see_work("a")
    drive.run()
    drive.wait(minutes=5)
    assert "update_firmware" in drive.operations("a")


def test_firmware_that_is_as_it_should_be_again_ends_the_drift() -> None:
    drive = with_baseline()
    drive.see_work("a", a_workload("job"))
    for version, drifts in (("1.9", True), ("2.0", False)):
        drive.observe("a", "firmware", source="bmc", facts={"firmware.HGX_FW_BIOS": version})
        assert ("a/firmware.drift/HGX_FW_BIOS" in conditions(drive)) is drifts
