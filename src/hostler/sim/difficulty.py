"""Difficulty of a world, as one value: the constants as they are or with one of them moved, and the job's terms."""

from msgspec import Struct
from msgspec.structs import replace

from hostler.sim.constants import CONSTANTS, Constant


def _used(name: str) -> float:
    return CONSTANTS[name].value


class Hardship(Struct, frozen=True):
    """A value for each constant. Field names are the names of `CONSTANTS`."""

    restart_s: float = _used("restart_s")
    write_s: float = _used("write_s")
    hang_s: float = _used("hang_s")
    notice_s: float = _used("notice_s")
    lemon_share: float = _used("lemon_share")
    lemon_failures: float = _used("lemon_failures")
    repeat_factor: float = _used("repeat_factor")
    burst_share: float = _used("burst_share")
    burst_hours: float = _used("burst_hours")
    firmware_factor: float = _used("firmware_factor")
    firmware_share: float = _used("firmware_share")
    idle_factor: float = _used("idle_factor")
    bad_spares: float = _used("bad_spares")
    nothing_found: float = _used("nothing_found")
    dead_on_arrival: float = _used("dead_on_arrival")
    vendor_days: float = _used("vendor_days")
    corruption_found: float = _used("corruption_found")
    corruption_hours: float = _used("corruption_hours")
    stragglers: float = _used("stragglers")
    slowdown: float = _used("slowdown")
    slow_hours: float = _used("slow_hours")
    slow_seen_hours: float = _used("slow_seen_hours")


def moved(constant: Constant, *, high: bool) -> Hardship:
    """The hard world with one constant at an end of its range."""
    return replace(Hardship(), **{constant.name: constant.high if high else constant.low})
