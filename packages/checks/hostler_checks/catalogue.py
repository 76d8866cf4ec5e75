"""The catalogue of checks: what each detects, what it costs, which readings it makes and how it is run.

A reading's physical bound stands in `limits`: beyond it the test is broken, not the hardware.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reading:
    """A measured number. `unit` is for people; `higher` tells whether more is better."""

    unit: str
    higher: bool = True
    informative: bool = False
    """Kept and shown, judged by nobody."""


@dataclass(frozen=True)
class CheckSpec:
    """One check. `entry` is MODULE:FUNCTION; `cpu` and `gpu` are its parameters there, with their types.

    `grave`: a failure is wrong bits, and a burn-in ends at once. `gpu_only`: without a GPU it is inconclusive.
    `exact`: what it finds needs no comparison with anybody. `memory` and `cost` are told to people.
    """

    name: str
    version: int
    detects: str
    entry: str
    cost: str
    memory: str
    readings: Mapping[str, Reading] = field(default_factory=dict)
    seconds: float = 5.0
    deadline_s: float = 60.0
    cpu: Mapping[str, Any] = field(default_factory=dict)
    gpu: Mapping[str, Any] = field(default_factory=dict)
    grave: bool = False
    exact: bool = False
    golden: bool = False
    gpu_only: bool = False
    host: bool = False
    """Looks at the host, once a node, also where there are GPUs."""
    sites: bool = False
    """The work is a site's own code, which may not repeat itself: peers alone show that it does."""


MEETING = CheckSpec(
    "meeting",
    1,
    "the way between nodes: sums over them, exact, and their bandwidth; it judges pairs and no node",
    "meeting:allreduce",
    "30 s; needs PyTorch on each",
    "2 buffers a rank",
    {"group_gb_s": Reading("GB/s", informative=True)},
    host=True,
)
"""Run by `hostler-check meet` alone: a profile runs on one node, and has nobody to meet."""

_MS, _LOSS = Reading("ms", higher=False), Reading("", higher=False, informative=True)
TRAIN_MODEL = CheckSpec(
    "train_model",
    1,
    "corruption as a site's own model meets it: the site's module trained with AdamW, its bits at every k-th step",
    "own_module:replay",
    "the site's; needs PyTorch",
    "the site's",
    {"model_step_ms": Reading("ms", higher=False, informative=True), "loss": _LOSS},
    seconds=60.0,
    cpu={"steps": 10, "every": 5, "model": "", "shapes": {}},
    gpu={"steps": 10, "every": 5, "model": "", "shapes": {}},
    deadline_s=600.0,
    grave=True,
    golden=True,
    sites=True,
)
"""Run where a site names a module: `hostler-check run --model`, or a file of its own checks."""

_TFLOPS, _GBS, _US = Reading("TFLOP/s"), Reading("GB/s"), Reading("µs", higher=False)
_LESS = Reading("%", higher=False)

CHECKS: dict[str, CheckSpec] = {
    spec.name: spec
    for spec in (
        CheckSpec(
            "gemm_perf",
            1,
            "low clocks, low power limits, weak multiprocessors: matrix products a second in each number format",
            "gemm:perf",
            "60 s",
            "3 matrices: 0.4 GiB on a GPU, 12 MiB on a CPU",
            {f"{kind}_tflops": _TFLOPS for kind in ("fp32", "tf32", "fp16", "bf16")},
            cpu={"n": 1024, "dtypes": ["fp32"]},
            gpu={"n": 8192, "dtypes": ["bf16", "fp16", "tf32"]},
        ),
        CheckSpec(
            "gemm_golden",
            1,
            "silent data corruption that persists: the product's bits against those of three peers with the same stack",
            "gemm:golden",
            "10 s",
            "3 matrices",
            {},
            cpu={"n": 512, "dtype": "fp32"},
            gpu={"n": 4096, "dtype": "fp32"},
            grave=True,
            golden=True,
        ),
        CheckSpec(
            "gemm_abft",
            1,
            "transient corruption: sums of rows and columns of exact products name the wrong row and column",
            "gemm:abft",
            "60 s",
            "6 matrices, three of them in fp64",
            {"products": Reading("", informative=True)},
            cpu={"n": 512},
            gpu={"n": 4096},
            grave=True,
            exact=True,
        ),
        CheckSpec(
            "gemm_fp8",
            1,
            "multiplication of 8-bit floats (e4m3): exact products, and how many a second; played in fp32 on a CPU",
            "gemm:fp8",
            "10 s; a GPU from Ada or Hopper on",
            "3 matrices",
            {"fp8_tflops": _TFLOPS},
            cpu={"n": 512},
            gpu={"n": 4096},
            grave=True,
            exact=True,
        ),
        CheckSpec(
            "train_replay",
            3,
            "corruption as training meets it, and software drift: a small GPT with AdamW, its bits at every k-th step",
            "training:replay",
            "20 s; needs PyTorch",
            "under 1 GiB",
            {"step_ms": _MS, "loss": _LOSS},
            cpu={"steps": 8, "every": 2, "width": 64, "blocks": 2, "batch": 8, "length": 32},
            gpu={"steps": 50, "every": 10, "width": 512, "blocks": 4, "batch": 16, "length": 256},
            deadline_s=180.0,
            grave=True,
            golden=True,
        ),
        CheckSpec(
            "hbm_bandwidth",
            1,
            "memory that is slow: remapped rows, throttled clocks; copy and triad on buffers beyond the caches",
            "memory:bandwidth",
            "20 s",
            "3 buffers: 3 GiB on a GPU, 384 MiB on a CPU",
            {"copy_gb_s": _GBS, "triad_gb_s": _GBS},
            cpu={"mib": 128},
            gpu={"mib": 1024},
        ),
        CheckSpec(
            "hbm_pattern",
            1,
            "memory cells that lose or couple bits: moving inversions, up and down",
            "memory:pattern",
            "2 min for 90 % of a GPU's memory",
            "90 % of what a GPU has free; 256 MiB on a CPU",
            {"pattern_gb_s": Reading("GB/s", informative=True)},
            cpu={"mib": 256},
            gpu={"percent": 90},
            deadline_s=300.0,
            grave=True,
            exact=True,
        ),
        CheckSpec(
            "pcie_bandwidth",
            1,
            "a PCIe link that trained down: pinned copies to the GPU and back",
            "transfers:pcie",
            "10 s; GPU only",
            "256 MiB pinned, 256 MiB on the GPU",
            {"h2d_gb_s": _GBS, "d2h_gb_s": _GBS},
            gpu={"mib": 256},
            gpu_only=True,
        ),
        CheckSpec(
            "thermal_soak",
            1,
            "paste, fans, coolant: products a second under steady load, their slope, and reasons for throttling",
            "soak:thermal",
            "20 min in a burn-in",
            "3 matrices",
            {
                "soak_tflops": _TFLOPS,
                "fade_percent": _LESS,
                "hottest_c": Reading("°C", higher=False, informative=True),
            },
            seconds=10.0,
            cpu={"n": 768},
            gpu={"n": 8192},
        ),
        CheckSpec(
            "power_pulse",
            1,
            "supplies and regulators: load in square waves, every node at the same instants; a reset or Xid shows it",
            "soak:pulse",
            "2 min",
            "3 matrices",
            {"pulse_tflops": _TFLOPS, "pulses": Reading("", informative=True)},
            cpu={"n": 512, "period_s": 1.0},
            gpu={"n": 8192, "period_s": 2.0},
        ),
        CheckSpec(
            "launch_latency",
            1,
            "a slow driver or CPU: time from a tiny operation's call to its end",
            "latency:launch",
            "5 s",
            "small",
            {"launch_us": _US, "launch_p99_us": Reading("µs", higher=False, informative=True)},
            seconds=2.0,
        ),
        CheckSpec(
            "alloc_cycle",
            1,
            "hangs and leaks of the driver's firmware: memory taken and given back a hundred times",
            "latency:alloc",
            "30 s; GPU only",
            "1 GiB",
            {"cycle_us": _US, "leaked_mib": Reading("MiB", higher=False)},
            gpu={"mib": 1024, "cycles": 100},
            gpu_only=True,
        ),
        CheckSpec(
            "host_memory",
            1,
            "the host's memory: moving inversions and copies by the CPU",
            "memory:host",
            "20 s",
            "256 MiB",
            {"host_copy_gb_s": _GBS},
            cpu={"mib": 256},
            gpu={"mib": 4096},
            deadline_s=120.0,
            grave=True,
            exact=True,
            host=True,
        ),
        CheckSpec(
            "nvme_fio",
            1,
            "a drive that is slow or returns other bytes: fio writes with checksums, reads back and verifies",
            "storage:fio",
            "20 s; needs fio",
            "64 MiB of disk in the state directory",
            {"write_gb_s": _GBS, "read_gb_s": _GBS},
            cpu={"mib": 64},
            gpu={"mib": 1024},
            deadline_s=180.0,
            grave=True,
            exact=True,
            host=True,
        ),
        CheckSpec(
            "clock_sync",
            1,
            "a clock that runs fast, slow, backwards or in leaps: three clocks of the kernel against each other",
            "clock:sync",
            "2 s",
            "small",
            {"drift_ppm": Reading("ppm", higher=False), "max_error_ms": Reading("ms", higher=False, informative=True)},
            seconds=1.0,
            exact=True,
            host=True,
        ),
        CheckSpec(
            "allreduce",
            1,
            "NVLink, switches, network between ranks: sums over torch.distributed, exact, and their bus bandwidth",
            "collectives:allreduce",
            "30 s; needs PyTorch",
            "2 buffers a rank: 512 MiB on GPUs, 8 MiB on a CPU",
            {"bus_gb_s": _GBS},
            cpu={"mib": 4, "ranks": 2},
            gpu={"mib": 256, "ranks": 0},
            deadline_s=120.0,
            grave=True,
            exact=True,
            host=True,
        ),
        CheckSpec(
            "pipeline_sendrecv",
            2,
            "congestion and a slow rank: batches that ranks pass on in a row, exact, and whose work takes longest",
            "pipeline:sendrecv",
            "2 min; needs PyTorch",
            "3 batches and 2 matrices a rank: 224 MiB on GPUs, 4 MiB on a CPU",
            {"pipe_gb_s": _GBS, "slowest_rank_ratio": Reading("", higher=False, informative=True)},
            cpu={"mib": 1, "ranks": 3, "n": 128},
            gpu={"mib": 64, "ranks": 0, "n": 2048},
            deadline_s=120.0,
            grave=True,
            exact=True,
            host=True,
        ),
    )
}
