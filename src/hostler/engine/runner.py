"""The asyncio shell around the controller: queues in, group commits, sends and answers out. Decides nothing."""

import asyncio
import gc
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from hostler.core import fleet as fleets
from hostler.core.configuration import Configuration
from hostler.core.events import Record
from hostler.core.fleet import Fleet
from hostler.core.fold import evolve
from hostler.core.model import Intent, Observation, Operation, Outcome
from hostler.core.operations import OPERATIONS
from hostler.core.present import Present
from hostler.engine import intake
from hostler.engine.controller import Controller
from hostler.engine.heartbeats import HeartbeatTable
from hostler.engine.ports import (
    Batch,
    ConflictError,
    FencedError,
    Hand,
    Journal,
    JournalError,
    RefusedError,
    Snapshot,
    UnreachableError,
)
from hostler.engine.queues import BusyError, Queues
from hostler.engine.ready import Ready, Reply, Send

log = logging.getLogger("hostler")

TICK_S = 0.5
SWEEP_S = 60.0
SNAPSHOT_EVERY = 20_000
SUBSCRIBER_QUEUE = 20_000
PAGE = 2_000
SENDS_AT_ONCE = 1_024
GRACE_S = 5.0
RELOAD_AFTER_S = (0.2, 1.0, 5.0)


class SlowSubscriberError(Exception):
    """The subscriber did not keep up and was dropped; it resumes from the last sequence number it has seen."""


class Health(Struct, frozen=True):
    """How the controller is: its role and epoch, the last record, what waits, and why it is not ok."""

    role: str
    epoch: int
    seq: int
    queued: int
    commit_ms: float
    brake: str
    ok: bool
    why: str = ""


def load(journal: Journal) -> Fleet:
    """The fleet as the journal tells it: the last snapshot and the records after it."""
    snapshot = journal.snapshot()
    fleet = fleets.load(snapshot.body) if snapshot else Fleet()
    for number, record in enumerate(journal.records(snapshot.seq if snapshot else 0)):
        evolve(fleet, record)
        if number % 1_000 == 0:
            fleet.merge()
    fleet.merge()
    return fleet


class Cell:
    """One running controller of one cell: start, then observe, ask, subscribe … until stop."""

    def __init__(
        self,
        journal: Journal,
        hands: Sequence[Hand],
        *,
        name: str = "c1",
        version: str = "0.1.0",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.name = name
        self.version = version
        self.journal = journal
        self.present = Present()
        self.heartbeats = HeartbeatTable()
        self.epoch = 0
        self.role = "starting"
        self._hands = tuple(hands)
        self._clock = clock
        self._queues = Queues()
        self._tokens = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._work = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscribers: list[asyncio.Queue[Record | None]] = []
        self._limit = asyncio.Semaphore(SENDS_AT_ONCE)
        self._commit_ms = 0.0
        self._why = "not started"
        self._since_snapshot = 0
        self._swept_at: datetime | None = None
        self._loop_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take the lease, load the journal, observe what was under way, and run. Raises what the journal raises."""
        await self._load()
        self._loop_task = asyncio.create_task(self._run(), name="controller")

    async def stop(self) -> None:
        """Stop deciding; what is acknowledged is durable, what is out is observed after the next start."""
        self.role = "stopped"
        if self._loop_task is not None:
            self._work.set()
            await asyncio.wait([self._loop_task])
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._fail_waiting(5.0)
        for queue in self._subscribers:
            _end(queue)

    @property
    def view(self) -> Fleet:
        """What is committed; reading it needs no lock."""
        return self._view

    def health(self) -> Health:
        """How this controller is."""
        cell = self._view.cell
        return Health(
            self.role, self.epoch, cell.seq, len(self._queues), self._commit_ms, cell.brake, not self._why, self._why
        )

    async def observe(self, node: str, observations: tuple[Observation, ...]) -> Reply:
        """Take observations of one sender; they are durable when this returns. Raises BusyError."""
        token = next(self._tokens)
        return await self._put(token, intake.Observed(token, node, observations))

    async def ask(
        self, intent: Intent, configuration: Configuration | None = None, documents: dict[str, str] | None = None
    ) -> Reply:
        """Have an intent answered; the answer is durable when this returns. Raises BusyError."""
        token = next(self._tokens)
        return await self._put(token, intake.Asked(token, intent, configuration, documents or {}))

    def heartbeat(self, node: str, boot_id: str) -> None:
        """An agent is heard."""
        if node in self._view.nodes and self.heartbeats.beat(node, boot_id, self._clock()):
            self.tell(intake.Heard(node, boot_id))

    def tell(self, one: intake.Input) -> None:
        """Put a volatile reading (workloads, power, readiness) before the controller."""
        self._queues.put(one)
        self._work.set()

    def replied(self, outcome: Outcome) -> None:
        """A driver's outcome that came by another way than its call (an agent that posts late)."""
        self.tell(intake.Replied(outcome))

    async def subscribe(self, after: int) -> AsyncIterator[Record]:
        """Every record after `after`, from the journal and then live. Raises SlowSubscriberError."""
        queue: asyncio.Queue[Record | None] = asyncio.Queue(SUBSCRIBER_QUEUE)
        self._subscribers.append(queue)
        try:
            seen = after
            while page := await asyncio.to_thread(self._page, seen):
                for record in page:
                    seen = record.seq
                    yield record
            while (live := await queue.get()) is not None:
                if live.seq > seen:
                    yield live
            if queue not in self._subscribers and self.role != "stopped":
                raise SlowSubscriberError
        finally:
            if queue in self._subscribers:
                self._subscribers.remove(queue)

    def _page(self, after: int) -> list[Record]:
        return list(itertools.islice(self.journal.records(after), PAGE))

    async def _put(self, token: int, one: intake.Input) -> Reply:
        if self._why:
            raise BusyError(RELOAD_AFTER_S[-1])
        self._queues.put(one)
        future = asyncio.get_running_loop().create_future()
        self._answers[token] = future
        self._work.set()
        try:
            return await asyncio.shield(future)
        finally:
            self._answers.pop(token, None)

    async def _load(self) -> None:
        self.epoch = await asyncio.to_thread(self.journal.acquire, f"{self.name}")
        fleet = await asyncio.to_thread(load, self.journal)
        cursors = await asyncio.to_thread(self.journal.cursors)
        gc.collect()
        gc.freeze()  # the fleet is long-lived: a collection need not walk it again
        self._controller = Controller(fleet, self.present, cursors, self.epoch)
        self._view = fleet.committed()
        now = self._clock()
        self.heartbeats.begin(list(fleet.nodes), now)
        self._why = ""
        self.role = "active"
        await self._complete(self._controller.resume(now, self.version))

    async def _run(self) -> None:
        while self.role == "active":
            try:
                await self._once()
            except FencedError as fenced:
                self._resign(str(fenced), "fenced")
            except JournalError as broken:
                log.warning("commit_failed", extra={"reason": str(broken)})
                self._resign(str(broken), "reloading")
                await self._reload()
            except Exception as bug:  # nothing was recorded: what is out is observed, what was sent comes again
                log.exception("step_failed")
                self._controller.lost()
                self._resign(f"a bug: {type(bug).__name__}: {bug}", "reloading")
                await self._reload()

    async def _once(self) -> None:
        """Wait for something to do, decide one batch, and complete it."""
        if not len(self._queues):
            self._work.clear()
            try:
                async with asyncio.timeout(TICK_S):
                    await self._work.wait()
            except TimeoutError:
                pass
        now = self._clock()
        self._listen(now)
        inputs = self._queues.take()
        wake = self._controller.agenda.next()
        swept = self._sweep(now)
        if inputs or swept or (wake is not None and wake <= now):
            await self._complete(self._controller.step(inputs, now))

    def _listen(self, now: datetime) -> None:
        for node_id, since in self.heartbeats.overdue(now, self._view.policy.agent_silence_s):
            if node_id in self._view.nodes:
                self._queues.put(intake.Silent(node_id, since))

    def _sweep(self, now: datetime) -> bool:
        """Everything is looked at once in a while; it must find nothing to do."""
        if self._swept_at is not None and (now - self._swept_at).total_seconds() < SWEEP_S:
            return False
        self._swept_at = now
        self._controller.sweep(list(self._view.nodes))
        return True

    async def _complete(self, ready: Ready) -> None:
        """Append, and only then send and answer."""
        if ready.batch:
            began = asyncio.get_running_loop().time()
            try:
                await asyncio.to_thread(self.journal.append, ready.batch, self.epoch)
            except JournalError:
                self._controller.lost()
                raise
            self._commit_ms = (asyncio.get_running_loop().time() - began) * 1000
        self._controller.committed()
        self._publish(ready.batch)
        for reply in ready.replies:
            future = self._answers.get(reply.token)
            if future is not None and not future.done():
                future.set_result(reply)
        for send in ready.sends:
            task = asyncio.create_task(self._dispatch(send))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await self._checkpoint(len(ready.batch.records))

    def _publish(self, batch: Batch) -> None:
        for queue in list(self._subscribers):
            if queue.qsize() + len(batch.records) >= SUBSCRIBER_QUEUE:
                self._subscribers.remove(queue)
                _end(queue)
                continue
            for record in batch.records:
                queue.put_nowait(record)

    async def _checkpoint(self, records: int) -> None:
        self._since_snapshot += records
        if self._since_snapshot < SNAPSHOT_EVERY:
            return
        self._since_snapshot = 0
        state, digest = self._controller.fleet.state(), self.journal.digest()
        task = asyncio.create_task(self._snapshot(state, digest))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _snapshot(self, state: fleets.State, digest: str) -> None:
        try:
            body = await asyncio.to_thread(fleets.dump, state)
            await asyncio.to_thread(self.journal.save_snapshot, Snapshot(state.cell.seq, digest, body))
        except JournalError as broken:
            log.warning("snapshot_failed", extra={"reason": str(broken)})

    def _resign(self, why: str, role: str) -> None:
        self._why = why
        self.role = role
        self._queues = Queues()
        self._fail_waiting(RELOAD_AFTER_S[-1])

    async def _reload(self) -> None:
        """Load again after a lost commit, later each time; nobody is answered meanwhile."""
        for pause_s in itertools.chain(RELOAD_AFTER_S, itertools.repeat(RELOAD_AFTER_S[-1])):
            await asyncio.sleep(pause_s)
            if self.role == "stopped":
                return
            try:
                await self._load()
            except JournalError as broken:
                self._why = str(broken)
                continue
            return

    def _fail_waiting(self, retry_after_s: float) -> None:
        for future in self._answers.values():
            if not future.done():
                future.set_exception(BusyError(retry_after_s))
        self._answers.clear()

    async def _dispatch(self, send: Send) -> None:
        """Ask a driver, unless the operation is out of date by now; whatever it says becomes an input."""
        async with self._limit:
            hand = next((h for h in self._hands if send.operation.kind in h.kinds), None)
            if hand is None:
                self.replied(_outcome(send.operation, "refused", f"no driver performs {send.operation.kind}"))
                return
            if send.how == "revoke":
                await self._revoke(hand, send)
                return
            if not self._is_current(send.operation):
                return
            outcome = await self._ask_hand(hand, send)
            if outcome.result == "done" and OPERATIONS[send.operation.kind].removes_power:
                self.heartbeats.renew(send.node.id)
            self.replied(outcome)

    def _is_current(self, operation: Operation) -> bool:
        """The hand is fenced as well as the journal: only the active controller, only what stands recorded."""
        node = self._view.nodes.get(operation.node)
        held = node.operation if node else None
        return (
            self.role == "active" and held is not None and held.id == operation.id and held.attempt == operation.attempt
        )

    async def _ask_hand(self, hand: Hand, send: Send) -> Outcome:
        operation, node = send.operation, send.node
        left_s = (operation.deadline - self._clock()).total_seconds() + GRACE_S
        try:
            async with asyncio.timeout(max(GRACE_S, left_s)):
                if send.how == "observe":
                    said = await hand.observe(operation, node)
                else:
                    said = await hand.perform(operation, node)
        except (UnreachableError, ConflictError, TimeoutError) as away:
            return _outcome(operation, "unknown", str(away) or type(away).__name__)
        except RefusedError as refused:
            result = "unknown" if send.how == "observe" else "refused"
            return _outcome(operation, result, str(refused))
        except Exception as bug:  # the one place: a driver's bug must not stop the cell
            log.exception("driver_failed", extra={"node": node.id, "operation": operation.id})
            return _outcome(operation, "unknown", f"driver error: {type(bug).__name__}: {bug}")
        return said

    async def _revoke(self, hand: Hand, send: Send) -> None:
        try:
            async with asyncio.timeout(GRACE_S):
                await hand.revoke(send.operation, send.node)
        except (UnreachableError, ConflictError, RefusedError, TimeoutError) as away:
            log.info("revoke_failed", extra={"operation": send.operation.id, "reason": str(away)})


def _outcome(operation: Operation, result: str, detail: str) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail[:500], attempt=operation.attempt)


def _end(queue: "asyncio.Queue[Record | None]") -> None:
    while queue.full():
        queue.get_nowait()
    queue.put_nowait(None)
