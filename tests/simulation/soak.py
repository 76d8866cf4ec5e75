"""The long run: many seeds, every cut of every story, and each law's planted bugs hunted. `make soak SEEDS=1000`.

Every fifth seed has a world with a rack's assets too. Beside the seeds that are always the same it runs the worlds that
once failed, and FRESH ones that nobody has run.
Each hunt begins at seed 0 and says how many it took; where the bug was caught is written down for the suite.
"""

import argparse
import sys
import time
from multiprocessing import get_context

import msgspec
from msgspec import Struct

from hostler.sim.checkers.way_out_laws import PROVED
from hostler.sim.fault_injection.scenario import worlds_of
from hostler.sim.hostile_worlds import WorldVerdict
from hostler.sim.soak import Cuts, Soak, cut, soak
from tests.simulation import caught
from tests.simulation.fresh import first_of_fresh
from tests.simulation.kept import keep, kept
from tests.simulation.mutants import MUTANTS, Catch, hunt

ENOUGH = 50
"""In so many worlds each limit has stopped somebody, or too little is drawn."""


class Hunt(Struct, frozen=True):
    """A mutant and what became of it."""

    law: int
    mutant: str
    catch: Catch | None


class Fresh(Struct, frozen=True):
    """Worlds that nobody had run before: the first of their seeds, and what they gave."""

    first: int
    soak: Soak


class Report(Struct, frozen=True):
    """Report of what the long run found. `kept`: the worlds that failed in an earlier run."""

    soak: Soak
    fresh: Fresh
    kept: Soak
    cuts: Cuts
    mutants: tuple[Hunt, ...]
    wall_s: float

    @property
    def sound(self) -> bool:
        broken = any(worlds.violations for worlds in (self.soak, self.fresh.soak, self.kept))
        unproven = self.soak.worlds >= ENOUGH and self.soak.unmet
        return not (broken or unproven or self.cuts.wrong or any(one.catch is None for one in self.mutants))


def main() -> int:
    """Exit status 1 where a law was broken, a cut story ended otherwise, or a planted bug was not noticed."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fresh", type=int, default=200, help="how many worlds that nobody has run before")
    parser.add_argument("--fresh-first", type=int, default=0, help="the first of their seeds; 0 draws it")
    parser.add_argument("--only", choices=("worlds", "fresh", "mutants"), help="nothing else: worlds are --seeds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    asked = parser.parse_args()
    if asked.only == "mutants":
        return _tell_mutants(_hunts(asked.jobs))
    seeds = range(asked.first, asked.first + asked.seeds)
    if asked.only == "worlds":
        return _tell_worlds(soak(worlds_of(seeds), asked.jobs, _tell), f"worlds from seed {asked.first}")
    fresh = _fresh(asked.fresh_first or first_of_fresh(), asked.fresh, asked.jobs)
    if asked.only == "fresh":
        return _tell_worlds(fresh.soak, f"fresh worlds from seed {fresh.first}")
    report = _run(seeds, fresh, asked.jobs)
    shown = msgspec.json.encode(report).decode() if asked.output == "json" else _table(report)
    sys.stdout.write(f"{shown}\n")
    return 0 if report.sound else 1


def _tell_mutants(hunts: tuple[Hunt, ...]) -> int:
    sys.stdout.write("\n".join(_of_mutants(hunts)) + "\n")
    return 1 if any(one.catch is None for one in hunts) else 0


def _tell_worlds(worlds: Soak, which: str) -> int:
    sys.stdout.write("\n".join(_of_worlds(worlds, which)) + "\n")
    return 1 if worlds.violations else 0


def _run(seeds: range, fresh: Fresh, jobs: int) -> Report:
    began = time.perf_counter()
    worlds = soak(worlds_of(seeds), jobs, _tell)
    known = soak((one.scenario for one in kept()), jobs, _tell)
    done = (cut(jobs), _hunts(jobs))
    return Report(worlds, fresh, known, *done, round(time.perf_counter() - began, 1))


def _fresh(first: int, count: int, jobs: int) -> Fresh:
    sys.stderr.write(f"{count} fresh worlds from seed {first}; the same again: --fresh {count} --fresh-first {first}\n")
    return Fresh(first, soak(worlds_of(range(first, first + count)), jobs, _keep))


def _tell(broken: WorldVerdict) -> None:
    sys.stderr.write(f"{broken}\n")


def _keep(broken: WorldVerdict) -> None:
    _tell(broken)
    sys.stderr.write(f"{keep(broken)}\n")


def _hunts(jobs: int) -> tuple[Hunt, ...]:
    with get_context("spawn").Pool(jobs) as pool:
        hunts = tuple(pool.imap(_hunt, range(len(MUTANTS))))
    caught.write({one.mutant: one.catch.seed for one in hunts if one.catch})
    return hunts


def _hunt(number: int) -> Hunt:
    mutant = MUTANTS[number]
    return Hunt(mutant.law, mutant.name, hunt(mutant))


def _of_worlds(worlds: Soak, which: str) -> list[str]:
    return [
        f"{worlds.violations} violations in {worlds.worlds} {which} of {worlds.node_years:.1f} node-years in all",
        f"{worlds.records:,} records, {worlds.takeovers:,} takeovers, {worlds.fenced:,} acts of the deposed fenced",
        *(f"\nseed {f.seed}: {f.violation}\nreplay: {f.replay}\n{f.story}" for f in worlds.failures),
    ]


def _of_fresh(fresh: Fresh) -> list[str]:
    lines = _of_worlds(fresh.soak, f"fresh worlds from seed {fresh.first}")
    return [*lines, "commit tests/simulation/kept_seeds.jsonl"] if fresh.soak.violations else lines


def _of_mutants(hunts: tuple[Hunt, ...]) -> list[str]:
    needed = (f"{one.law:>3}  {one.catch.tried if one.catch else 'NOT CAUGHT':>12}  {one.mutant}" for one in hunts)
    return ["\nlaw  seeds needed  mutant", *needed]


def _table(report: Report) -> str:
    worlds, cuts = report.soak, report.cuts
    lines = [
        *_of_worlds(worlds, "worlds"),
        *_of_worlds(report.kept, "worlds that failed once"),
        *_of_fresh(report.fresh),
        f"\nstories cut at every boundary: {len(cuts.wrong)} ended otherwise, of "
        + ", ".join(f"{count:,} by {kind}" for kind, count in cuts.runs.items()),
        *cuts.wrong[:10],
        "\ninjected faults",
        *(f"  {count:>8,}  {kind}" for kind, count in worlds.injected.items()),
        "\nlimits that stopped somebody",
        *(f"  {count:>8,}  {limit}" for limit, count in worlds.met.items() if limit not in PROVED),
        *(f"  {'NEVER MET':>9}  {limit}" for limit in worlds.unmet),
        f"\nways out of waits, tried in {worlds.worlds:,} worlds",
        *(f"  {worlds.met.get(kind, 0):>8,}  {kind}" for kind in PROVED),
        *_of_mutants(report.mutants),
        f"\n{report.wall_s:.0f} s",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
