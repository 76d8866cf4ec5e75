"""Drives the very controller that runs in production, in virtual time: step, append, commit, send, answer."""

from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.core.events import Record
from hostler.core.fleet import Fleet, dump, load
from hostler.core.fold import evolve
from hostler.core.model import Intent
from hostler.core.present import Present
from hostler.engine import intake
from hostler.engine.controller import Controller
from hostler.engine.journal.memory import MemoryJournal
from hostler.engine.ports import JournalError, Snapshot
from hostler.engine.ready import Ready
from hostler.sim.checkers.law import Court, Violation
from hostler.sim.world.world import World

VERSION = "sim"
TICK = intake.Tick()
SNAPSHOT_EVERY = 5000
"""Records between snapshots."""

Watcher = Callable[[Record], None]


class Beat(Struct, frozen=True):
    """How often the sweep looks at everything, and the controller at its clock at least."""

    sweep_s: float = 3600.0


class Drive:
    """One cell: a world, a journal, and whichever controller is active. `swept` counts what sweeps found: none."""

    def __init__(self, world: World, beat: Beat | None = None, court: Court | None = None) -> None:
        self.world = world
        self.court = court
        self.journal = MemoryJournal()
        self.watchers: list[Watcher] = []
        self.swept = 0
        self.steps = 0
        self.takeovers = 0
        self.controller: Controller | None = None
        self._beat = beat or Beat()
        self._ticking: datetime | None = None
        self._saved = 0
        self._deposed: Controller | None = None

    def start(self) -> None:
        """A first controller becomes active."""
        self._take_over()
        self.world.clock.after(self._beat.sweep_s, self._sweep)

    def run(self, until: datetime) -> None:
        """Let the world live until then."""
        clock, site = self.world.clock, self.world.site
        while (due := clock.next()) is not None and due <= until:
            clock.turn()
            if site.inbox and self.controller is not None:
                inputs, site.inbox = site.inbox, []
                self._step(site.troubles.inputs(inputs))
        clock.skip(until)

    def slow_down(self, beat: Beat) -> None:
        """From now on look less often."""
        self._beat = beat

    def violations(self) -> list[Violation]:
        """What the court has found, and what the drive has: sweeps that found work, a memory that is no fold."""
        seq = self.journal.latest_seq()
        found = list(self.court.violations) if self.court is not None else []
        if self.swept:
            found.append(Violation(2, seq, f"sweeps found {self.swept} events that nothing had touched"))
        if self.controller is not None and restore(self.journal).state() != self.controller.fleet.state():
            found.append(Violation(1, seq, "the controller's memory is not the fold of the journal"))
        return found

    def _take_over(self) -> None:
        """Load the journal under a new epoch and observe first; the world then tells what is volatile."""
        journal, site = self.journal, self.world.site
        site.epoch = journal.acquire(f"controller-{self.takeovers}")
        self.controller = Controller(restore(journal), Present(), journal.cursors(), site.epoch)
        self.takeovers += 1
        if not self._finish(self.controller, self.controller.resume(self.world.clock.now, VERSION)):
            return
        site.inbox = []
        self._wake_deposed()
        self.world.greet()
        self._tick_at(self.world.clock.now + timedelta(seconds=1))

    def _step(self, inputs: list[intake.Input]) -> None:
        assert self.controller is not None, "somebody is active"
        self.steps += 1
        before = self.controller.swept
        ready = self.controller.step(inputs, self.world.clock.now)
        self.swept += self.controller.swept - before
        self._finish(self.controller, ready)

    def _finish(self, controller: Controller, ready: Ready) -> bool:
        """Commit, then send and answer; False where the controller did not survive it."""
        trouble = self.world.site.troubles.commit() if ready.batch else ""
        if trouble in ("failed", "crash_before"):
            controller.lost()
            self._crash()
            return False
        if ready.batch:
            self.journal.append(ready.batch, controller.epoch)
        self._watch(ready)
        if self.court is not None:
            self.court.hear(ready)
        if trouble == "crash_after":
            self._deposed = controller
            self._crash()
            return False
        controller.committed()
        for send in ready.sends:
            self.world.hands.take(send, controller.epoch)
        for reply in ready.replies:
            self.world.site.answer(reply)
        self._wake(controller)
        self._snapshot(controller)
        return True

    def _watch(self, ready: Ready) -> None:
        for record in ready.batch.records:
            self.world.site.seq = record.seq
            self.world.people.see(record.event)
            for watcher in self.watchers:
                watcher(record)

    def _crash(self) -> None:
        """The controller is gone; another takes over after a while."""
        self.controller = None
        site = self.world.site
        self.world.clock.after(site.troubles.downtime_s(), self._take_over)

    def _wake_deposed(self) -> None:
        """One that slept through its successor's rise wakes and writes: the journal must refuse it."""
        controller, self._deposed = self._deposed, None
        if controller is None:
            return
        now = self.world.clock.now
        controller.committed()
        ghost = Intent("ghost", "pause", "fleet", "ghost", "a deposed controller writes", now)
        ready = controller.step([intake.Asked(0, ghost)], now)
        try:
            self.journal.append(ready.batch, controller.epoch)
        except JournalError:
            self.world.site.ledger.fences.append(True)
        else:
            self.world.site.ledger.fences.append(False)

    def _snapshot(self, controller: Controller) -> None:
        seq = self.journal.latest_seq()
        if seq - self._saved >= SNAPSHOT_EVERY:
            self._saved = seq
            self.journal.save_snapshot(Snapshot(seq, self.journal.digest(), dump(controller.fleet.state())))

    # the clock

    def _wake(self, controller: Controller) -> None:
        due = controller.agenda.next()
        if due is not None:
            self._tick_at(due)

    def _tick_at(self, moment: datetime) -> None:
        if self._ticking is None or moment < self._ticking or self._ticking <= self.world.clock.now:
            self._ticking = moment
            self.world.clock.at(moment, self._tick)

    def _tick(self) -> None:
        if self._ticking is not None and self._ticking <= self.world.clock.now:
            self._ticking = None
        self.world.site.tell(TICK)

    def _sweep(self) -> None:
        if self.controller is not None:
            self.controller.sweep(list(self.controller.fleet.nodes))
            self.world.site.tell(TICK)
        self.world.clock.after(self._beat.sweep_s, self._sweep)


def restore(journal: MemoryJournal) -> Fleet:
    """The fold of the journal: its last snapshot and what came after."""
    saved = journal.snapshot()
    fleet = load(saved.body) if saved else Fleet()
    for record in journal.records(saved.seq if saved else 0):
        evolve(fleet, record)
    fleet.merge()
    return fleet
