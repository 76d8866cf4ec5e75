"""Draws the readings of a fleet's checks: levels, noise, heat, missed runs, outliers, and faults that set in."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hostler.core.statistics.medians import Flags, Floats, Whole


class Degradation(StrEnum):
    """The ways in which a node's throughput degrades."""

    none = "none"
    step_1 = "step_1"
    step_2 = "step_2"
    step_4 = "step_4"
    drift = "drift"


SIZE = {Degradation.step_1: -0.01, Degradation.step_2: -0.02, Degradation.step_4: -0.04, Degradation.drift: -0.04}
DRIFT_DAYS = 15.0


@dataclass(frozen=True)
class ReadingWorld:
    """A fleet's readings. The spread between nodes and the noise of a run are shares of a reading.

    1 % each give the reference table's own figures for a fixed limit of −5 % (`.02` and `.49`). `missed`: share of
    slots in which the node was not idle. `outliers`: share of runs that something else on the node slowed by up to
    15 %. `swing`: the week's heat moves every reading by so much, and nodes by a third more or less. `wander`: standard
    deviation of a node's own slow wandering (a week's memory).
    """

    nodes: int = 1_000
    days: int = 30
    runs_a_day: int = 6
    spread: float = 0.01
    noise: float = 0.01
    missed: float = 0.15
    outliers: float = 0.01
    swing: float = 0.003
    wander: float = 0.001
    faulty: int = 50
    onset: tuple[int, int] = (8, 23)


@dataclass(frozen=True)
class FleetReadings:
    """Readings of every run (n, days, runs), the stack of each day (n, days), which nodes are faulty and since when."""

    runs: Floats
    stacks: Whole
    faulty: Flags
    onset: Whole

    @property
    def daily(self) -> Floats:
        """The median of each day's runs (n, days), NaN where none ran."""
        ordered = np.sort(self.runs, axis=2)
        count = np.count_nonzero(~np.isnan(self.runs), axis=2)
        low = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0)[..., None], axis=2)[..., 0]
        high = np.take_along_axis(ordered, np.minimum(count // 2, ordered.shape[2] - 1)[..., None], axis=2)[..., 0]
        return np.where(count > 0, (low + high) / 2, np.nan)


def draw(
    world: ReadingWorld, fault: Degradation, seed: int, *, shift: float = 0.0, shift_day: int = 15
) -> FleetReadings:
    """A fleet of which `world.faulty` nodes get the fault. `shift`: a new driver moves everybody so much on a day."""
    rng = np.random.default_rng(seed)
    size = (world.nodes, world.days)
    day = np.arange(world.days)
    faulty = np.zeros(world.nodes, dtype=np.bool_)
    if fault is not Degradation.none:
        faulty[rng.choice(world.nodes, world.faulty, replace=False)] = True
    onset = rng.integers(*world.onset, world.nodes)
    level = rng.normal(0, world.spread, world.nodes)[:, None] + _wander(rng, size, world.wander)
    heat = world.swing * np.sin(2 * np.pi * day / 7)[None, :] * (1 + rng.normal(0, 1 / 3, world.nodes))[:, None]
    level += heat + np.where(faulty[:, None], _effect(fault, day[None, :] - onset[:, None]), 0.0)
    level += np.where(day >= shift_day, np.log1p(shift), 0.0)
    runs = level[..., None] + rng.normal(0, world.noise, (*size, world.runs_a_day))
    slowed = rng.random(runs.shape) < world.outliers
    runs -= np.where(slowed, rng.uniform(0.03, 0.15, runs.shape), 0.0)
    runs = np.where(rng.random(runs.shape) < world.missed, np.nan, 100.0 * np.exp(runs))
    stacks = np.broadcast_to(np.where(shift and day >= shift_day, 1, 0), size).astype(np.int64)
    return FleetReadings(runs, stacks, faulty, onset)


def _effect(fault: Degradation, since: Whole) -> Floats:
    if fault is Degradation.none:
        return np.zeros(since.shape)
    full = np.log1p(SIZE[fault])
    share = np.clip(since / DRIFT_DAYS, 0, 1) if fault is Degradation.drift else np.ones(since.shape)
    return np.where(since >= 0, full * share, 0.0)


def _wander(rng: np.random.Generator, size: tuple[int, int], deviation: float) -> Floats:
    """An autoregressive wandering with a memory of a week."""
    memory = np.exp(-1 / 7)
    found = np.zeros(size)
    found[:, 0] = rng.normal(0, deviation, size[0])
    for day in range(1, size[1]):
        found[:, day] = memory * found[:, day - 1] + rng.normal(0, deviation * np.sqrt(1 - memory**2), size[0])
    return found
