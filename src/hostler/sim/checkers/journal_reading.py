"""Reads the journal without trusting the code that wrote it: the checkers' own bookkeeping."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.configuration import Configuration, Pool
from hostler.core.state.model import Condition, Hold, HoldKind, Node, Operation, Phase, Plan, Waiting
from hostler.core.state.windows import Window

OURS = "hostler"
HARDWARE = (
    "power_off",
    "gpu_reset",
    "reboot",
    "update_firmware",
    "write_device_firmware",
    "write_bios_settings",
    "ac_cycle",
    "outlet_cycle",
    "unplug",
)
"""Operations after which a node is not healthy until checks have passed."""


UNSURE = (
    "agent.lost",
    "agent.outdated",
    "agent.refused",
    "agent.collector_failed",
    "reading.missing",
    "check.inconclusive",
)
"""Conditions by which somebody who would say how a node is cannot."""


class NodeHistory(Struct):
    """One node, as its records tell. `unproven` is what was done to its hardware since checks last passed."""

    id: str
    phase: Phase
    pool: str
    domains: tuple[str, ...]
    scopes: tuple[str, ...]
    managed: bool
    serial: str
    sku: str = ""
    boot: str = ""
    boots: tuple[str, ...] = ()
    conditions: dict[str, Condition] = {}
    plan: Plan | None = None
    state: str = ""
    index: int = 0
    reached: int = 0
    passed: bool = False
    acted: bool = False
    unproven: str = ""
    unproven_before: str = ""
    operation: Operation | None = None
    aside: Operation | None = None
    settling: dict[str, datetime] = {}
    cordoned: bool = False
    cordoned_at: datetime | None = None
    lifted: bool = False
    waiting: Waiting | None = None
    deadline: datetime | None = None

    @property
    def outstanding(self) -> tuple[Operation, ...]:
        """The plan's operation that is under way, and the one beside it."""
        return tuple(one for one in (self.operation, self.aside) if one is not None)

    @property
    def healthy(self) -> bool:
        """In service for its pool: nothing disruptive, no delivery, no cordon of ours."""
        busy = self.plan is not None and self.state != "proposed" and self.plan.name == "deliver"
        return self.phase is Phase.production and not busy and not self.disrupted and not self.cordoned

    @property
    def doubt(self) -> str:
        """The first reason why nobody can say how it is, "" where there is none."""
        unknown = (c for c in self.conditions.values() if c.type in UNSURE or c.unknown_since is not None)
        return next((c.type for c in unknown), "")

    @property
    def disrupted(self) -> bool:
        """A plan that disturbs has begun; one that is only proposed has not."""
        return self.plan is not None and self.plan.disruptive and self.state != "proposed"


class Begun(Struct, frozen=True):
    """A disruption that has begun: when, of which plan, and the pool that the node then served."""

    at: datetime
    name: str
    pool: str


class JournalReading:
    """The cell, as its records tell. `turn` takes the next record; checkers look before and after.

    `clock` is the moment of the record that is being looked at, `now` that of the last one taken in, `moved` that of
    the last one that is not merely of an idle check or a look at an asset, which come for good. `inside` are the pages
    of each failure domain, `healthy` counts the healthy members of each pool. `attended`: since when somebody listens
    again. `begun` is what was disturbed within the last day, `calm` when a person last released the brake.
    """

    def __init__(self) -> None:
        self.pages: dict[str, NodeHistory] = {}
        self.busy: dict[str, None] = {}
        self.inside: dict[str, list[NodeHistory]] = {}
        self.healthy: Counter[str] = Counter()
        self._serves: dict[str, str] = {}
        self.configuration: Configuration | None = None
        self.holds: dict[str, Hold] = {}
        self.paused: dict[str, None] = {}
        self.modes: dict[tuple[str, str], str] = {}
        self.brake = ""
        self.calm: datetime | None = None
        self.windows: dict[str, Window] = {}
        self.begun: list[Begun] = []
        self.incidents: dict[str, Incident] = {}
        self.now: datetime | None = None
        self.moved: datetime | None = None
        self.attended: datetime | None = None
        self.clock = datetime.min.replace(tzinfo=UTC)
        self.seq = 0
        self.epoch = 0

    def pool(self, name: str) -> Pool | None:
        """The pool as it is configured, None where it is not."""
        return self.configuration.pools.get(name) if self.configuration else None

    def scopes(self, page: NodeHistory) -> tuple[str, ...]:
        """Every scope on which a hold or pause reaches this node."""
        pool = self.pool(page.pool)
        return (*page.scopes, *((f"pool:{pool.name}", f"cluster:{pool.cluster}") if pool else ()))

    def held(self, page: NodeHistory, *kinds: str) -> list[Hold]:
        """Holds of these kinds that apply to the node now."""
        scopes = self.scopes(page)
        return [
            hold
            for hold in self.holds.values()
            if hold.scope.text in scopes
            and hold.kind.value in kinds
            and (hold.until is None or hold.until > self.clock)
        ]

    def turn(self, record: e.Record) -> None:
        """Take the record in."""
        self.now, self.seq = record.at, record.seq
        self.epoch = record.epoch
        event = record.event
        if not _comes_for_good(event):
            self.moved = record.at
        if (write := _CELL.get(type(event))) is not None:
            write(self, event)
        elif (change := _NODE.get(type(event))) is not None:
            page = change(self, event, record.at)
            self._mind(page)
            if isinstance(event, e.PlanRecorded | e.PlanApproved) and page.disrupted:
                self._count(page, record.at)

    def _count(self, page: NodeHistory, at: datetime) -> None:
        """Remember what has begun to disturb; what is only proposed has not."""
        assert page.plan is not None, "its caller has looked"
        self.begun = [one for one in self.begun if one.at > at - timedelta(days=1)]
        self.begun.append(Begun(at, page.plan.name, page.pool))

    def _mind(self, page: NodeHistory) -> None:
        """Keep a list of the nodes that have something with a deadline, and count the healthy ones."""
        serves, before = page.pool if page.healthy else "", self._serves.get(page.id, "")
        if serves != before:
            self._serves[page.id] = serves
            self.healthy[before] -= 1
            self.healthy[serves] += 1
        if page.outstanding or page.deadline is not None or page.settling:
            self.busy[page.id] = None
        else:
            self.busy.pop(page.id, None)


UNINVITED = ("cordon_uninvited", "delete_uninvited")
"""Operations in a cluster that the node has left: they belong to no plan, and run beside any."""


def _comes_for_good(event: e.Event) -> bool:
    match event:
        case e.AssetSeen():
            return True
        case e.OperationStarted(operation=operation):
            return operation.kind == "idle_check"
        case e.OperationFinished(kind=kind):
            return kind == "idle_check"
        case e.CheckRecorded(check=check):
            return check.profile == "idle"
        case _:
            return False


def _registered(reading: JournalReading, event: e.NodeRegistered, _at: datetime) -> NodeHistory:
    node: Node = event.node
    domains = tuple(map(str, node.domains))
    page = reading.pages[node.id] = NodeHistory(
        node.id,
        node.phase,
        node.assignment.pool if node.assignment else "",
        domains,
        ("fleet", node.id, *domains),
        node.profile.value == "managed",
        next((b.value for b in node.bindings if b.kind == "serial"), ""),
        node.sku,
        conditions={},
        settling={},
    )
    for domain in page.domains:
        reading.inside.setdefault(domain, []).append(page)
    return page


def _phase(reading: JournalReading, event: e.PhaseChanged, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.phase, page.deadline, page.waiting = event.after, event.deadline, None
    return page


def _condition(reading: JournalReading, event: e.ConditionRaised | e.ConditionUpdated, _at: datetime) -> NodeHistory:
    page = reading.pages[event.condition.node]
    page.conditions[event.condition.id] = event.condition
    return page


def _cleared(reading: JournalReading, event: e.ConditionCleared, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.conditions.pop(event.condition, None)
    return page


def _planned(reading: JournalReading, event: e.PlanRecorded, _at: datetime) -> NodeHistory:
    page = reading.pages[event.plan.node]
    page.plan, page.state, page.index, page.passed = event.plan, event.plan.state, 0, False
    page.acted = False
    if event.plan.failed_phase and event.plan.limit is not None:
        page.deadline = event.plan.limit
    return page


def _approved(reading: JournalReading, event: e.PlanApproved, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.state = "running"
    return page


def _advanced(reading: JournalReading, event: e.PlanAdvanced, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.index = event.index
    return page


def _undoing(reading: JournalReading, event: e.PlanUndoing, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.state, page.reached, page.index = "undoing", page.index, 0
    return page


def _ended(reading: JournalReading, event: e.PlanEnded, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    if event.result == e.YIELDED and page.plan is not None:  # it begins once more, and has done nothing
        gone = Begun(page.plan.recorded_at, page.plan.name, page.pool)
        if gone in reading.begun:
            reading.begun.remove(gone)
    page.plan, page.state = None, ""
    return page


def _started(reading: JournalReading, event: e.OperationStarted, _at: datetime) -> NodeHistory:
    page = reading.pages[event.operation.node]
    if event.operation.aside:
        page.aside = event.operation
        return page
    page.operation = event.operation
    page.acted = page.acted or event.operation.disturbs or event.operation.touches
    if event.operation.kind in HARDWARE:
        page.unproven_before, page.unproven = page.unproven, event.operation.kind
    return page


def _finished(reading: JournalReading, event: e.OperationFinished, at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    if page.aside is not None and page.aside.id == event.operation:
        page.aside = None
        return page
    begun, page.operation = page.operation, None
    if event.result == "refused" and begun is not None and begun.kind in HARDWARE and begun.attempt == 1:
        page.unproven = page.unproven_before  # a refusal has touched nothing; what an earlier try did is unsure
    if event.settle_until is not None:
        page.settling[event.operation] = event.settle_until
    if event.result == "done" and event.kind in ("cordon", "uncordon", "leave_cluster"):
        page.cordoned, page.cordoned_at, page.lifted = event.kind == "cordon", at, False
    return page


def _settled(reading: JournalReading, event: e.OperationSettled, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.settling.pop(event.operation, None)
    return page


def _waits(reading: JournalReading, event: e.WaitingChanged, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.waiting = event.waiting
    return page


def _booted(reading: JournalReading, event: e.BootObserved, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.boot, page.boots = event.boot_id, (*page.boots, event.boot_id)
    return page


def _checked(reading: JournalReading, event: e.CheckRecorded, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    if event.check.profile == "idle":
        return page  # says nothing of what a plan has done
    page.passed = event.check.verdict.value == "passed"
    page.unproven = "" if page.passed else page.unproven
    return page


def _assigned(reading: JournalReading, event: e.NodeAssigned, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.pool = event.assignment.pool
    return page


def _released(reading: JournalReading, event: e.NodeReleased, _at: datetime) -> NodeHistory:
    page = reading.pages[event.node]
    page.pool = ""
    return page


_NODE: dict[type, Callable[..., NodeHistory]] = {
    e.NodeRegistered: _registered,
    e.PhaseChanged: _phase,
    e.ConditionRaised: _condition,
    e.ConditionUpdated: _condition,
    e.ConditionCleared: _cleared,
    e.PlanRecorded: _planned,
    e.PlanApproved: _approved,
    e.PlanAdvanced: _advanced,
    e.PlanUndoing: _undoing,
    e.PlanEnded: _ended,
    e.OperationStarted: _started,
    e.OperationFinished: _finished,
    e.OperationSettled: _settled,
    e.WaitingChanged: _waits,
    e.BootObserved: _booted,
    e.CheckRecorded: _checked,
    e.NodeAssigned: _assigned,
    e.NodeReleased: _released,
}


def _config(reading: JournalReading, event: e.ConfigActivated) -> None:
    reading.configuration = event.configuration


def _held(reading: JournalReading, event: e.HoldPlaced) -> None:
    reading.holds[event.hold.id] = event.hold
    if event.hold.kind is HoldKind.override:
        reading.pages[event.hold.scope.text].lifted = True


def _unheld(reading: JournalReading, event: e.HoldReleased) -> None:
    reading.holds.pop(event.hold, None)


def _paused(reading: JournalReading, event: e.PauseSet) -> None:
    reading.paused.pop(event.scope.text, None)
    if event.paused:
        reading.paused[event.scope.text] = None


def _mode(reading: JournalReading, event: e.ModeSet) -> None:
    reading.modes[event.pool, event.remedy] = event.mode.value


def _opened(reading: JournalReading, event: e.IncidentOpened) -> None:
    reading.incidents[event.incident.id] = event.incident


def _moved(reading: JournalReading, event: e.IncidentUpdated) -> None:
    incident = reading.incidents[event.incident]
    members = {**incident.members, **event.joined}
    left = {node: since for node, since in members.items() if node not in event.left}
    types = (*incident.conditions, *event.conditions)
    reading.incidents[event.incident] = replace(incident, members=left, conditions=types, state=event.state)


def _closed(reading: JournalReading, event: e.IncidentClosed) -> None:
    del reading.incidents[event.incident]


def _known(reading: JournalReading, event: e.KnowledgeChanged) -> None:
    for changed, since in ((event.unknown, reading.now), (event.known, None)):
        for node, conditions in changed.items():
            page = reading.pages[node]
            for identity in conditions:
                page.conditions[identity] = replace(page.conditions[identity], unknown_since=since)


def _braked(reading: JournalReading, event: e.BrakeLatched) -> None:
    reading.brake = event.reason


def _unbraked(reading: JournalReading, _event: e.BrakeReleased) -> None:
    reading.brake, reading.calm = "", reading.now


def _window(reading: JournalReading, event: e.WindowScheduled) -> None:
    reading.windows[event.window.id] = event.window


def _unwindow(reading: JournalReading, event: e.WindowEnded) -> None:
    reading.windows.pop(event.window, None)


def _begun(reading: JournalReading, _event: e.ControllerStarted) -> None:
    reading.attended = reading.now


def _resumed(reading: JournalReading, event: e.ClockGap) -> None:
    """Move deadlines by the time in which no controller was active."""
    reading.attended = reading.now
    gap = timedelta(seconds=event.unattended_s)
    for page in reading.pages.values():
        page.settling = {operation: until + gap for operation, until in page.settling.items()}
        if page.deadline is not None:
            page.deadline += gap
        if page.operation is not None:
            page.operation = replace(page.operation, deadline=page.operation.deadline + gap)
        if page.aside is not None:
            page.aside = replace(page.aside, deadline=page.aside.deadline + gap)


_CELL: dict[type, Callable[..., None]] = {
    e.ConfigActivated: _config,
    e.HoldPlaced: _held,
    e.HoldReleased: _unheld,
    e.PauseSet: _paused,
    e.ModeSet: _mode,
    e.IncidentOpened: _opened,
    e.IncidentUpdated: _moved,
    e.IncidentClosed: _closed,
    e.KnowledgeChanged: _known,
    e.BrakeLatched: _braked,
    e.BrakeReleased: _unbraked,
    e.WindowScheduled: _window,
    e.WindowEnded: _unwindow,
    e.ControllerStarted: _begun,
    e.ClockGap: _resumed,
}
