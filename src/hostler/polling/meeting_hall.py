"""Meetings between nodes under check: who measures the way to whom, what all say of it, and whom that blames.

Agents are never called: each asks, while its check is under way, for somebody to meet. All of it is in the memory of
the controller that decides: after a takeover nodes meet anew, and who holds an order of before waits in vain.
"""

import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from statistics import median

from msgspec import Struct

from hostler.core.fabric.path_blame import PEERS, SLOW, PairResult
from hostler.core.state.meetings import MeetingOrder, MeetingReply
from hostler.core.statistics.meeting_plan import GROUP_LEAST, MeetingPlan, Seat
from hostler.logs.structured import logger

log = logger()

DEADLINE_S, SECONDS_S, SIZE_MIB = 30.0, 5.0, 64
"""Time for the others to come, time of summing up, and what is summed up."""
SLACK_S = 45.0
"""Time beside these until all have told: PyTorch's start, and the way there and back."""
PATIENCE_S, CALLED_S = 60.0, 2_400.0
"""So long a node waits for somebody to meet, since it came or told last; and one for which others are called."""
GATHER_S, ALONE_S = 10.0, 20.0
"""So long who has come waits for a group, and for nodes under its own leaf before it meets those of others."""
GONE_S = 15.0
"""A node that has not asked for so long has gone: agents ask every second."""
AT_ONCE = 8
"""Meetings at once in a cell: they load links that others' work uses too. Our judgement."""
AGREE = 1.5
"""Nodes that met measured the same sums: rates that differ by more than this are of a broken test."""
RATES, RATED_WAYS = 512, 192
"""Rates of a way's latest meetings of a kind, whose median says what is slow; and ways of which they are kept."""
WAYS_MOST, GUESTS_MOST = 16, 20_000
"""Ways by which one node may wait, and those that wait at once; beyond, the answer is that nobody is left."""
TIDY_S = 1.0
"""Interval between looks for meetings whose time is over and nodes that have gone."""

Rail = tuple[str, str]
"""Network and port's name: a port of one rail meets a port of the same."""


class Way(Struct, frozen=True):
    """How a node is reached: its port's name in the network's design, an address on it, and a free TCP port there."""

    via: str
    address: str
    port: int
    interface: str = ""


class Visitor(Struct, frozen=True):
    """A node that asks, during which operation, by which way, and where that way begins.

    `fabric` and `leaf`: the network and the leaf at which the design has the port, "" where none does. `takes`: how
    many its agent can meet at once, itself included. `may_leave`: it may load the links between leaves now. `calls`:
    others are called from their idle time to meet it, and it waits for them.
    """

    node: str
    operation: str
    way: Way
    fabric: str = ""
    leaf: str = ""
    takes: int = 2
    may_leave: bool = True
    calls: bool = False

    @property
    def rail(self) -> Rail:
        """The rail of its port."""
        return self.fabric, self.way.via


class MeetingTold(Struct, frozen=True):
    """One node's word of a meeting. `gbps` None: nothing was measured; 0: sums were wrong."""

    meeting: str
    gbps: float | None = None


class _Guest:
    """A visitor that waits, or meets. `is_out`: its last meeting goes on, for another at least."""

    def __init__(self, visitor: Visitor, now: datetime) -> None:
        self.visitor = visitor
        self.came = self.moved = self.seen = now
        self.order: MeetingOrder | None = None
        self.is_out = False

    @property
    def operation(self) -> str:
        """The operation during which it asks: a node's next check is another guest."""
        return self.visitor.operation

    def seat(self, now: datetime) -> Seat[str]:
        """The guest as the plan of its rail sees it."""
        asked, is_alone = self.visitor, (now - self.moved).total_seconds() >= ALONE_S
        gathers = (now - self.came).total_seconds() < GATHER_S
        return Seat(asked.operation, asked.leaf, asked.takes, is_alone, gathers, asked.may_leave)


class _Meeting(Struct):
    """Guests that were told to meet, what each said by its operation, and when nobody waits any more."""

    guests: tuple[_Guest, ...]
    until: datetime
    told: dict[str, float | None] = {}

    @property
    def rail(self) -> Rail:
        return self.guests[0].visitor.rail

    @property
    def kind(self) -> str:
        """Kinds of meetings have rates of their own: links between leaves may be narrower, and groups share."""
        if len(self.guests) >= GROUP_LEAST:
            return "group"
        return "pair" if len({one.visitor.leaf for one in self.guests}) == 1 else "across"


class MeetingHall:
    """Brings nodes together. `add` takes what ports reached; `now` is the controller's time. Called by one thread."""

    def __init__(self, add: Callable[[Sequence[PairResult]], None], now: Callable[[], datetime]) -> None:
        self._add = add
        self._now = now
        self._guests: dict[tuple[Rail, str], _Guest] = {}
        self._meetings: dict[str, _Meeting] = {}
        self._plans: dict[Rail, MeetingPlan[str]] = {}
        self._rates: dict[tuple[Rail, str], deque[float]] = {}
        self._wanting: dict[Rail, str] = {}
        self._tidied = now() - timedelta(seconds=TIDY_S)

    def ask(self, visitor: Visitor) -> MeetingReply:
        """Say whom the node is to meet now. Asked twice, it is the same order until its end is told."""
        self._tidy()
        now, plan = self._now(), self._plans.get(visitor.rail)
        if plan is None:
            plan = self._plans[visitor.rail] = MeetingPlan()
        key = visitor.rail, visitor.operation
        guest = self._guests.get(key)
        if guest is None and self._is_full(visitor.node):
            return MeetingReply(is_done=True)
        if guest is None:
            guest = self._guests[key] = _Guest(visitor, now)
        guest.seen, guest.visitor = now, visitor
        if guest.order is None:
            self._match(guest, plan)
        is_done = guest.order is None and self._is_done(guest, plan)
        if is_done:
            del self._guests[key]
        return MeetingReply(guest.order, is_done, plan.standing(visitor.operation))

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

    def _match(self, guest: _Guest, plan: MeetingPlan[str]) -> None:
        rail, now = guest.visitor.rail, self._now()
        if len(self._meetings) >= AT_ONCE:
            guest.moved = now  # the wait for a place is not for a partner
            return
        if guest.is_out:
            return
        free = {
            one.operation: one
            for (at, _), one in self._guests.items()
            if at == rail and not one.is_out and one.visitor.node != guest.visitor.node
        }
        chosen = plan.company(guest.seat(now), [one.seat(now) for one in free.values()])
        members = (*(free[name] for name in chosen), guest)
        if len(members) == len({one.visitor.node for one in members}) > 1:
            self._begin(members)

    def _begin(self, members: tuple[_Guest, ...]) -> None:
        """Give each its order: the first listens, and all have a secret of this meeting alone."""
        until = self._now() + timedelta(seconds=DEADLINE_S + SECONDS_S + SLACK_S)
        meeting, secret, first = secrets.token_hex(8), secrets.token_hex(16), members[0].visitor.way
        names = tuple(one.visitor.node for one in members)
        for rank, one in enumerate(members):
            way = one.visitor.way
            place = (meeting, first.address, first.port, rank, names, secret, way.via, way.interface)
            one.order, one.is_out = MeetingOrder(*place, DEADLINE_S, SECONDS_S, SIZE_MIB), True
        self._meetings[meeting] = _Meeting(members, until)

    def _is_full(self, node: str) -> bool:
        """Whether nobody more may wait, or not this node by another way."""
        if len(self._guests) >= GUESTS_MOST:
            return True
        return sum(one.visitor.node == node for one in self._guests.values()) >= WAYS_MOST

    def _is_done(self, guest: _Guest, plan: MeetingPlan[str]) -> bool:
        if guest.is_out:
            return False
        patience_s = CALLED_S if guest.visitor.calls else PATIENCE_S
        if self._now() - guest.moved >= timedelta(seconds=patience_s):
            return True
        if plan.wants(guest.operation):
            return False
        return plan.standing(guest.operation) == "blamed" or not self._some_want(guest.visitor.rail, plan)

    def _some_want(self, rail: Rail, plan: MeetingPlan[str]) -> bool:
        """Whether a test would tell something of anybody there; whoever was found last is looked at first."""
        last = self._wanting.get(rail, "")
        if (rail, last) in self._guests and plan.wants(last):
            return True
        there = (operation for at, operation in self._guests if at == rail)
        self._wanting[rail] = next((one for one in there if plan.wants(one)), "")
        return bool(self._wanting[rail])

    def _end(self, name: str) -> None:
        """The meeting is over: what all say counts, and what some say, or each otherwise, counts for nothing."""
        meeting = self._meetings.pop(name)
        for guest in meeting.guests:
            guest.order, guest.is_out = None, False
        members = [one.operation for one in meeting.guests]
        gbps = agreed([meeting.told.get(one) for one in members])
        rates = self._rates_of(meeting)
        passed = None if gbps is None else passes(gbps, rates)
        silent = [one for one in members if one not in meeting.told]
        self._plans[meeting.rail].told(members, passed=passed, silent=silent)
        nodes = ",".join(one.visitor.node for one in meeting.guests)
        log.info("meeting_ended", nodes=nodes, port=meeting.rail[1], kind=meeting.kind, gbps=gbps, passed=passed)
        if gbps is None:
            return
        if gbps > 0:
            rates.append(gbps)
        self._add(list(self._results(meeting, gbps, passed=bool(passed))))

    def _rates_of(self, meeting: _Meeting) -> deque[float]:
        key = meeting.rail, meeting.kind
        if key not in self._rates and len(self._rates) >= RATED_WAYS:
            del self._rates[next(iter(self._rates))]
        return self._rates.setdefault(key, deque(maxlen=RATES))

    def _results(self, meeting: _Meeting, gbps: float, *, passed: bool) -> Iterator[PairResult]:
        """Rates that ports reached, both ways. Of a group that passed each port did; a slow one says of no two."""
        ports, at = [f"{one.visitor.node}:{one.visitor.way.via}" for one in meeting.guests], self._now()
        if len(ports) >= GROUP_LEAST and not passed:
            return
        around = zip(ports, [*ports[1:], ports[0]], strict=True)
        for a, z in around if len(ports) >= GROUP_LEAST else [(ports[0], ports[1])]:
            yield PairResult(a, z, gbps, at)
            yield PairResult(z, a, gbps, at)

    def _tidy(self) -> None:
        """End meetings whose time is over, forget nodes that have gone, and plans in which nobody is."""
        now = self._now()
        if now - self._tidied < timedelta(seconds=TIDY_S):
            return
        self._tidied = now
        for name in [name for name, one in self._meetings.items() if one.until <= now]:
            self._end(name)
        gone = timedelta(seconds=GONE_S)
        for key, guest in list(self._guests.items()):
            if now - guest.seen > gone and not guest.is_out:
                del self._guests[key]
        used = {rail for rail, _ in self._guests} | {one.rail for one in self._meetings.values()}
        self._plans = {rail: plan for rail, plan in self._plans.items() if rail in used}
        self._wanting = {rail: last for rail, last in self._wanting.items() if rail in used}


def agreed(told: Sequence[float | None]) -> float | None:
    """The rate that all tell, None where one tells none, or another."""
    rates = [one for one in told if one is not None]
    if len(rates) < len(told):
        return None
    low, high = min(rates), max(rates)
    return low if high <= low * AGREE else None


def passes(gbps: float, rates: Sequence[float]) -> bool:
    """Whether a way is as fast as those of others, and its sums were right."""
    if gbps <= 0:
        return False
    return len(rates) < PEERS or gbps >= SLOW * median(rates)
