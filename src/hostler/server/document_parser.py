"""Parses configuration documents beside the event loop: small ones in a thread, others in a process with a time limit.

A thread shares the interpreter's lock with the loop, and libyaml keeps that lock for as long as one token lasts: 0.7 s
for a token of one MiB, 45 ms for one of THREAD_MAX. Whatever is larger is parsed by a process of its own, which is
killed when its time is over.
"""

import asyncio
import os
import resource
import sys

import msgspec
from msgspec import Struct

from hostler.core.policy import documents
from hostler.core.policy.yaml_tree import MAX_BYTES, check_size
from hostler.core.state.configuration import Configuration
from hostler.core.state.durations import duration
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.runtime.bounded_process import run
from hostler.runtime.input_queues import BusyError

THREAD_MAX = 64 * 1024
"""Bytes of all documents together up to which a thread parses them."""
TIME_S = 10.0
"""Time limit of a parsing process; a whole MiB takes about two seconds."""
MEMORY_BYTES = 1024 * 1024 * 1024
WAITING_MAX = 4
"""Requests that wait for one to be parsed; one is parsed at a time."""
AGAIN_S = 5.0


class Parsed(Struct, frozen=True):
    """Result of parsing: a configuration, or what is wrong with the documents."""

    configuration: Configuration | None = None
    problems: tuple[Problem, ...] = ()


class DocumentParser:
    """Parses one set of documents at a time."""

    def __init__(self, time_s: float = TIME_S) -> None:
        self._time_s = time_s
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def parse(self, given: dict[str, str]) -> Configuration:
        """The documents' configuration. Raises InvalidInputError, and BusyError where too many wait already."""
        size = sum(len(text.encode(errors="replace")) for text in given.values())
        if size > MAX_BYTES:
            what = f"{size} bytes in all; {MAX_BYTES} are taken"
            raise InvalidInputError((Problem("configuration", 0, what, "leave out what has its default value"),))
        if self._waiting > WAITING_MAX:
            raise BusyError(AGAIN_S)
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.to_thread(_check_all, given)
                if size <= THREAD_MAX:
                    return await asyncio.to_thread(documents.parse, given)
                return await self._apart(given)
        finally:
            self._waiting -= 1

    async def _apart(self, given: dict[str, str]) -> Configuration:
        words = (sys.executable, "-m", __name__)
        ended = await run(words, os.environ, self._time_s, MEMORY_BYTES, msgspec.msgpack.encode(given))
        if ended.code is None:
            raise _unparsed(f"not parsed within {duration(self._time_s)}")
        if ended.code:
            raise _unparsed(f"their parser ended with status {ended.code}")
        parsed = msgspec.msgpack.decode(ended.output, type=Parsed)
        if parsed.configuration is None:
            raise InvalidInputError(parsed.problems)
        return parsed.configuration


def _check_all(given: dict[str, str]) -> None:
    for name, text in sorted(given.items()):
        check_size(name, text)


def _unparsed(what: str) -> InvalidInputError:
    return InvalidInputError((Problem("configuration", 0, what, "make it smaller, or less deep"),))


def main() -> None:
    """Parse the documents on standard input (MessagePack), and write what came of it to standard output."""
    resource.setrlimit(resource.RLIMIT_CPU, (round(TIME_S), round(TIME_S) + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    given = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=dict[str, str])
    try:
        parsed = Parsed(documents.parse(given))
    except InvalidInputError as error:
        parsed = Parsed(None, error.problems)
    sys.stdout.buffer.write(msgspec.msgpack.encode(parsed))


if __name__ == "__main__":
    main()
