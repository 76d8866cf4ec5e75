"""Hard floors and physical bounds of readings for each kind of device.

A floor is for catastrophes alone: about half of what sound devices of the SKU show (266 bf16 TFLOP/s on A100, 730 on
H100, 1,745 on B200; all-reduce 235 GB/s on A100, 440 on H100). A bound is the data sheet's peak, dense: a reading
beyond it is a broken test.
"""

from dataclasses import dataclass

INF = float("inf")


@dataclass(frozen=True)
class Limit:
    """Worst and best value that a reading may have; of a reading where less is better, `floor` is the larger."""

    floor: float
    bound: float


@dataclass(frozen=True)
class ReadingRule:
    """A reading's floor and bound by the SKU's pass rules; None is the table's."""

    floor: float | None = None
    bound: float | None = None

    def over(self, limit: Limit | None, *, higher: bool) -> Limit:
        """The limit under this rule: its floor takes the table's place, a bound only narrows what can be."""
        known = limit or Limit(0.0, INF if higher else 0.0)
        narrower = min if higher else max
        bound = known.bound if self.bound is None else narrower(known.bound, self.bound)
        return Limit(known.floor if self.floor is None else self.floor, bound)


_ANY: dict[str, Limit] = {
    "fade_percent": Limit(50.0, -INF),
    "launch_us": Limit(1_000.0, 0.005),
    "cycle_us": Limit(50_000.0, 0.1),
    "leaked_mib": Limit(64.0, -INF),
    "step_ms": Limit(10_000.0, 0.001),
    "model_step_ms": Limit(0.0, 0.001),
    "drift_ppm": Limit(500.0, 0.0),
    "write_gb_s": Limit(0.005, 60.0),
    "read_gb_s": Limit(0.005, 60.0),
    "host_copy_gb_s": Limit(0.1, 2_000.0),
}
"""NTP slews a clock by 500 ppm at most; 60 GB/s is four PCIe 5 lanes of four drives."""

_GPUS: tuple[tuple[str, dict[str, Limit]], ...] = tuple(
    (name, dict(zip(("half", "tf32", "memory", "pcie", "bus"), row, strict=True)))
    for name, *row in (
        ("A100", Limit(133, 312), Limit(60, 156), Limit(900, 2_039), Limit(11, 32), Limit(100, 600)),
        ("H100", Limit(365, 990), Limit(180, 495), Limit(1_500, 3_352), Limit(25, 64), Limit(200, 900)),
        ("H200", Limit(365, 990), Limit(180, 495), Limit(2_200, 4_800), Limit(25, 64), Limit(200, 900)),
        ("B200", Limit(870, 2_250), Limit(430, 1_125), Limit(3_600, 8_000), Limit(25, 128), Limit(200, 1_800)),
        ("", Limit(0, 10_000), Limit(0, 5_000), Limit(0, 30_000), Limit(0, 256), Limit(0, 3_600)),
    )
)
"""The last row is of any other GPU."""
_FP8_BOUNDS = {"H100": 1_979.0, "H200": 1_979.0, "B200": 4_500.0, "": 20_000.0}
"""Data sheets' peaks, dense. No floor: peers judge, for nobody has measured a sound one here."""
HOP_FLOOR_GB_S = 2.0
"""Under what a hop through the host's memory over PCIe 3 x8 (7.9 GB/s) leaves beside a batch's own work."""
_FAMILY = {
    "bf16_tflops": "half",
    "fp16_tflops": "half",
    "soak_tflops": "half",
    "pulse_tflops": "half",
    "fp8_tflops": "fp8",
    "tf32_tflops": "tf32",
    "fp32_tflops": "tf32",
    "copy_gb_s": "memory",
    "triad_gb_s": "memory",
    "h2d_gb_s": "pcie",
    "d2h_gb_s": "pcie",
    "bus_gb_s": "bus",
    "pipe_gb_s": "hop",
}
_CPU = {
    "memory": Limit(0.1, 2_000.0),
    "pcie": Limit(0.1, 2_000.0),
    "bus": Limit(0.005, 200.0),
    "hop": Limit(0.005, 200.0),
}
CORE_TFLOPS = 0.384
"""Peak of one core: two 512-bit fused multiply-adds a cycle are 64 fp32 operations, at 6 GHz."""


def limit_of(reading: str, device: str, cores: int) -> Limit | None:
    """The limit of a reading on a device ("cpu…" or a GPU's name); None where nobody set one.

    A floor of 0 is none: an unknown GPU is judged by its peers and its history alone.
    """
    if (anywhere := _ANY.get(reading)) is not None:
        return anywhere
    family = _FAMILY.get(reading)
    if family is None:
        return None
    if device.startswith("cpu"):
        peak = CORE_TFLOPS * max(1, cores)
        return _CPU.get(family) or Limit(0.001, peak)
    if family == "hop":
        return Limit(HOP_FLOOR_GB_S, next(row for name, row in _GPUS if name in device)["bus"].bound / 2)
    if family == "fp8":
        return Limit(0.0, next(bound for name, bound in _FP8_BOUNDS.items() if name in device))
    return next(row for name, row in _GPUS if name in device)[family]
