"""Each check is seen to fail with a fault planted, and no way of misbehaving passes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostler_checks.catalogue import CHECKS
from hostler_checks.device import TWIN
from hostler_checks.plants import IN_CHILDREN
from tests.checks.suite_runs import one, planting

pytestmark = pytest.mark.nightly("processes compute with tensors")


@pytest.fixture(autouse=True)
def _planting(monkeypatch: pytest.MonkeyPatch) -> None:
    planting(monkeypatch)


CONVICTED = {
    "gemm_perf": "stall",
    "gemm_golden": "flaky_bit",
    "gemm_abft": "bit_flip",
    "gemm_fp8": "bit_flip",
    "hbm_bandwidth": "stall",
    "hbm_pattern": "bit_flip",
    "pcie_bandwidth": "slow_link",
    "thermal_soak": "stall",
    "power_pulse": "stall",
    "launch_latency": "stall",
    "alloc_cycle": "stall",
    "host_memory": "bit_flip",
    "nvme_fio": "bit_flip",
    "clock_sync": "slow_clock",
}
WITH_TORCH = {"train_replay", "allreduce", "pipeline_sendrecv"}


def test_every_check_of_the_catalogue_is_convicted_somewhere() -> None:
    assert CONVICTED.keys() | WITH_TORCH == CHECKS.keys()


@pytest.mark.parametrize("check", sorted(CONVICTED))
def test_a_planted_fault_is_found_and_without_it_nothing_is(check: str, tmp_path: Path) -> None:
    part = TWIN if CHECKS[check].gpu_only else "cpu"
    params = {"directory": str(tmp_path)} if check == "nvme_fio" else {}
    planted = one(check, CONVICTED[check], part, params=params)
    sound = one(check, "", part, params=params)
    assert (planted.verdict, planted.planted) == ("failed", CONVICTED[check]), planted.detail
    assert sound.verdict in ("passed", "inconclusive"), sound.detail
    if sound.verdict == "inconclusive":
        assert check in ("gemm_golden", "clock_sync", "thermal_soak"), sound.detail


@pytest.mark.parametrize("plant", [*IN_CHILDREN, "nan", "negative", "above_bound"])
def test_whatever_is_no_measurement_is_inconclusive(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that takes an answer whatever the exit code passes `lying_exit`; one without bounds `above_bound`."""
    monkeypatch.setitem(CHECKS, "hbm_bandwidth", _with_deadline("hbm_bandwidth", 3.0 if plant == "hang" else 30.0))
    found = one("hbm_bandwidth", plant)
    said = {
        "hang": "it hung, at a deadline",
        "crash": "was ended by signal 11",
        "lying_exit": "do not agree",
        "garbage": "cannot be read",
        "flood": "printed more than",
        "silent": "answered nothing",
        "nan": "is nan",
        "negative": "negative",
        "above_bound": "physical bound",
    }
    assert found.verdict == "inconclusive"
    assert said[plant] in found.detail


def _with_deadline(name: str, seconds: float) -> object:
    return type(CHECKS[name])(**{**vars(CHECKS[name]), "deadline_s": seconds})


def test_the_flipped_bit_is_named_by_row_and_column() -> None:
    assert "row 3, column 39" in one("gemm_abft", "bit_flip").detail


def test_faults_are_planted_by_tests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTLER_CHECKS_PLANT_FAULTS")
    assert one("gemm_abft", "bit_flip").verdict == "passed"


def test_a_gpu_that_is_not_there_is_not_passed() -> None:
    for check in ("pcie_bandwidth", "alloc_cycle"):
        found = one(check)
        assert (found.verdict, found.detail[:6]) == ("inconclusive", "no GPU")
    assert one("gemm_perf", part="gpu0").verdict == "inconclusive"


def test_a_program_that_cannot_be_started_is_inconclusive() -> None:
    assert "cannot be started" in one("gemm_abft", python="/no/such/python").detail


def test_a_child_ends_with_its_runner(tmp_path: Path) -> None:
    """Kill -9 the runner: a mutant without the parent's death signal leaves its hanging child."""
    text = (
        "from tests.checks.suite_runs import one\n"
        "import hostler_checks.runner\n"
        "print('up', flush=True)\n"
        "one('gemm_abft', 'hang')\n"
    )
    runner = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:."},
    )
    assert runner.stdout is not None
    runner.stdout.readline()
    until = time.monotonic() + 60
    while not (children := _children(runner.pid)) and time.monotonic() < until:
        time.sleep(0.02)
    child = children[0]
    while b"hostler_checks.child" not in _words(child) and time.monotonic() < until:
        time.sleep(0.02)
    while _signal_ignored(child) is False and time.monotonic() < until:
        time.sleep(0.02)
    runner.kill()
    runner.communicate()
    while _words(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert _words(child) == b""


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _signal_ignored(pid: int) -> bool:
    """Whether the child ignores SIGTERM already: then it hangs as planted, past its death signal's setting."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    return bool(mask & 1 << 14)
