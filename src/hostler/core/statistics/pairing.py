"""Finds bad nodes by tests of two: random pairs, then each suspect beside nodes that have passed.

A test of a pair fails where either node is bad; it also fails wrongly and passes wrongly. So one failure blames nobody:
a suspect is tested beside witness after witness until it has failed beside three or passed beside two. A witness may be
bad itself, so each test has another. Who passed is sound until the next screening only: what one screening misses,
another with other pairs finds.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Pair = tuple[int, int]
RunPairs = Callable[[Sequence[Pair]], Sequence[bool | None]]
"""Runs one round of disjoint pairs: True passed, False failed, None inconclusive (pre-empted, harness error)."""

BLAMED_AFTER, ACQUITTED_AFTER, ROUNDS_MOST = 3, 2, 8
"""Failures beside witnesses that blame a suspect, passes that acquit it, and rounds after which it stays open."""


@dataclass(frozen=True)
class PairFindings:
    """The nodes that are blamed, those that could not be told, and the cost."""

    blamed: frozenset[int]
    unresolved: frozenset[int]
    tests: int
    rounds: int


def find_bad(order: Sequence[int], run: RunPairs) -> PairFindings:
    """Test all nodes of `order`, whose neighbours are the first pairs: shuffle it, or pair nodes of different racks.

    An odd one out is a suspect. A suspect whose tests come to nothing, or for which no witness is left, is unresolved:
    neither blamed nor passed.
    """
    pairs = [(order[i], order[i + 1]) for i in range(0, len(order) - 1, 2)]
    said = run(pairs) if pairs else ()
    tests, rounds = len(pairs), int(bool(pairs))
    sound = [node for pair, passed in zip(pairs, said, strict=True) if passed for node in pair]
    undecided = [node for pair, passed in zip(pairs, said, strict=True) if not passed for node in pair]
    undecided += [order[-1]] if len(order) % 2 else []
    failures, passes = Counter[int](), Counter[int]()
    used = 0
    while undecided and sound and rounds < ROUNDS_MOST:
        beside = [(node, sound[(used + place) % len(sound)]) for place, node in enumerate(undecided[: len(sound)])]
        for (node, _), passed in zip(beside, run(beside), strict=True):
            failures[node] += passed is False
            passes[node] += passed is True
        tests, rounds, used = tests + len(beside), rounds + 1, used + len(beside)
        undecided = [n for n in undecided if failures[n] < BLAMED_AFTER and passes[n] < ACQUITTED_AFTER]
    blamed = frozenset(node for node, count in failures.items() if count >= BLAMED_AFTER)
    return PairFindings(blamed, frozenset(undecided), tests, rounds)
