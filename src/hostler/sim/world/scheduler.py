"""The customer's scheduler: who is a member, who keeps new work away, and what runs where."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from hostler.core.model import WorkClass, Workload
from hostler.engine import intake
from hostler.engine.ports import WorkloadView
from hostler.sim.world.faults import Fault
from hostler.sim.world.ledger import Disturbance
from hostler.sim.world.site import Site

OURS = "hostler"
CLUSTER = "k1"
"""The cluster that every pool of a drawn cell is in."""
CONSENTING = (WorkClass.interruptible, WorkClass.graceful, WorkClass.infrastructure)


class Seat(Struct):
    """A node as the scheduler has it. `cordons` are owners, in order; `works` the running workloads by id.

    `lost` are those that a fault has ended though they stay listed: they hang. `check` is the idle check there.
    """

    joined: bool = False
    cordons: tuple[str, ...] = ()
    works: dict[str, Workload] = {}
    lost: dict[str, None] = {}
    check: str = ""


class Scheduler:
    """What runs where, in truth. Hostler sees it through `view`; `shown` is whose work it was told of, and since when.

    `checks` are the idle checks that were ever begun: what each came to, verdict and detail, "" while it goes on.
    """

    def __init__(self, site: Site) -> None:
        self.away = False
        self.seats: dict[str, Seat] = {}
        self.checks: dict[str, tuple[str, str]] = {}
        self.shown: dict[str, tuple[list[str], datetime]] = {}
        self._site = site

    def seat(self, node: str) -> Seat:
        found = self.seats.get(node)
        if found is None:
            found = self.seats[node] = Seat(works={}, lost={})
        return found

    def view(self, node: str) -> WorkloadView:
        seat = self.seat(node)
        foreign = next((owner for owner in seat.cordons if owner != OURS), "")
        check = (Workload(seat.check, "", WorkClass.infrastructure, check=seat.check),) if seat.check else ()
        works = (*seat.works.values(), *check)
        return WorkloadView(node, works, foreign, cordoned=OURS in seat.cordons, listed=seat.joined)

    def tell(self, node: str) -> None:
        """Let the controller see this node's work, as soon as its watcher does."""
        late_s = self._site.troubles.staleness_s(node)
        if late_s > 0.0:
            self._site.clock.after(late_s, lambda: self._tell(node))
        else:
            self._tell(node)

    def _tell(self, node: str) -> None:
        if self.away:
            return
        self._site.tell(intake.WorkSeen((self._show(node),), cluster=CLUSTER))

    def _show(self, node: str) -> WorkloadView:
        works = customers(self.seat(node).works.values())
        if self.shown.get(node, ([], None))[0] != works:
            self.shown[node] = (works, self._site.recorded)
        return self.view(node)

    def tell_all(self) -> None:
        """A fresh list of everything, as after a (re)start."""
        if self.away:
            return
        views = tuple(self._show(node) for node in self.seats)
        self._site.tell(intake.WorkSeen(views, whole=True, cluster=CLUSTER))

    def start(self, node: str, work: Workload) -> None:
        seat = self.seat(node)
        if seat.check and work.work_class is not WorkClass.infrastructure:
            self.end_check(node, seat.check, "inconclusive", f"pre-empted: {work.id} has come")
        seat.works[work.id] = work

    def begin_check(self, node: str, check: str, *, fits: bool) -> None:
        """Once only, and only where nobody works: it waits for no room, and takes none from anybody."""
        seat = self.seat(node)
        if check in self.checks:
            return
        self.checks[check] = ("", "")
        if not fits or seat.cordons or not seat.joined or customers(seat.works.values()):
            self.checks[check] = ("inconclusive", "there is no room")
        else:
            seat.check = check

    def end_check(self, node: str, check: str, verdict: str, detail: str = "") -> None:
        """It comes to this, where it runs still."""
        seat = self.seat(node)
        if seat.check == check:
            seat.check = ""
            self.checks[check] = (verdict, detail)

    def finish(self, node: str, work: str) -> None:
        self.seat(node).works.pop(work, None)

    def start_all(self, works: dict[str, Workload]) -> None:
        """One workload on each of these nodes, which have seats."""
        for node, work in works.items():
            self.start(node, work)

    def finish_all(self, works: dict[str, Workload]) -> None:
        for node, work in works.items():
            self.seats[node].works.pop(work.id, None)

    def cordon(self, node: str, owner: str) -> None:
        seat = self.seat(node)
        if owner not in seat.cordons:
            seat.cordons = (*seat.cordons, owner)

    def uncordon(self, node: str, owner: str) -> None:
        seat = self.seat(node)
        seat.cordons = tuple(o for o in seat.cordons if o != owner)

    def disturbs(self, node: str, by: str, faults: list[Fault], works: tuple[str, ...] = ()) -> list[Workload]:
        """An operation ends these live workloads (all of the node without a list): written down with the truth."""
        seat = self.seat(node)
        ended = [work for work in seat.works.values() if not works or work.id in works]
        for work in ended:
            del seat.works[work.id]
            self._write(node, by, work, faults)
        return ended

    def _write(self, node: str, by: str, work: Workload, faults: list[Fault]) -> None:
        self._site.ledger.disturbances.append(
            Disturbance(
                self._site.recorded,
                node,
                work.id,
                by,
                doomed=work.id in self.seat(node).lost or any(dooms(fault, work) for fault in faults),
                consent=work.work_class in CONSENTING,
                protective=any(fault.kind.shows in ("heat", "leak") for fault in faults),
            )
        )


def customers(works: Iterable[Workload]) -> list[str]:
    """The work among this that is somebody's."""
    return [work.id for work in works if work.work_class is not WorkClass.infrastructure]


def dooms(fault: Fault, work: Workload) -> bool:
    """Whether the fault has taken what the workload runs on."""
    if fault.kind.ends == "node":
        return True
    return fault.kind.ends == "part" and (work.parts is None or fault.slot in work.parts)
