"""Every peer in the same worlds: runs in several processes, figures as means with intervals, and paired differences."""

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean, stdev

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.sim.comparison.report_store import ReportStore
from hostler.sim.failure_rates import load
from hostler.sim.peers.peer_table import OURS, PEERS
from hostler.sim.pool_run import SimSettings, check, run
from hostler.sim.run_report import Minutes, RunReport

MAX_SEEDS, MAX_JOBS = 1000, 64
CONFIDENCE = 0.95

Figure = Callable[[RunReport], float]

FIGURES: dict[str, Figure] = {
    "goodput": lambda report: report.goodput,
    "minutes_per_failure": lambda report: report.unproductive_minutes_per_failure.total,
    "customer_disruptions": lambda report: report.customer_disruptions,
    "wrong_removals": lambda report: report.wrong_removals,
    "human_touches": lambda report: report.human_touches,
    "vendor_node_days": lambda report: report.vendor_node_days,
    "hours_to_full": lambda report: report.hours_to_full,
    "failures": lambda report: report.failures,
}
"""Figures to compare, from a run's report; each but goodput is better when it is smaller."""


class Mean(Struct, frozen=True):
    """A mean over seeds; the truth lies within `half` of it with 95 % confidence (Student's t). None of one seed."""

    mean: float
    half: float | None


class PeerResult(Struct, frozen=True):
    """One peer at one preset's rates. `against_ours`: its figure less ours in the same world, {} for ours.

    `checkpoint_share`: of all time, what the job stalls for writing checkpoints.
    """

    peer: str
    title: str
    figures: dict[str, Mean]
    against_ours: dict[str, Mean]
    minutes: Minutes
    minutes_by_fault: dict[str, float]
    failures: float
    violations: int
    checkpoint_share: float


class Trial(Struct, frozen=True):
    """The table, by name of the rates, and what it was made of."""

    nodes: int
    days: float
    seeds: int
    tables: dict[str, tuple[PeerResult, ...]]
    hard: bool = False


class ComparisonRequest(Struct, frozen=True):
    """Comparison to run: names of rates and peers ("hostler" is always among them), so many seeds from 1 on.

    `keep`: a directory for reports that are done, which are not run again; "" for none.
    """

    settings: SimSettings
    rates: tuple[str, ...]
    peers: tuple[str, ...]
    seeds: int
    jobs: int = 2
    keep: str = ""


Progress = Callable[[float], None]


def hold(asked: ComparisonRequest, progress: Progress | None = None) -> Trial:
    """Run everything. Raises InvalidInputError for an unknown name or a number out of range."""
    _check(asked)
    names = tuple(dict.fromkeys((OURS.name, *asked.peers)))
    worlds = {
        rates: [replace(asked.settings, rates=rates, seed=seed) for seed in range(1, asked.seeds + 1)]
        for rates in asked.rates
    }
    runs = [(world, name) for rates in asked.rates for world in worlds[rates] for name in names]
    reports = run_all(runs, asked.jobs, progress, ReportStore(Path(asked.keep)) if asked.keep else None)
    tables = {rates: _table(worlds[rates], names, reports) for rates in asked.rates}
    settings = asked.settings
    return Trial(settings.nodes, settings.days, asked.seeds, tables, hard=settings.hardship is not None)


def _check(asked: ComparisonRequest) -> None:
    check(asked.settings)
    problems = [
        Problem("peers", 0, f"no peer {name!r}", f"write some of {', '.join(PEERS)}")
        for name in asked.peers
        if name not in PEERS
    ]
    for what, value, most in (("seeds", asked.seeds, MAX_SEEDS), ("jobs", asked.jobs, MAX_JOBS)):
        if not 1 <= value <= most:
            problems.append(Problem(what, 0, f"{value} is out of range", f"give 1 to {most}"))
    if not asked.rates:
        problems.append(Problem("rates", 0, "none named", "name a preset or a file"))
    if problems:
        raise InvalidInputError(tuple(problems))
    for rates in asked.rates:
        load(rates)


Run = tuple[SimSettings, str]
Reports = dict[Run, RunReport]


def _one(one: Run) -> RunReport:
    settings, name = one
    return run(settings, peer=PEERS[name])


def run_all(runs: Sequence[Run], jobs: int, progress: Progress | None, store: ReportStore | None) -> Reports:
    """The reports of these runs, in several processes; those in the store are not run again."""
    found: Reports = {}
    if store is not None:
        found = {one: report for one in runs if (report := store.get(*one)) is not None}
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        waiting = {pool.submit(_one, one): one for one in runs if one not in found}
        for done in as_completed(waiting):
            found[waiting[done]] = report = done.result()
            if store is not None:
                store.put(*waiting[done], report)
            if progress is not None:
                progress(len(found) / len(runs))
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def _table(worlds: Sequence[SimSettings], names: Iterable[str], reports: Reports) -> tuple[PeerResult, ...]:
    ours = [reports[world, OURS.name] for world in worlds]
    if all(world.hardship is None for world in worlds):
        met = {name: [reports[world, name].failures for world in worlds] for name in names}
        assert all(failures == met[OURS.name] for failures in met.values()), "every peer meets the same faults"
    return tuple(_line(name, [reports[world, name] for world in worlds], ours) for name in names)


def _line(name: str, own: Sequence[RunReport], ours: Sequence[RunReport]) -> PeerResult:
    pairs = list(zip(own, ours, strict=True))
    differences = {
        figure: mean_of([read(report) - read(our) for report, our in pairs]) for figure, read in FIGURES.items()
    }
    minutes = [report.unproductive_minutes_per_failure for report in own]
    kinds = dict.fromkeys(kind for report in own for kind in report.minutes_by_fault)
    by_fault = {kind: fmean(report.minutes_by_fault.get(kind, 0.0) for report in own) for kind in kinds}
    return PeerResult(
        peer=name,
        title=PEERS[name].title,
        figures={figure: mean_of([read(report) for report in own]) for figure, read in FIGURES.items()},
        against_ours={} if name == OURS.name else differences,
        minutes=Minutes(*(round(fmean(getattr(m, part) for m in minutes), 3) for part in Minutes.__struct_fields__)),
        minutes_by_fault={kind: round(by_fault[kind], 3) for kind in sorted(kinds, key=lambda k: (-by_fault[k], k))},
        failures=round(fmean(report.failures for report in own), 1),
        violations=sum(report.violations for report in own),
        checkpoint_share=round(fmean(report.checkpoint_share for report in own), 5),
    )


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of independent values and the half width of its 95 % interval."""
    if len(values) < 2:
        return Mean(round(values[0], 5), None)
    half = student(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Mean(round(fmean(values), 5), round(half, 5))


_FEW = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


def student(freedom: int) -> float:
    """The two-sided 95 % quantile of Student's t: tabled up to 10 degrees of freedom, then by its expansion."""
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
