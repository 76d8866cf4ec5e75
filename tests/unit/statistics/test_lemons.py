"""Lemon scores: exposure counts, few events prove little, and impossible counts are refused."""

import numpy as np
import pytest

from hostler.core.statistics.lemons import fit, score


def drawn(seed: int, lemons: int = 15, nodes: int = 1_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and exposures of a fleet in which 1.5 % of the nodes fail eight times as often."""
    rng = np.random.default_rng(seed)
    rate = np.full(nodes, 0.005)
    rate[:lemons] *= 8
    exposure = rng.uniform(30, 180, nodes)
    return rng.poisson(rate * exposure), exposure, np.arange(nodes) < lemons


def test_lemons_are_found_and_few_others_are() -> None:
    """Mutant: ranking by raw rates calls a node with one failure in its first week the worst of all."""
    right = wrong = total = 0
    for seed in range(10):
        counts, exposure, bad = drawn(seed)
        chosen = score(counts, exposure).lemons
        right, wrong, total = right + int((chosen & bad).sum()), wrong + int((chosen & ~bad).sum()), total + bad.sum()
    assert right >= 0.35 * total
    assert wrong <= 0.3 * (right + wrong)


def test_one_event_in_a_week_is_no_lemon() -> None:
    counts, exposure, _ = drawn(1)
    counts[500], exposure[500] = 1, 7.0
    found = score(counts, exposure)
    assert not found.lemons[500]
    assert found.rate[500] < 1 / 7.0 / 2


def test_the_same_count_in_less_time_is_worse() -> None:
    counts, exposure, _ = drawn(1)
    counts[500:502], exposure[500:502] = 5, (30.0, 180.0)
    found = score(counts, exposure)
    assert found.probability[500] > found.probability[501]


def test_an_equal_fleet_has_no_lemons() -> None:
    rng = np.random.default_rng(2)
    exposure = rng.uniform(30, 180, 2_000)
    assert score(rng.poisson(0.005 * exposure), exposure).lemons.sum() <= 2


def test_without_events_nobody_is_a_lemon() -> None:
    found = score(np.zeros(10, dtype=np.int64), np.ones(10))
    assert not found.lemons.any()


def test_without_exposure_a_unit_is_scored_by_the_prior() -> None:
    counts, exposure, _ = drawn(1)
    counts[500], exposure[500] = 0, 0.0
    found = score(counts, exposure)
    assert found.rate[500] == pytest.approx(found.prior.mean)
    assert not found.lemons[500]


@pytest.mark.parametrize(
    ("counts", "exposures"),
    [([-1], [1.0]), ([1], [-1.0]), ([1], [np.nan]), ([1], [np.inf]), ([1, 2], [1.0])],
    ids=["negative count", "negative exposure", "nan", "infinite", "shapes"],
)
def test_impossible_counts_are_refused(counts: list[int], exposures: list[float]) -> None:
    with pytest.raises(ValueError, match="counts"):
        score(np.array(counts), np.array(exposures))


def test_a_fleet_without_exposure_has_no_rate() -> None:
    with pytest.raises(ValueError, match="no unit has any exposure"):
        fit(np.zeros(3, dtype=np.int64), np.zeros(3))
