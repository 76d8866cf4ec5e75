"""The lease's arithmetic: never two who may act, whatever the clocks say and however long every message takes."""

import heapq
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from hostler.ports import Lease
from hostler.runtime.lease_validity import LeaseTerms, LeaseWatch

TERMS = LeaseTerms(lease_s=5.0)
YEAR_S = 365 * 86_400.0


def test_a_right_ends_a_margin_before_the_lease_and_counts_from_when_its_renewal_began() -> None:
    """Mutant: the right counts from when the renewal was answered."""
    watch = LeaseWatch("a", TERMS)
    assert watch.margin(0.0) == 0.0
    watch.renewed(began=100.0)
    assert watch.margin(100.0) == pytest.approx(4.0)
    assert watch.margin(103.9) > 0 >= watch.margin(104.0)
    watch.lost()
    assert watch.margin(100.0) == 0.0


def test_who_took_a_lease_may_act_from_when_it_was_asked_for() -> None:
    """Mutant: nobody may before the first renewal."""
    watch = LeaseWatch("a", TERMS)
    watch.took(Lease(1, "a"), 100.0)
    assert watch.margin(100.0) == pytest.approx(4.0)


def test_a_lease_is_takeable_once_it_has_not_changed_for_its_whole_length() -> None:
    """Mutant: any reading, also one that shows a renewal, counts as silence."""
    watch = LeaseWatch("b", TERMS)
    assert not watch.takeable(1e9), "nothing was read yet"
    watch.saw(Lease(1, "a", renewal=1), 10.0)
    assert not watch.takeable(14.9)
    watch.saw(Lease(1, "a", renewal=2), 14.9)
    assert not watch.takeable(19.8)
    watch.saw(Lease(1, "a", renewal=2), 19.8)
    assert watch.takeable(20.0)
    assert watch.remains(18.9) == pytest.approx(1.0)


def test_a_holder_renews_three_times_a_lease_and_stops_a_fifth_before_its_end() -> None:
    """Mutants: either part is another."""
    assert (LeaseTerms(lease_s=15.0).renew_s, LeaseTerms(lease_s=15.0).margin_s) == (5.0, 3.0)


def test_who_waits_for_a_lease_waits_for_what_is_left_of_it() -> None:
    """Mutants: a lease nobody has read is waited for; one that is over is waited for backwards."""
    watch = LeaseWatch("b", TERMS)
    assert watch.remains(10.0) == 0.0
    watch.saw(Lease(1, "a"), 10.0)
    assert [watch.remains(at) for at in (10.0, 14.0, 15.0, 16.0)] == [5.0, 1.0, 0.0, 0.0]
    watch.saw(Lease(1, ""), 11.0)
    assert watch.remains(11.0) == 0.0


@pytest.mark.parametrize("holder", ["", "b"])
def test_a_resigned_lease_and_ones_own_are_takeable_at_once(holder: str) -> None:
    watch = LeaseWatch("b", TERMS)
    watch.saw(Lease(7, holder), 10.0)
    assert watch.takeable(10.0)


def test_unattended_time_is_what_was_witnessed() -> None:
    """Mutant: who has only just come takes the first reading for a sign of life."""
    watch = LeaseWatch("b", TERMS)
    watch.worked(1)
    watch.saw(Lease(1, "a", renewal=1), 10.0)
    assert watch.unattended(20.0) is None, "it may have been silent for a week"
    watch.saw(Lease(1, "a", renewal=2), 12.0)
    watch.saw(Lease(1, "a", renewal=2), 19.0)
    assert watch.unattended(20.0) == pytest.approx(10.0), "renewed after it was read at 10, read again at 12"
    watch.saw(Lease(2, "b"), 21.0)
    assert watch.unattended(21.0) is None, "our own sign of life is no other's"


def test_who_took_the_lease_and_recorded_nothing_has_attended_to_nothing() -> None:
    """Mutant: taking the lease counts as attendance, and the hours before it are never told to anybody."""
    watch = LeaseWatch("c", TERMS)
    watch.worked(1)
    watch.saw(Lease(1, "a", renewal=1), 10.0)
    watch.saw(Lease(1, "a", renewal=2), 12.0)
    watch.saw(Lease(2, "b"), 9_000.0)
    watch.saw(Lease(2, "b", renewal=1), 9_001.0)
    assert watch.unattended(9_010.0) == pytest.approx(9_000.0), "since the one before was last seen alive"
    watch.worked(2)
    assert watch.unattended(9_010.0) == pytest.approx(10.0), "its first record has been read since"


def test_of_takers_alone_nobody_has_witnessed_anything() -> None:
    """No controller stood by before them: the last record tells how long nobody attended."""
    watch = LeaseWatch("c", TERMS)
    watch.worked(1)
    watch.saw(Lease(2, "b"), 9_000.0)
    watch.saw(Lease(2, "b", renewal=1), 9_001.0)
    assert watch.unattended(9_010.0) is None


@dataclass
class Actor:
    """A controller whose clock is off by so much, and which does one thing at a time."""

    name: str
    offset_s: float
    watch: LeaseWatch = field(init=False)
    epoch: int = 0
    looks: bool = True

    def __post_init__(self) -> None:
        self.watch = LeaseWatch(self.name, TERMS)

    def took(self, epoch: int | None, began: float) -> None:
        if epoch is not None:
            self.epoch = epoch
            self.watch.took(Lease(epoch, self.name), began)

    def fenced(self) -> None:
        self.epoch = 0
        self.watch.lost()

    def may_act(self, at: float) -> bool:
        return self.watch.margin(at + self.offset_s) > 0


class Database:
    """The lease, changed at one moment at a time."""

    def __init__(self) -> None:
        self.lease = Lease()

    def renew(self, epoch: int) -> bool:
        if self.lease.epoch != epoch:
            return False
        self.lease = Lease(epoch, self.lease.holder, renewal=self.lease.renewal + 1)
        return True

    def acquire(self, name: str, seen: Lease | None) -> int | None:
        if seen != self.lease:
            return None
        self.lease = Lease(self.lease.epoch + 1, name)
        return self.lease.epoch


class Step(NamedTuple):
    """How long until the actor begins, until the database does it, and until the actor hears of it."""

    wait_s: float
    there_s: float
    back_s: float


def a_step(draw: random.Random) -> Step:
    """Draw a step, mostly a quick one; now and then a controller is stopped, or a message takes as long as a lease."""
    wait_s = draw.uniform(0.1, 2.0) if draw.random() < 0.9 else draw.uniform(0.0, 20.0)
    return Step(wait_s, *(draw.uniform(0.0, 0.3 if draw.random() < 0.8 else 6.0) for _ in "ab"))


class Play:
    """Actors at one database; every message takes its time."""

    def __init__(self, offsets: list[float], schedules: list[list[Step]]) -> None:
        self.database = Database()
        self.actors = [Actor(f"c{number}", offset) for number, offset in enumerate(offsets)]
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        for actor, plan in zip(self.actors, schedules, strict=True):
            self._begin(actor, plan, 0.0)

    def moments(self) -> Iterator[float]:
        """Run the moments in their order; gives the moment after each thing that happens."""
        while self._events:
            at, _, call = heapq.heappop(self._events)
            call()
            yield at

    def _later(self, at: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at, next(self._order), call))

    def _begin(self, actor: Actor, plan: list[Step], at: float) -> None:
        if plan:
            start = at + plan[0].wait_s
            self._later(start, lambda: self._ask(actor, plan, start))

    def _ask(self, actor: Actor, plan: list[Step], start: float) -> None:
        """The actor does what it would do now; what comes of it is decided when the request is there."""
        began, there = start + actor.offset_s, start + plan[0].there_s
        if actor.epoch:
            heard = self._renewal(actor, began)
        elif actor.watch.takeable(began) and not actor.looks:
            actor.looks = True
            heard = self._takeover(actor, began, actor.watch.seen)
        else:
            actor.looks = False
            heard = self._reading(actor, there + plan[0].back_s)
        self._later(there, lambda: self._done(actor, plan, there, heard))

    def _done(self, actor: Actor, plan: list[Step], at: float, heard: Callable[[], Callable[[], None]]) -> None:
        tell, back = heard(), at + plan[0].back_s
        self._later(back, tell)
        self._later(back, lambda: self._begin(actor, plan[1:], back))

    def _renewal(self, actor: Actor, began: float) -> Callable[[], Callable[[], None]]:
        def there() -> Callable[[], None]:
            return (lambda: actor.watch.renewed(began)) if self.database.renew(actor.epoch) else actor.fenced

        return there

    def _takeover(self, actor: Actor, began: float, seen: Lease | None) -> Callable[[], Callable[[], None]]:
        def there() -> Callable[[], None]:
            epoch = self.database.acquire(actor.name, seen)
            return lambda: actor.took(epoch, began)

        return there

    def _reading(self, actor: Actor, ended: float) -> Callable[[], Callable[[], None]]:
        def there() -> Callable[[], None]:
            read = self.database.lease
            return lambda: actor.watch.saw(read, ended + actor.offset_s)

        return there


@pytest.mark.parametrize("seed", range(40))
def test_never_do_two_controllers_believe_that_they_may_act(seed: int) -> None:
    """Messages take any time on their way, clocks are off by a year, a renewal is heard of late or never.

    Mutants: the right counts from the renewal's answer; a standby counts from a reading before the last change; the
    lease is taken whatever it has become since it was read.
    """
    draw = random.Random(seed)
    offsets = [draw.choice([0.0, YEAR_S, -YEAR_S]) for _ in "abc"]
    play = Play(offsets, [[a_step(draw) for _ in range(300)] for _ in offsets])
    terms = 0
    for at in play.moments():
        allowed = [actor.name for actor in play.actors if actor.may_act(at)]
        assert len(allowed) <= 1, f"at {at:.2f} s {allowed} may act"
        terms = play.database.lease.epoch
    assert terms > 5, "the lease hardly changed hands: nothing was tried"
