"""Drives the very controller that runs in production, in virtual time: step, append, commit, send, answer.

At each boundary of a step the world's troubles may strike: the controller dies, its append fails, or it stands still
while another takes over, wakes, and goes on as if nothing had happened. The lease's arithmetic is the engine's own.
"""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from math import ceil

from msgspec import Struct

from hostler.controller.cell_clock import CellClock
from hostler.controller.inputs import ClockSeen, FellowsSeen, Input, Replied, Tick
from hostler.controller.loop import Controller
from hostler.controller.reply_effect import last_look
from hostler.controller.step_output import Send, StepOutput
from hostler.core.state.clock_doubt import Witness
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.live_state import Fellow, LiveState, Release
from hostler.core.state.snapshot import dump, load, state_of
from hostler.journal.memory import MemoryJournal
from hostler.ports import Journal, JournalError, Snapshot
from hostler.runtime.lease_validity import LeaseTerms, LeaseWatch
from hostler.sim.checkers.law import LawCheckers, Violation
from hostler.sim.world.message_faults import APPEND, APPENDED, CRASH, FAIL, GO_ON, PAUSE, REPLY, SEND, SENT
from hostler.sim.world.world import World

VERSION = "sim"
TICK = Tick()
SNAPSHOT_EVERY = 5000
"""Records between snapshots."""

TERMS = LeaseTerms()
TURN_S = 30.0
"""A loop at work turns more often; so much of quiet time is read at once."""

STOOD_BY_S = 600.0
"""Absence of a controller beyond which nobody stood by to take over."""

NOTICED_S = 0.5
"""How much later than possible somebody who stands by takes over."""

STUBBORN_STEPS = 12
"""How many steps a deposed controller takes after it woke, one a second."""

Watcher = Callable[[Record], None]
Rest = Iterator[str]
"""Rest of a step; it gives each boundary before it is passed."""


class SweepInterval(Struct, frozen=True):
    """How often the sweep looks at everything, and the controller at its clock at least."""

    sweep_s: float = 3600.0


class Incumbent(Struct, eq=False):
    """A controller that is or was active, with what it knows of its lease and of the time.

    `turned` is when it last read its clocks; one that works reads them all the time.
    """

    controller: Controller
    lease: LeaseWatch
    clock: CellClock
    turned: float

    @property
    def epoch(self) -> int:
        """Epoch under which it acts."""
        return self.controller.epoch


class Drive:
    """One cell: a world, a journal, and whichever controller is active. `swept` counts what sweeps found: none.

    `fenced` counts what deposed controllers tried and were kept from.
    """

    def __init__(
        self,
        world: World,
        beat: SweepInterval | None = None,
        law_checkers: LawCheckers | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.world = world
        self.law_checkers = law_checkers
        self.journal: Journal = journal or MemoryJournal()
        self.watchers: list[Watcher] = []
        self.swept = self.steps = self.takeovers = self.fenced = 0
        self.seq = 0
        self._active: Incumbent | None = None
        self._beat = beat or SweepInterval()
        self._ticking: datetime | None = None
        self._saved = 0
        self._heard: deque[Input] = deque(maxlen=64)
        self._found: list[Violation] = []
        self._attended = self._recorded = 0.0
        self._opened = 0
        self._witnessed = False

    @property
    def controller(self) -> Controller | None:
        """Active controller, None without one."""
        return self._active.controller if self._active else None

    def start(self) -> None:
        """A first controller becomes active."""
        self._take_over()
        self.world.clock.after(self._beat.sweep_s, self._sweep)

    def run(self, until: datetime) -> None:
        """Let the world live until then."""
        clock, site = self.world.clock, self.world.site
        while (due := clock.next()) is not None and due <= until:
            clock.turn()
            if site.inbox and self._active is not None:
                inputs, site.inbox = site.inbox, []
                self._step(self._active, site.troubles.inputs(inputs))
        clock.skip(until)

    def slow_down(self, beat: SweepInterval) -> None:
        """From now on look less often."""
        self._beat = beat

    def set_clock(self, ahead: timedelta) -> None:
        """The controllers' wall clock leaps: from now on it is so far ahead of true time (behind, where negative)."""
        if self._active is not None:
            self._read_clocks(self._active)  # until now they went alike
        self.world.site.skew = ahead
        self._ticking = None
        self.world.site.tell(TICK)

    def violations(self) -> list[Violation]:
        """Violations found by the court and by the loop: sweeps that found work, a memory that is no fold."""
        found = [*(self.law_checkers.violations if self.law_checkers is not None else []), *self._found]
        if self.swept:
            found.append(Violation(2, self.seq, f"sweeps found {self.swept} events that nothing had touched"))
        if self._active is not None and not self._is_fold(self._active.controller):
            found.append(Violation(1, self.seq, "the controller's memory is not the fold of the journal"))
        return found

    def _is_fold(self, controller: Controller) -> bool:
        return state_of(restore(self.journal)) == state_of(controller.fleet)

    # becoming active

    def _take_over(self) -> None:
        """Load the journal under a new epoch and observe first; the world then tells what is volatile."""
        if self._active is not None:
            return
        journal, site = self.journal, self.world.site
        name = f"controller-{self.takeovers}"
        lease = LeaseWatch(name, TERMS)
        lease.renewed(self._moment)
        site.epoch = journal.acquire(name)
        self.world.scheduler.told_nothing()
        controller = Controller(restore(journal), LiveState(), journal.cursors(), site.epoch)
        ready = controller.resume(site.wall, VERSION, witness=self._witness())
        who = Incumbent(controller, lease, CellClock(controller.now, site.wall, self._moment), self._moment)
        self._active = who
        self.takeovers += 1
        site.ahead = controller.now - self.world.clock.now
        if not self._go_on(who, self._complete(who, ready)):
            return
        site.inbox = []
        self.world.greet()
        site.tell(FellowsSeen((Fellow(name, Release().reads),)))
        self._tick_at(controller.now + timedelta(seconds=1))

    def _witness(self) -> Witness | None:
        """Absence as a standby has measured it; None where no standby was there."""
        if not self._witnessed:
            return None
        return Witness(self._moment - self._attended, self._moment - self._recorded)

    @property
    def _moment(self) -> float:
        """Seconds of the clock that also passes while a process sleeps."""
        return self.world.clock.elapsed_s

    # a step

    def _step(self, who: Incumbent, inputs: list[Input]) -> None:
        self.steps += 1
        self._heard.extend(inputs)
        self._go_on(who, self._take(who, inputs))

    def _take(self, who: Incumbent, inputs: list[Input]) -> Rest:
        if any(isinstance(one, Replied) for one in inputs):
            yield REPLY
        before = who.controller.swept
        seen = self._read_clocks(who)
        ready = who.controller.step([seen, *inputs] if seen else inputs, who.clock.now)
        self._keep_time(who)
        self.swept += who.controller.swept - before
        yield from self._complete(who, ready)

    def _read_clocks(self, who: Incumbent) -> ClockSeen:
        """Read both clocks; a controller that works has read them every little while."""
        site, moment = self.world.site, self._moment
        doubted = who.controller.fleet.cell.doubt is not None
        for turned in _turns(who.turned, moment):
            who.clock.read(site.wall - timedelta(seconds=moment - turned), turned, doubted=doubted)
        who.turned = moment
        return who.clock.read(site.wall, moment, doubted=doubted)

    def _keep_time(self, who: Incumbent) -> None:
        if who is self._active:
            self.world.site.ahead = who.controller.now - self.world.clock.now
            self._attended = self._moment

    def _complete(self, who: Incumbent, ready: StepOutput) -> Rest:
        """Append, then send and answer. Raises JournalError where the journal refuses."""
        if ready.batch:
            yield APPEND
            self.journal.append(ready.batch, who.epoch)
            self._watch(ready)
            yield APPENDED
        who.controller.committed()
        for send in ready.sends:
            yield SEND
            self._send(who, send)
        if ready.sends or ready.replies:
            yield SENT
        for reply in ready.replies:
            self.world.site.answer(reply)
        if who is self._active:
            if self.law_checkers is not None:
                self.law_checkers.committed(who.controller)
            self._wake(who.controller)
            self._snapshot(who.controller)

    def _go_on(self, who: Incumbent, rest: Rest) -> bool:
        """Pass the boundaries that are left; False where the controller did not survive one, or stands still."""
        for boundary in rest:
            fate = self.world.site.troubles.at(boundary)
            if fate != GO_ON:
                self._strike(who, fate, rest)
                return False
        return True

    def _strike(self, who: Incumbent, fate: str, rest: Rest) -> None:
        """The controller dies, its append fails, or it stands still."""
        self._active = None
        troubles, clock = self.world.site.troubles, self.world.clock
        has_opened = self._opened >= who.epoch
        if fate == PAUSE:
            self._witnessed = self._witnessed or has_opened
            renewed = self._moment - self._moment % TERMS.renew_s
            who.lease.renewed(renewed)
            clock.after(renewed + TERMS.lease_s + NOTICED_S - self._moment, self._take_over)
            clock.after(troubles.pause_s(), lambda: self._wakes(who, rest))
            return
        if fate == FAIL:
            who.controller.lost()
            if not self._is_fold(who.controller):
                self._found.append(Violation(1, self.seq, "after a failed commit the memory is not the journal's fold"))
        assert fate in (FAIL, CRASH), fate
        down_s = troubles.downtime_s()
        self._witnessed = (self._witnessed or has_opened) and down_s < STOOD_BY_S
        clock.after(down_s, self._take_over)

    def _send(self, who: Incumbent, send: Send) -> None:
        """The lease fences the driver: who cannot be sure to hold it sends nothing."""
        if who is self._active:
            who.lease.renewed(self._moment - self._moment % TERMS.renew_s)
        if who.lease.margin(self._moment) <= 0:
            self.fenced += 1
            return
        if (kept := last_look(who.controller.fleet, send, who.controller.now)) is not None:
            self.world.site.tell(Replied(kept))
            return
        self.world.actuators.take(send, who.epoch)

    def _watch(self, ready: StepOutput) -> None:
        if ready.batch.records:
            self._recorded = self._attended = self._moment
            self._opened = ready.batch.records[-1].epoch
        for record in ready.batch.records:
            self.seq = self.world.site.seq = record.seq
            self.world.people.see(record.event)
            for watcher in self.watchers:
                watcher(record)
        if self.law_checkers is not None:
            self.law_checkers.hear(ready)

    # one that stood still wakes

    def _wakes(self, who: Incumbent, rest: Rest) -> None:
        """Resume a paused controller where it stood. If nobody has taken over meanwhile it still is the one."""
        who.turned = self._moment
        if self._active is None and self.world.site.epoch == who.epoch:
            self._active = who
            self._go_on(who, rest)
            return
        self._insist(who, rest)
        self.world.clock.after(1.0, lambda: self._stubborn(who, STUBBORN_STEPS))

    def _stubborn(self, who: Incumbent, left: int) -> None:
        """A deposed controller steps on, on its stale fold and with what it hears itself."""
        self._insist(who, self._take(who, [*self._heard, TICK]))
        if left > 1:
            self.world.clock.after(1.0, lambda: self._stubborn(who, left - 1))

    def _insist(self, who: Incumbent, rest: Rest) -> None:
        """Pass all boundaries; the journal must refuse what it appends, and the lease keep it from sending."""
        fences = self.world.site.ledger.fences
        before = self.seq
        try:
            for _ in rest:
                pass
        except JournalError:
            who.controller.lost()
            self.fenced += 1
            fences.append(True)
        else:
            if self.seq != before:
                fences.append(False)

    def _snapshot(self, controller: Controller) -> None:
        if self.seq - self._saved >= SNAPSHOT_EVERY:
            self._saved = self.seq
            self.journal.save_snapshot(Snapshot(self.seq, self.journal.digest(), dump(state_of(controller.fleet))))

    # the clock

    def _wake(self, controller: Controller) -> None:
        due = controller.agenda.next()
        if due is not None:
            self._tick_at(due)

    def _tick_at(self, moment: datetime) -> None:
        """Have the controller look at the clock when its time is this moment."""
        moment -= self.world.site.ahead
        if self._ticking is None or moment < self._ticking or self._ticking <= self.world.clock.now:
            self._ticking = moment
            self.world.clock.at(moment, self._tick)

    def _tick(self) -> None:
        if self._ticking is not None and self._ticking <= self.world.clock.now:
            self._ticking = None
        self.world.site.tell(TICK)

    def _sweep(self) -> None:
        if self._active is not None:
            self._active.controller.sweep(self._active.controller.fleet.nodes)
            self.world.site.tell(TICK)
        self.world.clock.after(self._beat.sweep_s, self._sweep)


def _turns(turned: float, moment: float) -> list[float]:
    """When the clocks are read in a quiet time, in which both go alike: once early, and once as late as any turn.

    What is read between the two changes nothing.
    """
    quiet = range(1, ceil((moment - turned) / TURN_S))
    return [turned + TURN_S * turn for turn in dict.fromkeys((*quiet[:1], *quiet[-1:]))]


def restore(journal: Journal) -> Fleet:
    """The fold of the journal: its last snapshot and what came after."""
    saved = journal.snapshot()
    fleet = load(saved.body) if saved else Fleet()
    for record in journal.records(saved.seq if saved else 0):
        evolve(fleet, record)
    fleet.merge()
    return fleet
