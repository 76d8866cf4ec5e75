"""Promises of every journal about its lease, its members and waking those who wait."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.ports import Batch, ControllerMember, FencedError, Journal, Lease
from tests.contract.journal_samples import boots, observed

FOREVER_S = 60.0
"""Longer than any test: who returns was woken."""


def test_nobody_holds_a_new_journal(journal: Journal) -> None:
    assert journal.lease() == Lease(epoch=0, holder="", address="", renewal=0)
    assert journal.members() == ()
    assert journal.restored() is None


def test_the_lease_names_its_holder_and_where_it_is_reached(journal: Journal) -> None:
    assert journal.acquire("a", "https://a:8443") == 1
    assert journal.lease() == Lease(epoch=1, holder="a", address="https://a:8443")
    assert journal.acquire("b") == 2
    assert journal.lease() == Lease(epoch=2, holder="b")


def test_of_two_that_saw_the_same_lease_one_takes_it(journal: Journal) -> None:
    """Mutants: `seen` is not looked at, or its epoch alone is."""
    journal.acquire("a")
    seen = journal.lease()
    assert journal.acquire("b", "", seen) == 2
    with pytest.raises(FencedError, match="b holds epoch 2: the lease changed"):
        journal.acquire("c", "", seen)
    assert journal.lease().holder == "b"
    seen = journal.lease()
    journal.renew(2)
    with pytest.raises(FencedError):
        journal.acquire("c", "", seen)
    assert journal.acquire("c", "", journal.lease()) == 3


def test_many_race_for_one_lease(journal: Journal) -> None:
    journal.acquire("a")
    seen = journal.lease()

    def race(name: str) -> int:
        try:
            return journal.acquire(name, "", seen)
        except FencedError:
            return 0

    with ThreadPoolExecutor(8) as pool:
        epochs = list(pool.map(race, "bcdefghi"))
    assert sorted(epochs) == [0] * 7 + [2]


def test_a_renewal_is_seen_and_only_the_holder_renews(journal: Journal) -> None:
    """Mutant: renew does not check the epoch."""
    old = journal.acquire("a", "here")
    journal.renew(old)
    journal.renew(old)
    assert journal.lease() == Lease(epoch=1, holder="a", address="here", renewal=2)
    new = journal.acquire("b")
    for epoch in (0, old, new + 1):
        with pytest.raises(FencedError):
            journal.renew(epoch)
    assert journal.lease() == Lease(epoch=2, holder="b")


def test_who_resigned_may_neither_append_nor_renew(journal: Journal) -> None:
    """Mutant: the fence compares epochs only."""
    epoch = journal.acquire("a", "here")
    journal.renew(epoch)
    journal.resign(epoch)
    assert journal.lease() == Lease(epoch=1, holder="", address="", renewal=1)
    with pytest.raises(FencedError, match="nobody holds epoch 1"):
        journal.append(boots(1, 1), epoch)
    with pytest.raises(FencedError):
        journal.renew(epoch)
    assert journal.acquire("b", "", journal.lease()) == 2


def test_nobody_resigns_for_another(journal: Journal) -> None:
    old, new = journal.acquire("a"), journal.acquire("b")
    journal.resign(old)
    assert journal.lease() == Lease(epoch=2, holder="b")
    journal.append(boots(1, 1, new), new)


def test_members_are_known_by_name_and_beat(journal: Journal) -> None:
    """Mutant: announcing writes the caller's count of beats."""
    b, a = (
        ControllerMember(name="b", address="https://b", reads=1),
        ControllerMember(name="a", address="https://a", reads=2),
    )
    journal.announce(b)
    journal.announce(a)
    journal.announce(replace(b, beats=70))
    journal.announce(replace(b, address="https://elsewhere", reads=3))
    assert journal.members() == (replace(a, beats=1), ControllerMember("b", "https://elsewhere", reads=3, beats=3))
    journal.dismiss("b")
    journal.dismiss("nobody")
    assert journal.members() == (replace(a, beats=1),)


def test_waiting_ends_at_once_where_there_is_more_to_read(journal: Journal) -> None:
    journal.append(boots(1, 5), journal.acquire("a"))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(journal.wait, 4, journal.lease(), FOREVER_S).result(timeout=30)


@pytest.mark.parametrize("change", ["append", "acquire", "resign"])
def test_who_waits_is_woken(journal: Journal, change: str) -> None:
    """Mutants: the lease is not looked at while waiting; a record is waited for that is there already."""
    epoch = journal.acquire("a")
    journal.append(boots(1, 5), epoch)
    changes: dict[str, Any] = {
        "append": lambda: journal.append(boots(6, 6), epoch),
        "acquire": lambda: journal.acquire("b"),
        "resign": lambda: journal.resign(epoch),
    }
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(journal.wait, 5, journal.lease(), FOREVER_S)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.2)
        changes[change]()
        waiting.result(timeout=30)


def test_who_begins_to_wait_after_the_change_is_not_kept(journal: Journal) -> None:
    """Mutant: what is compared with is the lease as it is found when the waiting begins."""
    epoch = journal.acquire("a")
    seen = journal.lease()
    journal.resign(epoch)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(journal.wait, 0, seen, FOREVER_S).result(timeout=30)


def test_a_renewal_or_an_observation_wakes_nobody(journal: Journal) -> None:
    epoch = journal.acquire("a")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(journal.wait, 0, journal.lease(), FOREVER_S)
        journal.renew(epoch)
        journal.append(Batch(observations=(observed("n1", 1),)), epoch)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.4)
        journal.resign(epoch)
        waiting.result(timeout=30)
