"""The same checks on PyTorch (Debian's, on the CPU): replayed training, sums over ranks, products in every format."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hostler_checks.answers import CheckResult
from hostler_checks.checks import pipeline
from hostler_checks.device import TORCH
from hostler_checks.reference import Golden, Reference, stack_key
from tests.checks.suite_runs import PYTHON, one, planting

pytestmark = pytest.mark.nightly("processes compute with tensors")


@pytest.fixture(autouse=True)
def _planting(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    planting(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(site))


def here(name: str, plant: str = "", part: str = "cpu", reference: Reference | None = None) -> CheckResult:
    return one(name, plant, part, python=PYTHON, reference=reference)


def test_training_gives_the_same_bits_in_every_process() -> None:
    first, second = here("train_replay"), here("train_replay")
    assert first.digest == second.digest != ""
    assert (first.verdict, "no golden of this stack" in first.detail) == ("inconclusive", True)


ONE_STEP = """
import torch
from hostler_checks.checks import training
from hostler_checks.device import Device
from hostler_checks.work import Work
each = {"steps": 1, "every": 1}
work = Work("train_replay", Device("cpu"), {"width": 16, "blocks": 3, "batch": 2, "length": 8, **each}, 0.1)
one = training._own(work, torch)
runs = []
for block in one.model.blocks:
    block.register_forward_hook(lambda *_: runs.append(1))
with torch.no_grad():
    one.loss(1)
forward = len(runs)
training.trained(work, torch, one, [], first=True)
print(forward, len(runs) - forward)
"""


@pytest.mark.smoke
def test_backward_computes_each_block_again() -> None:
    """Three blocks: three runs forward, six in a step. A mutant without checkpoints has three."""
    done = subprocess.run((PYTHON, "-c", ONE_STEP), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "6"]


def test_a_flaky_bit_in_a_gradient_fails_and_names_its_step() -> None:
    found = here("train_replay", "flaky_bit")
    assert (found.verdict, found.grave, "differs from the first by step 2" in found.detail) == ("failed", True, True)


def test_bits_that_peers_do_not_have_are_suspect_and_theirs_pass() -> None:
    sound = here("train_replay")
    golden = Golden("train_replay", sound.digest, 3, sound.stack)
    known = Reference({stack_key("train_replay", sound.version, sound.stack): golden})
    assert here("train_replay", reference=known).verdict == "passed"
    found = here("train_replay", "bit_flip", reference=known)
    assert (found.verdict, "a witness must tell apart the node, the stack" in found.detail) == ("suspect", True)


def test_training_that_stalls_fails() -> None:
    sound = here("train_replay")
    golden = Golden("train_replay", sound.digest, 3, sound.stack)
    known = Reference({stack_key("train_replay", sound.version, sound.stack): golden})
    found = here("train_replay", "stall", reference=known)
    assert (found.verdict, found.basis[-1]) == ("failed", "floor"), found.detail


@pytest.mark.parametrize(
    ("plant", "verdict"),
    [("", "passed"), ("bit_flip", "failed"), ("slow_link", "failed"), ("above_bound", "inconclusive")],
)
def test_sums_over_ranks(plant: str, verdict: str) -> None:
    found = here("allreduce", plant)
    assert found.verdict == verdict, found.detail
    assert found.stack.get("backend") == "gloo"


@pytest.mark.parametrize(
    ("plant", "verdict", "says"),
    [
        ("", "passed", "gloo, 3 ranks, 1 MiB a batch"),
        ("bit_flip", "failed", "1 of the numbers that rank 1 was given by rank 0 are wrong, the first at 131072"),
        ("stall", "failed", "rank 1 works"),
        ("slow_link", "failed", "pipe_gb_s is"),
    ],
)
def test_a_pipeline_of_ranks(plant: str, verdict: str, says: str) -> None:
    """A mutant whose ranks do not look at what they are given passes `bit_flip`."""
    found = here("pipeline_sendrecv", plant)
    assert (found.verdict, says in found.detail) == (verdict, True), found.detail
    assert found.stack.get("ranks") == "3"


def test_two_ranks_are_compared_with_each_other() -> None:
    assert pipeline.slow_ranks([0.001, 0.0011]) == []
    assert pipeline.slow_ranks([0.001, 0.004]) == ["rank 1 works 4 times as long as the others' middle"]
    assert pipeline.slow_ranks([0.001, 0.001, 0.0035, 0.001]) == [
        "rank 2 works 3.5 times as long as the others' middle"
    ]


class Product(np.ndarray):
    """An array that is clamped as a tensor is."""

    def clamp_(self, max: float) -> "Product":  # noqa: A002 - PyTorch's word
        return np.minimum(self, max).view(Product)


class NumpyTensors:
    """As much of PyTorch as a stage asks for, on arrays; each product waits for a processor first."""

    float32 = np.float32
    empty_like = staticmethod(np.empty_like)
    threads = 0

    def set_num_threads(self, threads: int) -> None:
        self.threads = threads

    def arange(self, words: int, *, device: str, dtype: type) -> np.ndarray:
        return np.arange(words, dtype=dtype)

    def ones(self, shape: tuple[int, int], *, device: str) -> Product:
        return np.ones(shape, dtype=np.float32).view(Product)

    def matmul(self, one: np.ndarray, other: np.ndarray) -> Product:
        time.sleep(0.2)
        product: Product = (one @ other).view(Product)
        return product


def test_a_rank_that_waits_for_a_processor_is_not_slow() -> None:
    """By the wall clock, three ranks on two processors showed one of a healthy machine 6.5 times as slow."""
    torch = NumpyTensors()
    stage = pipeline.Stage(torch, pipeline.Place(rank=0, ranks=3, place="cpu", words=1024, n=8, plant=""))
    stage.work(np.zeros(1024, dtype=np.float32))
    assert stage.works[0] < 0.1, "the time in which it had no processor is counted as its work"
    assert torch.threads == 1, "threads of the library's own have no time that is counted"


@pytest.mark.parametrize("check", ["gemm_abft", "hbm_pattern"])
def test_exact_checks_find_the_flip_on_tensors_too(check: str) -> None:
    assert here(check, part=TORCH).verdict == "passed"
    found = here(check, "bit_flip", TORCH)
    assert found.verdict == "failed"
    assert ("row 3, column 39" if check == "gemm_abft" else "address") in found.detail


def test_products_in_the_formats_of_gpus() -> None:
    found = one("gemm_perf", "", TORCH, python=PYTHON, params={"dtypes": ["fp32", "bf16", "fp64"], "n": 64})
    assert found.verdict == "inconclusive"
    assert found.detail == "fp64_tflops is no reading of this check"
    assert one("gemm_perf", "", TORCH, python=PYTHON, params={"dtypes": ["fp32", "bf16"], "n": 64}).verdict == "passed"


@pytest.mark.parametrize("check", ["hbm_bandwidth", "gemm_golden", "thermal_soak", "launch_latency"])
def test_the_others_run_on_tensors(check: str) -> None:
    found = here(check, part=TORCH)
    assert found.verdict in ("passed", "inconclusive"), found.detail
    assert found.load_s > 0 or found.verdict == "inconclusive", found.detail


@pytest.mark.smoke
def test_without_pytorch_it_says_so() -> None:
    for check in ("train_replay", "allreduce", "pipeline_sendrecv"):
        found = one(check, python=sys.executable)
        assert (found.verdict, found.detail) == ("inconclusive", "no PyTorch: install hostler-checks[torch]")
