"""Screening in pairs: bad nodes found, innocents left alone, answers that say nothing blame nobody."""

import random
from collections.abc import Sequence

from hostler.core.statistics.pairing import ROUNDS_MOST, Pair, find_bad


def exact(bad: set[int]) -> object:
    return lambda pairs: [not (bad & set(pair)) for pair in pairs]


def test_with_exact_tests_exactly_the_bad_are_blamed() -> None:
    found = find_bad(range(64), exact({3, 40}))  # type: ignore[arg-type]
    assert found.blamed == {3, 40}
    assert not found.unresolved
    assert found.tests == 32 + 2 * 2 + 2 * 3


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
    assert found.rounds == ROUNDS_MOST


def test_no_pairs_at_all() -> None:
    assert find_bad([], exact(set())).tests == 0  # type: ignore[arg-type]
    assert find_bad([1], exact(set())).unresolved == {1}  # type: ignore[arg-type]


def test_two_screenings_of_512_nodes_find_nearly_all_and_blame_no_innocent() -> None:
    rng = random.Random(1)
    caught = innocent = total = 0
    for _ in range(40):
        bad = set(rng.sample(range(512), 4))
        blamed: set[int] = set()
        for _ in range(2):
            passes = lambda pair, bad=bad: rng.random() < 0.1 if bad & set(pair) else rng.random() >= 0.01  # noqa: E731
            blamed |= find_bad(rng.sample(range(512), 512), lambda pairs, p=passes: [p(x) for x in pairs]).blamed  # type: ignore[misc]
        caught, innocent, total = caught + len(blamed & bad), innocent + len(blamed - bad), total + 4
    assert caught >= 0.95 * total
    assert innocent == 0
