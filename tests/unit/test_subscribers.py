"""Subscriptions: pages of the journal, batches of what comes, a mark of quiet, and an end for the slow."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest

from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.runtime import subscribers
from hostler.runtime.subscribers import SlowSubscriberError, Subscribers, Subscription

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_S = 5


def records(first: int, last: int) -> list[Record]:
    """Records of these numbers."""
    return [Record(seq, NOW, 1, "test", e.BrakeReleased("ann", "it was a drill")) for seq in range(first, last + 1)]


def numbers(batch: Sequence[Record]) -> list[int]:
    return [record.seq for record in batch]


def following(kept: list[Record]) -> Subscribers:
    return Subscribers(lambda after: iter(kept[after:]))


async def soon(one: Subscription) -> list[int]:
    async with asyncio.timeout(PATIENCE_S):
        return numbers(await anext(one))


async def test_the_journal_comes_first_a_page_at_a_time_and_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: what came while the journal was read is told again, or is not told."""
    monkeypatch.setattr(subscribers, "PAGE", 2)
    kept = records(1, 5)
    all_of_them = following(kept)
    one = all_of_them.follow(1)
    assert await soon(one) == [2, 3]
    kept.append(*records(6, 6))
    all_of_them.publish(records(5, 6))
    all_of_them.publish(records(7, 7))
    assert await soon(one) == [4, 5]
    assert await soon(one) == [6]
    assert await soon(one) == [7]


async def test_who_has_kept_up_asks_nothing_of_the_journal_and_misses_nothing() -> None:
    """Two hundred clients that come at once would each have a thread read nothing.

    Mutants: who is behind what was told reads nothing either; a process that has told nobody yet reads nothing.
    """
    asked: list[int] = []
    kept = records(1, 3)

    def read(after: int) -> Iterator[Record]:
        asked.append(after)
        return iter(kept[after:])

    all_of_them = Subscribers(read)
    first = all_of_them.follow(2)
    assert await soon(first) == [3]
    assert asked == [2], "nobody was told of anything yet"
    all_of_them.publish(records(3, 3))
    asked.clear()
    one, behind = all_of_them.follow(3), all_of_them.follow(1)
    all_of_them.publish(records(4, 4))
    assert await soon(one) == [4]
    assert asked == []
    assert await soon(behind) == [2, 3]
    assert asked == [1]


async def test_what_came_since_it_last_asked_is_one_batch() -> None:
    all_of_them = following([])
    one = all_of_them.follow(0)
    coming = asyncio.create_task(soon(one))
    await asyncio.sleep(0.05)
    all_of_them.publish(records(1, 2))
    all_of_them.publish(records(3, 3))
    assert await coming == [1, 2, 3]


async def test_quiet_is_an_empty_batch_and_the_next_record_is_still_told() -> None:
    all_of_them = following([])
    one = all_of_them.follow(0, quiet_s=0.01)
    assert await soon(one) == []
    all_of_them.publish(records(1, 1))
    assert await soon(one) == [1]


async def test_a_slow_one_is_told_what_had_room_and_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: who is slow is kept, and its records with it."""
    monkeypatch.setattr(subscribers, "QUEUE", 4)
    all_of_them = following([])
    slow, quick = all_of_them.follow(0), all_of_them.follow(0)
    told = []
    for first in (1, 3, 5):
        all_of_them.publish(records(first, first + 1))
        told += await soon(quick)
    assert told == [1, 2, 3, 4, 5, 6]
    assert slow.ended
    assert not quick.ended
    assert await soon(slow) == [1, 2]
    with pytest.raises(SlowSubscriberError):
        await anext(slow)


@pytest.mark.parametrize("everybody", [True, False])
async def test_who_waits_is_woken_by_the_end(everybody: bool) -> None:
    all_of_them = following([])
    one = all_of_them.follow(0)
    waiting = asyncio.create_task(anext(one, "the end"))
    await asyncio.sleep(0.05)
    (all_of_them if everybody else one).close()
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting == "the end"


async def test_who_comes_after_the_end_is_ended() -> None:
    all_of_them = following(records(1, 3))
    all_of_them.close()
    assert [batch async for batch in all_of_them.follow(0)] == []
