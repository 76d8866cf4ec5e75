"""Says who meets whom while nodes come and go, and whom the results blame, by the odds of `pair_odds`.

Nodes of which little is known meet each other; each needs two others to pass with. Whoever fails is a suspect, and
meets only nodes that have passed, each once, until its odds decide. Where nobody passes, nobody is blamed. What comes
to nothing changes nothing.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from math import log
from typing import Generic, TypeVar

from msgspec import Struct

from hostler.core.statistics.pair_odds import PairTestRates

TRIES_MOST = 2
"""Meetings of the same two that came to nothing, after which they are not brought together again."""
NOTHING_MOST = 6
"""Meetings of a node, one after the other, that came to nothing, after which it meets nobody more."""
SUSPECT_OVER, WITNESS_UNDER = 2.0, 0.25
"""Of the odds of a node that met nobody: a suspect's are more, a witness' less."""
RATES = PairTestRates()
_MOST = 2

Node = TypeVar("Node", bound=Hashable)


class PairStanding(Struct, frozen=True):
    """Standing of a node by tests: its log odds to be bad, and what they mean.

    `is_blamed`: enough witnesses have failed beside it. `is_sound`: it has passed beside enough others. `is_suspect`:
    its odds are worse than those of a node that met nobody. `is_witness`: it has passed, so that a failure beside it
    tells of the other.
    """

    log_odds: float
    is_blamed: bool = False
    is_sound: bool = False
    is_suspect: bool = False
    is_witness: bool = False
    was_suspect: bool = False

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

    def told(self, a: Node, b: Node, *, passed: bool | None) -> None:
        """Take a test of two nodes: True passed, False failed, None came to nothing."""
        pair, one, other = frozenset((a, b)), self.standing(a), self.standing(b)
        if passed is None:
            self._met[pair] = self._met.get(pair, 0) + 1
            self._nothing.update(pair)
            return
        self._met[pair] = TRIES_MOST
        self._standings[a] = self._after(one, other, passed=passed)
        self._standings[b] = self._after(other, one, passed=passed)
        for node in pair:
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
            if worth > best and self._may_meet(node, other):
                best, found = worth, other
            if best == _MOST:
                break
        return found

    def _may_meet(self, node: Node, other: Node) -> bool:
        return self._nothing[other] < NOTHING_MOST and self._met.get(frozenset((node, other)), 0) < TRIES_MOST

    def _after(self, own: PairStanding, beside: PairStanding, *, passed: bool) -> PairStanding:
        rates = self._rates
        odds = rates.after(own.log_odds, beside.log_odds, passed=passed)
        is_suspect = odds > rates.log_prior + log(SUSPECT_OVER)
        return PairStanding(
            odds,
            odds >= log(rates.blamed_odds),
            odds <= log(rates.sound_odds),
            is_suspect,
            odds < rates.log_prior + log(WITNESS_UNDER),
            own.was_suspect or is_suspect,
        )


def _worth(own: PairStanding, other: PairStanding) -> int:
    """How much a test of these two would tell: 0 nothing. Who is blamed meets nobody more."""
    if own.is_blamed or other.is_blamed or not (own.is_open or other.is_open):
        return 0
    if own.is_suspect or other.is_suspect:
        return _MOST if own.is_witness or other.is_witness else 0
    return _MOST if own.is_open and other.is_open else 1
