"""Turns at something that few may have at a time: so many in all, so many of one address; others wait for theirs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol


class QueuedConnection(Protocol):
    """A connection. While it `queues` it gives way to a newer one where there is no room."""

    address: str
    queues: bool


class AddressTurns:
    """Turns of one listener. Who asks from many connections waits for itself, and takes no other's turn.

    `addresses` are those that have a turn or wait for one: their own room, and how many they are.
    """

    def __init__(self, most: int, of_address: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._of_address = of_address
        self.addresses: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(
        self, connection: QueuedConnection, receive: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> AsyncIterator[bool]:
        """A turn while the block runs. False: the client has gone before it came, and there is nothing to do."""
        own, users = self.addresses.get(connection.address) or (asyncio.Semaphore(self._of_address), 0)
        self.addresses[connection.address] = (own, users + 1)
        try:
            async with _held(own, connection, receive) as first, _held(self._all, connection, receive) as second:
                yield first and second
        finally:
            own, users = self.addresses[connection.address]
            if users == 1:
                del self.addresses[connection.address]
            else:
                self.addresses[connection.address] = (own, users - 1)


@asynccontextmanager
async def _held(
    room: asyncio.Semaphore, connection: QueuedConnection, receive: Callable[[], Awaitable[Mapping[str, Any]]]
) -> AsyncIterator[bool]:
    has_turn = not room.locked() and await room.acquire()
    if not has_turn:
        connection.queues = True
        try:
            has_turn = await _acquired(room, receive)
        finally:
            connection.queues = False
    try:
        yield has_turn
    finally:
        if has_turn:
            room.release()


async def _acquired(room: asyncio.Semaphore, receive: Callable[[], Awaitable[Mapping[str, Any]]]) -> bool:
    """Wait for a turn, or for the client to go: nobody who has gone keeps a place in the queue."""
    asking = asyncio.ensure_future(room.acquire())
    going = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((asking, going), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        if asking.done() and not asking.cancelled():
            room.release()
        raise
    finally:
        going.cancel()
        if not asking.done():
            asking.cancel()
    return asking.done() and not asking.cancelled()


async def _gone(receive: Callable[[], Awaitable[Mapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
