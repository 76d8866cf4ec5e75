"""Faults that tests plant, so that each check is seen to fail: what each does, and to whom.

A planted run is refused unless PERMISSION is set, its results say what was planted, and nobody learns from them.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

PERMISSION = "HOSTLER_CHECKS_PLANT_FAULTS"
FOREVER_S, FLOOD_BYTES = 3600.0, 1 << 30
STALL = 1e6
"""How much longer a stalled work takes: beyond each floor on the fastest CPU, whose step may be under a millisecond."""

IN_CHECKS: dict[str, str] = {
    "bit_flip": "one bit of each result is changed",
    "flaky_bit": "one bit of a repeated result is changed",
    "stall": "the work takes a million times as long by the clock",
    "slow_clock": "clocks are 4 % slow",
    "slow_link": "transfers take a thousand times as long by the clock",
    "above_bound": "the work takes a millionth of its time by the clock",
    "nan": "each reading is NaN",
    "negative": "each reading is negative",
}
IN_CHILDREN: dict[str, str] = {
    "hang": "the child never ends",
    "crash": "the child is ended by a signal",
    "lying_exit": "the answer says all is well, the exit code does not",
    "garbage": "the answer is no JSON",
    "flood": "the child prints a gigabyte",
    "silent": "the child ends well and says nothing",
}
PLANTS = {**IN_CHECKS, **IN_CHILDREN}
_LINKS = frozenset({"pcie_bandwidth", "allreduce", "pipeline_sendrecv", "nvme_fio", "meeting"})


def permitted() -> bool:
    """Whether this process may plant faults: tests say so in the environment."""
    return os.environ.get(PERMISSION) == "1"


def clock_factor(plant: str, check: str) -> float:
    """Ratio of the time that a check reads to the time that passed."""
    if plant == "slow_link":
        return 1_000.0 if check in _LINKS else 1.0
    return {"stall": STALL, "slow_clock": 1 / 0.96, "above_bound": 1e-6}.get(plant, 1.0)


def spoil(plant: str, readings: dict[str, float]) -> dict[str, float]:
    """Readings as the plant has them."""
    if plant == "nan":
        return dict.fromkeys(readings, float("nan"))
    if plant == "negative":
        return {name: -abs(value) - 1.0 for name, value in readings.items()}
    return readings


def misbehave(plant: str, answer: Callable[[bytes], None]) -> None:
    """Do in the child, before any work, what a plant of IN_CHILDREN says."""
    match plant:
        case "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(FOREVER_S)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "garbage":
            answer(b"\x00\xff{]" * 1000)
            sys.exit(0)
        case "flood":
            block = b"x" * (1 << 20)
            for _ in range(FLOOD_BYTES >> 20):
                os.write(1, block)
        case "silent":
            sys.exit(0)
        case _:
            pass
