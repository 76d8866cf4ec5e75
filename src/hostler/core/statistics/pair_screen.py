"""Says who meets whom while nodes come and go, and whom the results blame: the scheme of `pairing`, one pair at a time.

Nodes of which nothing is known meet each other first. Whoever fails is a suspect, and meets sound nodes, each once,
until three have failed beside it or two have passed. What comes to nothing changes nothing.
"""

from collections.abc import Iterable

from msgspec import Struct

from hostler.core.statistics.pairing import ACQUITTED_AFTER, BLAMED_AFTER

TRIES_MOST = 2
"""Meetings of the same two that came to nothing, after which they are not brought together again."""
_MOST = 2


class PairStanding(Struct, frozen=True):
    """Standing of a node by tests. `failed` and `passed`: the sound nodes beside which a suspect has.

    `sound`: it has passed and was never a suspect.
    """

    sound: bool = False
    suspect: bool = False
    failed: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()

    @property
    def is_blamed(self) -> bool:
        """Whether enough sound nodes have failed beside it."""
        return len(self.failed) >= BLAMED_AFTER

    @property
    def is_acquitted(self) -> bool:
        """Whether a suspect has passed beside enough sound nodes."""
        return not self.is_blamed and len(self.passed) >= ACQUITTED_AFTER

    @property
    def is_open(self) -> bool:
        """Whether another test would tell more."""
        return not (self.sound or self.is_blamed or self.is_acquitted)


UNKNOWN = PairStanding()


class PairScreen:
    """Tests of one way of many nodes, and what they come to."""

    def __init__(self) -> None:
        self._standings: dict[str, PairStanding] = {}
        self._met: dict[frozenset[str], int] = {}

    def standing(self, node: str) -> PairStanding:
        """Standing of a node by the tests so far."""
        return self._standings.get(node, UNKNOWN)

    def told(self, a: str, b: str, *, passed: bool | None) -> None:
        """Take a test of two nodes: True passed, False failed, None came to nothing."""
        pair, one, other = frozenset((a, b)), self.standing(a), self.standing(b)
        if passed is None:
            self._met[pair] = self._met.get(pair, 0) + 1
            return
        self._met[pair] = TRIES_MOST
        self._standings[a], self._standings[b] = (
            _after(one, b, other, passed=passed),
            _after(other, a, one, passed=passed),
        )

    def partner(self, node: str, waiting: Iterable[str]) -> str:
        """Choose among those that wait, the longest first, whom the node is to meet; "" for nobody.

        A suspect goes before an unknown node; two sound nodes, and two suspects, have nothing to tell each other.
        """
        own = self.standing(node)
        best, found = 0, ""
        for other in waiting:
            worth = 0 if other == node else self._worth(own, self.standing(other))
            if worth > best and self._met.get(frozenset((node, other)), 0) < TRIES_MOST:
                best, found = worth, other
            if best == _MOST:
                break
        return found

    @staticmethod
    def _worth(own: PairStanding, other: PairStanding) -> int:
        """How much a test of these two would tell: 0 nothing."""
        if own.sound or other.sound:
            third = other if own.sound else own
            return 0 if not third.is_open else _MOST if third.suspect else 1
        return _MOST if own == other == UNKNOWN else 0


def _after(own: PairStanding, other: str, beside: PairStanding, *, passed: bool) -> PairStanding:
    if own.sound:
        return own
    if not own.suspect:
        return PairStanding(sound=True) if passed else PairStanding(suspect=True, failed=_told(beside, other))
    if not beside.sound:
        return own
    if passed:
        return PairStanding(suspect=True, failed=own.failed, passed=own.passed | {other})
    return PairStanding(suspect=True, failed=own.failed | {other}, passed=own.passed)


def _told(beside: PairStanding, other: str) -> frozenset[str]:
    """The first failure counts where the other was known to be sound."""
    return frozenset({other}) if beside.sound else frozenset()
