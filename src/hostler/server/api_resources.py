"""Resources of the API: the core's own nouns where they fit, and rows that join them where a screen needs it."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.policy.incident_tickets import part_name
from hostler.core.report.sentences import sentence
from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.cases import Incident, Ticket, WalkStop
from hostler.core.state.configuration import Pool
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.events import Event, Record, name_of
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import is_healthy
from hostler.core.state.light import Light
from hostler.core.state.model import (
    ActClass,
    Condition,
    Hold,
    Node,
    Operation,
    Part,
    Phase,
    Position,
    Profile,
    Workload,
)
from hostler.server.rows import row_of


class NodeRow(Struct, frozen=True):
    """A node in a list. `severity` is its gravest condition's (-1: none), `waiting` its first blocker's own text.

    `unknown` are those of its `conditions` of which nobody can say whether they still stand. `names`: how it is called
    in its clusters, where that is not its id, by the kind of scheduler.
    """

    id: str
    hostname: str
    serial: str
    sku: str
    phase: Phase
    phase_since: datetime
    pool: str
    tenant: str
    position: Position
    profile: Profile
    severity: int
    conditions: tuple[str, ...]
    unknown: tuple[str, ...]
    plan: str
    step: str
    waiting: str
    waiting_since: datetime | None
    cordoned: bool
    healthy: bool
    handover: datetime | None
    names: dict[str, str] = {}


def node_row(node: Node) -> NodeRow:
    """The node as a list shows it."""
    waiting = node.waiting
    return row_of(
        NodeRow,
        node,
        hostname=node.binding("hostname"),
        serial=node.binding("serial"),
        tenant=node.assignment.tenant if node.assignment else "",
        severity=max((int(c.severity) for c in node.conditions), default=-1),
        conditions=tuple(dict.fromkeys(c.type for c in node.conditions)),
        unknown=tuple(dict.fromkeys(c.type for c in node.conditions if c.unknown_since is not None)),
        plan=node.plan.name if node.plan else "",
        step=_step(node),
        waiting=waiting.blockers[0].text if waiting and waiting.blockers else "",
        waiting_since=waiting.since if waiting else None,
        cordoned=bool(node.cordons),
        healthy=is_healthy(node),
        names={kind: name for kind in ("kubernetes", "slurm") if (name := node.binding(kind))},
    )


def _step(node: Node) -> str:
    """Name the operation under way on the node, else the next step of its plan."""
    if node.operation is not None:
        return node.operation.kind
    plan = node.plan
    if plan is None or plan.state == "undoing" or plan.index >= len(plan.steps):
        return ""
    return plan.steps[plan.index].operation


class AgentSeen(Struct, frozen=True):
    """Facts from the last heartbeat of a node's agent. `profiles` None: it does not say which it has.

    `doing`: where a long check stands that it runs, in its own words.
    """

    version: str = ""
    rss_kib: int = 0
    profiles: tuple[str, ...] | None = None
    doing: str = ""


class AgentView(Struct, frozen=True):
    """A node's agent: when it was last heard (None: not since the controller started), and what it said of itself."""

    node: str
    heard: bool
    last_heard: datetime | None
    version: str
    rss_kib: int
    profiles: tuple[str, ...] | None = None


class NodeView(Struct, frozen=True):
    """One node with everything that stands around it. `workloads` None: its scheduler has not told.

    `parts` and `addresses` ("pci:0000:4c:00" → serial) are shown here and left out of `node`, which holds them packed.
    """

    node: Node
    hostname: str
    healthy: bool
    power: str
    agent: AgentView
    workloads: tuple[Workload, ...] | None
    holds: tuple[Hold, ...]
    tickets: tuple[Ticket, ...]
    parts: tuple[Part, ...]
    addresses: dict[str, str]


def holds_on(context: DecisionContext, node: Node) -> tuple[Hold, ...]:
    """Every hold that the node feels: its own, its rack's, its pool's, the fleet's."""
    return tuple(context.fleet.holds_on(scopes(context, node)))


def parts_of(fleet: Fleet, node: Node) -> tuple[Part, ...]:
    """The node's parts in slot order."""
    return tuple(fleet.parts.of(node.id))


class HistoryRow(Struct, frozen=True):
    """A record about one subject: in a sentence, and whole."""

    seq: int
    at: datetime
    name: str
    text: str
    cause: str
    event: Event


def history_row(record: Record) -> HistoryRow:
    """The record as a history shows it."""
    return HistoryRow(record.seq, record.at, name_of(record.event), sentence(record.event), record.cause, record.event)


class ConditionRow(Struct, frozen=True):
    """A condition with where its node stands."""

    condition: Condition
    phase: Phase
    pool: str
    rack: str
    plan: str


class GpuCounts(Struct, frozen=True):
    """A pool's GPUs (CAP01-03), counted as its nodes are. `in_use` None: schedulers have not told."""

    reserved: int
    delivered: int
    healthy: int
    in_use: int | None


class PoolView(Struct, frozen=True):
    """A pool and its counts (CAP01–03).

    `reserved` is what its tenant has reserved (the target), `delivered` what serves it, `healthy` what of that is in
    service and known, `unknown` what is in service and of which nobody can say how it is, `dark` whose places spares
    take because they stay dark until a person comes (an incident holds them, or they are powered off to protect them),
    `in_use` where customer work runs (None: schedulers have not told).
    """

    pool: Pool
    reserved: int
    delivered: int
    healthy: int
    unknown: int
    dark: int
    in_use: int | None
    spares: int
    gpus: GpuCounts


class OperationRow(Struct, frozen=True):
    """An operation under way, or given up and still able to land (`settling`)."""

    operation: Operation
    plan_name: str
    pool: str


class PartView(Struct, frozen=True):
    """A part with its history, newest first. `cursor` continues the history (`before`); `archived` as in `Page`."""

    part: Part | None
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""


class ShadowRow(Struct, frozen=True):
    """Effect that a shadow rule would have had on a node: how often, last `at`, and whether it would have waited.

    `works`: how many workloads of customers ran there then, None where unknown.
    """

    id: str
    node: str
    pool: str
    rule: str
    remedy: str
    act_class: ActClass
    times: int
    at: datetime
    waits: str
    works: int | None


def shadow_rows(node: Node) -> tuple[ShadowRow, ...]:
    """A node's rows, one for each rule and remedy."""
    return tuple(
        row_of(ShadowRow, shadow, id=f"{node.id}/{shadow.rule}/{shadow.remedy}", node=node.id, pool=node.pool)
        for shadow in node.shadows
    )


class WaitingRow(Struct, frozen=True):
    """A node that waits, since when, and for whom, in the blockers' own words."""

    node: str
    what: str
    since: datetime
    phase: Phase
    pool: str
    blockers: tuple[str, ...]
    ends_when: tuple[str, ...]


def waiting_row(node: Node) -> WaitingRow:
    """A waiting node's row."""
    waiting = node.waiting
    assert waiting is not None, "asked only of nodes that wait"
    return WaitingRow(
        node=node.id,
        what=waiting.what,
        since=waiting.since,
        phase=node.phase,
        pool=node.pool,
        blockers=tuple(b.text for b in waiting.blockers),
        ends_when=tuple(b.ends_when for b in waiting.blockers),
    )


class IncidentRow(Struct, frozen=True):
    """An incident in a list. `blames` is the shared part in words, `nodes` how many of its members the caller sees."""

    id: str
    scope: str
    blames: str
    also: tuple[str, ...]
    conditions: tuple[str, ...]
    state: str
    nodes: int
    size: int
    first: tuple[str, ...]
    opened: datetime
    deadline: datetime
    calm_since: datetime | None
    owner: str
    ticket: str


class OutsideRow(Struct, frozen=True):
    """The same ticket in a ticket system: the route to it, its key and address there, and whether it is done there."""

    route: str
    key: str
    url: str
    done: bool


class LightRow(Struct, frozen=True):
    """The locate LED of a ticket's node: its state in words, who had it lit, and until when."""

    state: str
    by: str
    until: datetime


class TicketRow(Struct, frozen=True):
    """An open ticket: `ticket`'s own fields, when it is to be done, and what it is in ticket systems."""

    id: str
    node: str
    kind: str
    summary: str
    opened: datetime
    hardware: str
    component: str
    fault: str
    action: str
    account: str
    handover: datetime | None
    updated: datetime | None
    closed: datetime | None
    owner: str
    resolution: str
    due: str
    due_by: datetime | None
    done_by: str
    done_at: datetime | None
    reopened: datetime | None
    files: tuple[AttachedFile, ...]
    walk: tuple[WalkStop, ...]
    claimed_by: str
    claimed_at: datetime | None
    claimed_until: datetime | None
    outside: tuple[OutsideRow, ...]
    light: LightRow | None


def ticket_row(ticket: Ticket, outside: tuple[OutsideRow, ...], light: Light | None) -> TicketRow:
    """The ticket as a list shows it. `light`: its node's, None where nobody has asked for one or may know of it."""
    row = LightRow(light.state, light.by, light.until) if light is not None else None
    return TicketRow(**asdict(ticket), due_by=ticket.due_by, outside=outside, light=row)


FIRST_SHOWN = 5


def incident_row(incident: Incident) -> IncidentRow:
    """The incident as a list shows it."""
    return row_of(
        IncidentRow,
        incident,
        scope=incident.scope.text,
        blames=part_name(incident.scope),
        also=tuple(map(str, incident.also)),
        nodes=len(incident.members),
        first=tuple(sorted(incident.members)[:FIRST_SHOWN]),
    )


class IncidentView(Struct, frozen=True):
    """One incident: its row (None once it is closed), who shows it since when, and what is recorded about it."""

    incident: IncidentRow | None
    members: dict[str, datetime]
    history: tuple[HistoryRow, ...]


class IntentView(Struct, frozen=True):
    """Result of an intent: granted (200), or not yet (202): it waits for the approval that `detail` names.

    What is refused comes as a problem with status 409. `detail` says "brake" while that is latched.
    """

    granted: bool
    text: str
    detail: dict[str, str]
