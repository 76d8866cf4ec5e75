"""From the spool to the controller: in order, at least once, until acknowledged."""

import asyncio
import sqlite3
from collections.abc import Callable

from msgspec.structs import replace

from hostler.agent.controller_client import ControllerClient, RejectedError, SpoolReceipt, UnavailableError, backoff_s
from hostler.agent.local_observation import collector_failed
from hostler.agent.spool import Spool, Spooled
from hostler.core.state.model import Observation

BATCH = 500
BATCH_BYTES = 512 * 1024
IDLE_S = 30.0
"""Longest sleep on an empty spool without a wake-up."""
_TOO_MUCH = frozenset({400, 413, 422})


class Uploader:
    """Sends what the spool holds.

    A batch that the controller rejects is halved until the culprit is alone; a stand-in that names it takes its
    number, so that one odd observation cannot stop all that follow.
    """

    def __init__(self, node: str, spool: Spool, controller: ControllerClient, draw: Callable[[], float]) -> None:
        self._node = node
        self._spool = spool
        self._controller = controller
        self._draw = draw
        self._greeted = False
        self._batch = BATCH
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()

    def wake(self) -> None:
        """There is something to send. Call it on the event loop's thread."""
        self._drained.clear()
        self._wake.set()

    async def drained(self) -> None:
        """Return once the controller has everything that was there."""
        self.wake()
        await self._drained.wait()

    async def rewind(self, read: SpoolReceipt | None, had: SpoolReceipt) -> None:
        """A controller that has read less than it had acknowledged was restored from a backup: it gets the rest again.

        `had` was acknowledged before the controller was asked. Raises `sqlite3.Error` where the disk refuses.
        """
        if read is None or not read.spool == had.spool == self._spool.id or not self._greeted:
            return
        if read.acknowledged < had.acknowledged:
            await asyncio.to_thread(self._spool.acknowledge, read.acknowledged)
            self.wake()

    async def run(self) -> None:
        """Send for ever."""
        attempt = 0
        while True:
            try:
                await self.send_all()
                attempt = 0
                await self._rest(IDLE_S)
            except (UnavailableError, RejectedError, sqlite3.Error) as error:
                retry_after_s = error.retry_after_s if isinstance(error, UnavailableError) else None
                await self._back_off(backoff_s(attempt, retry_after_s, self._draw()))
                attempt += 1

    async def send_all(self) -> None:
        """Send until nothing is left. Raises what the controller or the disk raised."""
        self._wake.clear()
        await asyncio.to_thread(self._spool.recover)
        await self._greet()
        while batch := await asyncio.to_thread(self._spool.pending, self._batch, BATCH_BYTES):
            await self._send(batch)
        self._drained.set()

    async def _back_off(self, seconds: float) -> None:
        """Wait before the next try; what is urgent and new does not, but each such sighting hurries only once."""
        urgent_before = self._spool.newest_urgent
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while (left_s := until - clock()) > 0 and self._spool.newest_urgent == urgent_before:
            self._wake.clear()
            await self._rest(left_s)

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 can lose a cancellation
                await self._wake.wait()
        except TimeoutError:
            return

    async def _greet(self) -> None:
        """Once per process: ask how far the controller is, before any number is given to it."""
        if self._greeted:
            return
        receipt = await self._post([])
        if not await asyncio.to_thread(self._spool.hello, receipt.acknowledged):
            await asyncio.to_thread(self._spool.acknowledge, receipt.cursor)
        self._greeted = True

    async def _send(self, batch: list[Spooled]) -> None:
        try:
            urgent = self._spool.newest_urgent > self._spool.acknowledged
            receipt = await self._post([observation(item, self._node, self._spool.id) for item in batch], urgent=urgent)
            self._batch = min(BATCH, self._batch * 2)
        except RejectedError as error:
            if error.status not in _TOO_MUCH:
                raise
            if len(batch) > 1:
                self._batch = len(batch) // 2
                return
            receipt = await self._post([observation(_stand_in(batch[0], error), self._node, self._spool.id)])
        await asyncio.to_thread(self._spool.acknowledge, receipt.cursor)
        if receipt.cursor == batch[0].sequence - 1:
            raise UnavailableError("the controller acknowledged nothing of what it was sent")

    async def _post(self, observations: list[Observation], *, urgent: bool = False) -> SpoolReceipt:
        receipt = await self._controller.observations(self._spool.id, self._spool.boot_id, observations, urgent=urgent)
        if receipt.spool != self._spool.id:
            raise UnavailableError(f"the controller answered for spool {receipt.spool!r}")
        return receipt


def observation(item: Spooled, node: str, spool: str) -> Observation:
    """A numbered sighting as it goes to the controller."""
    seen = item.observation
    return Observation(
        node=node,
        kind=seen.kind,
        source="agent",
        spool=spool,
        sequence=item.sequence,
        boot_id=item.boot_id,
        age_s=item.age_s,
        text=seen.text,
        count=seen.count,
        facility=seen.facility,
        facts=seen.facts,
        parts=seen.parts,
        finding=seen.finding,
    )


def _stand_in(item: Spooled, error: RejectedError) -> Spooled:
    """The news that the controller does not take an observation, under that observation's number."""
    seen = item.observation
    text = f"the controller rejected an observation of kind {seen.kind}: {error}"
    return replace(item, observation=collector_failed("upload", seen.seen_s, text, {"example": seen.text[:200]}))
