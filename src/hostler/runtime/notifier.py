"""Tells people: reads the journal's records, queues messages in the outbox, and delivers them, at least once.

Only the active controller does (`Cell.while_active`), and it asks before each send whether it still is. Messages and
the place in the journal are kept together before anything is sent; a crash between a send and its record sends again,
under the same id and key.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from hostler.core.notify.message_grouping import EpisodeMessages, Moment, OpenEpisodes
from hostler.core.notify.messages import Message
from hostler.core.notify.notices import TOLD_OF, Place, concerned, notices
from hostler.core.notify.outside_tickets import told_outside
from hostler.core.state.durations import duration
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.notify_routes import TOLD_EACH, Route
from hostler.logs.structured import logger
from hostler.ports import (
    ArchivedError,
    BusyTargetError,
    Delivery,
    Journal,
    JournalError,
    NotificationDriver,
    Outbox,
    RefusedError,
    UnreachableError,
)
from hostler.runtime.notice_places import NoticePlaces
from hostler.runtime.subscribers import SlowSubscriberError, Subscription

log = logger()

TICK_S = 0.5
KEEP_S = 10.0
"""How often the place in the journal is kept where nothing was to be told."""
YIELD = 500
"""Records that are looked at before the loop's other work goes on."""
BACK_OFF_S = (5.0, 15.0, 60.0, 300.0)
"""Wait after each failure of a message; the last one for good."""
AGAIN_MOST_S = 3_600.0
"""Longest wait that a target may ask for."""
FILE_S = 180.0
"""Longest time for a message that brings a file along."""
AT_ONCE = 50
"""Messages that are looked up together."""
ROUTES_AT_ONCE = 16
"""Routes that are sent to at the same time; of each one message at a time."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(OpenEpisodes)


class NotifiedCell(Protocol):
    """A running controller as notifications need it."""

    name: str
    journal: Journal

    @property
    def view(self) -> Fleet:
        """The committed fleet."""
        ...

    def now(self) -> datetime:
        """Controller time."""
        ...

    def may_send(self) -> bool:
        """Whether this controller still holds the lease."""
        ...

    def subscribe(self, after: int) -> Subscription:
        """Every record after `after`, from the journal and then live, in batches."""
        ...


class Notifier:
    """Reads, keeps and delivers. `sent` and `failed` count attempts by route since the process began."""

    def __init__(self, cell: NotifiedCell, outbox: Outbox, drivers: Mapping[str, NotificationDriver]) -> None:
        self.sent: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._cell = cell
        self._outbox = outbox
        self._drivers = drivers
        self._places = NoticePlaces(lambda: cell.view, cell.journal)
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._paused: dict[str, datetime] = {}
        self._begin(0, OpenEpisodes())

    async def run(self) -> None:
        """Tell until cancelled. Where the outbox or the journal fails, it begins again from what was kept."""
        while True:
            try:
                await self._load()
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._read())
                    tasks.create_task(self._tick())
            except* (JournalError, SlowSubscriberError, _SupersededError) as failed:
                log.warning("notifier_begins_again", reason=str(failed.exceptions[0]))
            finally:
                await self._stop()
            await asyncio.sleep(TICK_S)

    def _begin(self, seq: int, told: OpenEpisodes) -> None:
        self._kept = self._seen = seq
        self._episode_messages = EpisodeMessages(self._cell.name, told)
        self._messages: list[Message] = []
        self._changed = False
        self._kept_at: datetime | None = None

    async def _load(self) -> None:
        """Go on from where it was kept; who has never told anything begins with what comes from now on."""
        kept = await asyncio.to_thread(self._outbox.position)
        latest = self._cell.view.cell.seq
        if kept is not None and kept[0] <= latest:
            self._begin(kept[0], _DECODER.decode(kept[1]))
            return
        if kept is not None:
            log.warning("notifier_position_beyond", position=kept[0], latest=latest)
        before = kept[0] if kept is not None else latest
        self._begin(latest, OpenEpisodes())
        await asyncio.to_thread(
            self._outbox.advance, before, latest, _ENCODER.encode(OpenEpisodes()), (), self._cell.now()
        )

    # --- reading

    async def _read(self) -> None:
        try:
            number = 0
            with contextlib.closing(self._cell.subscribe(self._seen)) as batches:
                async for record in (record async for batch in batches for record in batch):
                    if isinstance(record.event, TOLD_OF):
                        await self._take(record)
                    self._seen = record.seq
                    number += 1
                    if number % YIELD == 0:
                        await asyncio.sleep(0)
        except ArchivedError as archived:
            log.warning("notifier_skips_archived", reason=str(archived))
            self._seen = self._cell.view.cell.seq
            await self._keep()
            raise

    async def _take(self, record: Record) -> None:
        routes = self._routes()
        names = concerned(record.event) if routes else ()
        places = await self._places.of(names, record)
        now = self._cell.now()
        place = next((found[0] for found in places.values() if found), Place())
        outside = told_outside(record.event, place, routes, self._cell.name, Moment(record.seq, now))
        before = len(self._messages)
        self._messages.extend(outside)
        self._changed = self._changed or len(self._messages) > before
        routes = tuple(route for route in routes if route.kind not in TOLD_EACH)
        for notice in notices(record.event, places, self._cell.view.policy.pages):
            self._messages.extend(self._episode_messages.take(notice, record.seq, now, routes))
            self._changed = True

    def _routes(self) -> tuple[Route, ...]:
        return tuple(self._cell.view.configuration.routes.values())

    # --- keeping and sending

    async def _tick(self) -> None:
        while True:
            now = self._cell.now()
            due = list(self._episode_messages.due(now, self._routes()))
            self._messages.extend(due)
            self._changed = self._changed or bool(due)
            late = self._kept_at is None or (now - self._kept_at).total_seconds() >= KEEP_S
            if self._changed or (late and self._seen > self._kept):
                await self._keep()
            await self._dispatch()
            await asyncio.sleep(TICK_S)

    async def _keep(self) -> None:
        """Keep messages, what stands open and the place in the journal, together."""
        now, seen = self._cell.now(), self._seen
        messages, self._messages = tuple(self._messages), []
        self._changed = False
        told = _ENCODER.encode(self._episode_messages.told)
        if not await asyncio.to_thread(self._outbox.advance, self._kept, seen, told, messages, now):
            raise _SupersededError("another controller has told meanwhile")
        self._kept, self._kept_at = seen, now

    async def _dispatch(self) -> None:
        now = self._cell.now()
        for route in [route for route, task in self._sending.items() if task.done()]:
            self._sending.pop(route).result()
        room = ROUTES_AT_ONCE - len(self._sending)
        if room <= 0 or not self._cell.may_send():
            return
        routes = self._cell.view.configuration.routes
        busy = {*self._sending, *(name for name, until in self._paused.items() if until > now)}
        for delivery in await asyncio.to_thread(self._outbox.due, now, AT_ONCE, busy):
            name = delivery.message.route
            if name in self._sending or len(self._sending) >= ROUTES_AT_ONCE:
                continue
            self._sending[name] = asyncio.create_task(self._send(delivery, routes.get(name)))

    async def _send(self, delivery: Delivery, route: Route | None) -> None:
        """Try once, and write down what came of it. Raises JournalError."""
        now = self._cell.now()
        if route is None:
            await asyncio.to_thread(self._outbox.ended, delivery, "dead", now, "the route is no more")
            return
        if not self._cell.may_send():
            return
        failure = await self._tried(delivery.message, route)
        now = self._cell.now()
        if failure is None:
            self.sent[route.name] += 1
            self._paused.pop(route.name, None)
            await asyncio.to_thread(self._outbox.ended, delivery, "delivered", now)
            return
        self.failed[route.name] += 1
        log.warning("notice_not_delivered", route=route.name, message=delivery.message.id, reason=str(failure))
        overdue = now - delivery.queued >= timedelta(seconds=route.give_up_s)
        if isinstance(failure, RefusedError) or overdue:
            await asyncio.to_thread(self._outbox.ended, delivery, "dead", now, str(failure))
            return
        wait_s = BACK_OFF_S[min(delivery.attempts, len(BACK_OFF_S) - 1)]
        if isinstance(failure, BusyTargetError) and failure.again_s:
            wait_s = min(max(failure.again_s, TICK_S), AGAIN_MOST_S)
            self._paused[route.name] = now + timedelta(seconds=wait_s)
        await asyncio.to_thread(self._outbox.postponed, delivery, now + timedelta(seconds=wait_s), str(failure))

    async def _tried(self, message: Message, route: Route) -> RefusedError | UnreachableError | None:
        driver = self._drivers.get(route.kind)
        if driver is None:
            return RefusedError(f"no driver for {route.kind}; run the same version of Hostler everywhere")
        limit_s = FILE_S if message.action == "file" else route.timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await driver.deliver(message, route)
        except (RefusedError, UnreachableError) as failure:
            return failure
        except TimeoutError:
            return UnreachableError(f"no answer within {duration(limit_s)}; it is tried again")
        except Exception as bug:  # a message that cannot be written must not stop what keeps the fleet
            log.exception("notification_driver_failed", route=route.name, kind=route.kind)
            return UnreachableError(f"a bug in Hostler: {type(bug).__name__}; look at the server's log")
        return None

    async def _stop(self) -> None:
        tasks = list(self._sending.values())
        self._sending.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _SupersededError(Exception):
    """Another controller has moved the outbox on: what stands open is loaded again."""
