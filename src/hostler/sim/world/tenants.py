"""Customers of small worlds: services that never end, small jobs, single-GPU pods; and their return after a fault."""

from functools import partial

from msgspec.structs import replace

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.sim.world.fault_kinds import Fault
from hostler.sim.world.node_seats import dooms, takes
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.simulated_scheduler import SimulatedScheduler
from hostler.sim.world.world_context import Site

RETURN_S = (60.0, 900.0)
JOB_S = (1800.0, 20_000.0)
CRASH_SEEN_S = (1.0, 20.0)
KINDS = ("service", "graceful", "pods", "job", "empty")


class Tenants:
    """Customers who run work on the nodes of small worlds.

    Each node keeps its kind of customer.

    `one_job`: all nodes are ranks of one job, which ends everywhere as soon as it ends anywhere.
    """

    def __init__(
        self, site: Site, scheduler: SimulatedScheduler, hosts: dict[str, SimulatedHost], *, one_job: bool = False
    ) -> None:
        self._site = site
        self._scheduler = scheduler
        self._hosts = hosts
        self._chances = {name: site.stream(f"tenant {name}") for name in hosts}
        self._kinds = {name: "rank" if one_job else chance.choice(KINDS) for name, chance in self._chances.items()}
        self._coming: dict[str, None] = {}
        self._forsaking: dict[str, None] = {}
        self._numbered = 0

    def usable(self, node: str) -> bool:
        """Whether new work can be placed on the node."""
        seat = self._scheduler.seats.get(node)
        return seat is not None and seat.joined and not seat.cordons and self._hosts[node].running

    def come(self, node: str) -> None:
        """Work comes (back) to a node that is open to it, after a while."""
        if node not in self._coming:
            self._coming[node] = None
            self._site.clock.after(self._chances[node].uniform(*RETURN_S), lambda: self._arrive(node))

    def struck(self, fault: Fault) -> None:
        """Work that a fault has taken crashes, or hangs and stays listed."""
        seat = self._scheduler.seat(fault.node)
        lost = [work.id for work in seat.works.values() if takes(fault, work)]
        seat.lost |= dict.fromkeys(lost)
        seat.doomed |= dict.fromkeys(work.id for work in seat.works.values() if dooms(fault, work))
        if lost and self._chances[fault.node].random() < 0.5:
            self._site.clock.after(
                self._chances[fault.node].uniform(*CRASH_SEEN_S), lambda: self._ended(fault.node, lost)
            )

    def forsake(self, node: str) -> None:
        """When this host goes down next, its scheduler goes on listing what ran there until it is back."""
        self._forsaking[node] = None

    def down(self, node: str) -> None:
        """The host went down, and with it all that ran there, listed or not."""
        seat = self._scheduler.seat(node)
        if node in self._forsaking and self._kinds[node] != "rank":
            del self._forsaking[node]
            seat.forsaken = True
            seat.lost |= dict.fromkeys(seat.works)
            seat.doomed |= seat.lost
        elif seat.works:
            self._ended(node, list(seat.works))

    def up(self, node: str) -> None:
        """The host is back: what was listed only is taken away, and work comes again."""
        seat = self._scheduler.seat(node)
        if seat.forsaken:
            seat.forsaken = False
            self._ended(node, list(seat.works))
        else:
            self.come(node)

    def _ended(self, node: str, works: list[str]) -> None:
        for work in works:
            self._scheduler.finish(node, work)
        self._scheduler.tell(node)
        self.come(node)
        if self._kinds[node] == "rank":
            self._site.clock.after(self._chances[node].uniform(*CRASH_SEEN_S), self._job_ends)

    def _job_ends(self) -> None:
        """The other ranks notice that one is gone: none goes on, and all come back together."""
        for node, seat in self._scheduler.seats.items():
            if ranks := [work for work in seat.works if work.endswith("-rank")]:
                for work in ranks:
                    self._scheduler.finish(node, work)
                self._scheduler.tell(node)
                self.come(node)

    def slips_in(self, node: str) -> None:
        """A job that was on its way is on the node, where it is open and no customer is there."""
        self._lands(node, self._works(node, "job"))

    def _arrive(self, node: str) -> None:
        self._coming.pop(node, None)
        self._lands(node, self._works(node, self._kinds[node]))

    def _lands(self, node: str, works: list[Workload]) -> None:
        seat, faults = self._scheduler.seat(node), self._hosts[node].faults
        there = {work.work_class for work in seat.works.values()}
        if not self.usable(node) or there - {WorkClass.infrastructure}:
            return
        seat.lost, seat.doomed = {}, {}
        for work in works:
            if work.work_class in there:
                continue
            self._scheduler.start(node, replace(work, began=self._site.clock.now))
            if any(takes(fault, work) for fault in faults):
                seat.lost[work.id] = None
            if any(dooms(fault, work) for fault in faults):
                seat.doomed[work.id] = None
            if work.job:
                ends = self._chances[node].uniform(*JOB_S)
                self._site.clock.after(ends, partial(self._over, node, work.id))
        self._scheduler.tell(node)

    def _over(self, node: str, work: str) -> None:
        if work in self._scheduler.seat(node).works:
            self._ended(node, [work])

    def _works(self, node: str, kind: str) -> list[Workload]:
        self._numbered += 1
        name, gpus = f"w{self._numbered}", self._hosts[node].gpus
        whole = tuple(f"gpu{n}" for n in range(gpus))
        infra = Workload(f"{name}-exporter", "platform", WorkClass.infrastructure, ())
        match kind:
            case "service":
                return [infra, Workload(f"{name}-serve", "acme", WorkClass.uninterruptible, whole)]
            case "graceful":
                return [infra, Workload(f"{name}-serve", "acme", WorkClass.graceful, None)]
            case "job":
                return [infra, Workload(f"{name}-train", "acme", WorkClass.uninterruptible, None, job="train")]
            case "rank":
                return [infra, Workload(f"{name}-rank", "acme", WorkClass.uninterruptible, None, job="train")]
            case "pods":
                classes = (WorkClass.uninterruptible, WorkClass.interruptible, WorkClass.graceful)
                return [
                    infra,
                    *(
                        Workload(f"{name}-pod{n}", "acme", self._chances[node].choice(classes), (f"gpu{n}",))
                        for n in range(gpus)
                    ),
                ]
            case _:
                return [infra]
