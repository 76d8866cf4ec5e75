"""The real agents of many emulated machines in one process: they share connections, and begin a few at a time.

What is a thread, a connection or a wait for the disk of its own on a real node would, a thousand times over, be all
that the machine underneath has.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import aiohttp

from hostler.agent.collectors import kmsg
from hostler.agent.collectors.kernel_log import KernelLogReader
from hostler.agent.controller_client import ControllerClient
from hostler.agent.machine import HostMachine
from hostler.agent.main import Agent, AgentSettings
from hostler.agent.operation_log import OperationLog
from hostler.agent.spool import Spool, SpoolLimits

AT_ONCE = 8
"""Agents that begin at the same time: the others wait, and the controller answers everybody else meanwhile."""
BEGIN_S = 20.0
"""So long an agent that begins keeps others waiting, at most."""
RECORDS_KEPT = 1_000
"""Records that an emulated kernel keeps, as a real one keeps a few hundred KiB."""

agents_log = logging.getLogger("hostler.agent")


class EmulatedKernelLog:
    """The kernel log of one boot in memory, as a `collectors.kernel_log.Source`.

    Wait for `news`, which is set on the event loop's thread, and read then.
    """

    name = "emulated kernel log"
    contiguous = True
    series = ""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._records: deque[bytes] = deque(maxlen=RECORDS_KEPT)
        self._written = 0
        self._unread: deque[bytes] = deque(maxlen=RECORDS_KEPT)

    def say(self, line: str, facility: int = 0) -> None:
        """Add a record; facility 0 is the kernel's, 1 that of user space."""
        record = f"{8 * facility + 3},{self._written},{int(time.monotonic() * 1e6)},-;{line}\n".encode()
        self._records.append(record)
        self._unread.append(record)
        self._written += 1
        self.news.set()

    def open(self, _series: str, _base: int) -> int:
        """From the boot's first record on; there is no descriptor to poll."""
        self._unread = deque(self._records, RECORDS_KEPT)
        return -1

    def read(self, _most: int) -> bytes:
        """One record. Raises BlockingIOError where all are read."""
        try:
            return self._unread.popleft()
        except IndexError:
            raise BlockingIOError from None

    def split(self, stream: bytes) -> tuple[Iterator[bytes], bytes]:
        """Whole records of the bytes read so far, and the bytes that are left over."""
        return kmsg.split(stream)

    def close(self) -> None:
        """Do nothing: no descriptor is held."""


class AgentCrowd:
    """Share of the agents of emulated machines: connections, places to begin, and a count of their log lines.

    An async context manager. Inside it the agents' own log lines are counted and not printed: they are lines of so many
    nodes' logs, and none of the controller's.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._places = asyncio.Semaphore(AT_ONCE)
        self._said: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        agents_log.addFilter(self._count)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hang_up()
        agents_log.removeFilter(self._count)

    async def hang_up(self) -> None:
        """Close the connections: whoever ends from now on ends without a word."""
        if self._session is not None:
            await self._session.close()

    def _count(self, record: logging.LogRecord) -> bool:
        """Whether the line is printed: what is no worse than informational is not."""
        self._said[record.getMessage()] += 1
        return record.levelno > logging.INFO

    def misses(self) -> int:
        """Agents whose heartbeats began to come to nothing since this was asked before."""
        return self._said.pop("heartbeat_missed", 0)

    async def live(
        self, settings: AgentSettings, body: HostMachine, kernel: EmulatedKernelLog, *, in_turn: bool = False
    ) -> None:
        """Run the agent of one boot until it is cancelled. `in_turn`: nobody waits for it; it begins after others."""
        assert self._session is not None, "enter the crowd first"
        async with self._places if in_turn else contextlib.nullcontext():
            spool, log_of_operations = await asyncio.to_thread(_disks, settings, body.boot_id())
            controller = ControllerClient(self._session, settings.server, settings.token_file, settings.node)
            agent = Agent(settings, body, spool, log_of_operations, controller)
            reader = KernelLogReader(kernel, spool, body.boot_id(), spool.now_s)
            work = [asyncio.ensure_future(w) for w in (agent.run(asyncio.Event()), _follow(kernel, reader, agent.wake))]
            beginning = asyncio.ensure_future(agent.settled())
            try:
                await asyncio.wait((*work, beginning), timeout=BEGIN_S, return_when=asyncio.FIRST_COMPLETED)
            except BaseException:
                await _end(work, spool, log_of_operations)
                raise
            finally:
                beginning.cancel()
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for one in work:
                if one.done():
                    one.result()
        finally:
            await _end(work, spool, log_of_operations)


def _disks(settings: AgentSettings, boot_id: str) -> tuple[Spool, OperationLog]:
    limits = SpoolLimits(emulated=True)
    spool = Spool(settings.state_dir, boot_id, time.monotonic, lambda: secrets.token_hex(8), limits)
    return spool, OperationLog(settings.state_dir / "marks.sqlite", emulated=True)


async def _follow(kernel: EmulatedKernelLog, reader: KernelLogReader, wake: Callable[[], None]) -> None:
    """Read the kernel log whenever it has news, on no thread of its own."""
    loop = asyncio.get_running_loop()

    def committed() -> None:
        loop.call_soon_threadsafe(wake)

    await asyncio.to_thread(reader.begin, committed)
    while True:
        kernel.news.clear()
        await asyncio.to_thread(reader.turn, committed)
        try:
            async with asyncio.timeout(reader.wait_s() + 0.01):
                await kernel.news.wait()
        except TimeoutError:
            continue


async def _end(work: Sequence[asyncio.Future[None]], spool: Spool, log_of_operations: OperationLog) -> None:
    for one in work:
        one.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    log_of_operations.close()
    spool.close()
