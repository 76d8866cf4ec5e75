"""Resources of the API: the core's own nouns where they fit, and rows that join them where a screen needs it."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import asdict

from hostler.client.answers import (
    AgentView,
    IncidentRow,
    LightRow,
    NodeRow,
    OutsideRow,
    ShadowRow,
    TicketRow,
    WaitingRow,
)
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.policy.incident_tickets import part_name
from hostler.core.report.burn_ins import BurnInStanding
from hostler.core.report.last_failures import failure_text
from hostler.core.report.next_actor import ActsNext
from hostler.core.report.sentences import sentence
from hostler.core.state.cases import Incident, Ticket
from hostler.core.state.customer_workloads import Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.events import Event, Record, name_of
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import is_healthy, is_serving
from hostler.core.state.light import Light
from hostler.core.state.model import ActFailure, Hold, Node, Part
from hostler.server.rows import row_of


def node_row(node: Node) -> NodeRow:
    """The node as a list shows it; what failed last stands before what it waits for."""
    waiting = node.waiting
    failed = failure_text(node.failed[0]) if node.failed else ""
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
        waiting="; ".join(filter(None, (failed, waiting.blockers[0].text if waiting and waiting.blockers else ""))),
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


class NodeView(Struct, frozen=True):
    """One node with everything that stands around it. `workloads` None: its scheduler has not told.

    `parts` and `addresses` ("pci:0000:4c:00" → serial) are shown here and left out of `node`, which holds them packed.
    `failures`: what failed last, the newest first. `acts_next`: whose turn it is, and what they do.
    `burn_in` is the burn-in under way beside those of its SKU; tenants are not told it.
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
    acts_next: ActsNext
    failures: tuple[ActFailure, ...] = ()
    burn_in: BurnInStanding | None = None


def holds_on(context: DecisionContext, node: Node) -> tuple[Hold, ...]:
    """Every hold that the node feels: its own, its rack's, its pool's, the fleet's."""
    return tuple(context.fleet.holds_on(scopes(context.fleet, node)))


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


def shadow_rows(node: Node) -> tuple[ShadowRow, ...]:
    """A node's rows, one for each rule and remedy."""
    return tuple(
        row_of(ShadowRow, shadow, id=f"{node.id}/{shadow.rule}/{shadow.remedy}", node=node.id, pool=node.pool)
        for shadow in node.shadows
    )


def waiting_row(fleet: Fleet, node: Node, now: datetime) -> WaitingRow:
    """A waiting node's row."""
    waiting = node.waiting
    assert waiting is not None, "asked only of nodes that wait"
    gpus = _gpus(fleet, node)
    lost = 0.0 if waiting.in_hands and is_serving(node) else hours(now - waiting.since)
    return WaitingRow(
        node=node.id,
        what=waiting.what,
        since=waiting.since,
        phase=node.phase,
        pool=node.pool,
        blockers=tuple(b.text for b in waiting.blockers),
        ends_when=tuple(b.ends_when for b in waiting.blockers),
        gpus=gpus,
        gpu_hours=None if gpus is None else gpus * lost,
    )


def hours(took: timedelta) -> float:
    """Hours of a time, never below zero, to the hundredth."""
    return round(max(0.0, took.total_seconds()) / 3600, 2)


def _gpus(fleet: Fleet, node: Node) -> int | None:
    """GPUs that the node has: as many as its SKU says, for one that has lost some is stuck with all; else those found.

    None where it has no known SKU and none was found.
    """
    sku = fleet.configuration.skus.get(node.sku)
    if sku is not None:
        return sku.gpus
    return sum(part.kind == "gpu" for part in fleet.parts.of(node.id)) or None


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
    """One incident: its row (None once it is closed), who shows it since when, and what is recorded about it.

    `cursor` goes on with the history (`before`), "" where it is whole; `archived` says where what came before is.
    """

    incident: IncidentRow | None
    members: dict[str, datetime]
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""
