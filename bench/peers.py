"""Writes docs/peers.md: peers and ours in plain and in hard worlds, and what the answer depends on. `make peers`.

Runs that are done are kept under their settings and the code that ran them, so it goes on where it was cut off.
"""

import argparse
import sys
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hostler.sim.comparison import page, sensitivity
from hostler.sim.comparison.comparison_run import ComparisonRequest, Reports, Run, Trial, hold, run_all
from hostler.sim.comparison.constant_ranges import ConstantSensitivity
from hostler.sim.comparison.report_store import ReportStore
from hostler.sim.difficulty import Hardship
from hostler.sim.peers.peer_table import PEERS
from hostler.sim.pool_run import SimSettings

UNFINISHED = 75
"""Exit status: the time was over first. Run it again (EX_TEMPFAIL)."""
FEW = 3
CHUNK = 8
"""Runs between two looks at the clock."""


class Plan(Struct, frozen=True):
    """Policies to compare, and over how many seeds."""

    settings: SimSettings
    peers: tuple[str, ...]
    seeds: int


PLAIN = Plan(SimSettings(nodes=256, days=54.0, rates="llama3"), tuple(PEERS), 10)
HARD = Plan(
    SimSettings(nodes=128, days=30.0, rates="rsc1", hardship=Hardship()),
    tuple(name for name in PEERS if name != "oracle"),
    20,
)
SENSITIVITY = Plan(SimSettings(nodes=128, days=30.0, rates="rsc1"), ("reset-or-reboot",), 2)


def main() -> int:
    """Run what is left as long as there is time, and write the page of whole seeds once there are two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/peers.md"))
    parser.add_argument("--keep", type=Path, default=Path("build/peers"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long; what is done is kept")
    asked = parser.parse_args()
    store = ReportStore(asked.keep)
    left = _run(store, asked.jobs, time.monotonic() + asked.minutes * 60)
    plain, hard = (_whole(plan, store) for plan in (PLAIN, HARD))
    if min(plain, hard) > 1:
        held = [_held(plan, seeds, asked.keep) for plan, seeds in ((PLAIN, plain), (HARD, hard))]
        asked.out.write_text(page.document(held[0], held[1], _sensitivity(store)), encoding="utf-8")
    if left:
        print(f"{left} runs are left: run it again", file=sys.stderr)
    return UNFINISHED if left else 0


def _run(store: ReportStore, jobs: int, until: float) -> int:
    """Run what is not kept yet, as long as there is time; how many are left."""
    waiting = [one for one in _wanted() if store.get(*one) is None]
    while waiting and time.monotonic() < until:
        run_all(waiting[:CHUNK], jobs, None, store)
        waiting = waiting[CHUNK:]
        print(f"{len(waiting)} runs to go", file=sys.stderr)
    return len(waiting)


def _wanted() -> list[Run]:
    """Seed by seed, so that what is done when the time is over are whole seeds; more plain ones come last."""
    few, many = range(1, FEW + 1), range(FEW + 1, max(PLAIN.seeds, HARD.seeds) + 1)
    first = [(plan, seed) for seed in few for plan in (HARD, PLAIN)] + [(HARD, seed) for seed in many]
    more = sensitivity.runs(SENSITIVITY.settings, SENSITIVITY.seeds, SENSITIVITY.peers)
    return [*_compared(first), *more, *_compared([(PLAIN, seed) for seed in many])]


def _compared(order: list[tuple[Plan, int]]) -> list[Run]:
    """The runs of whole seeds; what a plan has no seed of is left out."""
    worlds = [(plan, seed) for plan, seed in order if seed <= plan.seeds]
    return [(replace(plan.settings, seed=seed), name) for plan, seed in worlds for name in plan.peers]


def _whole(plan: Plan, store: ReportStore) -> int:
    """How many seeds from 1 on are there of every peer."""
    for seed in range(1, plan.seeds + 1):
        if any(store.get(replace(plan.settings, seed=seed), name) is None for name in plan.peers):
            return seed - 1
    return plan.seeds


def _held(plan: Plan, seeds: int, keep: Path) -> Trial:
    return hold(ComparisonRequest(plan.settings, (plan.settings.rates,), plan.peers, seeds, 1, str(keep)))


def _sensitivity(store: ReportStore) -> ConstantSensitivity:
    """The rows whose runs are all there."""
    kept = {
        one: store.get(*one) for one in sensitivity.runs(SENSITIVITY.settings, SENSITIVITY.seeds, SENSITIVITY.peers)
    }
    reports: Reports = {one: report for one, report in kept.items() if report is not None}
    ends = sensitivity.table(SENSITIVITY.settings, SENSITIVITY.seeds, SENSITIVITY.peers, reports)
    return ConstantSensitivity(SENSITIVITY.settings.nodes, SENSITIVITY.settings.days, SENSITIVITY.seeds, ends)


if __name__ == "__main__":
    raise SystemExit(main())
