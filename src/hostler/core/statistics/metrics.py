"""The metrics whose trends are judged: which way is worse, on which scale, and from which change on a node fails."""

from dataclasses import dataclass

from hostler.core.statistics.series import Scale


@dataclass(frozen=True)
class Metric:
    """How one reading is judged. `floor`: change since the own baseline at which it counts as failed, None for none.

    A share for ratios (-0.05: the fixed limit of most sites), the metric's unit for differences. `at_equal`: conditions
    whose common effect is taken off before peers are compared, in this order.
    """

    higher_is_better: bool = True
    scale: Scale = Scale.ratio
    floor: float | None = -0.05
    at_equal: tuple[str, ...] = ()


_SLOWER, _LONGER = Metric(), Metric(higher_is_better=False, floor=0.10)
_ERRORS = Metric(higher_is_better=False, scale=Scale.count, floor=None)

METRICS: dict[str, Metric] = {
    **dict.fromkeys((f"gemm_perf.{dtype}_tflops" for dtype in ("fp32", "tf32", "fp16", "bf16", "fp8")), _SLOWER),
    "train_replay.step_ms": _LONGER,
    "hbm_bandwidth.copy_gb_s": _SLOWER,
    "hbm_bandwidth.triad_gb_s": _SLOWER,
    "pcie_bandwidth.h2d_gb_s": _SLOWER,
    "pcie_bandwidth.d2h_gb_s": _SLOWER,
    "thermal_soak.soak_tflops": _SLOWER,
    "thermal_soak.fade_percent": Metric(higher_is_better=False, scale=Scale.difference, floor=5.0),
    "thermal_soak.hottest_c": Metric(higher_is_better=False, scale=Scale.difference, floor=10.0),
    "power_pulse.pulse_tflops": _SLOWER,
    "launch_latency.launch_us": _LONGER,
    "alloc_cycle.cycle_us": _LONGER,
    "host_memory.host_copy_gb_s": _SLOWER,
    "nvme_fio.write_gb_s": _SLOWER,
    "nvme_fio.read_gb_s": _SLOWER,
    "allreduce.bus_gb_s": _SLOWER,
    "pipeline_sendrecv.pipe_gb_s": _SLOWER,
    "gpu.over_ambient_c": Metric(False, Scale.difference, 10.0, ("power_w",)),
    "gpu.temperature_c": Metric(False, Scale.difference, 10.0, ("power_w",)),
    "gpu.ecc_corrected": _ERRORS,
    "memory.ecc_corrected": _ERRORS,
    "link.errors": _ERRORS,
    "fan.effort_percent": Metric(False, Scale.difference, 20.0, ("ambient_c", "power_w")),
    "fan.speed_rpm": Metric(False, Scale.ratio, 0.25, ("ambient_c", "power_w")),
}
"""By check and reading, as the suite names them (`hostler-check list`), and of passive series."""
