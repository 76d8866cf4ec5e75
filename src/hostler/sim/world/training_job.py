"""One training job over many nodes: it checkpoints, ends when any node fails, and starts again from its checkpoint."""

from collections.abc import Callable
from datetime import datetime
from math import sqrt

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.sim.world.fault_kinds import Fault
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.simulated_scheduler import SimulatedScheduler
from hostler.sim.world.world_context import Site

NOTICE_S = 5.0
"""How long a job's launcher takes to notice that a rank has died."""
TRIES = 2
"""Starts that fail before an engineer is asked to find out why."""


class JobCosts(Struct, frozen=True):
    """Costs of a job, in seconds.

    `write_s`: how long a checkpoint stalls it; `restart_s`: from chosen nodes to the next step; `hang_s`: its own
    watchdog's patience with a stalled collective; `notice_s`: until its launcher notices that a rank has died.
    `slowdown`: the share of its speed that it loses while one member is slow.
    """

    nodes: int
    every_s: float
    write_s: float = 2.0
    restart_s: float = 120.0
    hang_s: float = 60.0
    notice_s: float = NOTICE_S
    slowdown: float = 0.0


def best_interval_s(write_s: float, failures_per_s: float) -> float:
    """The checkpoint interval that loses least: sqrt(2 w / rate) (Young 1974)."""
    return sqrt(2 * write_s / failures_per_s)


class Outage(Struct):
    """An interruption of the job. Moments are None until they came; `lost_s` is work done since the checkpoint.

    `known` is when the journal had a condition for it, `noticed` when the job's own launcher gave the run up.
    """

    began: datetime
    faults: list[Fault]
    lost_s: float
    known: datetime | None = None
    noticed: datetime | None = None
    isolated: datetime | None = None
    chosen: datetime | None = None
    ended: datetime | None = None
    tries: int = 0


class Training:
    """The job. `members` run it now or will as soon as it starts.

    `excluded` are nodes that its owner will not have, and whether others have been asked for in their place;
    `short_s`: node-seconds for which fewer nodes were usable than at the job's begin.
    """

    def __init__(
        self, site: Site, scheduler: SimulatedScheduler, hosts: dict[str, SimulatedHost], terms: JobCosts, tenant: str
    ) -> None:
        self.terms = terms
        self.members: dict[str, None] = {}
        self.excluded: dict[str, bool] = {}
        self.running_since: datetime | None = None
        self.useful_s = 0.0
        self.outages: list[Outage] = []
        self.outage: Outage | None = None
        self.changed: Callable[[], None] = lambda: None
        self.puzzled: Callable[[list[str]], None] = lambda _suspects: None
        self._site = site
        self._scheduler = scheduler
        self._hosts = hosts
        self._starting = 0
        self._slow_since: datetime | None = None
        self._dragged_s = 0.0
        self.short_s = 0.0
        self._full = 0
        self._counted = site.clock.now
        self._out: dict[str, None] = {}
        self._works = {
            node: Workload(f"job@{node}", tenant, WorkClass.uninterruptible, None, "training") for node in hosts
        }

    @property
    def running(self) -> bool:
        """Whether the job makes progress now."""
        return self.running_since is not None

    def begin(self) -> None:
        """Start at once on the nodes there are."""
        for node in self._scheduler.seats:
            self.look(node)
        self._full, self._counted = self._usable(), self._site.clock.now
        self._choose()
        self._run()

    # failing

    def fails(self, fault: Fault, wasted_s: float = 0.0) -> None:
        """A fault ends the job, wherever it stands; a hang is noticed by the job's own watchdog.

        `wasted_s` of its work was wrong already and is done again.
        """
        if self.outage is None:
            lost_s = self._stop()
            self._breaks_off(fault, lost_s, min(wasted_s, self.useful_s))
            patience = self.terms.hang_s if fault.kind.hangs else self.terms.notice_s
            self._site.clock.after(patience, self._notice)
        else:
            self.outage.faults.append(fault)
            self._again()

    def withdraw(self, fault: Fault, right_s: float) -> None:
        """The owner has found the node: the job is stopped, and starts again without it.

        Of its useful time what goes beyond `right_s` was wrong, and is done again.
        """
        self.excluded[fault.node] = False
        self.look(fault.node)
        if self.outage is None:
            lost_s = self._stop()
            self._breaks_off(fault, lost_s, max(0.0, self.useful_s - right_s))
            self._notice()
        else:
            self._again()

    def readmit(self, node: str) -> None:
        """The node is well again, as its owner sees it."""
        if node in self.excluded:
            del self.excluded[node]
            self.look(node)
            self.retry()

    def _breaks_off(self, fault: Fault, lost_s: float, wasted_s: float) -> None:
        self.useful_s -= wasted_s
        self.outage = Outage(self._site.clock.now, [fault], lost_s + wasted_s)
        self.outages.append(self.outage)

    def paces(self) -> None:
        """A member has become slow, or is no more: count the time of before at the speed of before."""
        now = self._site.clock.now
        if self._slow_since is not None:
            self._dragged_s += (now - self._slow_since).total_seconds() * self.terms.slowdown
        self._slow_since = now if self.running and self._is_slow() else None

    def _is_slow(self) -> bool:
        ill = (node for node in self._site.ill if node in self.members)
        return any(fault.kind.ends == "none" for node in ill for fault in self._hosts[node].faults)

    def loses(self, node: str) -> None:
        """A member was taken away (cordoned, drained, dark)."""
        if node in self.members and self.outage is not None:
            self.outage.isolated = self._site.clock.now
            self._again()

    def interrupted(self, node: str) -> None:
        """Note that the job's work on a member was ended while it ran."""
        if node in self.members and self.outage is None:
            now = self._site.clock.now
            self.outage = Outage(now, [], self._stop(), noticed=now)
            self.outages.append(self.outage)
            self._site.clock.after(self.terms.notice_s, self._notice)

    def _stop(self) -> float:
        """End the run: its useful work counts up to the last checkpoint. Returns the work lost, in seconds."""
        if self.running_since is None:
            return 0.0
        ran_s, speed = self._ran()
        self.running_since = self._slow_since = None
        period_s = self.terms.every_s + self.terms.write_s
        kept = int(ran_s / period_s)
        self.useful_s += kept * self.terms.every_s * speed
        return ran_s - kept * period_s

    def _ran(self) -> tuple[float, float]:
        """How long this run has lasted, in seconds, and at which share of full speed."""
        assert self.running_since is not None, "only a run that goes on has lasted"
        ran_s = (self._site.clock.now - self.running_since).total_seconds()
        self.paces()
        dragged_s, self._dragged_s = self._dragged_s, 0.0
        return ran_s, 1 - dragged_s / ran_s if dragged_s else 1.0

    def finish(self) -> None:
        """The simulation ends: what runs now counts."""
        told = [node for node in self._scheduler.seats if self.usable(node) is (node in self._out)]
        assert not told, f"nobody told the job what changed on {told[:3]}"
        self._count()
        if self.running_since is not None:
            ran_s, speed = self._ran()
            self.useful_s += ran_s * speed * self.terms.every_s / (self.terms.every_s + self.terms.write_s)

    # starting again

    def _notice(self) -> None:
        if self.outage is None:
            return
        self.outage.noticed = self.outage.noticed or self._site.clock.now
        self._scheduler.finish_all()
        self.changed()
        self._again()

    def _again(self) -> None:
        """Choose nodes anew; a start under way counts for nothing."""
        self._starting += 1
        start = self._starting
        self._site.clock.after(NOTICE_S, lambda: self._try(start))

    def retry(self) -> None:
        """The cluster has changed: perhaps there are enough nodes now."""
        if self.outage is not None and self.outage.noticed and self.outage.chosen is None:
            self._again()

    def _try(self, start: int) -> None:
        if start != self._starting or self.outage is None or self.outage.noticed is None:
            return
        self.outage.chosen = None
        if self._choose():
            self.outage.chosen = self._site.clock.now
            self._site.clock.after(self.terms.restart_s, lambda: self._started(start))
        else:
            self._wants_others()

    def _wants_others(self) -> None:
        """Too few are left without those that the owner will not have: the owner asks once for others."""
        if unasked := [node for node, asked in self.excluded.items() if not asked]:
            self.excluded |= dict.fromkeys(unasked, True)
            self.puzzled(unasked)

    def usable(self, node: str) -> bool:
        """As far as the scheduler knows: a member of the cluster, open to work, and alive."""
        seat = self._scheduler.seats.get(node)
        if node in self.excluded:
            return False
        return seat is not None and seat.joined and not seat.cordons and self._hosts[node].heard

    def look(self, node: str) -> bool:
        """Look at the changed node; whether it is usable now. Choosing nodes trusts that all changes are told."""
        usable = self.usable(node)
        if usable is (node in self._out):
            self._count()
        if usable:
            self._out.pop(node, None)
        else:
            self._out[node] = None
        return usable

    def _usable(self) -> int:
        return len(self._scheduler.seats) - len(self._out)

    def _count(self) -> None:
        """Add up how many nodes fewer than at first there were, and for how long."""
        now = self._site.clock.now
        self.short_s += max(0, self._full - self._usable()) * (now - self._counted).total_seconds()
        self._counted = now

    def _choose(self) -> bool:
        """Keep the members that are usable, fill up with others in order; whether there are enough."""
        have = dict.fromkeys(self.members)
        for node in self._out:
            have.pop(node, None)
        if len(have) < self.terms.nodes:
            for node in self._scheduler.seats:
                if len(have) == self.terms.nodes:
                    break
                if node not in have and node not in self._out:
                    have[node] = None
        self.members = have
        return len(have) == self.terms.nodes

    def _started(self, start: int) -> None:
        """Ranks meet at the first collective: a fault among them ends the start as it ended the run."""
        if start != self._starting or self.outage is None:
            return
        faulty = [node for node in self._site.ill if node in self.members]
        if len(faulty) > 1:
            faulty = [node for node in self.members if node in self._site.ill]
        bad = [node for node in faulty if any(f.kind.ends != "none" for f in self._stopping(node))]
        if bad:
            self.outage.tries += 1
            self.outage.chosen = None
            if self.outage.tries >= TRIES:
                self.puzzled(bad)
            for node in bad:
                for fault in self._stopping(node):
                    self._hosts[node].show(fault)
            self._site.clock.after(self.terms.hang_s, lambda: self._try(start))
            return
        self.outage.ended = self._site.clock.now
        self.outage = None
        self._run()

    def _stopping(self, node: str) -> list[Fault]:
        """The faults of a node that work meets at once; silent corruption lets it start."""
        return [fault for fault in self._hosts[node].faults if fault.kind.name != "corruption"]

    def _run(self) -> None:
        self.running_since = self._site.clock.now
        self.paces()
        self._scheduler.start_all(self.members, self._works)
        self.changed()
