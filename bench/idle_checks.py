"""Idle checks: how long nodes that degrade stay in service beside other ways to look after a fleet.

`python -m bench idle_checks`: 1,000 nodes, 60 days, 85 % busy, 20 nodes of each fault, several seeds. Time to
removal is the middle of the days between a fault's beginning and its node's removal; who was not removed counts as
the rest of the 60 days. GPU-hours are busy hours of eight GPUs on bad nodes. `BENCH_SEEDS=1` for a smaller run.
"""

import os
from collections.abc import Callable

import numpy as np

from hostler.core.statistics.medians import Flags
from hostler.sim.degrading.idle_world import SILENT_PER_NODE_DAY, Decline, IdleFleet, IdleWorld, draw
from hostler.sim.degrading.sites import SITES, Removals

SEEDS = int(os.environ.get("BENCH_SEEDS", "5"))
GPUS = 8


def main() -> str:
    """Print the table, and its sensitivity to the load."""
    tables = [f"busy {busy:.0%}\n{_table(IdleWorld(busy=busy))}" for busy in (0.85, 0.95)]
    a_year = SILENT_PER_NODE_DAY * 1_000 * 365
    return "\n\n".join((*tables, f"wrong bits at the published incidence: {a_year:.0f} of 1,000 nodes a year"))


def _table(world: IdleWorld) -> str:
    fleets = [draw(world, seed) for seed in range(SEEDS)]
    head = [
        *(f"{fault.value}: removed, days" for fault in Decline),
        "GPU-hours on a bad node",
        "healthy flagged",
        "idle time",
    ]
    rows = [["site", *head], ["---"] * (len(head) + 1)]
    rows += [[name, *_row(world, [(fleet, site(fleet)) for fleet in fleets])] for name, site in SITES.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


Seen = list[tuple[IdleFleet, Removals]]


def _row(world: IdleWorld, seen: Seen) -> list[str]:
    told = [_removed(world, seen, fault) for fault in Decline]
    hours = np.concatenate([_bad_hours(fleet, removed) for fleet, removed in seen])
    healthy = _each(seen, lambda fleet, removed: (removed.day < world.days)[fleet.of(None)])
    idle = sum(removed.spent_min for _, removed in seen) / (60 * sum(int(fleet.idle.sum()) for fleet, _ in seen))
    return [*told, f"{hours.mean():,.0f}", f"{100 * healthy.mean():.2f} %", f"{100 * idle:.1f} %"]


def _removed(world: IdleWorld, seen: Seen, fault: Decline) -> str:
    """Share removed after its fault began, and the middle of the days."""
    late = np.concatenate([(removed.day - fleet.onset)[fleet.of(fault)] for fleet, removed in seen])
    never = np.concatenate([(removed.day >= world.days)[fleet.of(fault)] for fleet, removed in seen])
    middle = np.median(np.maximum(late, 0))
    return f"{1 - never.mean():.2f}, {'–' if never.mean() > 0.5 else f'{middle:.0f}'}"


def _bad_hours(fleet: IdleFleet, removed: Removals) -> np.ndarray:
    """Busy GPU-hours between a fault's beginning and removal, of each bad node."""
    days = np.arange(fleet.idle.shape[1])
    bad = ~fleet.of(None)
    there = (days[None, :] >= fleet.onset[:, None]) & (days[None, :] < removed.day[:, None])
    return np.asarray(GPUS * ((~fleet.idle).sum(axis=2) * there).sum(axis=1)[bad])


def _each(seen: Seen, of: Callable[[IdleFleet, Removals], Flags]) -> Flags:
    return np.concatenate([of(fleet, removed) for fleet, removed in seen])
