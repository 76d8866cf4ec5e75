"""Meanings of states of GPUs and hosts: who is convicted, who is cleared, and who is neither."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.core.diagnose.aspect import BETWEEN, GOOD, UNKNOWN
from hostler.core.diagnose.gpu import GPU_ASPECTS
from hostler.core.diagnose.host import HOST_ASPECTS
from hostler.core.diagnose.judge import judge
from hostler.core.state.assets import Position
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Condition, Facts, Node, Observation, Phase, Scalar, Severity
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
    slots=pairs((("gpu0", "S0"), ("gpu1", "S1"), ("nvme0n1", "DRIVE"))),
    addresses=pairs((("pci:0000:4c:00", "S0"), ("pci:0000:5d:00", "S1"))),
    most_seen=(("gpu", 2), ("host memory", 2015.0)),
)
SKU = Sku("h100", gpus=2, memory_gib=2048)
GPU: Facts = {
    "pci": "0000:4c:00",
    "lost": "",
    "recovery_action": 0,
    "ecc_uncorrectable": 0,
    "ecc_dram_uncorrectable": 0,
    "ecc_sram_uncorrectable": 0,
    "ecc_sram_threshold_exceeded": False,
    "remap_pending": False,
    "remap_failure": False,
    "remap_banks_none": 0,
    "clock_event_reasons": 1,
    "temperature_c": 40,
    "memory_temperature_c": 50,
    "slowdown_limit_c": 87,
    "memory_max_limit_c": 95,
    "shutdown_limit_c": 92,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "pcie_generation": 5,
    "pcie_generation_max": 5,
    "pcie_replays_per_hour": 0,
    "nvlinks_active": 18,
    "nvlinks_expected": 18,
    "nvlink_recoveries_per_hour": 0,
    "nvlink_crc_errors_per_hour": 0,
    "fabric_state": "completed",
    "fabric_status": 0,
    "fabric_health_mask": 0x1AA,
}
HOST: Facts = {
    "cpus_online": 8,
    "cpus_present": 8,
    "cpu_throttles_per_hour": 0,
    "memory_gib": 2015,
    "clock_synchronised": True,
    "clock_error_us": 900,
    "edac_ue:DIMM_A1": 0,
    "edac_ce_per_hour:DIMM_A1": 0,
    "aer_fatal:0000:4c:00": 0,
    "aer_nonfatal:0000:4c:00": 0,
    "aer_corrected_per_hour:0000:4c:00": 0,
    "link_errors_per_hour:mlx5_0/1": 0,
    "link_downs_per_hour:mlx5_0/1": 0,
    "drive:nvme0n1": "ok",
    "drive_used_percent:nvme0n1": 3,
    "mount:/": "rw",
    "space_free_percent:/": 50,
    "inodes_free_percent:/": 50,
    "unit:kubelet.service": "active",
}


def told(
    kind: str, facts: Facts, node: Node = NODE, boot_id: str = "b2", sku: Sku = SKU
) -> dict[tuple[str, str], bool]:
    seen = Observation("n1", kind, "agent", "s", 1, boot_id=boot_id, facts=facts)
    return {(finding.type, finding.part): finding.standing for finding in judge(seen, node, sku)}


def standing(kind: str, facts: Facts, node: Node = NODE, sku: Sku = SKU) -> set[tuple[str, str]]:
    return {key for key, stands in told(kind, facts, node, sku=sku).items() if stands}


def test_a_healthy_gpu_and_a_healthy_host_have_no_condition_and_every_aspect_is_good() -> None:
    assert standing("gpu_state", GPU) == set()
    assert {aspect.judge(GPU).mark for aspect in GPU_ASPECTS.values()} == {GOOD}
    assert standing("host_state", HOST) == set()
    assert {aspect.judge(HOST).mark for aspect in HOST_ASPECTS.values()} == {GOOD}


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ({"lost": "gpu_is_lost"}, "gpu.fallen_off_bus"),
        ({"lost": "reset_required"}, "gpu.reset_required"),
        ({"recovery_action": 1}, "gpu.reset_required"),
        ({"recovery_action": 2}, "gpu.reboot_required"),
        ({"recovery_action": 4}, "gpu.drain_and_reset"),
        ({"ecc_dram_uncorrectable": 1}, "gpu.ecc_counted"),
        ({"ecc_sram_threshold_exceeded": True}, "gpu.sram_threshold"),
        ({"remap_pending": True}, "gpu.row_remap_pending"),
        ({"remap_failure": True, "remap_pending": True}, "gpu.row_remap_failure"),
        ({"retired_pages_pending": True}, "gpu.row_remap_pending"),
        ({"retired_pages": 60}, "gpu.row_remap_failure"),
        ({"remap_banks_none": 2}, "gpu.spare_rows_spent"),
        ({"clock_event_reasons": 0x40}, "gpu.thermal"),
        ({"clock_event_reasons": 0x20}, "gpu.thermal"),
        ({"temperature_c": 87}, "gpu.thermal"),
        ({"memory_temperature_c": 96}, "gpu.thermal"),
        ({"clock_event_reasons": 0x88}, "gpu.hw_slowdown"),
        ({"clock_event_reasons": 0x08}, "gpu.hw_slowdown"),
        ({"pcie_width": 8}, "pcie.degraded_link"),
        ({"pcie_generation": 3, "utilization_percent": 80}, "pcie.degraded_link"),
        ({"pcie_replays_per_hour": 5000}, "pcie.correctable"),
        ({"nvlinks_active": 17}, "gpu.nvlink_down"),
        ({"nvlink_recoveries_per_hour": 1}, "gpu.nvlink_degraded"),
        ({"fabric_state": "in_progress"}, "gpu.fabric_unready"),
        ({"fabric_status": 999}, "gpu.fabric_unready"),
        ({"fabric_health_mask": 0x1A9}, "gpu.fabric_degraded"),
        ({"fabric_health_mask": 0x3AA}, "gpu.fabric_degraded"),
    ],
)
def test_each_fault_of_a_gpu_is_one_condition_of_that_part(change: Facts, condition: str) -> None:
    assert standing("gpu_state", GPU | change) == {(condition, "S0")}


@pytest.mark.parametrize(
    "change",
    [
        {"pcie_generation": 1, "utilization_percent": 0},
        {"clock_event_reasons": 0x04 | 0x10 | 0x02},
        {"mig_mode": True, "nvlinks_active": 0},
        {"nvlinks_active": 0, "nvlinks_expected": 0},
        {"temperature_c": 84},
    ],
)
def test_what_sound_gpus_do_convicts_nobody(change: Facts) -> None:
    """Mutants: generation is judged at idle; the power cap counts as throttling; MIG as links down."""
    assert standing("gpu_state", GPU | change) == set()


def test_heat_past_the_shutdown_limit_is_worse_and_is_over_only_well_below_it() -> None:
    """Mutant: no hysteresis: one degree below the limit clears."""
    seen = Observation("n1", "gpu_state", "agent", "s", 1, boot_id="b2", facts=GPU | {"temperature_c": 92})
    assert [f.severity for f in judge(seen, NODE, SKU) if f.standing] == [Severity.critical]
    assert ("gpu.thermal", "S0") not in told("gpu_state", GPU | {"temperature_c": 86})
    assert told("gpu_state", GPU | {"temperature_c": 80})["gpu.thermal", "S0"] is False


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"cpus_online": 7}, ("host.cpu_offline", "")),
        ({"cpu_throttles_per_hour": 600}, ("host.thermal", "")),
        ({"memory_gib": 1900}, ("host.memory_short", "")),
        ({"clock_synchronised": False}, ("host.clock_unsynchronised", "")),
        ({"clock_error_us": 5_000_000}, ("host.clock_unsynchronised", "")),
        ({"edac_ue:DIMM_A1": 1}, ("memory.uncorrectable", "dev:DIMM_A1")),
        ({"edac_ce_per_hour:DIMM_A1": 100}, ("memory.correctable", "dev:DIMM_A1")),
        ({"aer_fatal:0000:4c:00": 1}, ("pcie.uncorrectable", "S0")),
        ({"aer_nonfatal:0000:99:00": 1}, ("pcie.error", "pci:0000:99:00")),
        ({"link_downs_per_hour:mlx5_0/1": 4}, ("network.link_flaps", "mlx5_0/1")),
        ({"link_errors_per_hour:mlx5_0/1": 4000}, ("network.link_errors", "mlx5_0/1")),
        ({"drive:nvme0n1": "failing: spare blocks"}, ("storage.failed", "DRIVE")),
        ({"drive_used_percent:nvme0n1": 101}, ("storage.worn", "DRIVE")),
        ({"mount:/": "turned_ro"}, ("storage.read_only", "mount:/")),
        ({"space_free_percent:/": 2}, ("storage.space_low", "mount:/")),
        ({"inodes_free_percent:/": 2}, ("storage.inodes_low", "mount:/")),
        ({"unit:kubelet.service": "failed"}, ("host.unit_failed", "unit:kubelet.service")),
    ],
)
def test_each_fault_of_a_host_is_one_condition(change: Facts, expected: tuple[str, str]) -> None:
    assert standing("host_state", HOST | change) == {expected}


def test_what_sound_hosts_do_convicts_nobody() -> None:
    """Mutant: a mount that was read-only from the start convicts."""
    assert standing("host_state", HOST | {"smt": "off", "cpus_online": 4, "mount:/usr": "ro"}) == set()
    assert standing("host_state", HOST | {"memory_gib": 1970}) == set()


def test_unsettled_aspects_neither_raise_nor_clear() -> None:
    """Mutant: one poll is enough."""
    said = told("gpu_state", GPU | {"clock_event_reasons": 0x40, "unsettled": "thermal"})
    assert not any(kind == "gpu.thermal" for kind, _ in said)
    assert not any(kind == "gpu.thermal" for kind, _ in told("gpu_state", GPU | {"unsettled": "thermal"}))


def test_what_cannot_be_read_is_neither_healthy_nor_a_fault_and_is_said() -> None:
    """Mutant: an absent counter reads as 0."""
    said = told("gpu_state", {"pci": "0000:4c:00", "lost": ""})
    assert {key for key, stands in said.items() if stands} == {("reading.never_verified", "S0")}
    assert {key for key, stands in said.items() if not stands} == {("reading.missing", "S0")}


def test_a_measurement_that_was_there_and_is_gone_is_said() -> None:
    facts = {name: value for name, value in GPU.items() if not name.startswith("ecc_")} | {"missing": "ecc,sram"}
    assert standing("gpu_state", facts) == {("reading.missing", "S0")}
    assert told("gpu_state", GPU)["reading.missing", "S0"] is False


def test_a_counter_joins_the_condition_that_the_kernel_log_named() -> None:
    """Mutant: NVML's count stands beside Xid 95 as a second fault of the same part."""
    known = Condition("c", "gpu.ecc_uncontained", "n1", Severity.critical, NOW, NOW, "remedy", "hostler", "S0")
    node = replace(NODE, conditions=(known,))
    assert standing("gpu_state", GPU | {"ecc_uncorrectable": 2}, node) == {("gpu.ecc_uncontained", "S0")}
    elsewhere = replace(NODE, conditions=(replace(known, part="S1"),))
    assert standing("gpu_state", GPU | {"ecc_uncorrectable": 2}, elsewhere) == {("gpu.ecc_counted", "S0")}


def test_the_driver_that_hangs_is_a_fault_and_a_machine_without_nvml_is_not_healthy() -> None:
    assert standing("gpu_state", {"nvml": "hung", "call": "nvmlInit"}) == {("gpu.driver_unresponsive", "")}
    assert standing("gpu_state", {"nvml": "absent", "reason": "x"}) == {("reading.never_verified", "nvml")}
    gone: Facts = {"nvml": "crashed", "was_there": True}
    assert standing("gpu_state", gone) == {("reading.missing", "nvml")}
    back = told("gpu_state", {"nvml": "answers", "gpus_in_nvml": 2})
    assert back["gpu.driver_unresponsive", ""] is back["reading.missing", "nvml"] is False
    seen = Observation("n1", "gpu_state", "agent", "s", 1, boot_id="b2", facts={"nvml": "absent"})
    assert judge(seen, NODE, Sku("cpu", gpus=0)) == ()


def test_gpus_are_counted_against_sku_and_bus_and_the_missing_one_is_named() -> None:
    short: Facts = {"nvml": "answers", "gpus_in_nvml": 1, "pcis": "0000:4c:00"}
    assert standing("gpu_state", short) == {("gpu.missing", "S1")}
    assert told("gpu_state", short)["gpu.missing", "S0"] is False
    assert standing("gpu_state", {**short, "pcis": ""}) == {("gpu.missing", "gpu")}
    more: Facts = {"nvml": "answers", "gpus_in_nvml": 2, "gpus_on_pci": 3, "pcis": "0000:4c:00,0000:5d:00"}
    assert standing("gpu_state", more) == {("gpu.missing", "gpu")}


def test_what_a_node_has_never_shown_is_not_missing() -> None:
    """A SKU that names too many would have each of its nodes power-cycled, and then examined. Mutant: the SKU alone."""
    two: Facts = {"nvml": "answers", "gpus_in_nvml": 2, "gpus_on_pci": 2, "pcis": "0000:4c:00,0000:5d:00"}
    typo = Sku("h100", gpus=16, memory_gib=4096)
    assert standing("gpu_state", two, sku=typo) == set()
    assert standing("gpu_state", {**two, "gpus_in_nvml": 1, "pcis": "0000:4c:00"}, sku=typo) == {("gpu.missing", "S1")}
    assert standing("host_state", HOST, sku=typo) == {("inventory.below_sku", "host")}
    half = standing("host_state", HOST | {"memory_gib": 1000}, sku=typo)
    assert half == {("inventory.below_sku", "host"), ("host.memory_short", "")}
    new = replace(NODE, most_seen=())
    assert standing("host_state", HOST | {"memory_gib": 1000}, new) == {("inventory.below_sku", "host")}
    assert told("host_state", HOST)["inventory.below_sku", "host"] is False


def test_a_state_of_an_earlier_boot_clears_nothing() -> None:
    assert all(told("gpu_state", GPU, boot_id="b1").values())


SCALARS: st.SearchStrategy[Scalar] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.sampled_from([math.nan, -1, 2**64])
)


@given(st.dictionaries(st.sampled_from([*GPU, *HOST, "nvml", "gpu", "gpus_in_nvml", "unsettled", "missing"]), SCALARS))
def test_no_garbage_crashes_the_judgement(facts: Facts) -> None:
    for kind in ("gpu_state", "host_state"):
        assert {key for key, _ in told(kind, facts)} <= CONDITIONS.keys()


@given(
    st.sampled_from(sorted(GPU.keys() - {"pci"})), st.sampled_from([None, "", "garbage", math.nan, -1, 2**65, "N/A"])
)
def test_a_reading_replaced_by_garbage_never_yields_health(name: str, garbage: Scalar) -> None:
    """An aspect whose reading is garbage is unknown or as it was; garbage alone is never read as good.

    Mutant: `number` takes what is out of range, or a text, for 0.
    """
    if (name, garbage) == ("lost", ""):
        return
    alone = {"pci": "0000:4c:00", name: garbage}
    assert {row.judge(alone).mark for row in GPU_ASPECTS.values()} <= {UNKNOWN, BETWEEN}
