"""The schedule of BMC polls: each has its own moment in the period; BMCs that miss polls are polled less often."""

import heapq
from collections.abc import Iterable
from hashlib import blake2s

from msgspec import Struct

from hostler.core.state.growing_pause import growing_s

MISSED = 3
"""Looks in a row that a BMC must miss before it counts as unreachable."""


class Pace(Struct, frozen=True):
    """How often to look. Seconds, and looks a second.

    `period_s` between two looks at one BMC, longer where the fleet is so large that more than `looks_per_s` would be
    needed. `close_s` is the time to the next look at one whose news waits to repeat itself, that is being worked on, or
    that has just begun to miss. A BMC that is known not to answer is asked less and less, every `rarest_s` in the end.
    """

    period_s: float = 10.0
    looks_per_s: float = 180.0
    close_s: float = 4.0
    rarest_s: float = 300.0


class PollTurn(Struct):
    """One BMC's place: `due` on the caller's monotonic clock; looks in a row that it has missed, or made too large."""

    due: float
    missed: int = 0
    exceeded: int = 0


class BmcSchedule:
    """The turns of all BMCs, earliest first.

    A turn that was taken comes back by `seen`, `missed`, `exceeded` or `later`.
    """

    def __init__(self, pace: Pace = Pace()) -> None:  # noqa: B008 - frozen
        self._pace = pace
        self._turns: dict[str, PollTurn] = {}
        self._queue: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def period_s(self) -> float:
        """How far apart two looks at a healthy BMC are now."""
        return max(self._pace.period_s, len(self._turns) / self._pace.looks_per_s)

    def add_nodes(self, nodes: Iterable[str], now: float) -> None:
        """Set the nodes to look at. Newcomers are spread over one period; who is gone is forgotten."""
        wanted = frozenset(nodes)
        for gone in self._turns.keys() - wanted:
            del self._turns[gone]
        fresh = sorted(wanted - self._turns.keys())
        self._turns.update((node, PollTurn(now)) for node in fresh)
        for node in fresh:
            self._put(node, now + self.period_s * share(node))

    def take(self, now: float) -> str | None:
        """The node whose turn it is, the longest due first; None where nobody is due."""
        while self._queue and self._queue[0][0] <= now:
            due, node = heapq.heappop(self._queue)
            turn = self._turns.get(node)
            if turn is not None and turn.due == due:
                return node
        return None

    def next_due(self) -> float | None:
        """When the next turn is due, None where there is none."""
        return self._queue[0][0] if self._queue else None

    def misses(self, node: str) -> int:
        """How many looks in a row it has missed."""
        turn = self._turns.get(node)
        return turn.missed if turn else 0

    def seen(self, node: str, now: float, *, close: bool) -> None:
        """Note an answer. Its next turn keeps its place in the period; `close`: it is looked at again soon."""
        turn = self._turns.get(node)
        if turn is None:
            return
        regular = max(turn.due + self.period_s, now + self.period_s / 2)
        turn.missed = turn.exceeded = 0
        self._put(node, min(regular, now + self._pace.close_s) if close else regular)

    def missed(self, node: str, now: float, *, awaited: bool = False) -> int:
        """Note a miss; how many times in a row that was by now. `awaited`: somebody waits for it to come back."""
        turn = self._turns.get(node)
        if turn is None:
            return 0
        turn.missed += 1
        if turn.missed < MISSED or awaited:
            wait_s = min(self._pace.close_s, self.period_s)
        else:
            wait_s = self._rarer_s(node, turn.missed - MISSED)
        self._put(node, now + wait_s)
        return turn.missed

    def exceeded(self, node: str, now: float) -> None:
        """Note an answer of more than is read: it costs much, so it is asked less and less from the first time on."""
        turn = self._turns.get(node)
        if turn is None:
            return
        turn.missed = 0
        turn.exceeded += 1
        self._put(node, now + self._rarer_s(node, turn.exceeded))

    def _rarer_s(self, node: str, times: int) -> float:
        """Twice the time for each time, spread so that those who began together are not asked together."""
        wait_s = growing_s(self.period_s, times, self._pace.rarest_s)
        return wait_s * (0.75 + share(f"{node}/{times}") / 2)

    def later(self, node: str, now: float) -> None:
        """There was no room for it: that says nothing of it, and it is looked at again soon."""
        if node in self._turns:
            self._put(node, now + min(self._pace.close_s, self.period_s))

    def _put(self, node: str, due: float) -> None:
        self._turns[node].due = due
        heapq.heappush(self._queue, (due, node))


def share(name: str) -> float:
    """A number in [0, 1) that stays the name's own: who came together is not asked together."""
    return int.from_bytes(blake2s(name.encode(), digest_size=6).digest(), "big") / (1 << 48)
