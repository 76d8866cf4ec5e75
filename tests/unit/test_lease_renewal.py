"""The thread that keeps the lease: from when a renewal counts, and when it is no longer asked for."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from hostler.ports import FencedError, JournalError
from hostler.runtime.lease_renewal import STUCK_S, Holding
from hostler.runtime.lease_validity import LeaseTerms, LeaseWatch

TERMS = LeaseTerms(lease_s=0.03)
"""So short that a renewal is asked for every ten milliseconds; the moments themselves are those of `SlowJournal`."""
PATIENCE_S = 20.0


class SlowJournal:
    """A journal whose clock stands still but while it answers, which takes `answers_s`; then it does as told."""

    def __init__(self, answers_s: float = 0.0, raises: Exception | None = None) -> None:
        self.now = 1_000.0
        self.answers_s = answers_s
        self.raises = raises
        self.asked = 0
        self.turned = threading.Semaphore(0)
        self.looked = threading.Semaphore(0)
        self.answering: Callable[[], object] = lambda: None

    def moment(self) -> float:
        if threading.current_thread() is not threading.main_thread():
            self.looked.release()
        return self.now

    def renew(self, _epoch: int) -> None:
        self.asked += 1
        self.now += self.answers_s
        self.answering()
        self.turned.release()
        if self.raises is not None:
            raise self.raises

    def until(self, times: int) -> None:
        """Wait until it was asked so often more, the last of which has then been seen to."""
        for _ in range(times):
            assert self.turned.acquire(timeout=PATIENCE_S), "it was not asked"


class Held:
    """A holding over such a journal, and whether it was told that the lease is lost."""

    def __init__(self, journal: SlowJournal) -> None:
        self.journal = journal
        self.watch = LeaseWatch("me", TERMS)
        port: Any = journal
        self.holding = Holding(port, self.watch, journal.moment)
        self.lost = threading.Event()
        self.holding.begin(7, lambda call: call(), self.lost.set)

    def end(self) -> None:
        self.holding.end()
        for thread in threading.enumerate():
            if thread.name == "lease-7":
                thread.join(PATIENCE_S)


@pytest.fixture
def held(request: pytest.FixtureRequest) -> Any:
    made: list[Held] = []

    def make(journal: SlowJournal) -> Held:
        made.append(Held(journal))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_the_thread_that_renews_keeps_no_process_alive(held: Callable[[SlowJournal], Held]) -> None:
    """Mutant: it is no daemon, and a controller that has ended goes on holding its lease."""
    held(SlowJournal())
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "lease-7"] == [True]


@pytest.mark.parametrize("raises", [None, FencedError("another epoch")], ids=["renewed", "fenced"])
def test_a_loop_that_is_closed_ends_the_thread_without_a_word(raises: Exception | None) -> None:
    """The process ends. Mutant: the thread dies of what the closed loop raises, which pytest reports as a failure."""
    loop = asyncio.new_event_loop()
    journal = SlowJournal(raises=raises)
    journal.answering = loop.close
    port: Any = journal
    Holding(port, LeaseWatch("me", TERMS), journal.moment).begin(8, loop.call_soon_threadsafe, lambda: None)
    for thread in threading.enumerate():
        if thread.name == "lease-8":
            thread.join(PATIENCE_S)
    assert (journal.asked, loop.is_closed()) == (1, True)
    assert "lease-8" not in {thread.name for thread in threading.enumerate()}


def test_a_renewal_counts_from_when_it_was_asked_for(held: Callable[[SlowJournal], Held]) -> None:
    """An answer that took 0.02 of 0.03 s leaves what is left of them. Mutant: the right counts from the answer."""
    journal = SlowJournal(answers_s=0.02)
    one = held(journal)
    journal.until(2)
    one.end()
    began = journal.now - journal.answers_s
    assert one.watch.margin(began) == pytest.approx(TERMS.lease_s - TERMS.margin_s)
    assert one.holding.why() == ""
    journal.now += TERMS.lease_s
    assert "is not renewed" in one.holding.why()


def test_a_renewal_that_is_answered_after_the_term_ended_gives_no_right(held: Callable[[SlowJournal], Held]) -> None:
    """The controller has resigned meanwhile. Mutant: the answer is taken all the same."""
    journal = SlowJournal()
    one = held(journal)
    journal.answering = one.holding.end
    journal.until(1)
    one.end()
    assert journal.asked == 1
    assert one.watch.margin(journal.now) <= 0


@pytest.mark.parametrize(("idle_s", "asks"), [(STUCK_S, True), (STUCK_S + 1, False)])
def test_a_loop_that_has_not_turned_for_long_keeps_the_lease_no_longer(
    held: Callable[[SlowJournal], Held], idle_s: float, asks: bool
) -> None:
    """Mutants: a loop that hangs keeps it for ever; one that works for two minutes loses it."""
    journal = SlowJournal(answers_s=idle_s)
    one = held(journal)
    journal.until(1)
    for _ in range(5):  # two for each turn of the thread
        assert journal.looked.acquire(timeout=PATIENCE_S)
    assert (journal.asked > 1) is asks
    if not asks:
        assert "has not finished a step for 2 min 1 s" in one.holding.why()
        assert one.holding.turned() == pytest.approx(idle_s)
        journal.until(1)


def test_who_has_been_taken_over_is_told_and_asks_no_more(held: Callable[[SlowJournal], Held]) -> None:
    """Mutants: `lost` is not called; it goes on asking."""
    journal = SlowJournal(raises=FencedError("epoch 8 is active"))
    one = held(journal)
    assert one.lost.wait(PATIENCE_S)
    one.end()
    assert (journal.asked, one.holding.fenced) == (1, "epoch 8 is active")
    assert one.watch.margin(journal.now) <= 0


def test_a_journal_that_fails_renews_nothing_says_why_and_is_asked_again(held: Callable[[SlowJournal], Held]) -> None:
    """Mutants: a failed renewal counts as one; the reason outlives the failure."""
    journal = SlowJournal(raises=JournalError("disk full"))
    one = held(journal)
    journal.until(3)
    assert one.watch.margin(journal.now) <= 0
    assert one.holding.why() == "the lease is not renewed: disk full"
    assert not one.lost.is_set()
    journal.raises = None
    journal.until(2)
    one.end()
    assert one.holding.why() == ""
    journal.now += 60
    assert one.holding.why() == "the lease is not renewed: the journal has not answered for 1 min"


class TellingEvent(threading.Event):
    """An event that notes for how long each wait of a limited length was."""

    pauses_s: ClassVar[list[float]] = []

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:
            self.pauses_s.append(timeout)
        return super().wait(timeout)


def test_a_failed_renewal_is_tried_anew_after_a_quarter_of_the_usual_pause(
    held: Callable[[SlowJournal], Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: another part of the pause; the pause stays short once the journal answers again."""
    monkeypatch.setattr(threading, "Event", TellingEvent)
    monkeypatch.setattr(TellingEvent, "pauses_s", [])
    journal = SlowJournal(raises=JournalError("disk full"))
    one = held(journal)
    journal.until(2)
    journal.raises = None
    journal.until(3)
    one.end()
    pauses = [pause_s for pause_s in TellingEvent.pauses_s if pause_s != PATIENCE_S]
    assert pauses[0] == TERMS.renew_s
    assert pauses[1] == TERMS.renew_s / 4
    assert set(pauses) == {TERMS.renew_s, TERMS.renew_s / 4}
    assert pauses[-1] == TERMS.renew_s


def test_a_standstill_is_logged_once_and_not_at_every_look(
    held: Callable[[SlowJournal], Held], caplog: pytest.LogCaptureFixture
) -> None:
    """Mutants: it is logged at every look; at every look but the first."""
    journal = SlowJournal(answers_s=STUCK_S + 1)
    one = held(journal)
    journal.until(1)
    for _ in range(10):  # two for each turn of the thread
        assert journal.looked.acquire(timeout=PATIENCE_S)
    one.end()
    told = [(record.getMessage(), record.__dict__["facts"]) for record in caplog.records]
    assert told == [("lease_not_renewed", {"reason": "the controller has not finished a step for 2 min 1 s"})]
