"""Screening in pairs: bad nodes found, innocents left alone, answers that say nothing blame nobody."""

import random
from collections.abc import Sequence
from math import exp

import pytest

from hostler.core.statistics.pair_odds import PairTestRates
from hostler.core.statistics.pair_test_blame import NOTHING_MOST
from hostler.core.statistics.pairing import ROUNDS_MOST, Pair, RunPairs, find_bad


def exact(bad: set[int]) -> object:
    return lambda pairs: [not (bad & set(pair)) for pair in pairs]


def test_with_exact_tests_exactly_the_bad_are_blamed() -> None:
    found = find_bad(range(64), exact({3, 40}))  # type: ignore[arg-type]
    assert found.blamed == {3, 40}
    assert not found.unresolved
    assert (found.tests, found.rounds) == (32 + 32 + 8, 4)


def test_an_odd_one_out_is_tested_beside_a_witness() -> None:
    assert find_bad(range(9), exact({8})).blamed == {8}  # type: ignore[arg-type]
    assert not find_bad(range(9), exact(set())).blamed  # type: ignore[arg-type]


def test_where_nobody_passes_nobody_is_blamed() -> None:
    """Mutant: blaming whoever failed takes a whole rack out for its switch."""
    found = find_bad(range(16), lambda pairs: [False] * len(pairs))
    assert not found.blamed
    assert found.unresolved == set(range(16))


def test_inconclusive_tests_blame_nobody_and_end() -> None:
    def run(pairs: Sequence[Pair]) -> list[bool | None]:
        return [None if 5 in pair else True for pair in pairs]

    found = find_bad(range(16), run)
    assert not found.blamed
    assert found.unresolved == {5}
    assert found.rounds == NOTHING_MOST


def test_no_pairs_at_all() -> None:
    assert find_bad([], exact(set())).tests == 0  # type: ignore[arg-type]
    assert find_bad([1], exact(set())).unresolved == {1}  # type: ignore[arg-type]


def drawn(rng: random.Random, bad: set[int], miss: float = 0.1, wrong_fail: float = 0.01) -> RunPairs:
    return lambda pairs: [rng.random() < miss if bad & set(pair) else rng.random() >= wrong_fail for pair in pairs]


def screened(order: list[int], bad: set[int], run: RunPairs) -> tuple[int, int]:
    """Bad nodes found, and innocents blamed."""
    blamed = find_bad(order, run).blamed
    return len(blamed & bad), len(blamed - bad)


@pytest.mark.parametrize("count", [511, 512])
def test_one_screening_finds_nineteen_of_twenty_bad_nodes_and_blames_no_innocent(count: int) -> None:
    """Mutants: one pass is enough (.89 are found); two failures blame; a failure beside a suspect counts in full."""
    rng, found = random.Random(1), [0, 0]
    for _ in range(60):
        bad = set(rng.sample(range(count), 4))
        one = screened(rng.sample(range(count), count), bad, drawn(rng, bad))
        found = [found[0] + one[0], found[1] + one[1]]
    assert found[0] >= 0.95 * 60 * 4
    assert found[1] == 0


def test_where_tests_answer_worse_than_assumed_no_innocent_is_blamed_either() -> None:
    """A tenth of the nodes bad, three tests of a hundred fail wrongly, two of ten pass wrongly."""
    rng, innocent = random.Random(2), 0
    for _ in range(40):
        bad = set(rng.sample(range(128), 13))
        innocent += screened(rng.sample(range(128), 128), bad, drawn(rng, bad, 0.2, 0.03))[1]
    assert innocent <= 2


def test_a_node_that_fails_beside_half_of_its_partners_ends() -> None:
    """A node of which half the tests pass: it is blamed, sound or open, and its partners are not blamed."""
    for seed in range(40):
        found = find_bad(range(64), drawn(random.Random(seed), {9}, miss=0.5, wrong_fail=0.0))
        assert found.blamed <= {9}
        assert found.rounds <= ROUNDS_MOST


def test_rates_that_tell_nothing_are_refused() -> None:
    for rates in (
        {"miss": 0.5},
        {"wrong_fail": 0.0},
        {"sound_odds": 0.02},
        {"blamed_odds": 0.5},
        {"miss": float("nan")},
    ):
        with pytest.raises(ValueError, match="must be above 0"):
            PairTestRates(**rates)


def test_a_failure_beside_a_suspect_tells_little_and_beside_a_witness_much() -> None:
    """Bayes' rule by hand: prior odds 1/99, a failure beside a node with odds 1/99."""
    rates = PairTestRates()
    fails = 0.9 / (0.01 * 0.9 + 0.99 * 0.01)
    assert exp(rates.after(rates.log_prior, (rates.log_prior,), passed=False)) == pytest.approx(fails / 99)
    beside_suspect = exp(rates.after(0.0, (5.0,), passed=False))
    beside_witness = exp(rates.after(0.0, (-9.0,), passed=False))
    assert beside_suspect < 1.1
    assert beside_witness > 80
