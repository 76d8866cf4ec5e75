"""The gate of the real body over recorded NVML and a fake sysfs: what it must see, and every way not to see it."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler.agent.checks import evidence_window, gate_host_readings, gate_runner
from hostler.agent.checks.compute_check import SEED, Runtime, Sums, check, sums
from hostler.agent.checks.evidence_window import Since
from hostler.agent.checks.host_stress import StressResult
from hostler.agent.machine import ANSWERED
from hostler.core.diagnose.gate.readings import GPUS_SEEN
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Verdict
from tests.gpu_node import ADDRESSES, BOOT, FAULTY, SERIALS, STATES, Node, expected

XID = "4,{number},{usec},-;NVRM: Xid (PCI:{pci}): {code}, pid=1234, name=python3, {words}\n"
OFF_BUS = XID.format(number=7, usec=9, pci=ADDRESSES[3], code=79, words="GPU has fallen off the bus.")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(gate_runner, "SETTLE_S", 0.0)
    here = Node(tmp_path)
    yield here
    here.close()


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """A recorded state with other answers of the fourth GPU, of all, or of the library."""

    def make(change: dict[str, Any], library: dict[str, Any] | None = None) -> Path:
        path = tmp_path / "changed.json"
        state = {"base": str(STATES / "healthy_h100x8.json"), "change": change, "library": library or {}}
        path.write_text(json.dumps(state))
        return path

    return make


def verdict_of(report: StressResult, name: str) -> str:
    return str(report.facts[f"look:{name}"]).partition(":")[0]


def test_a_sound_node_passes_and_says_what_it_saw(node: Node) -> None:
    report = node.look("healthy_h100x8", expected("gpu.fallen_off_bus"))
    assert report.verdict is Verdict.passed, report.detail
    assert report.facts[GPUS_SEEN] == 8
    third = report.facts[f"look:gpu {FAULTY}"]
    assert third == f"passed: {ADDRESSES[3]}, PCIe x16 generation 5 of 5, 18 NVLinks, fabric completed, 34 °C"
    gone = report.facts[f"look:gone gpu.fallen_off_bus {FAULTY}"]
    assert gone == (
        f"passed: nvml: it answers and is sound; pci: on PCI at {ADDRESSES[3]}; kernel_log: not again since"
    )
    assert {verdict_of(report, name) for name in ("memory", "disk", "clock", "gpus")} == {"passed"}
    assert verdict_of(report, "compute") == "never_verified"
    assert "compute not looked at" in report.detail


SEEN = [
    ("gpu_missing", "failed", "and NVML does not show it"),
    ("remap_pending", "failed", "taken out of use at the next GPU reset"),
    ("remap_failure", "failed", "could not be remapped"),
    ("ecc_uncorrectable", "failed", "uncorrectable memory errors"),
    ("sram_threshold", "failed", "crossed the vendor's threshold"),
    ("nvlink_down", "failed", "17 of 18 NVLinks are active"),
    ("pcie_narrow", "failed", "the PCIe link is x8 wide, it can be x16"),
    ("thermal_slowdown", "failed", "the GPU is hot"),
    ("power_brake", "failed", "the power brake is pulled"),
    ("fabric_not_completed", "failed", "has not joined its NVLink fabric"),
    ("fabric_degraded", "failed", "serves the GPU badly"),
    ("reset_asked", "failed", "the driver asks for"),
    ("pcie_idle", "passed", "as expected"),
]
SEEN_BY_A_CHILD = [
    ("gpu_lost", "failed", "NVML says that the GPU is lost"),
    ("no_driver", "inconclusive", "NVML is absent: the driver is not loaded"),
    ("not_supported", "inconclusive", "not read"),
    ("garbage", "inconclusive", "not read"),
    ("child_crash", "inconclusive", "NVML is crashed"),
]


@pytest.mark.parametrize(("state", "verdict", "said"), SEEN, ids=[state for state, _, _ in SEEN])
def test_what_nvml_shows_decides(node: Node, state: str, verdict: str, said: str) -> None:
    """Every reading that was recorded. Mutants: one reading of `ALSO` or `NEEDED` left out; missing counts as good."""
    report = node.judged(state, expected())
    assert (report.verdict, said in report.detail) == (verdict, True), report.detail


@pytest.mark.parametrize(("state", "verdict", "said"), SEEN_BY_A_CHILD, ids=[state for state, _, _ in SEEN_BY_A_CHILD])
def test_what_becomes_of_the_process_that_asks_nvml_decides(node: Node, state: str, verdict: str, said: str) -> None:
    """Mutant: an answer that is none, or a child that crashed, counts as a node without GPUs."""
    report = node.look(state)
    assert (report.verdict, said in report.detail) == (verdict, True), report.detail


def test_the_part_is_named(node: Node) -> None:
    """Mutant: a look at a GPU is told under its index."""
    report = node.look("remap_pending")
    assert verdict_of(report, f"gpu {FAULTY}") == "failed"
    assert {verdict_of(report, f"gpu {serial}") for serial in SERIALS if serial != FAULTY} == {"passed"}


MISSING = [
    ("nvmlDeviceGetTotalEccErrors", "ecc"),
    ("nvmlDeviceGetRemappedRows", "row_remap"),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", "slowdown"),
    ("nvmlDeviceGetTemperature", "thermal"),
    ("nvmlDeviceGetCurrPcieLinkWidth", "pcie"),
    ("nvmlDeviceGetMaxPcieLinkGeneration", "pcie"),
    ("nvmlDeviceGetNvLinkState", "nvlinks"),
    ("nvmlDeviceGetGpuFabricInfoV", "fabric"),
    ("nvmlDeviceGetSerial", "serial"),
    ("nvmlDeviceGetUUID", "uuid"),
]


@pytest.mark.parametrize(("call", "reading"), MISSING)
def test_a_missing_reading_has_not_passed(node: Node, changed: Callable[..., Path], call: str, reading: str) -> None:
    """One call of one GPU is not answered. Mutant: `mark != GOOD` is passed over where nothing is bad."""
    more = {"nvmlDeviceGetMemoryErrorCounter": {"error": 3}} if reading == "ecc" else {}
    report = node.judged(changed({"3": {call: {"error": 3}, **more}}), expected())
    assert report.verdict is Verdict.inconclusive, report.detail
    assert f"{reading} not read" in report.detail
    assert report.facts[GPUS_SEEN] == 7


def test_a_model_without_a_reading_says_so_in_its_sku(node: Node, changed: Callable[..., Path]) -> None:
    """Mutant: `without` is taken for every reading."""
    state = changed({"*": {"nvmlDeviceGetRemappedRows": {"error": 3}}})
    assert node.judged(state, expected(without=("row_remap",))).verdict is Verdict.passed
    state = changed({"*": {"nvmlDeviceGetRemappedRows": {"error": 3}, "nvmlDeviceGetCurrPcieLinkWidth": {"error": 3}}})
    assert node.judged(state, expected(without=("row_remap",))).verdict is Verdict.inconclusive


def test_another_serial_in_its_place_is_a_fault_unless_hands_were_in_the_machine(
    node: Node, changed: Callable[..., Path]
) -> None:
    """Mutant: GPUs are matched by address alone."""
    state = changed({"3": {"nvmlDeviceGetSerial": "1999", "nvmlDeviceGetUUID": "GPU-other"}})
    report = node.judged(state, expected())
    assert report.verdict is Verdict.failed
    assert f"gpu {FAULTY} failed: on PCI at {ADDRESSES[3]}, and NVML does not show it; 1999 is in its place" in (
        report.detail
    )
    swapped = node.judged(state, expected(same=False))
    assert swapped.verdict is Verdict.passed, swapped.detail
    assert str(swapped.facts["look:gpu 1999"]).startswith(f"passed: in place of {FAULTY}")


def test_another_uuid_of_the_same_serial_is_a_fault(node: Node, changed: Callable[..., Path]) -> None:
    report = node.judged(changed({"3": {"nvmlDeviceGetUUID": "GPU-other"}}), expected())
    assert (report.verdict, "its UUID is GPU-other" in report.detail) == (Verdict.failed, True)


def test_seven_of_eight_fail_by_number_where_no_name_is_on_record(node: Node) -> None:
    """Mutant: the number is compared with NVML's own."""
    node.unplug(ADDRESSES[3])
    report = node.judged("gpu_missing", Expected(gpus=8))
    assert (report.verdict, report.facts["look:gpus"]) == (
        Verdict.failed,
        "failed: 7 answer NVML, 7 on PCI, 8 expected",
    )


def test_one_more_than_expected_is_not_settled_by_a_gate(node: Node) -> None:
    assert node.judged("healthy_h100x8", Expected(gpus=7)).verdict is Verdict.inconclusive


def test_a_gpu_that_pci_misses_has_failed_even_without_nvml(node: Node) -> None:
    """PCI is another witness. Mutant: whoever has no NVML looks at nothing."""
    node.unplug(ADDRESSES[3])
    report = node.judged("no_driver", expected())
    assert verdict_of(report, f"gpu {FAULTY}") == "failed"
    assert verdict_of(report, f"gpu {SERIALS[0]}") == "inconclusive"


def test_without_nvml_a_node_with_gpus_is_never_passed_and_one_without_is(node: Node, tmp_path: Path) -> None:
    """Mutant: absence of NVML alone decides."""
    report = node.look("no_driver", Expected(gpus=8))
    assert report.verdict is Verdict.inconclusive
    (tmp_path / "bare").mkdir()
    bare = Node(tmp_path / "bare")
    for address in ADDRESSES:
        bare.unplug(address)
    report = bare.look("no_driver", Expected())
    bare.close()
    assert (report.verdict, report.facts[GPUS_SEEN]) == (Verdict.passed, 0), report.detail


def test_a_hang_at_the_faulted_gpu_fails_it_and_elsewhere_says_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hanging call is seen; a gate is not where another GPU's driver is convicted. Mutant: any hang fails."""
    monkeypatch.setattr("hostler.agent.machine.GPUS_S", 3.0)
    hung = node.body("hang_in_one_call").gpus()
    assert hung.state == "hung"
    gate = node.gate_over(lambda: hung)
    for part, verdict in [(FAULTY, "failed"), (SERIALS[5], "inconclusive"), ("", "inconclusive")]:
        report = gate.check(expected("gpu.gsp_timeout" if part else "", part))
        said = "NVML is hung" in report.detail or "does not return" in report.detail
        assert (report.verdict, said) == (verdict, True), part


GONE = [
    ("gpu.fallen_off_bus", FAULTY, "", "passed"),
    ("gpu.fallen_off_bus", FAULTY, OFF_BUS, "failed"),
    ("gpu.fallen_off_bus", FAULTY, OFF_BUS.replace(ADDRESSES[3], ADDRESSES[0]), "passed"),
    ("gpu.fallen_off_bus", FAULTY, OFF_BUS.replace("4,7", "12,7"), "passed"),
    ("gpu.fallen_off_bus", "pci:0000:77:00", "", "failed"),
    ("gpu.fallen_off_bus", "gpu9", "", "inconclusive"),
    ("network.nic_down", "pci:0000:1a:00", "", "passed"),
    ("network.link", "port:mlx5_0/1", "", "passed"),
    ("network.link", "port:mlx5_9/1", "", "inconclusive"),
    ("pcie.uncorrectable", "pci:0000:1a:00", "", "passed"),
    ("pcie.uncorrectable", "pci:0000:77:00", "", "failed"),
    ("memory.uncorrectable", "dev:DIMM_A1", "", "inconclusive"),
    ("host.memory_short", "", "", "inconclusive"),
    ("accelerator.failed", "pci:0000:1a:00", "", "inconclusive"),
]


@pytest.mark.parametrize(("condition", "part", "log", "verdict"), GONE)
def test_what_convicted_is_seen_gone_by_name(node: Node, condition: str, part: str, log: str, verdict: str) -> None:
    """Mutants: one reader of a row is enough; a line of user space, or about another GPU, counts."""
    node.log.write_text(BOOT + log)
    report = node.judged("healthy_h100x8", expected(condition, part))
    assert verdict_of(report, f"gone {condition} {part}".strip()) == verdict, report.facts
    assert report.verdict == verdict


def test_a_port_that_is_down_has_not_come_back(node: Node) -> None:
    """Mutant: any port of the node counts."""
    (node.root / "sys/class/infiniband/mlx5_0/ports/1/state").write_text("1: DOWN")
    node.adapter("mlx5_1", "0000:2a:00", "4: ACTIVE")
    for condition, part in (("network.link", "port:mlx5_0/1"), ("network.nic_down", "pci:0000:1a:00")):
        assert node.judged("healthy_h100x8", expected(condition, part)).verdict is Verdict.failed
    assert node.judged("healthy_h100x8", expected("network.link", "port:mlx5_1/1")).verdict is Verdict.passed


def test_a_log_that_does_not_reach_back_proves_nothing(node: Node) -> None:
    """Mutant: an overrun log counts as silent. A fault that it still shows convicts nobody by half."""
    node.log.write_text("6,900,1000,-;usb 1-1: new device\n")
    report = node.judged("healthy_h100x8", expected("gpu.fallen_off_bus"))
    assert (report.verdict, "reaches back to record 900 only" in report.detail) == (Verdict.inconclusive, True)
    node.log.write_text("6,900,1000,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07\n")
    assert node.judged("healthy_h100x8", expected("gpu.fallen_off_bus")).verdict is Verdict.passed


def test_what_stood_at_the_end_of_a_reset_is_not_held_against_it(node: Node, changed: Callable[..., Path]) -> None:
    """A reset clears no log and perhaps no counter; what came after it counts. Mutant: all of the boot counts."""
    node.log.write_text(BOOT + OFF_BUS)
    state = changed({"3": {"nvmlDeviceGetTotalEccErrors": {"args": {"*": 4}}}})
    here, want = node.gate(state), expected("gpu.fallen_off_bus")
    assert here.check(want).verdict is Verdict.failed
    with here.around_reset():
        halfway = here.check(want)
    assert (halfway.verdict, "not known since when" in halfway.detail) == (Verdict.inconclusive, True), halfway.detail
    after = here.check(want)
    assert after.verdict is Verdict.passed, after.detail
    node.log.write_text(BOOT + OFF_BUS + OFF_BUS.replace("4,7", "4,8"))
    assert here.check(want).verdict is Verdict.failed
    node.log.write_text(BOOT + OFF_BUS)
    changed({"3": {"nvmlDeviceGetTotalEccErrors": {"args": {"*": 5}}}})
    grown = here.check(want)
    assert (grown.verdict, "counts 1 uncorrectable" in grown.detail) == (Verdict.failed, True), grown.detail


def test_another_boot_counts_anew(tmp_path: Path) -> None:
    """Mutant: the boot is not compared."""
    evidence_window.save(tmp_path, Since("b1", 40, {"GPU-1": 2}))
    assert evidence_window.load(tmp_path, "b1") == Since("b1", 40, {"GPU-1": 2})
    assert evidence_window.load(tmp_path, "b2") == Since("b2")
    (tmp_path / evidence_window.FILE).write_text("{")
    assert evidence_window.load(tmp_path, "b1") == Since("b1", known=False)


def test_a_driver_that_starts_late_is_waited_for(node: Node, changed: Callable[..., Path], tmp_path: Path) -> None:
    """Links and fabric take a while after a boot. Mutant: the first reading decides."""
    gate_runner.SETTLE_S = 20.0  # restored by the fixture
    state = changed({}, {"nvmlInit": {"error": 9}})
    threading.Timer(1.5, lambda: changed({})).start()
    started = time.monotonic()
    report = node.look(state)
    assert report.verdict is Verdict.passed, report.detail
    assert time.monotonic() - started < 15


def test_a_gate_that_is_called_off_says_so(node: Node) -> None:
    """Mutant: nobody listens until the driver's time is over."""
    gate_runner.SETTLE_S = 30.0
    body = node.body("no_driver")
    threading.Timer(1.0, body.call_off).start()
    started = time.monotonic()
    report = body.check("gate", expected())
    assert (report.verdict, report.detail) == (Verdict.inconclusive, "called off")
    assert time.monotonic() - started < 15


def test_seatrial_looks_as_a_gate_does_and_other_profiles_are_not_answered(node: Node) -> None:
    assert node.look("healthy_h100x8", expected(same=False), "seatrial").verdict is Verdict.passed
    assert node.look("pcie_narrow", expected(same=False), "seatrial").verdict is Verdict.failed
    for profile in ("burn_in", "suspect", "idle"):
        assert profile not in ANSWERED
        report = node.look("healthy_h100x8", expected(), profile)
        assert (report.verdict, "only gate, seatrial" in report.detail) == (Verdict.inconclusive, True)


def test_a_pipe_is_not_read_twice(tmp_path: Path) -> None:
    """The agent's own reader must not lose a line to a gate. Mutant: the pipe is opened and read."""
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe" in gate_host_readings.read_log(str(tmp_path / "pipe"), evidence_window.BOOT).reason
    assert "No such file" in gate_host_readings.read_log(str(tmp_path / "nowhere"), evidence_window.BOOT).reason


class Wrong(Runtime):
    """A runtime of pure arithmetic, one of whose elements comes out otherwise."""

    name = "arithmetic"

    def __init__(self, count: int = 2, *, flip: tuple[int, int, int, int] | None = None, error: str = "") -> None:
        self._count, self._flip, self._error = count, flip, error

    def devices(self) -> int:
        return self._count

    def product(self, device: int, left: bytes, right: bytes, side: int) -> Sums:
        if self._error:
            raise RuntimeError(self._error)
        a, b = memoryview(left).cast("b"), memoryview(right).cast("b")
        c = [[sum(a[i * side + k] * b[k * side + j] for k in range(side)) for j in range(side)] for i in range(side)]
        if self._flip and self._flip[0] == device:
            _, row, column, bit = self._flip
            c[row][column] ^= 1 << bit
        return [sum(row) for row in c], [sum(column) for column in zip(*c, strict=True)]


def test_one_wrong_bit_of_one_product_is_found() -> None:
    """Mutants: only rows are compared; only the first GPU computes."""
    assert SEED == 12
    assert check(Wrong(), 16, 2).verdict is Verdict.passed
    for bit in (0, 9):
        look = check(Wrong(flip=(1, 5, 11, bit)), 16, 2)
        assert (look.verdict, "GPU 1: sums of rows [5] and columns [11]" in look.found) == (Verdict.failed, True)
    assert sums(bytes((1, 2, 3, 4)), bytes((5, 6, 7, 8)), 2) == ([41, 93], [62, 72])


def test_a_runtime_that_does_not_work_accuses_nobody() -> None:
    assert check(Wrong(error="CUDA error: 999"), 16, 1).verdict is Verdict.inconclusive
    assert check(Wrong(0), 16, 1).verdict is Verdict.inconclusive
    assert check(None).verdict is Verdict.never_verified
