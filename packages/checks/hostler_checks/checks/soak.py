"""Load for longer: steady, to see heat and throttling; in square waves, to see supplies and regulators."""

import contextlib
import time
from pathlib import Path
from typing import Any

import numpy as np

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError
from hostler_checks.plants import STALL
from hostler_checks.work import Work, median

THERMAL_REASONS = {0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "power brake"}
"""NVML's clock event reasons that sound cooling and supplies never raise."""
QUARTER = 4
MOST_TAKEN = 0.1
"""Seconds that threads of a soak, together, may wait for a CPU in each second of it."""


def thermal(work: Work) -> Answer:
    """Run products for the whole time: their rate, how far it fades from the first to the last quarter, the heat."""
    n, times, waited_s = int(work.params["n"]), [], _waited_s()
    once = _product(work, n)
    once()
    for turn in work.rounds(least=QUARTER * 2):
        spent = work.timed(once)
        times.append(spent if work.plant != "stall" or turn >= QUARTER else spent / STALL)
    taken = 0.0 if work.device.is_cuda or work.plant else (_waited_s() - waited_s) / work.load_s
    if taken > MOST_TAKEN:
        raise UnableError(
            f"others had the CPU: threads waited {taken:.2g} s for each second of the load: a fade proves nothing"
        )
    quarter = len(times) // QUARTER
    first, last = median(times[:quarter]), median(times[-quarter:])
    readings = {"soak_tflops": 2 * n**3 / median(times) / 1e12, "fade_percent": (1 - first / last) * 100}
    heat, throttled = _gpu_heat(work) if work.device.is_cuda else (_hottest_c(), [])
    if heat:
        readings["hottest_c"] = heat
    return work.answer(f"{len(times)} products of {n} x {n} under steady load", readings, slowness=tuple(throttled))


def pulse(work: Work) -> Answer:
    """Work for half of each period and rest for the other; periods begin at whole multiples of the wall clock."""
    n, period_s = int(work.params["n"]), min(float(work.params["period_s"]), max(work.seconds, 0.2))
    once = _product(work, n)
    once()
    times: list[float] = []
    pulses = work.rounds(least=1)
    for _ in pulses:
        time.sleep(period_s - time.time() % period_s)
        began = time.monotonic()
        while time.monotonic() - began < period_s / 2:
            times.append(work.timed(once))
    readings = {"pulse_tflops": 2 * n**3 / median(times) / 1e12, "pulses": float(pulses.count)}
    return work.answer(f"{pulses.count} pulses of {period_s:g} s", readings)


def _product(work: Work, n: int) -> Any:
    rng = np.random.default_rng(3)
    dtype = "bf16" if work.device.torch is not None else "fp32"
    left, right = (work.device.put(rng.standard_normal((n, n), dtype=np.float32), dtype) for _ in "ab")
    return lambda: left @ right


def _waited_s() -> float:
    """Seconds that this process's threads were ready and had no CPU, summed; 0 where the kernel does not tell."""
    waited = 0.0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            waited += int(file.read_text("ascii").split()[1]) / 1e9
    return waited


def _hottest_c() -> float:
    """The hottest sensor of the host, 0 where none is told."""
    found = [0.0]
    for file in Path("/sys/class/hwmon").glob("hwmon*/temp*_input"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(file.read_text("ascii")) / 1000)
    return max(found)


def _gpu_heat(work: Work) -> tuple[float, list[str]]:
    """The GPU's temperature, and reasons for throttling while the load was on, where NVML's bindings are there."""
    try:
        import pynvml  # noqa: PLC0415 - where it is not there, heat is not read
    except ImportError:
        return 0.0, []
    try:
        pynvml.nvmlInit()
        properties = work.device.torch.cuda.get_device_properties(work.device.place)
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}")
        heat = pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
        reasons = int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except (AttributeError, pynvml.NVMLError):
        return 0.0, []
    return float(heat), [text for bit, text in THERMAL_REASONS.items() if reasons & bit]
