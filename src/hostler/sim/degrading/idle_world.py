"""A fleet that works, idles and degrades: a load is drawn for each node, checks run in the hours that it leaves idle.

Faults: steps, a drift, thermal paste that dries out, one flaky lane, and GPUs that compute wrong results. A rule sees
three readings a run, and whether the bits were those of peers.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hostler.core.statistics.medians import Flags, Floats, Whole

HOURS = 24
SILENT_PER_NODE_DAY = 6 / (2_048 * 54)
"""Llama 3 (Grattafiori et al. 2024, table 5): 6 of 419 unexpected interruptions in 54 days on 2,048 nodes."""
SILENT_UNSEEN = 0.6
"""Share of GPUs with silent corruption that synthetic checks never show ("over 60 % are missed")."""
DRIFT_DAYS, LANE_DAYS = 15.0, 20.0
PASTE_C_A_DAY, PASTE_MOST_C, THROTTLE_FROM_C, THROTTLE_A_C = 0.6, 15.0, 8.0, 0.006
"""Heat above ambient that dry paste adds, where throttling begins, and what each degree beyond costs of throughput."""


class Decline(StrEnum):
    """The ways in which a node goes bad."""

    step_1 = "step −1 %"
    step_2 = "step −2 %"
    step_4 = "step −4 %"
    drift = "drift to −4 %"
    paste = "thermal paste"
    lane = "one flaky lane"
    silent = "wrong bits"


@dataclass(frozen=True)
class IdleWorld:
    """How the fleet is drawn. `busy`: share of hours with customers' work, in stretches of `stretch_h` in the mean.

    Spread and noise are shares of a reading, as in `readings.ReadingWorld`; `heat_c` is the noise of a run's heat.
    """

    nodes: int = 1_000
    days: int = 60
    busy: float = 0.85
    stretch_h: float = 9.0
    spread: float = 0.01
    noise: float = 0.01
    heat_c: float = 1.0
    faulty: int = 20
    onset: tuple[int, int] = (10, 30)


@dataclass(frozen=True)
class IdleFleet:
    """Idle hours (n, days, 24), runs' readings there (NaN where busy), wrong bits of a run, faults and their days."""

    idle: Flags
    gemm: Floats
    heat: Floats
    link: Floats
    wrong: Flags
    fault: list[Decline | None]
    onset: Whole

    def of(self, fault: Decline | None) -> Flags:
        """Rows of this fault; None: of healthy nodes."""
        return np.array([one is fault for one in self.fault], dtype=np.bool_)


def draw(world: IdleWorld, seed: int) -> IdleFleet:
    """A fleet in which each fault has `faulty` nodes, and every other node is healthy."""
    rng = np.random.default_rng(seed)
    idle = _idle(rng, world)
    fault: list[Decline | None] = [None] * world.nodes
    chosen = rng.permutation(world.nodes)[: world.faulty * len(Decline)]
    for number, row in enumerate(chosen):
        fault[row] = list(Decline)[number // world.faulty]
    onset = rng.integers(*world.onset, world.nodes)
    since = np.arange(world.days)[None, :] - onset[:, None]
    rows = {one: np.array([f is one for f in fault]) for one in Decline}
    hot = np.where(rows[Decline.paste][:, None], np.clip(since * PASTE_C_A_DAY, 0, PASTE_MOST_C), 0.0)
    gemm = _run(rng, world, _slower(rows, since) - THROTTLE_A_C * np.clip(hot - THROTTLE_FROM_C, 0, None))
    link = _run(rng, world, np.zeros(since.shape)) * _lane(rng, rows[Decline.lane], since)
    level = 40 + rng.normal(0, 2, world.nodes)
    heat = (level[:, None] + hot)[..., None] + rng.normal(0, world.heat_c, idle.shape)
    wrong = _wrong(rng, world, rows[Decline.silent], since)
    gemm, link, heat = (np.where(idle, one, np.nan) for one in (gemm, link, heat))
    return IdleFleet(idle, gemm, heat, link, wrong & idle, fault, onset)


def _idle(rng: np.random.Generator, world: IdleWorld) -> Flags:
    """Hours without work: busy stretches and idle ones follow each other, exponential in length (two-state Markov)."""
    ends = 1 / world.stretch_h
    begins = ends * world.busy / (1 - world.busy)
    hours = np.zeros((world.nodes, world.days * HOURS), dtype=np.bool_)
    state = rng.random(world.nodes) < world.busy
    for hour in range(hours.shape[1]):
        flips = rng.random(world.nodes) < np.where(state, ends, begins)
        state = state ^ flips
        hours[:, hour] = ~state
    return hours.reshape(world.nodes, world.days, HOURS)


def _run(rng: np.random.Generator, world: IdleWorld, effect: Floats) -> Floats:
    level = rng.normal(0, world.spread, world.nodes)[:, None] + effect
    noise = rng.normal(0, world.noise, (*effect.shape, HOURS))
    return np.asarray(100.0 * np.exp(level[..., None] + noise))


def _slower(rows: dict[Decline, Flags], since: Whole) -> Floats:
    after = since >= 0
    found = np.zeros(since.shape)
    for fault, size in ((Decline.step_1, -0.01), (Decline.step_2, -0.02), (Decline.step_4, -0.04)):
        found += np.where(rows[fault][:, None] & after, np.log1p(size), 0.0)
    return found + np.where(rows[Decline.drift][:, None], np.log1p(-0.04) * np.clip(since / DRIFT_DAYS, 0, 1), 0.0)


def _lane(rng: np.random.Generator, rows: Flags, since: Whole) -> Floats:
    """A lane that fails in ever more runs, and then costs 6 % of the bandwidth."""
    share = np.where(rows[:, None], np.clip(0.2 + 0.5 * since / LANE_DAYS, 0, 0.7) * (since >= 0), 0.0)
    return np.where(rng.random((*since.shape, HOURS)) < share[..., None], 0.94, 1.0)


def _wrong(rng: np.random.Generator, world: IdleWorld, rows: Flags, since: Whole) -> Flags:
    """Runs whose bits differ: the chance is each GPU's own, from one run in a thousand to every second one."""
    chance = np.where(rng.random(world.nodes) < SILENT_UNSEEN, 0.0, 10 ** rng.uniform(-3, np.log10(0.5), world.nodes))
    here = np.where(rows[:, None] & (since >= 0), chance[:, None], 0.0)
    return np.asarray(rng.random((*since.shape, HOURS)) < here[..., None])
