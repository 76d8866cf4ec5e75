"""The way between the boot listeners' process and the controller: a pair of sockets, messages of bounded length.

The listeners' process asks, and says each second how it is; the controller answers. What is longer than a message may
be, or cannot be read, ends the link: the controller then starts the process again.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct

from hostler.server.boot.boot_wire import BootAnswer, BootQuestion
from hostler.server.connection_limits import ListenerCounts

LENGTH_BYTES = 4
QUESTION_MOST = 64 * 1024
"""A question holds a body of 16 KiB and a query of 1 KiB at most."""
ANSWER_MOST = 1024 * 1024
"""An answer holds a script, or the data of cloud-init."""


class AskMessage(Struct, frozen=True, tag="ask"):
    """A question of this number."""

    number: int
    question: BootQuestion


class BeatMessage(Struct, frozen=True, tag="beat"):
    """The process is well: its listeners' numbers, and at how many looks it could open no file."""

    counts: tuple[ListenerCounts, ...]
    exhausted: int = 0


class AnswerMessage(Struct, frozen=True, tag="answer"):
    """The answer to the question of this number."""

    number: int
    answer: BootAnswer


class LinkError(Exception):
    """The other side sent what is no message; nothing more is read from it."""


_TO_CONTROLLER = msgspec.msgpack.Decoder(AskMessage | BeatMessage)
_TO_LISTENERS = msgspec.msgpack.Decoder(AnswerMessage)
_encode = msgspec.msgpack.Encoder().encode


class BootLink:
    """One end. `most` is the longest message that is read here."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int) -> None:
        self._reader = reader
        self._writer = writer
        self._most = most

    async def send(self, message: AskMessage | BeatMessage | AnswerMessage) -> None:
        """Send it whole. Raises ConnectionError."""
        told = _encode(message)
        self._writer.write(len(told).to_bytes(LENGTH_BYTES, "big") + told)
        await self._writer.drain()

    async def read(self) -> bytes | None:
        """The next message's bytes; None where the other side has gone. Raises LinkError."""
        try:
            length = int.from_bytes(await self._reader.readexactly(LENGTH_BYTES), "big")
            if length > self._most:
                raise LinkError(f"a message of {length} bytes, {self._most} at most")
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def from_listeners(self) -> AsyncIterator[AskMessage | BeatMessage]:
        """Yield messages of the listeners' process until it has gone. Raises LinkError."""
        while (told := await self.read()) is not None:
            try:
                yield _TO_CONTROLLER.decode(told)
            except msgspec.DecodeError as error:  # among them those of wrong types
                raise LinkError(f"no message: {error}") from error

    async def from_controller(self) -> AsyncIterator[AnswerMessage]:
        """Yield answers of the controller until it has gone. Raises LinkError."""
        while (told := await self.read()) is not None:
            try:
                yield _TO_LISTENERS.decode(told)
            except msgspec.DecodeError as error:
                raise LinkError(f"no message: {error}") from error

    def close(self) -> None:
        """Close this end."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._writer.close()


async def linked(end: socket.socket, most: int) -> BootLink:
    """The link of this end of a socket pair."""
    reader, writer = await asyncio.open_unix_connection(sock=end)
    return BootLink(reader, writer, most)
