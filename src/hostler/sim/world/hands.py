"""Who does what an operation asks: the real Redfish driver over emulated BMCs, agents, and the scheduler."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from msgspec import Struct

from hostler.core.model import Facts, Operation, Outcome
from hostler.engine.ports import PortError, RefusedError
from hostler.engine.ready import Send
from hostler.sim.bmc.service import Service
from hostler.sim.bmc.twin import Twin, images_by_name
from hostler.sim.world.faults import Fault, pci_of
from hostler.sim.world.host import Host
from hostler.sim.world.ledger import Effect, Stray
from hostler.sim.world.scheduler import OURS, Scheduler
from hostler.sim.world.site import Site, Span

BMC_LATENCY_S = (0.05, 0.5)
SCHEDULER_LATENCY_S = (0.02, 0.3)
AGENT_LATENCY_S = (0.05, 1.0)
NO_ANSWER_S = 30.0
SCHEDULER_KINDS = ("cordon", "uncordon", "evict", "join_cluster", "leave_cluster", "idle_check")

WORK_S: dict[str, Span] = {
    "collect_evidence": (1.0, 4.0),
    "gpu_reset": (10.0, 30.0),
    "bmc_cold_reset": (1.0, 5.0),
    "reboot": (0.5, 2.0),
    "sanitise": (60.0, 300.0),
    "gate": (45.0, 90.0),
    "idle": (600.0, 1300.0),
    "seatrial": (600.0, 1800.0),
    "suspect": (3600.0, 7200.0),
    "burn_in": (86_400.0, 90_000.0),
}
"""How long an agent works at an operation, or at a profile of checks."""

Ended = Callable[[Host, str, list[Fault]], None]


class Mark(Struct):
    """What an agent has written on disk about an attempt at an operation."""

    attempt: int
    boot_id: str
    outcome: Outcome | None = None


class Hands:
    """Performs, observes and revokes what the controller sends."""

    def __init__(self, site: Site, hosts: dict[str, Host], scheduler: Scheduler) -> None:
        self._site = site
        self._hosts = hosts
        self._scheduler = scheduler
        services: dict[str, Service] = {host.address: host.service for host in hosts.values()}
        self._services = services
        self._twin = Twin(services, images_by_name)
        self._marks: dict[str, Mark] = {}
        self._busy: dict[str, str] = {}
        self._epochs: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self.on_remedied: Ended = _ignore
        self.on_changed: Callable[[str], None] = lambda _node: None
        self.on_cordon: Callable[[str], None] = lambda _node: None

    def take(self, send: Send, epoch: int) -> None:
        """Something the controller sends; what it does takes place after the way there."""
        if epoch < self._site.epoch:
            text = f"{send.how} {send.operation.kind} of {send.node.id} under epoch {epoch}"
            self._site.ledger.trespasses.append(text)
        self._site.expects(send.operation)
        kind = send.operation.kind
        late_s = self._site.troubles.lateness_s(send.node.id) if send.how == "perform" else 0.0
        act: Callable[[Send, int], None]
        if kind in SCHEDULER_KINDS:
            seen = self._versions.get(send.node.id, 0)
            span, act = SCHEDULER_LATENCY_S, partial(self._schedule, seen=seen)
        elif kind in self._twin.kinds:
            span, act = BMC_LATENCY_S, self._redfish
        else:
            due = self._site.clock.now + (send.operation.deadline - self._site.recorded)
            span, act = AGENT_LATENCY_S, partial(self._agent, due=due)
        self._site.clock.after(self._hosts[send.node.id].draw(span) + late_s, lambda: act(send, epoch))

    def _effect(self, operation: Operation, epoch: int) -> None:
        site = self._site
        site.ledger.effects.append(
            Effect(site.recorded, operation.node, operation.kind, operation.id, operation.attempt, site.seq, epoch)
        )

    # the BMC, through the driver that runs in production

    def _redfish(self, send: Send, epoch: int) -> None:
        if send.how == "revoke":
            return
        operation, host = send.operation, self._hosts[send.node.id]
        reached = self._reached(host)
        before = sum(reached.machine.counts.values())
        if send.how == "perform" and operation.kind == "power_off" and reached is host:
            self._power_goes(host, operation)
        ask = self._twin.perform if send.how == "perform" else self._twin.observe
        try:
            outcome = ask(operation, send.node, self._site.clock.now)
        except PortError as error:
            result = "refused" if isinstance(error, RefusedError) else "unknown"
            outcome = Outcome(operation.id, operation.node, result, str(error), attempt=operation.attempt)
        if sum(reached.machine.counts.values()) != before:
            self._effect(operation, epoch)
            if reached is not host:
                stray = Stray(self._site.recorded, operation.kind, operation.id, host.node, reached.node)
                self._site.ledger.strays.append(stray)
        reached.advance()
        self._site.reply(outcome, host.draw(BMC_LATENCY_S))

    def swap(self, one: str, other: str) -> None:
        """Two BMCs answer at each other's addresses from now on."""
        here, there = self._hosts[one].address, self._hosts[other].address
        self._services[here], self._services[there] = self._services[there], self._services[here]

    def unswap(self) -> None:
        """Every BMC answers at its own address again."""
        self._services.update({host.address: host.service for host in self._hosts.values()})

    def _reached(self, host: Host) -> Host:
        """Whose BMC answers at the host's address."""
        service = self._services[host.address]
        return host if service is host.service else next(h for h in self._hosts.values() if h.service is service)

    def _power_goes(self, host: Host, operation: Operation) -> None:
        """The power is about to go: whatever still runs there ends now, and what a power cycle cures is cured."""
        if host.machine.away(self._site.clock.now) or host.machine.deaf(self._site.clock.now):
            return
        if host.machine.power == "On":
            self._disturb(host, operation)
            self.on_remedied(host, "power_cycle", host.remedied("power_cycle"))

    def _disturb(self, host: Host, operation: Operation) -> None:
        """Whatever still runs there ends with the hardware, and its scheduler sees it."""
        seat, reset = self._scheduler.seat(host.node), _reset(operation)
        works = tuple(w.id for w in seat.works.values() if not reset or w.parts is None or reset & {*w.parts})
        if works and self._scheduler.disturbs(host.node, operation.id, host.faults, works):
            self.on_changed(host.node)

    # the scheduler

    def _schedule(self, send: Send, epoch: int, *, seen: int) -> None:
        """Writes carry the version that was seen: one that others have overtaken conflicts, and changes nothing."""
        if send.operation.kind == "idle_check":
            self._idle_check(send, epoch)
            return
        if send.how == "revoke":
            return
        operation, node = send.operation, send.node.id
        if self._scheduler.away:
            self._site.reply(_outcome(operation, "unknown", "the scheduler does not answer"), NO_ANSWER_S)
            return
        result = "done" if self._is_so(operation) else "not_done"
        if send.how == "perform" and result == "not_done":
            if self._versions.get(node, 0) == seen:
                self._effect(operation, epoch)
                self._change(operation, node)
                result = "done"
            else:
                result = "failed"
        said = Outcome(operation.id, node, result, attempt=operation.attempt)
        self._site.reply(said, self._hosts[node].draw(SCHEDULER_LATENCY_S))

    def _idle_check(self, send: Send, epoch: int) -> None:
        operation, scheduler, host = send.operation, self._scheduler, self._hosts[send.node.id]
        if scheduler.away:
            if send.how != "revoke":
                self._site.reply(_outcome(operation, "unknown", "the scheduler does not answer"), NO_ANSWER_S)
            return
        if send.how == "revoke":
            scheduler.end_check(host.node, operation.id, "inconclusive", "called off")
            scheduler.tell(host.node)
            return
        if send.how == "perform" and operation.id not in scheduler.checks:
            self._effect(operation, epoch)
            scheduler.begin_check(host.node, operation.id, fits=host.running)
            scheduler.tell(host.node)
            boot = host.boot_id
            self._site.clock.after(host.draw(WORK_S["idle"]), lambda: self._idle_checked(host, operation.id, boot))
        if (known := scheduler.checks.get(operation.id)) is None:
            said = _outcome(operation, "not_done", "there is no such check")
        elif not known[0]:
            said = _outcome(operation, "unknown", "it goes on")
        else:
            facts: Facts = {"verdict": known[0]}
            said = Outcome(operation.id, host.node, "done", known[1], facts, attempt=operation.attempt)
        self._site.reply(said, host.draw(SCHEDULER_LATENCY_S))

    def _idle_checked(self, host: Host, check: str, boot: str) -> None:
        """It has run to its end, where it runs still and its machine was up all the time."""
        if self._scheduler.seat(host.node).check == check:
            found = host.check("idle") if host.running and host.boot_id == boot else ("inconclusive", "cut off")
            self._scheduler.end_check(host.node, check, *found)
            self._scheduler.tell(host.node)

    def _is_so(self, operation: Operation) -> bool:
        seat = self._scheduler.seat(operation.node)
        match operation.kind:
            case "cordon":
                return OURS in seat.cordons
            case "uncordon":
                return OURS not in seat.cordons
            case "join_cluster":
                return seat.joined
            case "leave_cluster":
                return not seat.joined
            case _:
                return not any(work in seat.works for work in _works(operation))

    def _change(self, operation: Operation, node: str) -> None:
        self._versions[node] = self._versions.get(node, 0) + 1
        seat = self._scheduler.seat(node)
        match operation.kind:
            case "cordon":
                self.on_cordon(node)
                self._scheduler.cordon(node, OURS)
            case "uncordon":
                self._scheduler.uncordon(node, OURS)
            case "join_cluster":
                seat.joined = True
                self._scheduler.cordon(node, OURS)
            case "leave_cluster":
                seat.joined = False
                self._scheduler.uncordon(node, OURS)
                self._scheduler.disturbs(node, operation.id, self._hosts[node].faults)
            case _:
                self._scheduler.disturbs(node, operation.id, self._hosts[node].faults, _works(operation))
        self.on_changed(node)

    # the agent

    def _agent(self, send: Send, epoch: int, *, due: datetime) -> None:
        """Orders say how long they may wait, so that nobody's clock need be right: `due` is in true time."""
        operation, host = send.operation, self._hosts[send.node.id]
        if not host.heard:
            self._undelivered(send)
            return
        self._epochs[host.node] = max(epoch, self._epochs.get(host.node, 0))
        if send.how == "revoke":
            self._busy.pop(host.node, None)
        elif send.how == "observe" or self._knows(operation):
            self._say(self._seen(operation, host))
        elif host.node in self._busy:
            self._say(_outcome(operation, "busy", f"{self._busy[host.node]} is running"))
        elif operation.boot_id not in ("", host.boot_id) or epoch < self._epochs[host.node]:
            self._say(_outcome(operation, "refused", "it is meant for another boot or from a deposed one"))
        elif self._site.clock.now > due:
            self._say(_outcome(operation, "refused", "it came too late: its time was over"))
        else:
            self._begin(operation, host, epoch)

    def _knows(self, operation: Operation) -> bool:
        mark = self._marks.get(operation.id)
        return mark is not None and mark.attempt >= operation.attempt

    def cut_off(self, host: Host) -> None:
        """The host went down: what its agent was doing ends without a result."""
        self._busy.pop(host.node, None)

    def _undelivered(self, send: Send) -> None:
        """Nobody fetches the order; an observation gets no answer, and that is all that is known."""
        if send.how != "revoke":
            self._site.reply(_outcome(send.operation, "unknown", "the agent is not heard"), NO_ANSWER_S)

    def _seen(self, operation: Operation, host: Host) -> Outcome:
        mark = self._marks.get(operation.id)
        if mark is None:
            rebooted = operation.kind == "reboot" and operation.boot_id not in ("", host.boot_id)
            return _outcome(operation, "done" if rebooted else "not_done", "this agent never began it")
        if mark.outcome is not None:
            return mark.outcome
        if self._busy.get(host.node) == operation.id:
            return _outcome(operation, "busy", "it is running")
        if operation.kind == "reboot":
            return _outcome(operation, "done" if mark.boot_id != host.boot_id else "unknown")
        return _outcome(operation, "unknown" if operation.kind == "gpu_reset" else "not_done", "it was cut off")

    def _begin(self, operation: Operation, host: Host, epoch: int) -> None:
        mark = self._marks[operation.id] = Mark(operation.attempt, host.boot_id)
        self._busy[host.node] = operation.id
        self._effect(operation, epoch)
        span = WORK_S[operation.args.get("profile", operation.kind)]
        if operation.kind in ("gpu_reset", "reboot"):
            self._disturb(host, operation)
        self._site.clock.after(host.draw(span), lambda: self._ends(operation, host, mark))

    def _ends(self, operation: Operation, host: Host, mark: Mark) -> None:
        if self._busy.get(host.node) == operation.id:
            del self._busy[host.node]
        elif operation.kind == "run_checks":
            return  # revoked: nobody waits for its verdict
        if host.boot_id != mark.boot_id:
            return
        if operation.kind == "reboot":
            self._say(_outcome(operation, "unknown", "reboot requested"))
            self.on_remedied(host, "reboot", host.remedied("reboot"))
            host.reboot()
            return
        mark.outcome = self._result(operation, host)
        self._say(mark.outcome)

    def _result(self, operation: Operation, host: Host) -> Outcome:
        if operation.kind == "gpu_reset":
            self.on_remedied(host, "gpu_reset", host.remedied("gpu_reset", _reset(operation)))
        if operation.kind == "bmc_cold_reset":
            host.machine.restart_manager(self._site.clock.now)
        if operation.kind != "run_checks":
            return _outcome(operation, "done")
        profile = operation.args.get("profile", "gate")
        verdict, detail = host.check(profile)
        facts = {"profile": profile, "verdict": verdict}
        return Outcome(operation.id, operation.node, "done", detail, dict(facts), attempt=operation.attempt)

    def _say(self, outcome: Outcome) -> None:
        self._site.reply(outcome, self._hosts[outcome.node].draw(AGENT_LATENCY_S))


def _reset(operation: Operation) -> frozenset[str]:
    """The GPUs that a reset is confined to, by slot; none for all of them."""
    named = frozenset(filter(None, operation.args.get("gpu", "").split(",")))
    slots = (f"gpu{n}" for n in range(8))
    return frozenset(slot for slot in slots if not named.isdisjoint((slot, f"{pci_of(slot)}.0")))


def _works(operation: Operation) -> tuple[str, ...]:
    return tuple(operation.args.get("workloads", "").split(","))


def _outcome(operation: Operation, result: str, detail: str = "") -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)


def _ignore(_host: Host, _remedy: str, _ended: list[Fault]) -> None:
    pass
