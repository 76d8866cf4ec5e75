"""The suite's profiles and readings as far as a SKU's pass rules may name them.

The suite (`hostler-checks`) is a distribution of its own, which the core does not import; that the two say the same is
held by a test.
"""

from dataclasses import dataclass

INF = float("inf")


@dataclass(frozen=True)
class StageChecks:
    """A stage: its share of the hours (0: it runs once), and its checks with whether each is required."""

    share: float
    checks: dict[str, bool]


@dataclass(frozen=True)
class ProfileRow:
    """A profile. `most_hours` leaves room in the step's own limit for what makes no load."""

    stages: dict[str, StageChecks]
    most_hours: float

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of its checks, each once."""
        return tuple(dict.fromkeys(name for stage in self.stages.values() for name in stage.checks))


def _stage(share: float, required: str, optional: str = "") -> StageChecks:
    return StageChecks(share, dict.fromkeys(required.split(), True) | dict.fromkeys(optional.split(), False))


_WAYS = "allreduce pipeline_sendrecv"
PROFILES: dict[str, ProfileRow] = {
    "burn_in": ProfileRow(
        {
            "first_look": _stage(0, "gemm_abft hbm_pattern host_memory alloc_cycle", "nvme_fio clock_sync"),
            "bits": _stage(0.3, "gemm_abft hbm_pattern", "gemm_golden train_replay"),
            "heat": _stage(0.4, "thermal_soak gemm_abft"),
            "pulse": _stage(0.1, "power_pulse gemm_abft"),
            "links": _stage(
                0.2, "gemm_perf hbm_bandwidth pcie_bandwidth launch_latency host_memory", f"gemm_fp8 {_WAYS}"
            ),
        },
        most_hours=40.0,
    ),
    "suspect": ProfileRow(
        {
            "bits": _stage(0.5, "gemm_abft hbm_pattern host_memory", "gemm_golden train_replay"),
            "stress": _stage(0.4, "thermal_soak power_pulse gemm_abft"),
            "links": _stage(0.1, "gemm_perf hbm_bandwidth pcie_bandwidth alloc_cycle", f"gemm_fp8 nvme_fio {_WAYS}"),
        },
        most_hours=3.0,
    ),
}
"""The agent ends a burn-in after 47 hours and a suspect profile after 3.75, whatever the load."""

READINGS: dict[str, tuple[str, ...]] = {
    "gemm_perf": ("fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops"),
    "gemm_fp8": ("fp8_tflops",),
    "train_replay": ("step_ms",),
    "hbm_bandwidth": ("copy_gb_s", "triad_gb_s"),
    "pcie_bandwidth": ("h2d_gb_s", "d2h_gb_s"),
    "thermal_soak": ("soak_tflops", "fade_percent"),
    "power_pulse": ("pulse_tflops",),
    "launch_latency": ("launch_us",),
    "alloc_cycle": ("cycle_us", "leaked_mib"),
    "host_memory": ("host_copy_gb_s",),
    "nvme_fio": ("write_gb_s", "read_gb_s"),
    "clock_sync": ("drift_ppm",),
    "allreduce": ("bus_gb_s",),
    "pipeline_sendrecv": ("pipe_gb_s",),
}
"""Readings that are judged; of `gemm_abft`, `gemm_golden` and `hbm_pattern` none is."""
LOWER = frozenset({"step_ms", "fade_percent", "launch_us", "cycle_us", "leaked_mib", "drift_ppm"})
"""Readings where less is better: their floor is the larger, their bound the least that can be."""

_BOUNDS: dict[str, float] = {
    "fade_percent": -INF,
    "launch_us": 0.005,
    "cycle_us": 0.1,
    "leaked_mib": -INF,
    "step_ms": 0.001,
    "drift_ppm": 0.0,
    "write_gb_s": 60.0,
    "read_gb_s": 60.0,
    "host_copy_gb_s": 2_000.0,
}
_COLUMNS = ("half", "tf32", "memory", "pcie", "bus", "fp8")
_GPU_BOUNDS: dict[str, tuple[float, ...]] = {
    "A100": (312, 156, 2_039, 32, 600, 20_000),
    "H100": (990, 495, 3_352, 64, 900, 1_979),
    "H200": (990, 495, 4_800, 64, 900, 1_979),
    "B200": (2_250, 1_125, 8_000, 128, 1_800, 4_500),
    "": (10_000, 5_000, 30_000, 256, 3_600, 20_000),
}
"""Data sheets' peaks; the last row is of any other GPU."""
_FAMILY = {
    **dict.fromkeys(("bf16_tflops", "fp16_tflops", "soak_tflops", "pulse_tflops"), "half"),
    **dict.fromkeys(("tf32_tflops", "fp32_tflops"), "tf32"),
    **dict.fromkeys(("copy_gb_s", "triad_gb_s"), "memory"),
    **dict.fromkeys(("h2d_gb_s", "d2h_gb_s"), "pcie"),
    "fp8_tflops": "fp8",
    "bus_gb_s": "bus",
    "pipe_gb_s": "bus",
}


def bound_of(reading: str, gpu_model: str) -> float:
    """The best value that the reading can have on a GPU whose name contains the model's word."""
    if reading in _BOUNDS:
        return _BOUNDS[reading]
    row = next(bounds for name, bounds in _GPU_BOUNDS.items() if name in gpu_model)
    bound = row[_COLUMNS.index(_FAMILY[reading])]
    return bound / 2 if reading == "pipe_gb_s" else bound
