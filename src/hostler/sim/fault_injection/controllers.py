"""Injects faults of controllers: they die at any boundary, fail to commit, pause and resume, and their clocks leap."""

from datetime import timedelta
from functools import partial
from random import Random

from hostler.sim.fault_injection.injection import Act, InjectionContext
from hostler.sim.world.message_faults import (
    APPEND,
    BOUNDARIES,
    CRASH,
    FAIL,
    MESSAGE_TROUBLES,
    PAUSE,
    ControllerInterruption,
)

HOUR_S = 3600.0
GAP_S = 7 * HOUR_S
LEAPS_S = (-3 * HOUR_S, -90.0, 90.0, 3 * HOUR_S, 365 * 86_400.0, -365 * 86_400.0)


def crash(injection: InjectionContext, _node: str, chance: Random) -> None:
    """Crash the controller at the next boundary of some kind; mostly another is there within minutes."""
    down_s = chance.uniform(5, 120) if chance.random() < 0.85 else chance.uniform(HOUR_S, 4 * HOUR_S)
    injection.troubles.blows.append(ControllerInterruption(CRASH, chance.choice(BOUNDARIES), down_s))


def gap(injection: InjectionContext, _node: str, chance: Random) -> None:
    """Leave the cell without a controller for seven hours."""
    injection.troubles.blows.append(ControllerInterruption(CRASH, chance.choice(BOUNDARIES), GAP_S))


def commit_fails(injection: InjectionContext, _node: str, chance: Random) -> None:
    """The journal cannot be written for once."""
    injection.troubles.blows.append(ControllerInterruption(FAIL, APPEND, chance.uniform(0.2, 30)))


def stands_still(injection: InjectionContext, _node: str, chance: Random) -> None:
    """SIGSTOP: for less than the lease, or for so long that another takes over, before it wakes."""
    asleep_s = chance.choice((chance.uniform(0.1, 4.9), chance.uniform(5.6, 20.0), chance.uniform(60.0, 900.0)))
    injection.troubles.blows.append(ControllerInterruption(PAUSE, chance.choice(BOUNDARIES), asleep_s))


def clock_leaps(injection: InjectionContext, _node: str, chance: Random) -> None:
    """The wall clock of all controllers leaps, and after a while is set right."""
    injection.drive.set_clock(timedelta(seconds=chance.choice(LEAPS_S)))
    injection.lasts(chance.uniform(60, 2 * HOUR_S), lambda: injection.drive.set_clock(timedelta(0)))


def _blows(trouble: str, injection: InjectionContext, _node: str, _chance: Random) -> None:
    injection.troubles.message_troubles[trouble] = None


MESSAGE_FAULTS: dict[str, Act] = {f"message_{trouble}": partial(_blows, trouble) for trouble in MESSAGE_TROUBLES}
