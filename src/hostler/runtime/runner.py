"""A controller's process within its cell: one holds the lease and decides, the others stand by.

Who stands by folds what is recorded, serves reads, and takes over when the lease has run out. Who loses the lease, or
a commit, stands by again by itself. What is decided is `loop`'s, what may be done when is `lease_validity`'s.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from prometheus_client import Histogram

from hostler.controller.inputs import (
    AgentHeard,
    BootAsked,
    DiskSeen,
    FellowsSeen,
    Input,
    IntentAsked,
    Observed,
    Replied,
)
from hostler.controller.reply_effect import last_look
from hostler.controller.step_output import Reply, Send
from hostler.core.boot.boot_decision import BootRequest
from hostler.core.conditions.known_inventory import still_known
from hostler.core.state.clock_doubt import Witness
from hostler.core.state.configuration import Configuration
from hostler.core.state.durations import duration
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Intent
from hostler.core.state.live_state import NOTHING_SAID, AgentAbilities, Fellow, LiveState
from hostler.core.state.model import ActClass, Observation, Operation, Outcome
from hostler.core.tables.operations import OPERATIONS
from hostler.journal.journal_room import JournalFullError, JournalRoom, RoomyJournal
from hostler.journal.named_records import each_record
from hostler.logs import traces
from hostler.logs.structured import logger
from hostler.ports import ControllerMember, FencedError, Journal, JournalError, Lease, RecordWindow, UnreachableError
from hostler.runtime.cell_controllers import ALONE, ControllerHealth, ControllerIdentity, ControllerLiveness
from hostler.runtime.checkpoints import Checkpoints
from hostler.runtime.disk_room import DiskRoom, NoRoomError
from hostler.runtime.dispatcher import Sender
from hostler.runtime.heartbeats import HeartbeatTable
from hostler.runtime.input_queues import StandbyError
from hostler.runtime.intent_traces import READ_BACK, IntentTraces
from hostler.runtime.leadership_term import TICK_S, Around, LeadershipTerm
from hostler.runtime.lease_renewal import Holding
from hostler.runtime.lease_validity import LeaseWatch
from hostler.runtime.performers import Performers
from hostler.runtime.replica import Follower
from hostler.runtime.subscribers import Subscribers, Subscription

log = logger()

STOP_S = 5.0
AGAIN_AFTER_S = (0.2, 1.0, 5.0)
"""How long to wait after a failure, later each time, until something has worked again."""

GONE_LEASES = 4
"""A member that has not announced itself for so many leases counts as gone."""

FORGOTTEN_S = 600.0
"""A member that has been silent for so long is struck off the roll."""


def boottime() -> float:
    """Seconds that also pass while the machine sleeps.

    CLOCK_MONOTONIC stands still in suspend on Linux: a holder that slept would wake up believing in its lease.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def keep_out_of_collections() -> None:
    """Keep what a process has loaded out of collections of garbage: it is long-lived, they need not walk it again.

    Call it in a process that runs one cell to its end: what is kept so is never freed.
    """
    gc.collect()
    gc.freeze()


class Cell:
    """One controller of one cell: start, then observe, ask, subscribe … until stop."""

    def __init__(
        self,
        journal: Journal,
        drivers: Performers,
        *,
        seat: ControllerIdentity = ALONE,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        loaded: Callable[[], None] = lambda: None,
    ) -> None:
        """`loaded` is called once the journal is loaded and nothing is decided yet."""
        self.name = seat.cell
        self.version = seat.release.version
        self.journal = journal
        self.role = "starting"
        self._seat = seat
        self._clock = clock
        self._loaded = loaded
        self._why = "not started"
        self._watch = LeaseWatch(seat.mark, seat.terms)
        self._holding: Holding | None = None
        self._term: LeadershipTerm | None = None
        self._follower = Follower(journal, seat.release.reads, boottime)
        self._subscribers = Subscribers(journal.records)
        self._traces = IntentTraces(lambda node: each_record(journal, RecordWindow(subject=node, names=READ_BACK)))
        self._sender = Sender(drivers, self, self._answered, self.now, self._traces.of)
        self._checkpoints = Checkpoints(journal)
        self._room = DiskRoom()
        self._around = Around(
            journal=journal,
            checkpoints=self._checkpoints,
            follower=self._follower,
            subscribers=self._subscribers,
            send=self._sender.send,
            followed=self._traces.follow,
            background=self._background,
            clock=clock,
            moment=boottime,
            release=seat.release,
        )
        self._liveness = ControllerLiveness(GONE_LEASES * seat.terms.lease_s)
        self._nothing = (LiveState(), HeartbeatTable())
        self._quiet_until = 0.0
        self._witness: Witness | None = None
        self._failures = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop_task: asyncio.Task[None] | None = None
        self._settled, self._stopping = asyncio.Event(), asyncio.Event()
        self._on, self._off = asyncio.Event(), asyncio.Event()
        self._off.set()

    async def start(self) -> None:
        """Load the journal; return once this controller is active, or stands by because somebody holds the lease.

        Raises what the journal raises.
        """
        await self._follower.load()
        self._loaded()
        self._background(self._announce())
        if isinstance(self.journal, RoomyJournal):
            self._background(self._watch_room(self.journal))
        self._loop_task = asyncio.create_task(self._run(), name="controller")
        settled = asyncio.create_task(self._settled.wait())
        await asyncio.wait({self._loop_task, settled}, return_when=asyncio.FIRST_COMPLETED)
        settled.cancel()
        if self._loop_task.done() and (failure := self._loop_task.exception()) is not None:
            await self.stop()
            raise failure

    async def stop(self) -> None:
        """Decide what is queued, then no more, and resign; what is out is observed by whoever is active next."""
        self._stopping.set()
        if self._term is not None:
            self._term.wake()
        if self._loop_task is not None:
            await asyncio.wait([self._loop_task], timeout=STOP_S)
            self._loop_task.cancel()
            await asyncio.wait([self._loop_task])
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._become("stopped", "stopped")
        self._subscribers.close()

    # --- what it shows

    @property
    def view(self) -> Fleet:
        """The committed fleet, as far as this controller knows; reading it needs no lock."""
        return self._follower.view

    @property
    def live(self) -> LiveState:
        """Live state, as far as it was told in this term of office; all unknown where it stands by."""
        return self._term.live if self._term is not None else self._nothing[0]

    def now(self) -> datetime:
        """Controller time, which never goes back; the wall clock's where this controller stands by."""
        return self._term.now if self._term is not None else self._clock()

    @property
    def heartbeats(self) -> HeartbeatTable:
        """Heartbeats heard in this term of office."""
        return self._term.heartbeats if self._term is not None else self._nothing[1]

    @property
    def epoch(self) -> int:
        """The lease's epoch, as far as this controller has seen; its own where it decides."""
        return self._watch.seen.epoch if self._watch.seen is not None else 0

    @property
    def elsewhere(self) -> str:
        """Address of the active controller, "" where none is known or it is this one."""
        lease = self._watch.seen
        return lease.address if lease is not None and lease.holder not in ("", self._seat.mark) else ""

    def health(self) -> ControllerHealth:
        """How this controller is."""
        term, lease = self._term, self._watch.seen or Lease()
        behind, behind_s = (0, 0.0) if self.role == "active" else self._follower.behind()
        why = self._why or self._doubt(behind_s)
        return ControllerHealth(
            role=self.role,
            epoch=self.epoch,
            seq=self.view.cell.seq,
            queued=term.queued if term is not None else 0,
            commit_ms=term.commit_ms if term is not None else 0.0,
            brake=self.view.cell.brake,
            ok=not why,
            why=why,
            controller=self._seat.controller,
            margin_s=max(0.0, self._watch.margin(boottime())),
            active=self._seat.mark if self.role == "active" else lease.holder,
            active_address=self._seat.address if self.role == "active" else lease.address,
            behind=behind,
            behind_s=behind_s,
            reachable=not why if self.role == "active" else behind_s < 2 * self._seat.terms.lease_s,
            peers=self._liveness.peers,
            snapshot=self._checkpoints.fault(self.view.cell.seq),
            snapshot_age=self._checkpoints.age(self.view.cell.seq),
            snapshots_failed=self._checkpoints.failed,
            disk=self._room.why,
        )

    def _doubt(self, behind_s: float) -> str:
        """Trouble though nothing has failed yet."""
        if self.role == "active" and self._holding is not None:
            return self._holding.why()
        if self.role != "standby":
            return ""
        if behind_s > GONE_LEASES * self._seat.terms.lease_s:
            return f"the journal has not been read to its end for {duration(behind_s)}"
        return self._checkpoints.fault(self.view.cell.seq)

    def subscribe(self, after: int, quiet_s: float | None = None) -> Subscription:
        """Every record after `after`, from the journal and then live, in batches."""
        return self._subscribers.follow(after, quiet_s)

    # --- what it is told

    async def observe(self, node: str, observations: tuple[Observation, ...], *, urgent: bool = False) -> Reply:
        """Take observations of one sender; they are durable when this returns. Raises BusyError, NoRoomError."""
        self.demand_room()
        return await self._deciding().ask(lambda token: Observed(token, node, observations, urgent))

    def demand_room(self) -> None:
        """Raises NoRoomError where the disk has only what is kept for records and acts."""
        if self.role == "active" and self._room.low:
            raise NoRoomError(self._room.low)

    async def ask(
        self, intent: Intent, configuration: Configuration | None = None, documents: dict[str, str] | None = None
    ) -> Reply:
        """Have an intent answered; the answer is durable when this returns. Raises BusyError."""
        told = {"hostler.intent": intent.id, "hostler.verb": intent.verb, "hostler.target": intent.target}
        with traces.decision(intent.id, f"decide {intent.verb}", told) as span:
            self._traces.asked(intent.id)
            reply = await self._deciding().ask(lambda token: IntentAsked(token, intent, configuration, documents or {}))
            traces.tell(span, "hostler.granted", reply.granted)
        return reply

    async def boot(self, request: BootRequest) -> Reply:
        """Have a request from the boot network answered; the answer is durable when this returns. Raises BusyError."""
        return await self._deciding().ask(lambda token: BootAsked(token, request))

    def heartbeat(self, node: str, boot_id: str, said: AgentAbilities = NOTHING_SAID) -> None:
        """An agent is heard, and says what it can, as far as it says it now."""
        if node in self.view.nodes and self.heartbeats.beat(node, boot_id, self.now(), said):
            can = self.heartbeats.abilities(node)
            self.tell(AgentHeard(node, boot_id, can.profiles, can.verbs))

    def read_to(self, node: str) -> tuple[str, int]:
        """The spool of the node's agent, and the number up to which it is durable here; ("", 0) where none is known."""
        return self._term.read_to(node) if self._term is not None else ("", 0)

    def known_inventory(self, node: str, boot_id: str) -> str:
        """The digest of the inventory that the node's agent need not tell again in this boot, "" for none."""
        found = self.view.nodes.get(node)
        return "" if found is None else still_known(self.view, found, boot_id, self.live.of(node).inventory)

    def tell(self, one: Input) -> None:
        """Put a volatile reading (workloads, power) before the controller; who stands by has no use for it."""
        if self._term is not None:
            self._term.tell(one)

    def replied(self, outcome: Outcome) -> None:
        """A driver's outcome that came by another way than its call (an agent that posts late)."""
        self.tell(Replied(outcome))

    def _deciding(self) -> LeadershipTerm:
        """The term that decides here. Raises BusyError where nobody does."""
        if self._stopping.is_set() or self.role != "active" or self._term is None:
            raise StandbyError(self.elsewhere, AGAIN_AFTER_S[-1] if self._why else 1.0)
        return self._term

    @property
    def commits(self) -> Histogram:
        """How long commits took since the process began."""
        return self._around.commits

    async def while_active(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do `work`, anew in each term of office and only then, until cancelled; a bug in it is raised."""
        while True:
            await self._on.wait()
            doing, over = asyncio.ensure_future(work()), asyncio.ensure_future(self._off.wait())
            try:
                await asyncio.wait({doing, over}, return_when=asyncio.FIRST_COMPLETED)
                if doing.done():
                    doing.result()
                    await over
            finally:
                doing.cancel()
                over.cancel()
                await asyncio.gather(doing, over, return_exceptions=True)

    # --- the fence of the hand

    def may_send(self) -> bool:
        """Whether anything may be sent now: the lease is ours for some time yet."""
        return self.role == "active" and self._watch.margin(boottime()) > 0

    def fence(self) -> None:
        """For drivers, just before they send. Raises UnreachableError where nothing may be sent any more."""
        if not self.may_send():
            raise UnreachableError(
                "the lease has run out; nothing was sent; it is asked again by the controller that holds it"
            )

    async def passes(self, send: Send) -> bool:
        """Wait for the lease and, after a takeover, for what the one before may have sent; then look again.

        The operation must still stand recorded as it was, and so must what it presupposes: much is recorded meanwhile.
        """
        while self._is_current(send):
            wait_s = 0.0 if self.may_send() else TICK_S
            if _disturbs(send):
                wait_s = max(wait_s, self._quiet_until - boottime())
            if wait_s <= 0.0:
                kept = last_look(self.view, send, self.now())
                if kept is not None:
                    self.replied(kept)
                return kept is None
            await asyncio.sleep(min(wait_s, TICK_S))
        return False

    def _is_current(self, send: Send) -> bool:
        """Only the active controller sends, and only what stands recorded."""
        known = self.view.nodes.get(send.operation.node)
        under_way = known.under_way if known is not None else _on_asset(self.view, send.operation.node)
        asked = (send.operation.id, send.operation.attempt)
        same = any((one.id, one.attempt) == asked for one in under_way)
        return self.role == "active" and same

    def _answered(self, send: Send, outcome: Outcome) -> None:
        is_node = send.node.id in self.view.nodes
        if is_node and outcome.result == "done" and OPERATIONS[send.operation.kind].removes_power:
            self.heartbeats.renew(send.node.id)
        self.replied(outcome)

    # --- standing by

    async def _run(self) -> None:
        while not self._stopping.is_set():
            if (epoch := await self._stand_by()) is not None:
                await self._lead(epoch)

    async def _stand_by(self) -> int | None:
        """Follow until the lease is ours, and give its epoch; None when it is time to stop."""
        while not self._stopping.is_set():
            try:
                await self._follower.catch_up(self._subscribers.publish)
                self._room.tried(boottime())
                self._become("standby", self._room.full)
                if self._room.full:
                    await self._wait_for_room()
                    continue
                if (epoch := await self._take()) is not None:
                    return epoch
                await self._news()
                self._failures = 0
            except JournalError as broken:
                if not self._settled.is_set():
                    raise
                if isinstance(broken, JournalFullError):
                    self._room.failed(boottime())
                self._become("standby", self._room.full or str(broken))
                await self._pause()
        return None

    async def _wait_for_room(self) -> None:
        """Stand by, read what others record, and take nothing: with a full disk it could only fail again."""
        self._settled.set()
        await self._pause_for(self._room.look_after_s)

    async def _watch_room(self, journal: RoomyJournal) -> None:
        """Look at the disk for as long as this process runs; observations that wait are refused once it is low."""
        while True:
            try:
                if (room := await asyncio.to_thread(journal.room)) is not None:
                    await self._judge_room(journal, room)
            except JournalError as broken:
                log.info("disk_not_seen", reason=str(broken))
            await asyncio.sleep(self._room.look_after_s)

    async def _judge_room(self, journal: RoomyJournal, room: JournalRoom) -> None:
        was_low, was_full, was_near = bool(self._room.low), bool(self._room.full), self._room.near
        self._room.saw(room)
        low = bool(self._room.low)
        if self._term is not None and low:
            self._term.refuse_observations(NoRoomError(self._room.low))
            self._wake()
        if low != bool(self.view.cell.disk):
            self.tell(DiskSeen(self._room.low))
        if low != was_low or bool(self._room.full) != was_full:
            log.warning("disk_room", free=room.free, size=room.size, place=room.place, reason=self._room.why)
        if self._room.near != was_near:  # before it is low: what a long log gives back then would soon be taken again
            await asyncio.to_thread(journal.save_room, short=self._room.near)

    async def _take(self) -> int | None:
        """Take the lease where that is right and nobody is quicker. Only who has read everything gets here."""
        lease = await asyncio.to_thread(self.journal.lease)
        self._watch.worked(self._follower.fleet.cell.epoch)
        self._watch.saw(lease, boottime())
        seat = self._seat
        if not seat.alone and not self._watch.takeable(boottime()):
            return None
        began = boottime()
        try:
            epoch = await asyncio.to_thread(self.journal.acquire, seat.mark, seat.address, lease)
        except FencedError:
            return None
        quiet = not seat.alone and lease.epoch > 0 and lease.holder != seat.mark
        self._quiet_until = began + (seat.terms.send_s if quiet else 0.0)
        unattended_s = self._watch.unattended(boottime())
        self._witness = None if unattended_s is None else Witness(unattended_s, self._follower.since_record_s())
        self._watch.took(Lease(epoch, seat.mark, seat.address), began)
        return epoch

    async def _news(self) -> None:
        """Wait for a record, a change of the lease, its end, or the end of everything."""
        self._settled.set()
        terms, seen = self._seat.terms, self._watch.seen or Lease()
        wait_s = min(terms.lease_s / 5, max(0.01, self._watch.remains(boottime())))
        waiting = asyncio.ensure_future(asyncio.to_thread(self.journal.wait, self.view.cell.seq, seen, wait_s))
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await waiting

    async def _announce(self) -> None:
        """Say that this controller is there, see who else is, and strike off who has long gone."""
        seat = self._seat
        try:
            while True:
                try:
                    await asyncio.to_thread(
                        self.journal.announce, ControllerMember(seat.controller, seat.address, seat.release.reads)
                    )
                    await self._checkpoints.look()
                    self._liveness.saw(await asyncio.to_thread(self.journal.members), boottime())
                    self._tell_fellows()
                    for name in self._liveness.silent(boottime(), FORGOTTEN_S) if self.role == "active" else ():
                        await asyncio.to_thread(self.journal.dismiss, name)
                except JournalError as broken:
                    log.info("announce_failed", reason=str(broken))
                await asyncio.sleep(seat.terms.lease_s)
        finally:
            await _quietly(self.journal.dismiss, seat.controller)

    def _tell_fellows(self) -> None:
        """Tell who of the cell was alive at the last look; before the first there is nobody to tell of."""
        if self._liveness.peers:
            alive = tuple(Fellow(peer.name, peer.reads) for peer in self._liveness.peers if peer.alive)
            self.tell(FellowsSeen(alive))

    # --- deciding

    async def _lead(self, epoch: int) -> None:
        """Decide under this epoch until the lease or a commit is lost, or it is time to stop."""
        holding = self._holding = Holding(self.journal, self._watch, boottime)
        holding.begin(epoch, asyncio.get_running_loop().call_soon_threadsafe, self._wake)
        try:
            await self._decide(epoch, holding)
            self._leave("stopping")
            await _quietly(self.journal.resign, epoch)
        except FencedError as fenced:
            self._leave(str(fenced))
        except JournalFullError as full:
            log.warning("disk_full", reason=str(full))
            self._room.failed(boottime())
            self._leave(self._room.full)
            await _quietly(self.journal.resign, epoch)
        except JournalError as broken:
            log.warning("commit_failed", reason=str(broken))
            self._leave(str(broken))
            await self._sender.stop()
            await self._pause()
        except Exception as bug:  # nothing was recorded: what is out is observed, what was sent comes again
            log.exception("step_failed")
            self._leave(f"a bug in Hostler: {type(bug).__name__}: {bug}")
            await self._anew()
        finally:
            self._leave(self._why)
            await self._sender.stop()

    async def _decide(self, epoch: int, holding: Holding) -> None:
        await self._follower.catch_up(self._subscribers.publish)
        cursors = await asyncio.to_thread(self.journal.cursors)
        term = self._term = LeadershipTerm(self._around, epoch, cursors)
        self._become("active", "taking over")
        self._tell_fellows()  # who announced itself before this term is not told of again for a whole lease
        await term.open(self._witness)
        holding.opened()
        self._become("active", "")
        self._settled.set()
        while not self._stopping.is_set():
            holding.turned()
            if holding.fenced:
                raise FencedError(holding.fenced)
            if self._room.full:
                raise JournalFullError(self._room.full)
            await term.turn()
            self._room.worked()
            self._failures = 0
        await term.decide()

    def _leave(self, why: str) -> None:
        """Leave office: nothing more is decided, renewed or answered here."""
        if self._holding is not None:
            self._holding.end()
            self._holding = None
        self._watch.lost()
        term, self._term = self._term, None
        if term is not None:
            term.close(AGAIN_AFTER_S[-1])
        self._become("standby", why)

    async def _anew(self) -> None:
        """After a bug the memory is not believed: load the journal again, later each time."""
        while not self._stopping.is_set():
            await self._pause()
            try:
                await self._follower.load()
            except JournalError as broken:
                self._why = str(broken)
                continue
            return

    async def _pause(self) -> None:
        pause_s = AGAIN_AFTER_S[min(self._failures, len(AGAIN_AFTER_S) - 1)]
        self._failures += 1
        await self._pause_for(pause_s)

    async def _pause_for(self, pause_s: float) -> None:
        """Wait so long, or until it is time to stop."""
        try:
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()
        except TimeoutError:
            pass

    def _become(self, role: str, why: str) -> None:
        if role != self.role:
            log.info("role_changed", controller=self._seat.controller, role=role, reason=why)
        self.role, self._why = role, why
        (self._on if role == "active" else self._off).set()
        (self._off if role == "active" else self._on).clear()

    def _wake(self) -> None:
        if self._term is not None:
            self._term.wake()

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _on_asset(fleet: Fleet, asset_id: str) -> tuple[Operation, ...]:
    asset = fleet.assets.get(asset_id)
    rack = fleet.racks.get(asset.position.rack) if asset is not None else None
    return rack.operations if rack is not None else ()


def _disturbs(send: Send) -> bool:
    """Whether it waits for what another may have sent: looking and taking back disturb nobody, protection must not."""
    plan = send.node.plan
    calm = send.how != "perform" or (plan is not None and plan.state == "undoing")
    return not calm and (plan is None or plan.act_class not in (ActClass.easing, ActClass.protective))


async def _quietly(call: Callable[..., None], *args: object) -> None:
    """The journal's farewell: where it fails, the lease's end or the roll's says the same."""
    try:
        async with asyncio.timeout(STOP_S):
            await asyncio.to_thread(call, *args)
    except (JournalError, TimeoutError) as failed:
        log.info("farewell_failed", reason=str(failed))
