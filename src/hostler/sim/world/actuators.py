"""Performs operations: the real Redfish driver over emulated BMCs, agents, the scheduler, and tools of networks."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from math import inf

from msgspec import Struct

from hostler.agent.checks import emulated_gate
from hostler.agent.machine import ANSWERED
from hostler.controller.step_output import Send
from hostler.core.state import pass_rules
from hostler.core.state.gate_expectation import Expected
from hostler.core.state.model import Facts, Operation, Outcome, Verdict
from hostler.core.state.operations import ResetGpus, RunChecks
from hostler.core.tables.operations import ASIDE, IDLE_CHECK, OPERATIONS
from hostler.drivers.standalone.scheduler import StandaloneScheduler
from hostler.ports import ConflictError, PortError
from hostler.runtime.dispatcher import fate
from hostler.runtime.merged_schedulers import SchedulerDriver, by_cluster
from hostler.sim.bmc.redfish_service import Service
from hostler.sim.bmc.redfish_twin import RedfishTwin, at_once, images_by_name
from hostler.sim.world.fault_kinds import Fault, pci_of
from hostler.sim.world.ledger import Effect, MisdirectedAct
from hostler.sim.world.meeting_agents import Ears, MeetingAgents
from hostler.sim.world.port_tools import PortHand
from hostler.sim.world.rack_assets import RackAssets
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.simulated_scheduler import SimulatedScheduler
from hostler.sim.world.world_context import Site, Span

BMC_LATENCY_S = (0.05, 0.5)
SCHEDULER_LATENCY_S = (0.02, 0.3)
AGENT_LATENCY_S = (0.05, 1.0)
TOOL_LATENCY_S = (0.01, 0.5)
NO_ANSWER_S = 30.0
VERSIONED = ("cordon", "uncordon", "join_cluster", "leave_cluster", *ASIDE)
"""Operations of a scheduler that write the node itself, and test the version of it that they were made from."""

WORK_S: dict[str, Span] = {
    "collect_evidence": (1.0, 4.0),
    "gpu_reset": (10.0, 30.0),
    "bmc_cold_reset": (1.0, 5.0),
    "reboot": (0.5, 2.0),
    "sanitise": (60.0, 300.0),
    "start_kubelet": (1.0, 5.0),
    "stop_kubelet": (1.0, 5.0),
    "gate": (45.0, 90.0),
    "seatrial": (600.0, 1800.0),
    "suspect": (3600.0, 7200.0),
    "burn_in": (86_400.0, 90_000.0),
    "run_checks": (0.1, 0.5),
}
"""How long an agent works at an operation, or at a profile of checks; of others it says at once that it has none."""

Ended = Callable[[SimulatedHost, str, list[Fault]], None]


class AgentDiskRecord(Struct):
    """Record on an agent's disk about an attempt at an operation."""

    attempt: int
    boot_id: str
    outcome: Outcome | None = None


class Actuators:
    """Performs, observes and revokes what the controller sends."""

    def __init__(self, site: Site, hosts: dict[str, SimulatedHost], scheduler: SimulatedScheduler) -> None:
        self._site = site
        self._hosts = hosts
        self._scheduler = scheduler
        self._placing = SchedulerDriver(
            by_cluster([scheduler]),
            StandaloneScheduler(lambda: None),
            lambda node, _cluster: scheduler.tell_of([node.id]),
        )
        services: dict[str, Service] = {host.address: host.service for host in hosts.values()}
        self._services = services
        self._twin = RedfishTwin(services, images_by_name)
        self._disk_records: dict[str, AgentDiskRecord] = {}
        self._busy: dict[str, str] = {}
        self._epochs: dict[str, int] = {}
        self.on_remedied: Ended = _ignore
        self.on_changed: Callable[[str], None] = lambda _node: None
        self.ports: PortHand | None = None
        self.rack_assets: RackAssets | None = None
        self.meetings: MeetingAgents | None = None

    def take(self, send: Send, epoch: int) -> None:
        """Take what the controller sends; what it does takes place after the way there.

        Nothing is under way for longer than what asked waits for an answer: the connection is closed then, and what
        had arrived takes its settle time at most. An agent looks at the deadline itself.
        """
        if epoch < self._site.epoch:
            text = f"{send.how} {send.operation.kind} of {send.node.id} under epoch {epoch}"
            self._site.ledger.trespasses.append(text)
        if self.rack_assets is not None and send.node.id in self.rack_assets.assets:
            self.rack_assets.take(send)
            return
        self._site.expects(send.operation)
        kind = send.operation.kind
        late_s = self._site.troubles.lateness_s(send.node.id) if send.how == "perform" else 0.0
        left_s = (send.operation.deadline - self._site.recorded).total_seconds()
        kept_s = left_s + OPERATIONS[kind].settle_s
        act: Callable[[Send, int], None]
        if kind in self._placing.kinds:
            seen = self._scheduler.seat(send.node.id).version
            span, act = SCHEDULER_LATENCY_S, partial(self._schedule, seen=seen)
        elif kind in self._twin.kinds:
            span, act = BMC_LATENCY_S, self._redfish
        elif self.ports is not None and kind in self.ports.driver.kinds:
            span, act = TOOL_LATENCY_S, self._port
        else:
            due = self._site.clock.now + timedelta(seconds=left_s)
            span, act, kept_s = AGENT_LATENCY_S, partial(self._agent, due=due), inf
        way_s = self._hosts[send.node.id].draw(span)
        if late_s <= kept_s:
            self._site.clock.after(way_s + late_s, lambda: act(send, epoch))

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
            outcome = fate(send, error)
        if sum(reached.machine.counts.values()) != before:
            self._effect(operation, epoch)
            if reached is not host:
                misdirected = MisdirectedAct(self._site.recorded, operation.kind, operation.id, host.node, reached.node)
                self._site.ledger.misdirected_acts.append(misdirected)
        reached.advance()
        self._site.reply(outcome, host.draw(BMC_LATENCY_S))

    def swap(self, one: str, other: str) -> None:
        """Two BMCs answer at each other's addresses from now on."""
        here, there = self._hosts[one].address, self._hosts[other].address
        self._services[here], self._services[there] = self._services[there], self._services[here]

    def unswap(self) -> None:
        """Every BMC answers at its own address again."""
        self._services.update({host.address: host.service for host in self._hosts.values()})

    def _reached(self, host: SimulatedHost) -> SimulatedHost:
        """Host whose BMC answers at this host's address."""
        service = self._services[host.address]
        return host if service is host.service else next(h for h in self._hosts.values() if h.service is service)

    def _power_goes(self, host: SimulatedHost, operation: Operation) -> None:
        """The power is about to go: whatever still runs there ends now, and what a power cycle cures is cured."""
        if host.machine.away(self._site.clock.now) or host.machine.deaf(self._site.clock.now):
            return
        if host.machine.power == "On":
            self._disturb(host, operation)
            self.on_remedied(host, "power_cycle", host.remedied("power_cycle"))

    def _disturb(self, host: SimulatedHost, operation: Operation) -> None:
        """End whatever still runs there, as the hardware goes down; its scheduler sees it."""
        reset = _reset(operation)
        works = tuple(
            w.id for w in self._scheduler.works(host.node) if not reset or w.parts is None or reset & {*w.parts}
        )
        if works and self._scheduler.disturbs(host.node, operation.id, host.faults, works):
            self.on_changed(host.node)

    # the scheduler, behind the hand that chooses it in production

    def _schedule(self, send: Send, epoch: int, *, seen: int) -> None:
        """Writes of the node itself carry the version that was seen: one that others have overtaken changes nothing."""
        operation, scheduler, host = send.operation, self._scheduler, self._hosts[send.node.id]
        before = scheduler.changes
        try:
            if send.how == "revoke":
                at_once(self._placing.revoke(operation, send.node))
                scheduler.tell(host.node)
                return
            if send.how == "perform" and operation.kind in VERSIONED and scheduler.seat(host.node).version != seen:
                raise ConflictError(f"{host.node} has changed under us")
            ask = self._placing.perform if send.how == "perform" else self._placing.observe
            outcome = at_once(ask(operation, send.node))
        except PortError as error:
            if send.how != "revoke":
                self._site.reply(fate(send, error), NO_ANSWER_S if scheduler.away else host.draw(SCHEDULER_LATENCY_S))
            return
        if scheduler.changes != before:
            self._effect(operation, epoch)
            if operation.kind == IDLE_CHECK:
                scheduler.tell(host.node)
            else:
                self.on_changed(host.node)
        self._site.reply(outcome, host.draw(SCHEDULER_LATENCY_S))

    # tools in the compute network, behind the driver that runs in production

    def _port(self, send: Send, epoch: int) -> None:
        operation, host = send.operation, self._hosts[send.node.id]
        if send.how == "revoke" or self.ports is None:
            return
        before = len(self.ports.resets)
        driver = self.ports.driver
        ask = driver.perform if send.how == "perform" else driver.observe
        try:
            outcome = at_once(ask(operation, send.node))
        except PortError as error:
            outcome = fate(send, error)
        if len(self.ports.resets) != before:
            self._effect(operation, epoch)
            self._disturb(host, operation)
        self._site.reply(outcome, host.draw(TOOL_LATENCY_S))

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
        mark = self._disk_records.get(operation.id)
        return mark is not None and mark.attempt >= operation.attempt

    def cut_off(self, host: SimulatedHost) -> None:
        """The host went down: what its agent was doing ends without a result."""
        self._busy.pop(host.node, None)

    def _undelivered(self, send: Send) -> None:
        """Leave the order unfetched: an observation gets no answer, and that is all that is known."""
        if send.how != "revoke":
            self._site.reply(_outcome(send.operation, "unknown", "the agent is not heard"), NO_ANSWER_S)

    def _seen(self, operation: Operation, host: SimulatedHost) -> Outcome:
        mark = self._disk_records.get(operation.id)
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

    def _begin(self, operation: Operation, host: SimulatedHost, epoch: int) -> None:
        mark = self._disk_records[operation.id] = AgentDiskRecord(operation.attempt, host.boot_id)
        self._busy[host.node] = operation.id
        self._effect(operation, epoch)
        work_s = host.draw(WORK_S.get(_profile(operation), WORK_S[operation.kind]))
        if self.meetings is not None and _profile(operation) == "burn_in":
            work_s = self.meetings.burn_in_s()
        if operation.kind in ("gpu_reset", "reboot"):
            self._disturb(host, operation)
        self._site.clock.after(work_s, lambda: self._ends(operation, host, mark))

    def _ends(self, operation: Operation, host: SimulatedHost, mark: AgentDiskRecord) -> None:
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
        outcome = self._result(operation, host)
        if self.meetings is not None and self.meetings.follow(operation, outcome):
            self._meets(operation, host, mark, outcome)
        else:
            self._tells(operation, host, mark, outcome)

    def _meets(self, operation: Operation, host: SimulatedHost, mark: AgentDiskRecord, outcome: Outcome) -> None:
        """The agent is at it still, and meets others before it answers."""
        assert self.meetings is not None, "its caller has asked"
        self._busy[host.node] = operation.id

        def goes_on() -> bool:
            return self._busy.get(host.node) == operation.id and host.boot_id == mark.boot_id and host.heard

        def ended(met: Outcome) -> None:
            del self._busy[host.node]
            self._tells(operation, host, mark, met)

        self.meetings.hold(operation, host, outcome, Ears(goes_on, ended))

    def _tells(self, operation: Operation, host: SimulatedHost, mark: AgentDiskRecord, outcome: Outcome) -> None:
        mark.outcome = outcome
        if _profile(operation) not in host.mute_on:
            self._say(outcome)

    def _result(self, operation: Operation, host: SimulatedHost) -> Outcome:
        if operation.kind == "gpu_reset":
            self.on_remedied(host, "gpu_reset", host.remedied("gpu_reset", _reset(operation)))
        if operation.kind == "bmc_cold_reset":
            host.machine.restart_manager(self._site.clock.now)
        if operation.kind == "start_kubelet":
            return self._kubelet(operation)
        if not isinstance(operation.act, RunChecks):
            return _outcome(operation, "done")
        profile = _profile(operation)
        verdict, detail = host.check(profile)
        seen = pass_rules.named(profile, operation.act.rules)
        if verdict == Verdict.passed.value and profile in ANSWERED:
            report = emulated_gate.answer(operation.act.expects or Expected(), host.shows())
            verdict, detail, seen = report.verdict.value, report.detail, report.facts
        facts: Facts = {**seen, "profile": profile, "verdict": verdict}
        return Outcome(operation.id, operation.node, "done", detail, facts, attempt=operation.attempt)

    def _kubelet(self, operation: Operation) -> Outcome:
        """The agent fetches what lets its kubelet in: who took over since it was issued has nothing to give."""
        seat = self._scheduler.seat(operation.node)
        if seat.token != self._site.epoch:
            return _outcome(
                operation, "refused", "the controller has no join offer for this node; see `hostler node explain`"
            )
        seat.kubelet = True
        return _outcome(operation, "done")

    def _say(self, outcome: Outcome) -> None:
        self._site.reply(outcome, self._hosts[outcome.node].draw(AGENT_LATENCY_S))


def _profile(operation: Operation) -> str:
    return operation.act.profile if isinstance(operation.act, RunChecks) else ""


def _reset(operation: Operation) -> frozenset[str]:
    """The GPUs that a reset is confined to, by slot; none for all of them."""
    named = frozenset(operation.act.gpus) if isinstance(operation.act, ResetGpus) else frozenset[str]()
    slots = (f"gpu{n}" for n in range(8))
    return frozenset(slot for slot in slots if not named.isdisjoint((slot, f"{pci_of(slot)}.0")))


def _outcome(operation: Operation, result: str, detail: str = "") -> Outcome:
    return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)


def _ignore(_host: SimulatedHost, _remedy: str, _ended: list[Fault]) -> None:
    pass
