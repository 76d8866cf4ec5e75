"""Lemon scores: whose rate of trouble is high, where a few events of a short time prove little (Gamma–Poisson).

A unit is a node, or a part by its serial over all nodes that it has been in. Rates of the fleet are drawn from a Gamma
distribution, fitted to all units at once (their counts are then negative binomial); a unit's own events move it from
there as far as its exposure bears it.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from hostler.core.statistics.medians import Flags, Floats, Whole

WORSE = 2.0
"""A lemon's rate is at least so many times the fleet's."""
EVENTS_LEAST = 2
"""One event is an accident: a lemon has had two at least."""
INTERVAL = (0.05, 0.95)
"""The rate lies between these shares of its distribution: 90 %."""
MOST_SHAPE = 1e4
"""A prior as narrow as this says that all units are alike."""


@dataclass(frozen=True)
class RatePrior:
    """A Gamma distribution of rates over units: its shape, and its rate parameter in units of exposure."""

    shape: float
    exposure: float

    @property
    def mean(self) -> float:
        """Events a unit of exposure."""
        return self.shape / self.exposure


@dataclass(frozen=True)
class LemonScores:
    """For each unit: the shrunken `rate`, the `probability` that it is WORSE times the fleet's, and who is a lemon.

    `low` and `high`: the rate's interval of 90 %. `false_share`: the expected share of false ones among the units that
    are at least as likely.
    """

    prior: RatePrior
    rate: Floats
    low: Floats
    high: Floats
    probability: Floats
    false_share: Floats
    lemons: Flags


def fit(counts: Whole, exposures: Floats) -> RatePrior:
    """The prior under which all counts are likeliest. Raises ValueError for counts or exposures that cannot be.

    Units without exposure say nothing. Without any event the mean is that of half an event.
    """
    _check(counts, exposures)
    seen = exposures > 0
    k, t = counts[seen].astype(np.float64), exposures[seen]
    if not len(k):
        raise ValueError("no unit has any exposure: there is nothing to learn a rate from")
    mean = max(float(k.sum()), 0.5) / float(t.sum())

    def unlikely(log_shape: float) -> float:
        shape = np.exp(log_shape)
        return -float(np.sum(special.gammaln(k + shape) - special.gammaln(shape) + _logs(k, t * mean, shape)))

    best = optimize.minimize_scalar(unlikely, bounds=(np.log(1e-3), np.log(MOST_SHAPE)), method="bounded")
    shape = float(np.exp(best.x))
    return RatePrior(shape, shape / mean)


def score(counts: Whole, exposures: Floats, discovery_rate: float = 0.3, prior: RatePrior | None = None) -> LemonScores:
    """Score every unit; lemons are the most likely ones, as many as keep the expected share of false ones below.

    `discovery_rate`: that share. A unit without exposure is scored by the prior alone, and is no lemon; neither is one
    of fewer than EVENTS_LEAST events. Raises ValueError for counts or exposures that cannot be.
    """
    _check(counts, exposures)
    known = prior or fit(counts, exposures)
    shape, exposure = known.shape + counts, known.exposure + exposures
    probability = special.gammaincc(shape, WORSE * known.mean * exposure)
    order = np.argsort(-probability, kind="stable")
    wrong = np.empty(len(order))
    wrong[order] = np.cumsum(1 - probability[order]) / np.arange(1, len(order) + 1)
    low, high = (special.gammaincinv(shape, share) / exposure for share in INTERVAL)
    chosen = (wrong <= discovery_rate) & (counts >= EVENTS_LEAST) & (exposures > 0)
    return LemonScores(known, shape / exposure, low, high, probability, wrong, chosen)


def _logs(k: Floats, expected: Floats, shape: float) -> Floats:
    return np.asarray(shape * np.log(shape / (shape + expected)) + k * np.log(expected / (shape + expected)))


def _check(counts: Whole, exposures: Floats) -> None:
    if counts.shape != exposures.shape or counts.ndim != 1:
        raise ValueError(f"counts {counts.shape} and exposures {exposures.shape} must be one list of units")
    if (counts < 0).any() or not np.isfinite(exposures).all() or (exposures < 0).any():
        raise ValueError("counts and exposures must be 0 or more, and finite")
