"""Every kind of fault that the laboratory plants."""

from bench.detection import codes, kernel_lines, states
from bench.detection.plants import Placed, Plant, placed


def of_the_kernel() -> tuple[Plant, ...]:
    """Faults that the kernel itself tells."""
    coded = (*codes.xids(), *codes.nvlink5(), *codes.sxids(), *codes.bursts())
    return (*coded, *kernel_lines.families())


def lines() -> tuple[Placed, ...]:
    """Faults that the kernel log shows, each where no other hides it; also forged ones."""
    return placed((*of_the_kernel(), *kernel_lines.userspace()))


def shown() -> tuple[states.State, ...]:
    """Faults that something else shows."""
    return states.states()


SOON = frozenset({"agent.lost", "kernel_log.overrun", "bmc.unreachable", "bmc.refused"})
"""Conditions of what else can be shown on the real path."""


def shown_soon() -> tuple[states.State, ...]:
    """Those of them that the real path shows within minutes, on a machine that is not the fault's own.

    An inventory is taken hourly and an event log read every quarter of an hour; clock, units, drives and crash records
    are the running system's; what recurs takes days.
    """
    others = (state for state in states.OTHERS if state.condition in SOON)
    return (*states.GPUS, *states.FILES, *states.CHECKS, *states.SENSORS, *others)
