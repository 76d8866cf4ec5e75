"""Requests to one API server take turns: few at once, cordons before all else, and of these the gravest node's first.

Two hundred writes that are sent together end together: each then waits for all. Sent few at a time half of them are
done in half of the time, over connections that stay open. Places are kept free for what is more urgent, so that
evictions that hang in somebody's webhook, or the marks of a whole cluster, hold up no cordon.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from itertools import count

from msgspec import Struct


class Urgency(IntEnum):
    """Purpose of a request; the smaller goes first."""

    cordon = 0
    act = 1
    mark = 2


PLACES = {Urgency.cordon: 16, Urgency.act: 12, Urgency.mark: 6}
"""So many requests of an urgency, together with those that are less urgent, are out at the same time."""


class RequestRank(Struct, frozen=True):
    """A request's rank: its urgency, then `gravity` (a `Severity`; the greater first), then who came first."""

    urgency: Urgency = Urgency.act
    gravity: int = 0


ACT, MARK = RequestRank(), RequestRank(Urgency.mark)


class RequestQueue:
    """Queue of requests to one API server. Waits without a limit of its own: whoever asks has a deadline."""

    def __init__(self) -> None:
        self._out = dict.fromkeys(Urgency, 0)
        self._waiting: dict[Urgency, list[tuple[int, int, asyncio.Future[None]]]] = {one: [] for one in Urgency}
        self._came = count()

    @asynccontextmanager
    async def taken(self, turn: RequestRank) -> AsyncIterator[None]:
        """Wait for the turn, and have a place for as long as the block lasts."""
        await self._enter(turn)
        try:
            yield
        finally:
            self._leave(turn.urgency)

    async def _enter(self, turn: RequestRank) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting[turn.urgency], (-turn.gravity, next(self._came), granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._leave(turn.urgency)
            raise

    def _leave(self, urgency: Urgency) -> None:
        self._out[urgency] -= 1
        self._grant()

    def _grant(self) -> None:
        """Let in whoever has room, the most urgent first."""
        for urgency in Urgency:
            waiting = self._waiting[urgency]
            while waiting and self._has_room(urgency):
                *_, granted = heapq.heappop(waiting)
                if not granted.done():
                    self._out[urgency] += 1
                    granted.set_result(None)

    def _has_room(self, urgency: Urgency) -> bool:
        """Whether a place is free for it; what is less urgent takes none of those that are kept for it."""
        return all(
            sum(self._out[less] for less in Urgency if less >= one) < PLACES[one] for one in Urgency if one <= urgency
        )
