"""Finds bad nodes by rounds of tests of two, where all nodes can be tested at any time.

Who meets whom and whom that blames is `pair_test_blame`. A test that passes wrongly is why each node has to pass beside
two others: of bad nodes that are tested once, one test of ten believes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostler.core.statistics.pair_odds import PairTestRates
from hostler.core.statistics.pair_test_blame import RATES, PairScreen

Pair = tuple[int, int]
RunPairs = Callable[[Sequence[Pair]], Sequence[bool | None]]
"""Runs one round of disjoint pairs: True passed, False failed, None inconclusive (pre-empted, harness error)."""

ROUNDS_MOST = 12
"""Rounds after which who is undecided stays open."""


@dataclass(frozen=True)
class PairFindings:
    """The nodes that are blamed, those that could not be told, and the cost."""

    blamed: frozenset[int]
    unresolved: frozenset[int]
    tests: int
    rounds: int


def find_bad(order: Sequence[int], run: RunPairs, rates: PairTestRates = RATES) -> PairFindings:
    """Test all nodes of `order`, whose neighbours are the first pairs: shuffle it, or pair nodes of different racks.

    A node whose tests come to nothing, or for which no witness is left, is unresolved: neither blamed nor sound.
    """
    screen, tests, rounds = PairScreen[int](rates), 0, 0
    while rounds < ROUNDS_MOST and (pairs := _round(order, screen)):
        for (a, b), passed in zip(pairs, run(pairs), strict=True):
            screen.told((a, b), passed=passed)
        tests, rounds = tests + len(pairs), rounds + 1
    standings = {node: screen.standing(node) for node in order}
    blamed = frozenset(node for node, one in standings.items() if one.is_blamed)
    return PairFindings(blamed, frozenset(node for node, one in standings.items() if one.is_open), tests, rounds)


def _round(order: Sequence[int], screen: PairScreen[int]) -> list[Pair]:
    """Disjoint pairs, suspects' first: the others find a partner among many."""
    free = dict.fromkeys(order)
    asking = [node for node in order if screen.standing(node).is_open]
    asking.sort(key=lambda node: not screen.standing(node).is_suspect)
    pairs = list[Pair]()
    for node in asking:
        if node in free and (other := screen.partner(node, free)) is not None:
            pairs.append((node, other))
            del free[node], free[other]
    return pairs
