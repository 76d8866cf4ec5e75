"""The customer's scheduler: who is a member, who keeps new work away, and what runs where; a `ports.Scheduler`."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.controller.inputs import NodeSeen, WorkSeen
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.model import GONE, Facts, Node, Operation, Outcome
from hostler.core.state.operations import Evict
from hostler.core.tables.operations import ASIDE, IDLE_CHECK
from hostler.ports import SCHEDULED, ClusterView, RefusedError, UnreachableError, WorkloadView, name_there
from hostler.sim.world.fault_kinds import Fault
from hostler.sim.world.ledger import ActualDisturbance
from hostler.sim.world.node_seats import CLUSTER, CONSENTING, ENDING, OURS, SchedulerNode, customers, dooms
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.world_context import Site, Span

IDLE_S: Span = (600.0, 1300.0)
"""How long an idle check runs."""

SILENT_S = 70.0
"""After so long without a word what it showed counts no more: the watchdog of the slower of the drivers."""
REMIND_S = 10.0
"""How often it is told again that a person has lifted our cordon, as long as that shows."""


class SimulatedScheduler:
    """Workloads as they really run, in virtual time.

    `shown` is whose work the active controller was told of, and since when; `unheard`, since when it knows that the
    cluster is not heard, None while it is heard.

    `opened` are the nodes of which it was told that a person has lifted our cordon, and since when. Whoever it does not
    list it says nothing of, but once, when they have left.
    It does as it is asked: who lets a node leave, or ends work, under a customer ends that customer's work, which is
    written into the ledger. `checks` are the idle checks that were begun and not called off: what each came to, verdict
    and detail, "" while it goes on; `verdict` is what one finds on a node. `changes` counts what operations have
    changed. `on_cordon` is told of a node that is about to be cordoned by us. While it is `away` it answers nobody.
    """

    kinds = SCHEDULED | {IDLE_CHECK, "confirm_join"} | ASIDE
    kind = "simulated"
    cluster = CLUSTER

    def __init__(self, site: Site, hosts: dict[str, SimulatedHost]) -> None:
        self.away = False
        self.changes = 0
        self.seats: dict[str, SchedulerNode] = {}
        self.checks: dict[str, tuple[str, str]] = {}
        self.shown: dict[str, tuple[list[str], datetime]] = {}
        self.opened: dict[str, datetime] = {}
        self.unheard: datetime | None = None
        self.on_cordon: Callable[[str], None] = lambda _node: None
        self.verdict: Callable[[str], tuple[str, str]] = lambda node: hosts[node].check("idle")
        self._site = site
        self._hosts = hosts
        self._views: dict[str, WorkloadView] = {}
        self._listed: dict[str, None] = {}
        self._job: dict[str, Workload] = {}
        self._ranks: dict[str, None] = {}
        self._ready: dict[str, bool] = {}
        self._late: dict[str, datetime] = {}
        self._lost = ""
        self._silent = 0

    def seat(self, node: str) -> SchedulerNode:
        """The node's entry, made at the first use."""
        found = self.seats.get(node)
        if found is None:
            found = self.seats[node] = SchedulerNode(works={}, lost={}, doomed={}, invited={})
        return found

    def works(self, node: str) -> list[Workload]:
        """Workloads on the node: its own, and its part of the job over many."""
        own = list(self.seats[node].works.values()) if node in self.seats else []
        return [*own, self._job[node]] if node in self._ranks else own

    # the eye

    def view(self, node: str) -> WorkloadView:
        """View of the node now: the same object as before where nothing has changed."""
        seat = self.seat(node)
        foreign = next((owner for owner in seat.cordons if owner != OURS), "")
        check = (Workload(seat.check, "", WorkClass.infrastructure, check=seat.check),) if seat.check else ()
        works = (*self.works(node), *check)
        ours = OURS in seat.cordons
        view = WorkloadView(node, works, foreign, cordoned=ours, listed=seat.joined, overridden=seat.lifted)
        known = self._views.get(node)
        if known is None or known != view:
            known = self._views[node] = view
        return known

    def views(self) -> ClusterView:
        """Views of its members and what runs there."""
        here = [name for name, seat in self.seats.items() if seat.joined]
        ready = {name: self._ready[name] for name in here if name in self._ready}
        boots = {name: self._hosts[name].boot_id for name in here if ready.get(name)}
        return ClusterView({name: self.view(name) for name in here}, ready, self._lost, boots)

    async def watch(self) -> None:
        """Watch nothing: the views are always current."""
        await asyncio.get_running_loop().create_future()

    def tell(self, node: str) -> None:
        """Let the controller see this node's work, as soon as its watcher does; words keep their order."""
        now = self._site.clock.now
        late = now + timedelta(seconds=self._site.troubles.staleness_s(node))
        late = self._late[node] = max(late, self._late.get(node, now))
        if late > now:
            self._site.clock.at(late, lambda: self.tell_of([node]))
        else:
            self.tell_of([node])

    def tell_of(self, nodes: Iterable[str]) -> None:
        """The same of many, at once."""
        if self.away:
            return
        joining = [node for node in nodes if node not in self._listed and self.seat(node).joined]
        told = [node for node in nodes if node in self._listed or self.seat(node).joined]
        if told:
            self._site.tell(WorkSeen(tuple(self._show(node) for node in told), cluster=CLUSTER))
        for node in joining:
            self._tell_ready(node)

    def _show(self, node: str) -> WorkloadView:
        seat, now = self.seat(node), self._site.recorded
        works = customers(self.works(node))
        if self.shown.get(node, ([], None))[0] != works:
            self.shown[node] = (works, now)
        for listing, belongs in ((self._listed, seat.joined), (self.opened, bool(seat.lifted))):
            if not belongs:
                listing.pop(node, None)
        if seat.joined:
            self._listed[node] = None
        if seat.lifted:
            self.opened.setdefault(node, now)
        return self.view(node)

    def told_nothing(self) -> None:
        """Another controller begins: what was told before, it has not heard."""
        self.shown.clear()
        self.opened.clear()
        self.unheard = None

    def tell_all(self) -> None:
        """A fresh list of everything, as after a (re)start; that there is none, while it is away."""
        self._listed.clear()
        if self.away:
            self._tell_lost("not listed yet")
            return
        self.unheard = None
        views = tuple(self._show(node) for node, seat in self.seats.items() if seat.joined)
        self._site.tell(WorkSeen(views, whole=True, cluster=CLUSTER))
        for node in self._listed:
            self._tell_ready(node)

    def judge(self, node: str, *, ready: bool) -> None:
        """Opinion of its own of a node, which it tells of its members."""
        self._ready[node] = ready
        if not self.away and node in self._listed:
            self._tell_ready(node)

    def _tell_ready(self, node: str) -> None:
        if node in self._ready:
            self._site.tell(NodeSeen(node, ready=self._ready[node]))

    def go_away(self) -> None:
        """Stop answering; after a while the cluster counts as not heard."""
        self.away = True
        self._silent += 1
        silent = self._silent
        self._site.clock.after(SILENT_S, lambda: self._missed(silent))

    def _missed(self, silent: int) -> None:
        if self.away and not self._lost and self._silent == silent:
            self._tell_lost(f"silent for {SILENT_S:g} s")

    def _tell_lost(self, why: str) -> None:
        self._lost, self.unheard = why, self.unheard or self._site.recorded
        self._site.tell(WorkSeen((), cluster=CLUSTER, lost=why))

    def come_back(self) -> None:
        """Answer again, and list the cluster anew."""
        self.away, self._lost = False, ""
        self.tell_all()

    # the hand

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Done; a join is confirmed once its kubelet was let in, and runs. Raises UnreachableError, or RefusedError."""
        name = self._asked(node)
        listed = name in self.seats and self.seats[name].joined
        match operation.kind:
            case "join_cluster":
                seat = self.seat(name)
                seat.joined, seat.token = True, self._site.epoch
                self._cordon(name)
            case "idle_check" | "cordon" if not listed:
                raise RefusedError(f"cluster {CLUSTER} lists no node {name}: bind its name there or let it join")
            case "idle_check":
                self._begin_check(operation.id, name)
            case "cordon":
                self._cordon(name)
            case "cordon_uninvited" if listed:
                self._cordon(name)
            case "leave_cluster" | "delete_uninvited" if listed:
                self._leave(name, operation.id)
            case "uncordon" if listed:
                self.changes += self.uncordon(name, OURS)
            case "evict" if self.seat(name).forsaken:
                self.changes += self._told_to_go(name, _works(operation))
            case "evict":
                self.changes += bool(self.disturbs(name, operation.id, self._hosts[name].faults, _works(operation)))
            case _:
                pass  # nothing of ours is on a node that it does not list
        said = await self.observe(operation, node)
        return _said(operation, "unknown", said.detail) if said.result == "not_done" else said

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Done where it shows. Raises UnreachableError."""
        name = self._asked(node)
        if operation.kind == IDLE_CHECK:
            return self._checked(operation)
        seat = self.seats.get(name, SchedulerNode())
        if operation.kind == "confirm_join" and not seat.kubelet and seat.token != self._site.epoch:
            gone = _said(operation, "failed", "its token went with the controller that issued it")
            return replace(gone, facts={GONE: "join_token"})
        seen = {
            "cordon": OURS in seat.cordons,
            "uncordon": OURS not in seat.cordons and not seat.lifted,
            "evict": {work.id for work in self.works(name)}.isdisjoint(_works(operation)),
            "join_cluster": seat.joined,
            "confirm_join": seat.joined and seat.kubelet and self._hosts[name].running,
            "leave_cluster": not seat.joined,
            "cordon_uninvited": not seat.joined or OURS in seat.cordons,
            "delete_uninvited": not seat.joined,
        }[operation.kind]
        return _said(operation, "done" if seen else "not_done")

    async def revoke(self, operation: Operation, node: Node) -> None:
        """A check ends and is forgotten; other acts are over at once. Raises UnreachableError."""
        name = self._asked(node)
        if self.seat(name).check == operation.id:
            self.seat(name).check = ""
        self.checks.pop(operation.id, None)

    def _asked(self, node: Node) -> str:
        if self.away:
            raise UnreachableError("the scheduler does not answer")
        return name_there(node, self)

    def _told_to_go(self, name: str, works: tuple[str, ...]) -> bool:
        """Mark the workloads as ending, with no kubelet to end them; tells whether that is news."""
        here = self.seat(name).works
        marked = {work: replace(here[work], held_by=ENDING) for work in works if work in here}
        news = any(here[work] != ending for work, ending in marked.items())
        here |= marked
        return news

    def _cordon(self, name: str) -> None:
        if OURS not in self.seat(name).cordons:
            self.on_cordon(name)
            self.cordon(name, OURS)
            self.changes += 1

    def _leave(self, name: str, operation: str) -> None:
        seat = self.seats[name]
        if works := [work for work in customers(self.works(name)) if work not in seat.lost]:
            raise RefusedError(f"{name} still runs {', '.join(works)}: drain it first")
        self.end_check(name, seat.check, "inconclusive", "the node has left")
        self.disturbs(name, operation, self._hosts[name].faults)
        seat.joined, seat.cordons, seat.lifted, seat.version = False, (), "", seat.version + 1
        seat.token, seat.kubelet = 0, False
        self.changes += 1

    # idle checks

    def _begin_check(self, check: str, name: str) -> None:
        """Once only, and only where nobody works: it waits for no room, and takes none from anybody."""
        seat, host = self.seats[name], self._hosts[name]
        if check in self.checks:
            return
        self.changes += 1
        self.checks[check] = ("", "")
        if not host.running or seat.cordons or customers(self.works(name)):
            self.checks[check] = ("inconclusive", "there is no room")
        else:
            seat.check = check
        boot = host.boot_id
        self._site.clock.after(host.draw(IDLE_S), lambda: self._check_ends(name, check, boot))

    def _check_ends(self, name: str, check: str, boot: str) -> None:
        """Tell whether the check ran to its end: it runs still and its machine was up all the time."""
        host = self._hosts[name]
        if self.seat(name).check == check:
            found = self.verdict(name) if host.running and host.boot_id == boot else ("inconclusive", "cut off")
            self.end_check(name, check, *found)
            self.tell(name)

    def end_check(self, node: str, check: str, verdict: str, detail: str = "") -> None:
        """End the check with this verdict, where it runs still."""
        seat = self.seat(node)
        if check and seat.check == check:
            seat.check = ""
            self.checks[check] = (verdict, detail)

    def _checked(self, operation: Operation) -> Outcome:
        known = self.checks.get(operation.id)
        if known is None:
            return _said(operation, "not_done", "there is no such check")
        if not known[0]:
            return _said(operation, "unknown", "it goes on")
        facts: Facts = {"verdict": known[0]}
        return Outcome(operation.id, operation.node, "done", known[1], facts, attempt=operation.attempt)

    # what others do

    def start(self, node: str, work: Workload) -> None:
        """Start the workload on the node."""
        seat = self.seat(node)
        self._comes(node, seat, work)
        seat.works[work.id] = work

    def _comes(self, node: str, seat: SchedulerNode, work: Workload) -> None:
        if seat.check and work.work_class is not WorkClass.infrastructure:
            self.end_check(node, seat.check, "inconclusive", f"pre-empted: {work.id} has come")
        if seat.lifted:
            seat.invited[work.id] = None

    def finish(self, node: str, work: str) -> None:
        """End the workload; nothing where it is over."""
        self.seat(node).works.pop(work, None)

    def start_all(self, nodes: Iterable[str], works: dict[str, Workload]) -> None:
        """One job comes to all of these nodes, which have seats: a part of it to each."""
        self._job, self._ranks = works, dict.fromkeys(nodes)
        for node in self._ranks:
            seat = self.seats[node]
            if seat.check or seat.lifted:
                self._comes(node, seat, works[node])

    def finish_all(self) -> None:
        """The job over many nodes ends wherever it runs still."""
        self._ranks = {}

    def cordon(self, node: str, owner: str) -> None:
        """Cordon the node in this owner's name."""
        seat = self.seat(node)
        if owner == OURS:
            seat.lifted = ""
        if owner not in seat.cordons:
            seat.cordons, seat.version = (*seat.cordons, owner), seat.version + 1

    def uncordon(self, node: str, owner: str) -> bool:
        """The owner's own cordon goes; whether there was anything of theirs."""
        seat = self.seat(node)
        before = (seat.cordons, seat.lifted)
        seat.cordons = tuple(o for o in seat.cordons if o != owner)
        if owner == OURS:
            seat.lifted = ""
        changed = before != (seat.cordons, seat.lifted)
        seat.version += changed
        return changed

    def open(self, node: str, person: str) -> None:
        """A person opens the node by the scheduler's own means: nobody's cordon is left, and that ours was shows."""
        seat = self.seat(node)
        if OURS in seat.cordons:
            seat.lifted = person
            self.opened.pop(node, None)
            self._site.clock.after(REMIND_S, lambda: self._remind(node))
        seat.cordons, seat.version = (), seat.version + 1

    def _remind(self, node: str) -> None:
        """Repeat what is shown as often as it is looked at."""
        if self.seat(node).lifted:
            self.tell(node)
            self._site.clock.after(REMIND_S, lambda: self._remind(node))

    def disturbs(self, node: str, by: str, faults: list[Fault], works: tuple[str, ...] = ()) -> list[Workload]:
        """An operation ends these live workloads (all of the node without a list): written down with the truth."""
        ended = [work for work in self.works(node) if not works or work.id in works]
        for work in ended:
            if self.seat(node).works.pop(work.id, None) is None:
                del self._ranks[node]
            self._write(node, by, work, faults)
        return ended

    def _write(self, node: str, by: str, work: Workload, faults: list[Fault]) -> None:
        self._site.ledger.disturbances.append(
            ActualDisturbance(
                self._site.recorded,
                node,
                work.id,
                by,
                doomed=work.id in self.seat(node).doomed or any(dooms(fault, work) for fault in faults),
                consent=work.work_class in CONSENTING,
                protective=self._site.leaks or any(fault.kind.shows in ("heat", "leak") for fault in faults),
                invited=work.id in self.seat(node).invited,
                opened=self.opened.get(node),
            )
        )


def _works(operation: Operation) -> tuple[str, ...]:
    return operation.act.workloads if isinstance(operation.act, Evict) else ()


def _said(operation: Operation, result: str, detail: str = "") -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)
