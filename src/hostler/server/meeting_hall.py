"""Meetings between nodes under check: who measures the way to whom, what both say of it, and whom that blames.

Agents are never called: each asks, while its check is under way, for somebody to meet. All of it is in the memory of
the controller that decides: after a takeover nodes meet anew, and who holds an order of before waits in vain.
"""

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from statistics import median

from msgspec import Struct

from hostler.core.fabric.path_blame import PEERS, SLOW, PairResult
from hostler.core.state.meetings import MeetingOrder, MeetingReply
from hostler.core.statistics.pair_screen import PairScreen, PairStanding

DEADLINE_S, SECONDS_S, SIZE_MIB = 30.0, 5.0, 64
"""Time for the other to come, time of summing up, and what is summed up."""
SLACK_S = 45.0
"""Time beside these until both have told: PyTorch's start, and the way there and back."""
PATIENCE_S = 60.0
"""So long a node waits for somebody to meet, since it came or told last."""
GONE_S = 15.0
"""A node that has not asked for so long has gone: agents ask every second."""
AT_ONCE = 8
"""Meetings at once in a cell: they load links that others' work uses too. Our judgement."""
AGREE = 1.5
"""Two that met measured the same sums: rates that differ by more than this are of a broken test."""
RATES, RATED_WAYS = 512, 64
"""Rates of a way's latest meetings, whose median says what is slow; and ways of which they are kept."""
WAYS_MOST, GUESTS_MOST = 16, 20_000
"""Ways by which one node may wait, and those that wait at once; beyond, the answer is that nobody is left."""
TIDY_S = 1.0
"""Interval between looks for meetings whose time is over and nodes that have gone."""


class Way(Struct, frozen=True):
    """How a node is reached: its port's name in the network's design, an address on it, and a free TCP port there."""

    via: str
    address: str
    port: int
    interface: str = ""


class MeetingTold(Struct, frozen=True):
    """One node's word of a meeting. `gbps` None: nothing was measured; 0: sums were wrong."""

    meeting: str
    gbps: float | None = None


class _Guest:
    """A node that asks, by one way, during one operation."""

    def __init__(self, node: str, operation: str, way: Way, now: datetime) -> None:
        self.node, self.operation, self.way = node, operation, way
        self.moved = self.seen = now
        self.order: MeetingOrder | None = None


class _Meeting(Struct):
    """Two that were told to meet, by operation, what each said, and when nobody waits any more."""

    guests: tuple[_Guest, _Guest]
    until: datetime
    told: dict[str, float | None] = {}


class MeetingHall:
    """Brings nodes together. `add` takes what ports reached; `now` is the controller's time. Called by one thread."""

    def __init__(self, add: Callable[[Sequence[PairResult]], None], now: Callable[[], datetime]) -> None:
        self._add = add
        self._now = now
        self._guests: dict[tuple[str, str], _Guest] = {}
        self._meetings: dict[str, _Meeting] = {}
        self._screens: dict[str, PairScreen[str]] = {}
        self._rates: dict[str, deque[float]] = {}
        self._tidied = now() - timedelta(seconds=TIDY_S)

    def ask(self, node: str, operation: str, way: Way) -> MeetingReply:
        """Say whom the node is to meet now. Asked twice, it is the same order until its end is told."""
        self._tidy()
        now, screen = self._now(), self._screens.setdefault(way.via, PairScreen())
        guest = self._guests.get((way.via, operation))
        if guest is None and self._is_full(node):
            return MeetingReply(is_done=True)
        if guest is None:
            guest = self._guests[way.via, operation] = _Guest(node, operation, way, now)
        guest.seen, guest.way = now, way
        if guest.order is None:
            self._match(guest, screen)
        is_done = guest.order is None and self._is_done(guest, screen)
        if is_done:
            del self._guests[way.via, operation]
        return MeetingReply(guest.order, is_done, word_of(screen.standing(operation)))

    def tell(self, operation: str, told: MeetingTold) -> None:
        """One's word of its meeting; of one that is not known, or told twice, nothing is taken."""
        meeting = self._meetings.get(told.meeting)
        if meeting is None or operation not in {one.operation for one in meeting.guests} or operation in meeting.told:
            return
        meeting.told[operation] = told.gbps
        for guest in meeting.guests:
            if guest.operation == operation:
                guest.order, guest.moved = None, self._now()
        if len(meeting.told) == len(meeting.guests):
            self._end(told.meeting)

    def _match(self, guest: _Guest, screen: PairScreen[str]) -> None:
        via, now = guest.way.via, self._now()
        if len(self._meetings) >= AT_ONCE:
            guest.moved = now  # the wait for a place is not for a partner
            return
        free = {
            one.operation: one
            for (at, _), one in self._guests.items()
            if at == via and one.order is None and one.node != guest.node and not self._is_out(one)
        }
        chosen = None if self._is_out(guest) else screen.partner(guest.operation, free)
        if chosen is None:
            return
        other = free[chosen]
        until = now + timedelta(seconds=DEADLINE_S + SECONDS_S + SLACK_S)
        meeting, secret, first = secrets.token_hex(8), secrets.token_hex(16), other.way
        names = (other.node, guest.node)
        for rank, one in enumerate((other, guest)):
            where = one.way.interface
            place = (meeting, first.address, first.port, rank, names, secret, via, where)
            one.order = MeetingOrder(*place, DEADLINE_S, SECONDS_S, SIZE_MIB)
        self._meetings[meeting] = _Meeting((other, guest), until)

    def _is_full(self, node: str) -> bool:
        """Whether nobody more may wait, or not this node by another way."""
        if len(self._guests) >= GUESTS_MOST:
            return True
        return sum(one.node == node for one in self._guests.values()) >= WAYS_MOST

    def _is_out(self, guest: _Guest) -> bool:
        """Whether its last meeting goes on, for the other at least."""
        return any(guest in one.guests for one in self._meetings.values())

    def _is_done(self, guest: _Guest, screen: PairScreen[str]) -> bool:
        if self._is_out(guest):
            return False
        if self._now() - guest.moved >= timedelta(seconds=PATIENCE_S):
            return True
        own = screen.standing(guest.operation)
        if own.is_open:
            return False
        others = [one for (via, _), one in self._guests.items() if via == guest.way.via and one is not guest]
        return own.is_blamed or not any(screen.standing(one.operation).is_open for one in others)

    def _end(self, name: str) -> None:
        """The meeting is over: what both say counts, and what only one says, or each otherwise, counts for nothing."""
        meeting = self._meetings.pop(name)
        one, other = meeting.guests
        via = one.way.via
        if via not in self._rates and len(self._rates) >= RATED_WAYS:
            del self._rates[next(iter(self._rates))]
        rates = self._rates.setdefault(via, deque(maxlen=RATES))
        for guest in meeting.guests:
            if guest.order is not None and guest.order.meeting == name:
                guest.order = None
        gbps = agreed(meeting.told.get(one.operation), meeting.told.get(other.operation))
        passed = None if gbps is None else passes(gbps, rates)
        self._screens[via].told(one.operation, other.operation, passed=passed)
        if gbps is None:
            return
        if gbps > 0:
            rates.append(gbps)
        ports, at = (f"{one.node}:{via}", f"{other.node}:{via}"), self._now()
        self._add([PairResult(ports[0], ports[1], gbps, at), PairResult(ports[1], ports[0], gbps, at)])

    def _tidy(self) -> None:
        """End meetings whose time is over, forget nodes that have gone, and screens in which nobody is."""
        now = self._now()
        if now - self._tidied < timedelta(seconds=TIDY_S):
            return
        self._tidied = now
        for name in [name for name, one in self._meetings.items() if one.until <= now]:
            self._end(name)
        gone = timedelta(seconds=GONE_S)
        for key, guest in list(self._guests.items()):
            if now - guest.seen > gone and not self._is_out(guest):
                del self._guests[key]
        used = {via for via, _ in self._guests} | {one.guests[0].way.via for one in self._meetings.values()}
        self._screens = {via: screen for via, screen in self._screens.items() if via in used}


def word_of(standing: PairStanding) -> str:
    """Name how a node stands: sound, acquitted, blamed, passed (with too few to be sound), or open."""
    if standing.is_blamed:
        return "blamed"
    if standing.is_sound:
        return "acquitted" if standing.was_suspect else "sound"
    return "passed" if standing.is_witness else "open"


def agreed(one: float | None, other: float | None) -> float | None:
    """The rate that both tell, None where one tells none, or another."""
    if one is None or other is None:
        return None
    low, high = min(one, other), max(one, other)
    return low if high <= low * AGREE else None


def passes(gbps: float, rates: Sequence[float]) -> bool:
    """Whether a way is as fast as those of others, and its sums were right."""
    if gbps <= 0:
        return False
    return len(rates) < PEERS or gbps >= SLOW * median(rates)
