"""The process of the boot listeners: it reads requests and sends files; the controller says what is answered (ADR 185).

It has the sockets that it was given, a link to the controller, and no key, journal or token. It ends with the
controller: by the link's end, and where it hangs, by the kernel (PR_SET_PDEATHSIG).
"""

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import count

import msgspec
from msgspec import Struct

from hostler.logs.clean import Form
from hostler.logs.structured import begin, logger
from hostler.server.boot.boot_link import ANSWER_MOST, AskMessage, BeatMessage, BootLink, linked
from hostler.server.boot.boot_wire import BootAnswer, BootQuestion, ask_again
from hostler.server.boot.listener import FILES, Which, listening
from hostler.server.connection_limits import ConnectionTable, limits
from hostler.server.guarded_listener import server_tls
from hostler.server.listener_watch import OpenFiles
from hostler.server.open_file_limits import for_connections, raise_limit

log = logger()

BEAT_S = 1.0
ANSWER_S = 45.0
"""So long an answer is waited for; the controller itself waits for a join token for less."""
_PR_SET_PDEATHSIG = 1


class ListenersOrder(Struct, frozen=True):
    """The order that starts the process: the controller's process id, the file numbers of its link and listeners.

    `certificate` and `key` are files, for the listener of media.
    """

    controller: int
    link: int
    boot: int
    media: int | None = None
    certificate: str = ""
    key: str = ""
    log_form: Form = "auto"


class RemoteAnswers:
    """Answers of the controller, over the link."""

    def __init__(self, link: BootLink) -> None:
        self._link = link
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[BootAnswer]] = {}

    async def answer(self, question: BootQuestion) -> BootAnswer:
        """Ask the controller; where it does not answer in time, the machine is told to ask again."""
        number = next(self._numbers)
        waiting: asyncio.Future[BootAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._link.send(AskMessage(number, question))
                return await waiting
        except (TimeoutError, ConnectionError):
            return ask_again()
        finally:
            del self._waiting[number]

    async def read(self) -> None:
        """Hand answers to who waits for them, until the controller has gone."""
        async for told in self._link.from_controller():
            waiting = self._waiting.get(told.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(told.answer)


async def run(order: ListenersOrder) -> None:
    """Listen until the controller has gone. Raises OSError, LinkError."""
    link = await linked(socket.socket(fileno=order.link), ANSWER_MOST)
    answers, files = RemoteAnswers(link), OpenFiles()
    most_files = raise_limit()
    most = for_connections(most_files)
    sending = min(FILES[0], (most_files - most) // 2)
    async with AsyncExitStack() as stack:
        tables: list[ConnectionTable] = []

        async def listen(which: Which, number: int, share: int) -> None:
            table = ConnectionTable(limits(share), which)
            tls = server_tls(order.certificate, order.key) if which == "boot-media" else None
            one = socket.socket(fileno=number)
            await stack.enter_async_context(listening(answers.answer, which, one, table, tls, files, sending))
            tables.append(table)

        await listen("boot", order.boot, most if order.media is None else most - most // 4)
        if order.media is not None:
            await listen("boot-media", order.media, most // 4)
        log.info("boot_listens", connections_most=most, open_files_most=most_files)
        beating = asyncio.create_task(_beat(link, tables, files))
        try:
            await answers.read()
        finally:
            beating.cancel()


async def _beat(link: BootLink, tables: Sequence[ConnectionTable], files: OpenFiles) -> None:
    while True:
        await link.send(BeatMessage(tuple(table.counts() for table in tables), files.exhausted))
        await asyncio.sleep(BEAT_S)


def main(argument: str) -> None:
    """Run the process by its order, JSON."""
    import uvloop  # noqa: PLC0415 - tests run its parts without one

    order = msgspec.json.decode(argument, type=ListenersOrder)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != order.controller:
        return  # it ended before it could be watched
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a terminal's Ctrl-C is the controller's to answer
    begin(order.log_form)
    uvloop.run(run(order))


if __name__ == "__main__":
    main(sys.argv[1])
