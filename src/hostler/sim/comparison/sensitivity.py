"""How much the answer depends on each constant: peers against ours with one constant at an end of its range."""

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from hostler.sim.comparison.comparison_run import FIGURES, Mean, Reports, Run, mean_of
from hostler.sim.constants import CONSTANTS, Constant
from hostler.sim.difficulty import Hardship, moved
from hostler.sim.peers.peer_table import OURS
from hostler.sim.pool_run import SimSettings

WATCHED = ("goodput", "human_touches")
"""Figures whose differences are told."""


class RangeEnd(Struct, frozen=True):
    """One end of one constant's range: our goodput there, and by peer and figure its difference to ours.

    `constant` "" with `value` 0 is the hard world as it is.
    """

    constant: str
    value: float
    goodput: Mean
    against_ours: dict[str, dict[str, Mean]]


def worlds(settings: SimSettings, seeds: int) -> dict[tuple[str, float], list[SimSettings]]:
    """(constant, value) → the worlds to run, one a seed; the first is the hard world as it is."""
    ends: list[tuple[str, float, Hardship]] = [("", 0.0, Hardship())]
    for constant in CONSTANTS.values():
        ends += [(constant.name, _value(constant, high), moved(constant, high=high)) for high in (False, True)]
    return {
        (name, value): [replace(settings, seed=seed, hardship=hard) for seed in range(1, seeds + 1)]
        for name, value, hard in ends
    }


def _value(constant: Constant, high: bool) -> float:
    return constant.high if high else constant.low


def runs(settings: SimSettings, seeds: int, peers: Sequence[str]) -> list[Run]:
    """Runs that the table needs."""
    names = (OURS.name, *peers)
    return [(world, name) for drawn in worlds(settings, seeds).values() for world in drawn for name in names]


def table(settings: SimSettings, seeds: int, peers: Sequence[str], reports: Reports) -> tuple[RangeEnd, ...]:
    """One row for each end of each constant whose runs are all there."""
    found: list[RangeEnd] = []
    for (name, value), drawn in worlds(settings, seeds).items():
        if any((world, one) not in reports for world in drawn for one in (OURS.name, *peers)):
            continue
        ours = [reports[world, OURS.name] for world in drawn]
        differences = {
            peer: {
                figure: mean_of(
                    [FIGURES[figure](reports[w, peer]) - FIGURES[figure](o) for w, o in zip(drawn, ours, strict=True)]
                )
                for figure in WATCHED
            }
            for peer in peers
        }
        found.append(RangeEnd(name, value, mean_of([report.goodput for report in ours]), differences))
    return tuple(found)


def spread(ends: Sequence[RangeEnd], peer: str) -> tuple[float, float]:
    """The least and the greatest difference in goodput over all ends, and so how far the answer moves."""
    differences = [end.against_ours[peer]["goodput"].mean for end in ends]
    return min(differences), max(differences)


def usual(ends: Sequence[RangeEnd]) -> float:
    """Hostler's goodput in the mean over all ends."""
    return fmean(end.goodput.mean for end in ends)
