"""Trends: which rule finds which drift, how many healthy nodes it flags, and how long 100,000 nodes take to be judged.

`python -m bench trends`: 1,000 nodes, 30 days, six runs a day, 20 seeds; 512 nodes tested in pairs; 100,000 nodes with
20 metrics judged for a day (from files: `trend_files`). Intervals are Wilson's, 95 %, over all nodes of all seeds.
"""

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hostler.core.statistics.drift import judge
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.medians import Floats, Whole
from hostler.core.statistics.pair_odds import PairTestRates
from hostler.core.statistics.pair_test_blame import RATES
from hostler.core.statistics.pairing import Pair, find_bad
from hostler.core.statistics.series import Cohort
from hostler.sim.degrading.readings import Degradation, ReadingWorld, draw
from hostler.sim.degrading.rules import RULES, Rule, ours

SEEDS = 20
WITHIN_DAYS, NEVER = 7, 99
NODES, METRICS = 100_000, 20
PAIRED, BAD, WRONG_FAIL, MISS, PAIRINGS = 512, 4, 0.01, 0.10, 4_000


@dataclass(frozen=True)
class Screening:
    """How many of the nodes are bad, how often tests answer wrongly, and what the screening assumes of them."""

    bad: int
    wrong_fail: float
    miss: float
    rates: PairTestRates = RATES


PASSES = {"one pass is enough": 2e-3, "two passes (what runs)": RATES.sound_odds, "three passes": 7e-5}
"""Odds at which a node is sound, by how many passes that takes."""
WORSE = {
    "16 bad": Screening(16, WRONG_FAIL, MISS),
    "4 bad, 3 % fail wrongly": Screening(BAD, 0.03, MISS),
    "4 bad, 20 % pass wrongly": Screening(BAD, WRONG_FAIL, 0.2),
    "4 bad of which each fails half of its tests": Screening(BAD, WRONG_FAIL, 0.5),
}
"""Two passes, as it runs, where the world is not as assumed."""


def main() -> str:
    """Print all tables."""
    load = os.getloadavg()[0]
    return "\n\n".join(
        (
            _rules(),
            _shift(),
            _budget(),
            _pairs(),
            _scale(),
            f"load {load:.1f} to {os.getloadavg()[0]:.1f}",
        )
    )


def _rules() -> str:
    head = [
        f"{fault.value} found in {WITHIN_DAYS} d / in all, days"
        for fault in Degradation
        if fault is not Degradation.none
    ]
    rows = [["rule", *head, "healthy flagged in 30 d"], ["---"] * (len(head) + 2)]
    rows += [[name, *_found(rule), _healthy(rule)] for name, rule in RULES.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _found(rule: Rule) -> list[str]:
    return [_recall(rule, fault) for fault in Degradation if fault is not Degradation.none]


def _recall(rule: Rule, fault: Degradation) -> str:
    delays: list[int] = []
    world = ReadingWorld(onset=(8, 15)) if fault is Degradation.drift else ReadingWorld()
    for seed in range(SEEDS):
        fleet = draw(world, fault, seed)
        late = rule(fleet.daily, fleet.stacks)[fleet.faulty] - fleet.onset[fleet.faulty]
        delays += [int(one) for one in np.where(late + fleet.onset[fleet.faulty] < world.days, late, NEVER)]
    known = [max(one, 0) for one in delays if one < NEVER]
    soon = sum(one <= WITHIN_DAYS for one in known)
    middle = f"{np.median(known):.0f}" if known else "–"
    return f"{share(soon, len(delays))} / {share(len(known), len(delays))}, {middle}"


def _healthy(rule: Rule) -> str:
    fleets = [draw(ReadingWorld(), Degradation.none, 1_000 + seed) for seed in range(SEEDS)]
    flags = [rule(fleet.daily, fleet.stacks) < fleet.daily.shape[1] for fleet in fleets]
    return share(sum(int(one.sum()) for one in flags), sum(len(one) for one in flags), percent=True)


def _shift() -> str:
    lines = []
    for name, rule in RULES.items():
        found = total = 0
        for seed in range(SEEDS):
            fleet = draw(ReadingWorld(), Degradation.none, 2_000 + seed, shift=-0.06)
            found += int((rule(fleet.daily, fleet.stacks) < 30).sum())
            total += len(fleet.daily)
        lines.append(f"driver change of -6 %: {name} flags {share(found, total, percent=True)} of healthy nodes")
    findings = [_judged_shift(seed) for seed in range(SEEDS)]
    nodes = sum(one[0] for one in findings)
    lines.append(
        f"ours: {sum(one[1] for one in findings)} findings on the change in {SEEDS} fleets; {nodes} nodes are flagged "
        "with it and not without it"
    )
    return "\n".join(lines)


def _judged_shift(seed: int) -> tuple[int, int]:
    """Nodes flagged with the change and not without it, and findings on the change."""
    budget = AlarmBudget()
    moved, calm = (draw(ReadingWorld(), Degradation.none, 2_000 + seed, shift=by) for by in (-0.06, 0.0))
    one, other = (judge(Cohort(fleet.daily, fleet.stacks), budget) for fleet in (moved, calm))
    return len({d.row for d in one.drifts} - {d.row for d in other.drifts}), len(one.shifts)


def _budget() -> str:
    """Twenty metrics of a node share its budget."""
    lines = []
    for monthly in (0.001, 0.003, 0.01):
        budget, flagged, count = AlarmBudget(monthly), 0, 0
        for seed in range(5):
            flags = np.zeros(1_000, dtype=bool)
            for metric in range(METRICS):
                fleet = draw(ReadingWorld(), Degradation.none, 10_000 + seed * 100 + metric)
                flags |= ours(fleet.daily, fleet.stacks, budget, METRICS) < 30
            flagged, count = flagged + int(flags.sum()), count + 1_000
        lines.append(
            f"budget {monthly:.1%} a month over {METRICS} metrics: {share(flagged, count, percent=True)} flagged"
        )
    lines.append(f"step_2 where {METRICS} metrics share 0.3 %: {_recall(_shared, Degradation.step_2)}")
    return "\n".join(lines)


def _shared(daily: Floats, stacks: Whole) -> Whole:
    return ours(daily, stacks, AlarmBudget(), METRICS)


def _pairs() -> str:
    """Recall beside tests: by how many passes a node needs, and where the tests answer worse than is assumed."""
    head = (
        "| screening | bad found | tests | rounds: mean, most | screenings that blame an innocent | unresolved nodes |"
    )
    lines = [f"pairs: {PAIRED} nodes, {PAIRINGS} screenings a row", "", head, "|---|---|---|---|---|---|"]
    for name, odds in PASSES.items():
        screening = Screening(BAD, WRONG_FAIL, MISS, PairTestRates(sound_odds=odds))
        lines.append(_screened(f"{BAD} bad, {name}", screening))
    lines += [_screened(name, screening) for name, screening in WORSE.items()]
    return "\n".join(lines)


def _screened(name: str, screening: Screening) -> str:
    rng = random.Random(1)
    tests, rounds, most, hit, wrong, open_ones = 0, 0, 0, 0, 0, 0
    for _ in range(PAIRINGS):
        bad = set(rng.sample(range(PAIRED), screening.bad))
        order = rng.sample(range(PAIRED), PAIRED)
        found = find_bad(order, partial(_round, rng, bad, screening), screening.rates)
        hit, wrong = hit + len(found.blamed & bad), wrong + bool(found.blamed - bad)
        tests, rounds, most = tests + found.tests, rounds + found.rounds, max(most, found.rounds)
        open_ones += len(found.unresolved)
    row = (
        name,
        share(hit, screening.bad * PAIRINGS),
        f"{tests / PAIRINGS:.0f}",
        f"{rounds / PAIRINGS:.1f}, {most}",
        f"{wrong}: {share(wrong, PAIRINGS, percent=True)}",
        f"{open_ones / PAIRINGS:.2f}",
    )
    return f"| {' | '.join(row)} |"


def _round(rng: random.Random, bad: set[int], screening: Screening, pairs: Sequence[Pair]) -> list[bool]:
    return [
        rng.random() < screening.miss if bad & set(pair) else rng.random() >= screening.wrong_fail for pair in pairs
    ]


def _scale() -> str:
    """Judge a day of a large fleet: 30 days of medians of each metric, four stacks, a rollout under way."""
    rng = np.random.default_rng(7)
    budget, began, flags, cpu = AlarmBudget(), 0.0, 0, 0.0
    stacks = np.repeat(rng.integers(0, 4, NODES)[:, None], 30, axis=1)
    stacks[: NODES // 4, 20:] = 4
    for _ in range(METRICS):
        daily = 100 * np.exp(rng.normal(0, 0.01, NODES)[:, None] + rng.normal(0, 0.0055, (NODES, 30)))
        start, worked = time.perf_counter(), time.process_time()
        flags += len(judge(Cohort(daily, stacks), budget, METRICS).drifts)
        began, cpu = began + time.perf_counter() - start, cpu + time.process_time() - worked
    return f"scale: {NODES:,} nodes x {METRICS} metrics in {began:.1f} s ({cpu:.1f} s of CPU), {flags} series flagged"


def share(count: int, of: int, *, percent: bool = False) -> str:
    """A share with Wilson's interval."""
    z, p = 1.96, count / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    if percent:
        return f"{100 * p:.2f} % [{100 * max(middle - half, 0):.2f}, {100 * (middle + half):.2f}]"
    return f"{p:.3f} [{max(middle - half, 0):.3f}, {min(middle + half, 1):.3f}]"
