"""Says which nodes meet by one rail of a network, under which leaf, how many at once, and whom the tests blame.

Tests of nodes under one leaf are of the nodes, their links and the leaf, and they alone judge nodes. First many meet at
once: the slowest member makes such a group slow, so one test passes them all. A group that fails, or comes to nothing,
is halved until two are left, and those that failed meet nodes that have passed (`pair_test_blame`). A half that passes
after its group has failed proves nothing of its members: a bad one has had another chance to pass wrongly.

Who has passed under its own leaf meets a node of another one, by which the links between leaves are tested too. What
passes there at first proves all that it went through; after a failure it no longer does, for who tries again passes
wrongly in the end. What fails there blames no node: it may be any up-link. Where most nodes of a leaf fail the leaf is
to blame, or the rail, and no node is.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from hostler.core.statistics.pair_odds import PairTestRates
from hostler.core.statistics.pair_test_blame import RATES, PairScreen, PairStanding

GROUP_LEAST, GROUP_MOST = 3, 8
"""Members of a group. More make each test longer to halve, and wait for each other: our judgement."""
SHARED_LEAST, SHARED_SHARE = 3, 1 / 3
"""Nodes of a leaf that look bad, and their share of those tested there, beyond which what they share is to blame."""
ACROSS_MOST = 6
"""Tests of a node with those of other leaves."""
CUT_LEAST, CUT_SHARE = 4, 1 / 3
"""Tests of a leaf's nodes beyond it that failed, and passes among them at most, after which none of them goes on."""

Node = TypeVar("Node", bound=Hashable)


class Seat(Struct, Generic[Node], frozen=True):
    """A node that waits: the leaf at which its port is ("" where no design tells), and how many it can meet at once.

    `is_alone`: it has waited for nodes under its leaf for long enough. `gathers`: it came just now, and more may come
    for a group. `may_leave`: it may load the links between leaves.
    """

    node: Node
    leaf: str = ""
    takes: int = 2
    is_alone: bool = False
    gathers: bool = False
    may_leave: bool = True


class MeetingPlan(Generic[Node]):
    """Tests by one rail, and what they come to."""

    def __init__(self, rates: PairTestRates = RATES) -> None:
        self._near = PairScreen[Node](rates)
        self._far = PairScreen[Node](rates)
        self._leaf: dict[Node, str] = {}
        self._leaves: set[str] = set()
        self._parts: list[tuple[Node, ...]] = []
        self._failed: set[Node] = set()
        self._crossed = Counter[Node]()
        self._beyond = Counter[tuple[str, bool]]()
        self._against: dict[str, set[Node]] = {}
        self._searches: set[frozenset[Node]] = set()
        self._has_grouped = False

    def company(self, own: Seat[Node], free: Sequence[Seat[Node]]) -> tuple[Node, ...]:
        """Choose whom the node is to meet now, of those that wait, the longest first; () for nobody yet."""
        self._seat(own)
        chosen = self._chosen(own, [seat for seat in free if seat.node != own.node])
        for seat in free if chosen else ():
            if seat.node in chosen:
                self._seat(seat)
        return chosen

    def told(self, members: Sequence[Node], *, passed: bool | None, silent: Sequence[Node] = ()) -> None:
        """Take a test: True passed, False failed, None came to nothing. `silent`: members that never said a word.

        Silence convicts nobody: the others go on as a smaller group. What many failed together counts against none.
        """
        leaves = {self._leaf.get(node, "") for node in members}
        if len(leaves) > 1:
            clear = [node for node in members if not self._far.standing(node).was_suspect]
            self._far.told(members, passed=passed)
            self._crossed.update(members)
            if passed is not None:
                self._beyond.update((leaf, passed) for leaf in leaves)
            for node in members if passed is False else ():
                self._against.setdefault(self._leaf[node], set()).update(one for one in members if one != node)
            if passed:
                self._near.told(members, passed=True, judged=clear)
            return
        is_group, is_search = len(members) >= GROUP_LEAST, frozenset(members) in self._searches
        self._has_grouped |= is_group
        if passed is False and is_group:
            self._failed.update(members)
        else:
            self._near.told(members, passed=passed, judged=() if passed and is_search else members)
        if passed or not is_group:
            return
        rest = tuple(node for node in members if node not in silent)
        middle = len(rest) // 2
        parts = (rest,) if silent else (rest[:middle], rest[middle:])
        self._parts += [part for part in parts if len(part) > 1]

    def wants(self, node: Node) -> bool:
        """Whether another test would tell something of the node, or of the way from its leaf."""
        own = self._near.standing(node)
        if own.is_blamed:
            return self._is_shared(node)
        return own.is_open or self._wants_far(node)

    def standing(self, node: Node) -> str:
        """Name how a node stands: sound, acquitted, passed (with too few), blamed, or open.

        beyond_leaf: it is sound under its leaf, and failed with nodes of other leaves. inconclusive: tests failed, and
        node, link, leaf and up-links cannot be told apart by them.
        """
        own, far = self._near.standing(node), self._far.standing(node)
        if own.is_blamed:
            return "inconclusive" if self._is_shared(node) else "blamed"
        if far.is_blamed or (far.is_suspect and self._is_cut(node)):
            return "beyond_leaf" if own.is_witness else "inconclusive"
        return word_of(own)

    def _seat(self, seat: Seat[Node]) -> None:
        self._leaf[seat.node] = seat.leaf
        self._leaves.add(seat.leaf)

    def _chosen(self, own: Seat[Node], seats: Sequence[Seat[Node]]) -> tuple[Node, ...]:
        if part := self._part_of(own, seats):
            return part
        kept = {node for part in self._parts for node in part}
        seats = [seat for seat in seats if seat.node not in kept] if kept else seats
        near = [seat for seat in seats if seat.leaf == own.leaf]
        if self._wants_far(own.node) and (other := self._far_partner(own, seats)) is not None:
            return (other,)
        if self._joins(own):
            group = self._group(own, near)
            if own.gathers and len(group) + 1 < min(GROUP_MOST, own.takes):
                return ()
            if len(group) + 1 >= GROUP_LEAST:
                return group
        waiting = [seat.node for seat in near]
        if self._has_grouped:
            waiting.sort(key=lambda one: (self._near.nothing_of(one), self._near.have_met(own.node, one)))
        other = self._near.partner(own.node, waiting)
        if other is None and own.is_alone and self._near.standing(own.node).is_open:
            other = self._far_partner(own, seats)
        return () if other is None else (other,)

    def _part_of(self, own: Seat[Node], seats: Sequence[Seat[Node]]) -> tuple[Node, ...]:
        """The rest of a group that did not pass, as many as still wait."""
        part = next((part for part in self._parts if own.node in part), ())
        if not part:
            return ()
        self._parts.remove(part)
        waiting = {seat.node for seat in seats if seat.takes >= len(part) or len(part) == 2}
        others = tuple(node for node in part if node in waiting)
        if own.node in self._failed:
            self._searches.add(frozenset((own.node, *others)))
        return others

    def _joins(self, seat: Seat[Node]) -> bool:
        """Whether the node may be one of a group: nothing is known against it, and it has not kept others waiting."""
        own = self._near.standing(seat.node)
        is_clear = own.is_open and not own.was_suspect and seat.node not in self._failed
        return seat.takes >= GROUP_LEAST and is_clear and not self._near.nothing_of(seat.node)

    def _group(self, own: Seat[Node], near: Sequence[Seat[Node]]) -> tuple[Node, ...]:
        """The others of a group in which no two have met: each test is to be beside other nodes."""
        chosen, most = [own.node], min(GROUP_MOST, own.takes)
        for seat in near:
            if len(chosen) >= min(most, seat.takes):
                continue
            if self._joins(seat) and not any(self._near.have_met(one, seat.node) for one in chosen):
                chosen.append(seat.node)
                most = min(most, seat.takes)
        return tuple(chosen[1:])

    def _wants_far(self, node: Node) -> bool:
        """Whether the node has passed under its leaf, and what is between leaves has not been told by it."""
        own, far = self._near.standing(node), self._far.standing(node)
        return len(self._leaves) > 1 and own.is_witness and not far.is_witness and self._may_cross(node)

    def _may_cross(self, node: Node) -> bool:
        is_open = not self._far.standing(node).is_blamed and self._crossed[node] < ACROSS_MOST
        return is_open and not self._is_cut(node)

    def _is_cut(self, node: Node) -> bool:
        """Whether nodes of its leaf mostly failed beyond it: what is between leaves is to blame."""
        leaf = self._leaf.get(node, "")
        failed, passed = self._beyond[leaf, False], self._beyond[leaf, True]
        others = self._against.get(leaf, ())
        return failed >= CUT_LEAST and passed <= CUT_SHARE * failed and len(others) > 1

    def _far_partner(self, own: Seat[Node], seats: Sequence[Seat[Node]]) -> Node | None:
        """A node under another leaf that has passed, or has nobody under its own; first one of which it tells too."""
        if not own.may_leave or not self._may_cross(own.node):
            return None
        able = [
            seat.node
            for seat in seats
            if seat.leaf != own.leaf and seat.may_leave and (seat.is_alone or self._near.standing(seat.node).is_witness)
        ]
        able.sort(key=lambda node: not self._wants_far(node))
        found = self._far.partner(own.node, able)
        return self._far_suspect(own.node, able) if found is None else found

    def _far_suspect(self, node: Node, able: Sequence[Node]) -> Node | None:
        """A node that failed across while nobody has passed there yet: what passes beside it acquits its leaf."""
        own = self._far.standing(node)
        for other in able:
            beside = self._far.standing(other)
            if self._far.may_meet(node, other) and own.is_suspect != beside.is_suspect and beside.is_open:
                return other
        return None

    def _is_shared(self, node: Node) -> bool:
        """Whether so many nodes under its leaf look bad that what they share is to blame."""
        leaf = self._leaf.get(node, "")
        tested = [self._near.standing(one) for one, at in self._leaf.items() if at == leaf and self._near.has_told(one)]
        bad = sum(one.is_suspect for one in tested)
        return bad >= SHARED_LEAST and bad > SHARED_SHARE * len(tested)


def word_of(standing: PairStanding) -> str:
    """Name how a node stands by tests under its leaf."""
    if standing.is_blamed:
        return "blamed"
    if standing.is_sound:
        return "acquitted" if standing.was_suspect else "sound"
    return "passed" if standing.is_witness else "open"
