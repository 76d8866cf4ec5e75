"""The clock by which an order is too old: nobody sets it, and it goes on while the machine sleeps."""

import time


def boottime() -> float:
    """Seconds since boot, suspended ones too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
