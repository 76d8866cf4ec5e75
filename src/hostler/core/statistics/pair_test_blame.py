"""Says who meets whom while nodes come and go, and whom the results blame, by the odds of `pair_odds`.

Nodes of which little is known meet each other; each needs two others to pass with. Whoever fails is a suspect, and
meets only nodes that have passed, each once, until its odds decide. Where nobody passes, nobody is blamed. What comes
to nothing changes nothing.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from math import log
from typing import Generic, TypeVar

from msgspec import Struct

from hostler.core.statistics.pair_odds import PairTestRates

TRIES_MOST = 2
"""Meetings of the same two that came to nothing, after which they are not brought together again."""
NOTHING_MOST = 6
"""Meetings of a node, one after the other, that came to nothing, after which it meets nobody more."""
AGAINST_LEAST = 3
"""Failures beside nodes that have all passed, without which no node is blamed whatever its odds."""
SUSPECT_OVER, WITNESS_UNDER = 2.0, 0.25
"""Of the odds of a node that met nobody: a suspect's are more, a witness' less."""
RATES = PairTestRates()
_MOST = 2

Node = TypeVar("Node", bound=Hashable)


class PairStanding(Struct, frozen=True):
    """Standing of a node by tests: its log odds to be bad, and what they mean.

    `is_blamed`: enough witnesses have failed beside it. `is_sound`: it has passed beside enough others. `is_suspect`:
    its odds are worse than those of a node that met nobody. `is_witness`: it has passed, so that a failure beside it
    tells of the other. `against`: failures beside witnesses alone.
    """

    log_odds: float
    is_blamed: bool = False
    is_sound: bool = False
    is_suspect: bool = False
    is_witness: bool = False
    was_suspect: bool = False
    against: int = 0

    @property
    def is_open(self) -> bool:
        """Whether another test would tell more."""
        return not (self.is_sound or self.is_blamed)


class PairScreen(Generic[Node]):
    """Tests of one way of many nodes, and what they come to."""

    def __init__(self, rates: PairTestRates = RATES) -> None:
        self._rates = rates
        self._unknown = PairStanding(rates.log_prior)
        self._standings: dict[Node, PairStanding] = {}
        self._met: dict[frozenset[Node], int] = {}
        self._nothing = Counter[Node]()

    def standing(self, node: Node) -> PairStanding:
        """Standing of a node by the tests so far."""
        return self._standings.get(node, self._unknown)

    def told(self, members: Sequence[Node], *, passed: bool | None, judged: Sequence[Node] | None = None) -> None:
        """Take a test of two nodes or more: True passed, False failed, None came to nothing.

        Two that have told do not meet again; those of a group may once more, by two. `judged`: members of which it
        tells, all of them by default.
        """
        pairs = [frozenset(pair) for pair in combinations(members, 2)]
        if passed is None:
            self._nothing.update(members)
        if passed is None or len(pairs) > 1:
            self._met.update({pair: self._met.get(pair, 0) + 1 for pair in pairs if passed or len(pairs) == 1})
        else:
            self._met[pairs[0]] = TRIES_MOST
        if passed is None:
            return
        before = {node: self.standing(node) for node in members}
        for node in members if judged is None else judged:
            beside = [other for name, other in before.items() if name != node]
            self._standings[node] = self._after(before[node], beside, passed=passed)
            self._nothing.pop(node, None)

    def partner(self, node: Node, waiting: Iterable[Node]) -> Node | None:
        """Choose among those that wait, the longest first, whom the node is to meet; None for nobody.

        Two of which both tests are wanted go before one of which nothing more is.
        """
        own = self.standing(node)
        if self._nothing[node] >= NOTHING_MOST:
            return None
        best, found = 0, None
        for other in waiting:
            worth = 0 if other == node else _worth(own, self.standing(other))
            if worth > best and self.may_meet(node, other):
                best, found = worth, other
            if best == _MOST:
                break
        return found

    def has_told(self, node: Node) -> bool:
        """Whether a test of the node has passed or failed."""
        return node in self._standings

    def nothing_of(self, node: Node) -> int:
        """Count the node's last tests, one after the other, that came to nothing."""
        return self._nothing[node]

    def have_met(self, node: Node, other: Node) -> bool:
        """Whether the two were in a test that came to something, or were told to meet."""
        return frozenset((node, other)) in self._met

    def may_meet(self, node: Node, other: Node) -> bool:
        """Whether a test of these two may be made: they have not met, and neither is given up."""
        return self._nothing[other] < NOTHING_MOST and self._met.get(frozenset((node, other)), 0) < TRIES_MOST

    def _after(self, own: PairStanding, beside: Sequence[PairStanding], *, passed: bool) -> PairStanding:
        rates = self._rates
        odds = rates.after(own.log_odds, (other.log_odds for other in beside), passed=passed)
        against = own.against + (not passed and all(other.is_witness for other in beside))
        is_suspect = odds > rates.log_prior + log(SUSPECT_OVER)
        return PairStanding(
            odds,
            odds >= log(rates.blamed_odds) and against >= AGAINST_LEAST,
            odds <= log(rates.sound_odds),
            is_suspect,
            odds < rates.log_prior + log(WITNESS_UNDER),
            own.was_suspect or is_suspect,
            against,
        )


def _worth(own: PairStanding, other: PairStanding) -> int:
    """How much a test of these two would tell: 0 nothing. Who is blamed meets nobody more."""
    if own.is_blamed or other.is_blamed or not (own.is_open or other.is_open):
        return 0
    if own.is_suspect or other.is_suspect:
        return _MOST if own.is_witness or other.is_witness else 0
    return _MOST if own.is_open and other.is_open else 1
