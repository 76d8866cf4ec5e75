"""Subscribers to the cell's records: bounded queues, and the slow are dropped to resume by themselves."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from hostler.core.state.events import Record

QUEUE = 20_000
PAGE = 2_000


class SlowSubscriberError(Exception):
    """The subscriber did not keep up and was dropped; it resumes from the last sequence number it has seen."""


class Subscribers:
    """All subscribers. `read` gives the records after a number from the journal; it blocks."""

    def __init__(self, read: Callable[[int], Iterator[Record]]) -> None:
        self._read = read
        self._queues: list[asyncio.Queue[Record | None]] = []
        self._closed = False

    def publish(self, records: Sequence[Record]) -> None:
        """Tell everybody; whoever has no room for it is dropped."""
        for queue in list(self._queues):
            if queue.qsize() + len(records) >= QUEUE:
                self._queues.remove(queue)
                _end(queue)
                continue
            for record in records:
                queue.put_nowait(record)

    def close(self) -> None:
        """End everybody's stream."""
        self._closed = True
        for queue in self._queues:
            _end(queue)

    async def follow(self, after: int) -> AsyncIterator[Record]:
        """Every record after `after`, from the journal and then live. Raises SlowSubscriberError."""
        queue: asyncio.Queue[Record | None] = asyncio.Queue(QUEUE)
        self._queues.append(queue)
        try:
            seen = after
            while page := await asyncio.to_thread(self._page, seen):
                for record in page:
                    seen = record.seq
                    yield record
            while (live := await queue.get()) is not None:
                if live.seq > seen:
                    yield live
            if queue not in self._queues and not self._closed:
                raise SlowSubscriberError
        finally:
            if queue in self._queues:
                self._queues.remove(queue)

    def _page(self, after: int) -> list[Record]:
        return list(itertools.islice(self._read(after), PAGE))


def _end(queue: "asyncio.Queue[Record | None]") -> None:
    while queue.full():
        queue.get_nowait()
    queue.put_nowait(None)
