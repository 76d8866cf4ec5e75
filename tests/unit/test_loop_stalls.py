"""The lease is renewed while the event loop answers: one that stalls for longer than the lease lasts loses it."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostler.ports import FencedError, Lease
from hostler.runtime.lease_renewal import Holding
from hostler.runtime.lease_validity import LeaseTerms, LeaseWatch

LEASE_S = 0.6
LONGER_S = 9.0
"""Renewed after a third of this; a machine that is slow for the rest of it is slower than any."""
WITHIN_S = 30.0


class Renewed:
    """The journal's part: counts renewals, and may say that another has taken over."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.taken = False

    def renew(self, epoch: int) -> None:
        if self.taken:
            raise FencedError("epoch 2 is not 1")
        self.times.append(time.monotonic())


class Loop:
    """An event loop that runs what it is told at once, or not at all while it is stalled."""

    def __init__(self) -> None:
        self.stalled = False
        self.called: list[Callable[[], object]] = []

    def soon(self, call: Callable[[], object]) -> None:
        self.called.append(call)
        if not self.stalled:
            call()


class Played:
    def __init__(self, lease_s: float = LEASE_S) -> None:
        self.journal, self.loop, self.lost = Renewed(), Loop(), list[bool]()
        self.watch = LeaseWatch("a", LeaseTerms(lease_s))
        self.watch.took(Lease(1, "a"), time.monotonic())
        journal: Any = self.journal
        self.holding = Holding(journal, self.watch, time.monotonic)
        self.holding.begin(1, self.loop.soon, lambda: self.lost.append(True))

    def margin_s(self) -> float:
        return self.watch.margin(time.monotonic())


@pytest.fixture
def played() -> Iterator[Played]:
    one = Played()
    yield one
    one.holding.end()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end, "in vain"
        time.sleep(LEASE_S / 20)


def test_a_loop_that_stalls_longer_than_the_lease_gives_it_up_and_has_it_again_with_its_next_turn(
    played: Played,
) -> None:
    """Mutants: the thread renews whatever the loop does; it asks whether decisions are made, and for two minutes."""
    played.holding.opened()
    until(lambda: len(played.journal.times) >= 2)
    played.loop.stalled = True
    until(lambda: played.margin_s() <= 0)
    assert "the event loop has been blocked" in played.holding.why()
    before = len(played.journal.times)
    time.sleep(2 * LEASE_S)
    assert len(played.journal.times) == before, "it is not renewed meanwhile"
    played.loop.stalled = False
    until(lambda: played.margin_s() > 0)
    assert played.holding.why() == ""


def test_a_shorter_stall_costs_no_lease() -> None:
    """Mutant: nothing is renewed while the loop does not answer, however short that is."""
    played = Played(LONGER_S)
    try:
        played.holding.opened()
        played.loop.stalled = True
        before = len(played.journal.times)
        until(lambda: len(played.journal.times) > before)
        assert not played.holding.why()
    finally:
        played.holding.end()


def test_a_takeover_may_take_longer_than_the_lease(played: Played) -> None:
    """A takeover folds and looks at the whole fleet. Mutant: the patience of one who is in office counts already."""
    played.loop.stalled = True
    time.sleep(3 * LEASE_S)
    until(lambda: played.margin_s() > 0)


def test_who_was_replaced_is_told_so_in_the_loop(played: Played) -> None:
    played.journal.taken = True
    until(lambda: bool(played.lost))
    assert played.holding.fenced
