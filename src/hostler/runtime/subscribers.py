"""Subscribers to the cell's records: bounded, told in batches, and the slow are dropped to resume by themselves."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence

from hostler.core.state.events import Record

QUEUE = 20_000
PAGE = 2_000


class SlowSubscriberError(Exception):
    """The subscriber did not keep up and was dropped; it resumes from the last sequence number it has seen."""


class Subscription:
    """One subscriber's records in batches: first pages of the journal, then whatever has come since it last asked.

    Iterating gives batches of one record or more, and an empty one after `quiet_s` seconds without news. Raises
    SlowSubscriberError behind the last record that had room. Ends when it is closed, or the subscribers are. `kept_up`:
    everybody has been told of `after` and of nothing later, so that the journal need not be asked.
    """

    def __init__(
        self, page: Callable[[int], list[Record]], after: int, quiet_s: float | None, *, kept_up: bool = False
    ) -> None:
        self.seen = after
        self._page = page
        self._quiet_s = quiet_s
        self._from_journal = not kept_up
        self._coming: list[Record] = []
        self._news = asyncio.Event()
        self._closed = False
        self._slow = False

    @property
    def ended(self) -> bool:
        """Whether no further record is taken."""
        return self._closed or self._slow

    def offer(self, records: Sequence[Record]) -> None:
        """Take the records, all or none: without room for them it is slow, and ends."""
        if len(self._coming) + len(records) >= QUEUE:
            self._slow = True
        else:
            self._coming.extend(records)
        self._news.set()

    def close(self) -> None:
        """End it, also while it waits."""
        self._closed = True
        self._news.set()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Sequence[Record]:
        if batch := await self._kept():
            self.seen = batch[-1].seq
            return batch
        while True:
            coming, self._coming = self._coming, []
            if batch := [record for record in coming if record.seq > self.seen]:
                self.seen = batch[-1].seq
                return batch
            if self._closed:
                raise StopAsyncIteration
            if self._slow:
                raise SlowSubscriberError
            if not await self._told():
                return ()

    async def _kept(self) -> list[Record]:
        """The journal's next page, nothing once all of it has been read."""
        if not self._from_journal or self.ended:
            return []
        page = await asyncio.to_thread(self._page, self.seen)
        self._from_journal = bool(page)
        return page

    async def _told(self) -> bool:
        """Wait for news; False where none came in time."""
        self._news.clear()
        try:
            async with asyncio.timeout(self._quiet_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class Subscribers:
    """All subscribers. `read` gives the records after a number from the journal; it blocks."""

    def __init__(self, read: Callable[[int], Iterator[Record]]) -> None:
        self._read = read
        self._open: list[Subscription] = []
        self._closed = False
        self._told: int | None = None

    def publish(self, records: Sequence[Record]) -> None:
        """Tell everybody; whoever has no room for it, or has left, is dropped."""
        if records:
            self._told = records[-1].seq
        for one in self._open:
            one.offer(records)
        self._open = [one for one in self._open if not one.ended]

    def close(self) -> None:
        """End everybody's stream."""
        self._closed = True
        for one in self._open:
            one.close()

    def follow(self, after: int, quiet_s: float | None = None) -> Subscription:
        """Every record after `after`, from the journal and then live. `quiet_s`: see Subscription."""
        kept_up = self._told is not None and self._told <= after
        one = Subscription(self._next_page, after, quiet_s, kept_up=kept_up)
        if self._closed:
            one.close()
        self._open.append(one)
        return one

    def _next_page(self, after: int) -> list[Record]:
        return list(itertools.islice(self._read(after), PAGE))
