"""Keeps the boot listeners in a process of their own: it is started again where it ends or hangs (ADR 185).

Nothing that the boot network does to it takes a file or a turn of the loop from the API, agents or polls. The sockets
are bound here, so that machines wait while it is started again, and a port that is taken is an error of the start.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import msgspec

from hostler.core.state.growing_pause import growing_s
from hostler.logs.structured import begun_form, logger
from hostler.runtime.bounded_process import ended, stop_child
from hostler.server.boot.boot_link import (
    ANSWER_MOST,
    QUESTION_MOST,
    AnswerMessage,
    AskMessage,
    BootLink,
    LinkError,
    linked,
)
from hostler.server.boot.boot_wire import Answerer, BootAnswer, ask_again
from hostler.server.boot.listener_process import ListenersOrder
from hostler.server.boot_presence import BootPresence
from hostler.server.guarded_listener import address, bound

log = logger()

MODULE = "hostler.server.boot.listener_process"
FIRST_S, MOST_S = 1.0, 30.0
"""Pause before the process is started again: doubled each time, up to the most."""
STEADY_S = 60.0
"""A process that was up for so long begins with the shortest pause."""
LOOK_S = 1.0
SILENT_LOOKS = 15
"""A process that has said nothing at so many looks in a row hangs. Not a span of time: this one may have slept."""
START_S = 60.0
FIRST_BEAT_S = 20.0
STOP_S, EXIT_S = 3.0, 0.5
ASKED_MOST = 2_000
"""Questions that are answered at a time; more are told to come again."""


class BootProcess:
    """Listeners of one controller, and how their process is. `presence` is what people are told of it."""

    def __init__(self, answer: Answerer, now: Callable[[], datetime], certificate: str = "", key: str = "") -> None:
        self.presence = BootPresence()
        self.pid = 0
        self._answer = answer
        self._now = now
        self._certificate = certificate
        self._key = key
        self._beats = 0
        self._up = asyncio.Event()

    @asynccontextmanager
    async def listening(self, boot: tuple[str, int], media: tuple[str, int] | None) -> AsyncIterator[str]:
        """Listen for machines while the block runs; gives the boot listener's address. Raises OSError."""
        sockets = [bound(*boot)]
        if media is not None:
            try:
                sockets.append(bound(*media))
            except OSError:
                sockets[0].close()
                raise
        self._told("is starting")
        supervising = asyncio.create_task(self._supervise(sockets), name="boot listeners")
        try:
            with contextlib.suppress(TimeoutError):  # it is tried on; the API waits for nobody
                async with asyncio.timeout(FIRST_BEAT_S):
                    await self._up.wait()
            yield f"http://{address(sockets[0])}"
        finally:
            supervising.cancel()
            await asyncio.gather(supervising, return_exceptions=True)
            for one in sockets:
                one.close()

    async def _supervise(self, sockets: list[socket.socket]) -> None:
        failed = 0
        while True:
            began = time.monotonic()
            try:
                why = await self._run(sockets)
            except Exception as error:
                log.exception("boot_listeners_not_followed")
                why = f"could not be followed: {error}"
            failed = 0 if time.monotonic() - began > STEADY_S else failed + 1
            pause_s = growing_s(FIRST_S, max(0, failed - 1), MOST_S)
            self.presence.ended(why, self._now())
            self._told(why)
            log.error("boot_listeners_down", reason=why, again_s=pause_s)
            await asyncio.sleep(pause_s)

    async def _run(self, sockets: list[socket.socket]) -> str:
        """Start the process and answer it until it ends; says why it did."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                child = self._started(theirs, sockets)
        except OSError as error:
            ours.close()
            return f"cannot be started: {error}"
        self.pid, self._beats = child.pid, 0
        try:
            link = await linked(ours, QUESTION_MOST)
            try:
                return await self._followed(child, link)
            finally:
                link.close()
        finally:
            await stop_child(child, STOP_S)

    def _started(self, theirs: socket.socket, sockets: list[socket.socket]) -> "subprocess.Popen[bytes]":
        numbers = [one.fileno() for one in sockets]
        media = numbers[1] if len(numbers) > 1 else None
        order = ListenersOrder(
            os.getpid(), theirs.fileno(), numbers[0], media, self._certificate, self._key, begun_form()
        )
        argument = msgspec.json.encode(order).decode()
        return subprocess.Popen(  # noqa: S603 - our own module
            (sys.executable, "-m", MODULE, argument), stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(), *numbers)
        )

    async def _followed(self, child: "subprocess.Popen[bytes]", link: BootLink) -> str:
        works = {
            asyncio.ensure_future(self._reading(link)),
            asyncio.ensure_future(self._watching()),
            asyncio.ensure_future(_exit_of(child)),
        }
        try:
            await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait(works, timeout=EXIT_S)  # how it ended says more than that it did
            return min(one.result() for one in done)
        finally:
            for one in works:
                one.cancel()
            await asyncio.gather(*works, return_exceptions=True)

    async def _reading(self, link: BootLink) -> str:
        answering: set[asyncio.Task[None]] = set()
        try:
            async for told in link.from_listeners():
                if isinstance(told, AskMessage):
                    task = asyncio.create_task(self._answered(link, told, len(answering) < ASKED_MOST))
                    answering.add(task)
                    task.add_done_callback(answering.discard)
                    continue
                self._beats += 1
                self.presence.counts, self.presence.exhausted = told.counts, told.exhausted
                if not self.presence.up:
                    self._told("")
                    log.info("boot_listeners_up", restarts=self.presence.restarts)
        except LinkError as error:
            return f"sent {error}"
        finally:
            for task in answering:
                task.cancel()
        return "has ended"

    async def _answered(self, link: BootLink, told: AskMessage, has_room: bool) -> None:
        try:
            answer = await self._answer(told.question) if has_room else ask_again()
            size = len(answer.text) + (len(answer.file.script) if answer.file else 0)
            if size > ANSWER_MOST // 4:  # in bytes at most four times as long
                log.error("boot_answer_too_long", route=told.question.route, characters=size, most=ANSWER_MOST // 4)
                answer = BootAnswer(500, "the answer is too long")
        except Exception:
            log.exception("boot_request_failed", route=told.question.route)
            answer = BootAnswer(500, "the controller failed")
        with contextlib.suppress(ConnectionError):
            await link.send(AnswerMessage(told.number, answer))

    async def _watching(self) -> str:
        """Return once the process has said nothing for SILENT_LOOKS; before its first word it has START_S."""
        silent, seen = 0, 0
        while True:
            await asyncio.sleep(LOOK_S)
            silent, seen = (0, self._beats) if self._beats != seen else (silent + 1, seen)
            if silent >= (SILENT_LOOKS if seen else START_S / LOOK_S):
                return f"hangs: it has said nothing at {silent} looks"

    def _told(self, why: str) -> None:
        self.presence.up, self.presence.why, self.presence.since = not why, why, self._now()
        if why:
            self.presence.counts = ()
        else:
            self._up.set()


async def _exit_of(child: "subprocess.Popen[bytes]") -> str:
    code = await ended(child)
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
