"""The host's clocks against each other: monotonic, raw (which nobody slews) and wall clock, with the kernel's state."""

import ctypes
import time

from hostler_checks.answers import Answer
from hostler_checks.device import UnableError
from hostler_checks.work import Work, median

WINDOWS, DRIFT_PPM = 4, 500.0
"""NTP slews a clock by 500 ppm at most."""
_UNSYNCHRONISED = 0x0040
_LONGS = 26
"""`struct timex` of Linux on 64 bits: 208 bytes; status is its sixth word's half, maxerror the fourth."""


def sync(work: Work) -> Answer:
    """Compare how far the clocks move in the same time, in parts per million: the middle of some windows counts.

    A single window that differs is a leap of the wall clock, not its speed: then nothing is said.
    """
    windows = [_window(work) for _ in range(WINDOWS)]
    faults = tuple(fault for _, fault in windows if fault)
    drifts = [drift for drift, fault in windows if not fault]
    if faults:
        return work.answer("three clocks", faults=faults)
    drift = median(drifts)
    if drift <= DRIFT_PPM < max(drifts):
        raise UnableError(f"the wall clock leapt during the check, by {max(drifts):.0f} ppm of a window")
    status, max_error_ms = _kernel_state()
    if status & _UNSYNCHRONISED and drift <= DRIFT_PPM:
        raise UnableError(f"nobody disciplines the clock (adjtimex: unsynchronised); its drift is {drift:.1f} ppm")
    return work.answer(f"three clocks, {WINDOWS} windows", {"drift_ppm": drift, "max_error_ms": max_error_ms})


def _window(work: Work) -> tuple[float, str]:
    """How far wall and monotonic clock move beside the raw one, in ppm, the larger; or what they do wrong."""
    first = _now()
    last = first[1]
    for _ in work.rounds(1 / WINDOWS):
        for _ in range(1000):
            now = time.monotonic_ns()
            if now < last:
                return 0.0, f"the monotonic clock went back by {last - now} ns"
            last = now
    wall, mono, raw = (after - before for before, after in zip(first, _now(), strict=True))
    mono = int(mono * (0.96 if work.plant == "slow_clock" else 1.0))
    if raw <= 0 or mono <= 0:
        return 0.0, f"a clock stood still: raw moved by {raw} ns, monotonic by {mono} ns"
    return max(abs(wall - raw), abs(mono - raw)) / raw * 1e6, ""


def _now() -> tuple[int, int, int]:
    """Wall, monotonic and raw clock in nanoseconds."""
    return time.time_ns(), time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def _kernel_state() -> tuple[int, float]:
    """Returns adjtimex's answer, asked without changing anything: status bits, and the largest error in ms."""
    words = (ctypes.c_long * _LONGS)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.adjtimex(ctypes.byref(words)) < 0:
        raise UnableError("the kernel does not tell its clock's state (adjtimex)")
    return int(words[5]) & 0xFFFF, words[3] / 1000.0
