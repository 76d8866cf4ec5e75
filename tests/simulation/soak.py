"""The long run: many seeds, every cut of every story, and each law's planted bugs hunted. `make soak SEEDS=1000`."""

import argparse
import sys
import time
from multiprocessing import get_context

import msgspec
from msgspec import Struct

from hostler.sim.soak import Cuts, Soak, cut, soak
from tests.simulation.mutants import MUTANTS, Catch, hunt


class Hunt(Struct, frozen=True):
    """A mutant and what became of it."""

    law: int
    mutant: str
    catch: Catch | None


class Report(Struct, frozen=True):
    """Everything that the long run found."""

    soak: Soak
    cuts: Cuts
    mutants: tuple[Hunt, ...]
    wall_s: float

    @property
    def sound(self) -> bool:
        return not (self.soak.violations or self.cuts.wrong or any(one.catch is None for one in self.mutants))


def main() -> int:
    """Exit status 1 where a law was broken, a cut story ended otherwise, or a planted bug was not noticed."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    asked = parser.parse_args()
    began = time.perf_counter()
    seeds = range(asked.first, asked.first + asked.seeds)
    worlds = soak(seeds, asked.jobs, lambda broken: sys.stderr.write(f"{broken}\n"))
    report = Report(worlds, cut(asked.jobs), _hunts(asked.jobs), round(time.perf_counter() - began, 1))
    shown = msgspec.json.encode(report).decode() if asked.output == "json" else _table(report)
    sys.stdout.write(f"{shown}\n")
    return 0 if report.sound else 1


def _hunts(jobs: int) -> tuple[Hunt, ...]:
    with get_context("spawn").Pool(jobs) as pool:
        return tuple(pool.imap(_hunt, range(len(MUTANTS))))


def _hunt(number: int) -> Hunt:
    mutant = MUTANTS[number]
    return Hunt(mutant.law, mutant.name, hunt(mutant))


def _table(report: Report) -> str:
    worlds, cuts = report.soak, report.cuts
    lines = [
        f"{worlds.violations} violations in {worlds.worlds} worlds of {worlds.node_years:.1f} node-years in all",
        f"{worlds.records:,} records, {worlds.takeovers:,} takeovers, {worlds.fenced:,} acts of the deposed fenced",
        *(f"\nseed {f.seed}: {f.violation}\nreplay: {f.replay}\n{f.story}" for f in worlds.failures),
        f"\nstories cut at every boundary: {len(cuts.wrong)} ended otherwise, of "
        + ", ".join(f"{count:,} by {kind}" for kind, count in cuts.runs.items()),
        *cuts.wrong[:10],
        "\ninjected faults",
        *(f"  {count:>8,}  {kind}" for kind, count in worlds.injected.items()),
        "\nlaw  seeds needed  mutant",
        *(f"{h.law:>3}  {h.catch.tried if h.catch else 'NOT CAUGHT':>12}  {h.mutant}" for h in report.mutants),
        f"\n{report.wall_s:.0f} s",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
