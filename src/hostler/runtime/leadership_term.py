"""One term of office: a controller decides under one epoch, from the takeover until lease, commit or process is lost.

What is volatile begins anew with each term: queues, heartbeats, the present. Answers are given after the commit.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from prometheus_client import Histogram

from hostler.controller.cell_clock import CellClock
from hostler.controller.inputs import AgentSilent, Input
from hostler.controller.loop import Controller
from hostler.controller.step_output import Reply, Send, StepOutput
from hostler.core.state.clock_doubt import Witness
from hostler.core.state.events import Record
from hostler.core.state.live_state import LiveState, Release
from hostler.core.state.snapshot import state_of
from hostler.ports import Journal
from hostler.runtime.checkpoints import Checkpoints
from hostler.runtime.heartbeats import HeartbeatTable
from hostler.runtime.input_queues import BusyError, Queues
from hostler.runtime.replica import Follower
from hostler.runtime.subscribers import Subscribers

TICK_S = 0.5
SWEEP_S = 60.0
"""Within this every node is looked at once, a share in each turn: a whole fleet at once would hold up the loop."""

_tokens = itertools.count(1)
"""Marks of questions and their answers; never used twice in a process, so that no term answers another's."""


COMMIT_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


def commit_durations() -> Histogram:
    """How long commits took, of all terms of this process."""
    name = "hostler_commit_duration_seconds"
    return Histogram(name, "From a batch's append to its being durable.", buckets=COMMIT_S, registry=None)


class Around(Struct):
    """The surroundings of a controller's terms. `background` keeps a task until it is done.

    `followed` is told what was recorded before anything of it is sent. `clock` is the wall's, `moment` the seconds of a
    clock that also counts while the machine sleeps.
    """

    journal: Journal
    checkpoints: Checkpoints
    follower: Follower
    subscribers: Subscribers
    send: Callable[[Send], None]
    followed: Callable[[Sequence[Record]], None]
    background: Callable[[Coroutine[Any, Any, None]], None]
    clock: Callable[[], datetime]
    moment: Callable[[], float]
    release: Release
    commits: Histogram = field(default_factory=commit_durations)


class LeadershipTerm:
    """The controller of one term with its queues. Nothing is decided before `open`, nothing answered after `close`."""

    def __init__(self, around: Around, epoch: int, cursors: dict[str, tuple[str, int]]) -> None:
        self.epoch = epoch
        self.live = LiveState(around.release)
        self.heartbeats = HeartbeatTable()
        self.commit_ms = 0.0
        self._around = around
        self._view = around.follower.view
        self._controller = Controller(around.follower.fleet, self.live, cursors, epoch)
        self._queues = Queues()
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._work = asyncio.Event()
        self._swept_at: datetime | None = None
        self._unswept: list[str] = []
        self._time: CellClock | None = None

    async def open(self, witness: Witness | None) -> None:
        """Say so in the journal, and have what is out observed. Raises JournalError."""
        around, controller = self._around, self._controller
        await around.checkpoints.look()
        copy = await asyncio.to_thread(around.journal.restored)
        wall, moment = around.clock(), around.moment()
        ready = controller.resume(wall, around.release.version, witness=witness, copy=copy)
        self._time = CellClock(controller.now, wall, moment)
        self.heartbeats.begin(list(self._view.nodes), controller.now)
        await self._complete(ready)

    @property
    def now(self) -> datetime:
        """Controller time, as of the last turn."""
        return self._time.now if self._time is not None else self._controller.now

    def close(self, retry_after_s: float) -> None:
        """End without answers; what was not committed is forgotten."""
        self._controller.lost()
        self._queues = Queues()
        for future in self._answers.values():
            if not future.done():
                future.set_exception(BusyError(retry_after_s))

    def read_to(self, node: str) -> tuple[str, int]:
        """The spool of the node's agent and its last durable number, ("", 0) where none is known."""
        return self._controller.cursors.get(f"{node}/agent", ("", 0))

    @property
    def queued(self) -> int:
        """Inputs that wait to be decided."""
        return len(self._queues)

    def wake(self) -> None:
        """There is something to look at."""
        self._work.set()

    def tell(self, one: Input) -> None:
        """Queue an input that nobody waits for."""
        self._queues.put(one)
        self._work.set()

    async def ask(self, question: Callable[[int], Input]) -> Reply:
        """Queue the input that `question` makes of its token, and wait for the answer. Raises BusyError."""
        token = next(_tokens)
        self._queues.put(question(token))
        future = asyncio.get_running_loop().create_future()
        self._answers[token] = future
        self._work.set()
        try:
            return await asyncio.shield(future)
        finally:
            self._answers.pop(token, None)

    def refuse_observations(self, why: BusyError) -> None:
        """Answer those that wait with an error; none of them is recorded."""
        for one in self._queues.drop_observations():
            if (future := self._answers.get(one.token)) is not None and not future.done():
                future.set_exception(why)

    async def turn(self) -> None:
        """Wait for something to do, decide one batch, and complete it. Raises JournalError; then `close`."""
        if not len(self._queues):
            self._work.clear()
            try:
                async with asyncio.timeout(TICK_S):
                    await self._work.wait()
            except TimeoutError:
                pass
        await self.decide()

    async def decide(self) -> None:
        """Decide one batch of what there is, and complete it. Raises JournalError; then `close`."""
        assert self._time is not None, "nothing is decided before `open`"
        doubted = self._view.cell.doubt is not None
        seen = self._time.read(self._around.clock(), self._around.moment(), doubted=doubted)
        now = self._time.now
        if seen.unattended_s:
            self.heartbeats.begin_anew(now)
        self._listen(now)
        inputs = [*((seen,) if seen else ()), *self._queues.take()]
        wake = self._controller.agenda.next()
        swept = self._sweep(now)
        if inputs or swept or (wake is not None and wake <= now):
            await self._complete(self._controller.step(inputs, now))

    def _listen(self, now: datetime) -> None:
        for node_id, since in self.heartbeats.overdue(now, self._view.policy.agent_silence_s):
            if node_id in self._view.nodes:
                self._queues.put(AgentSilent(node_id, since))

    def _sweep(self, now: datetime) -> bool:
        """Look at every node once in a while, share by share; it must find nothing to do."""
        if self._swept_at is None:
            self._swept_at = now
        since_s = (now - self._swept_at).total_seconds()
        share = int(len(self._view.nodes) * min(since_s / SWEEP_S, 1.0))
        if since_s < TICK_S or not share:
            return False
        self._swept_at = now
        self._unswept = self._unswept or list(self._view.nodes)
        self._controller.sweep(name for name in self._unswept[-share:] if name in self._view.nodes)
        del self._unswept[-share:]
        return True

    async def _complete(self, ready: StepOutput) -> None:
        """Append, and only then send and answer."""
        if ready.batch:
            began = self._around.moment()
            await asyncio.to_thread(self._around.journal.append, ready.batch, self.epoch)
            took_s = self._around.moment() - began
            self.commit_ms = took_s * 1000
            self._around.commits.observe(took_s)
        self._controller.committed()
        self._around.subscribers.publish(ready.batch.records)
        self._around.followed(ready.batch.records)
        for reply in ready.replies:
            future = self._answers.get(reply.token)
            if future is not None and not future.done():
                future.set_result(reply)
        for send in ready.sends:
            self._around.send(send)
        await self._checkpoint()

    async def _checkpoint(self) -> None:
        seq, checkpoints = self._controller.fleet.cell.seq, self._around.checkpoints
        if not checkpoints.due(seq):
            return
        checkpoints.begun(seq)
        state = state_of(self._controller.fleet)
        digest = await asyncio.to_thread(self._around.journal.digest)
        self._around.background(checkpoints.take(state, digest))
