"""Maintenance as contracts ask for it (BFX02): windows, current and upcoming work, retirement notices, repairs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from heapq import merge

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import bars
from hostler.core.state.model import Assignment, Condition, Node, Phase
from hostler.core.state.windows import Window
from hostler.core.tables.operations import OPERATIONS

REPAIRS_MAX = 50
DEEDS_MAX = 200
DEEDS = frozenset(kind for kind, row in OPERATIONS.items() if row.touches or row.restarts)
"""Operations that act on the hardware, or end or begin a boot."""
_LEAVING = ("operator.replacement", "operator.release")
_OUT = (Phase.triage, Phase.debug, Phase.rma)


class WorkRow(Struct, frozen=True):
    """One maintenance event of a node. `state` is current, upcoming, proposed or closed.

    `hardware` is the stable id (serial) of what is worked on, `handover` when the node went to production.
    """

    node: str
    rack: str
    state: str
    action: str
    fault: str
    component: str
    hardware: str
    ticket: str
    opened: datetime | None
    updated: datetime | None
    closed: datetime | None
    account: str
    handover: datetime | None
    waits_for: str = ""
    resolution: str = ""


class NoticeRow(Struct, frozen=True):
    """A node that leaves its pool for good, or has been retired (`at`)."""

    node: str
    rack: str
    reason: str
    at: datetime


class DeedRow(Struct, frozen=True):
    """Deed that was done to a node: a power cycle, a reset, a reboot, firmware, a part that was put in or out.

    `result` is the operation's, "done" for a part. `part` is the serial that moved, "" for the whole node.
    """

    node: str
    at: datetime
    action: str
    result: str
    part: str = ""
    slot: str = ""


class Maintenance(Struct, frozen=True):
    """Windows, work and notices of the selected nodes; repairs and deeds only where one node was asked for.

    Repairs opened since `repairs_since` are all here, and deeds since `deeds_since`; None: all that the journal has.
    """

    windows: tuple[Window, ...]
    work: tuple[WorkRow, ...]
    notices: tuple[NoticeRow, ...]
    repairs: tuple[WorkRow, ...] = ()
    deeds: tuple[DeedRow, ...] = ()
    cursor: str = ""
    repairs_since: datetime | None = None
    deeds_since: datetime | None = None


class Deeds(Struct, frozen=True):
    """Deeds of a node, newest first, and since when all are told (None: all that are known)."""

    rows: tuple[DeedRow, ...]
    since: datetime | None


def work_of(fleet: Fleet, node: Node, tickets: Sequence[Ticket]) -> list[WorkRow]:
    """List present and coming work on the node: its plan, its open tickets, what its conditions ask for."""
    rows = [_by_ticket(node, ticket, "current") for ticket in tickets]
    plan = node.plan
    if plan is not None and plan.disruptive:
        cause = next((c for c in node.conditions if c.id in plan.causes), None)
        state = "proposed" if plan.state == "proposed" else "current"
        rows.append(_row(fleet, node, state, plan.name, cause))
    elif node.phase in _OUT and not tickets:
        worst = max(node.conditions, key=lambda c: (c.severity, c.id), default=None)
        rows.append(_row(fleet, node, "current", node.phase.value, worst))
    elif node.waiting is not None and node.conditions and node.phase is Phase.production:
        worst = max(node.conditions, key=lambda c: (c.severity, c.id))
        rows.append(_row(fleet, node, "upcoming", node.waiting.what, worst))
    return rows


ASSIGNING = ("node_assigned", "node_registered")
"""Names of the records by which a node begins to serve somebody, the usual first."""


def was_taken(node: Node) -> bool:
    """Whether the node serves nobody while it is repaired: whom it served, its records alone tell."""
    return node.assignment is None and node.phase in _OUT


def with_account(node: Node, rows: Iterable[WorkRow], records: Iterable[e.Record]) -> tuple[WorkRow, ...]:
    """The rows of a node that was taken from its pool to be repaired, with the account that it was taken from."""
    if not was_taken(node):
        return tuple(rows)
    latest = max((r for r in records if _assigned(r.event)), key=lambda r: r.seq, default=None)
    assignment = _assigned(latest.event) if latest is not None else None
    account = assignment.tenant if assignment is not None else ""
    return tuple(replace(row, account=row.account or account) for row in rows)


def _assigned(event: e.Event) -> Assignment | None:
    """The assignment that begins by the event, None where none does."""
    match event:
        case e.NodeAssigned(assignment=assignment):
            return assignment
        case e.NodeRegistered(node=node):
            return node.assignment
        case _:
            return None


def _row(fleet: Fleet, node: Node, state: str, action: str, cause: Condition | None) -> WorkRow:
    part = fleet.parts.get(cause.part) if cause else None
    waits = node.waiting.blockers[0].text if node.waiting and node.waiting.blockers else ""
    return WorkRow(
        node=node.id,
        rack=node.position.rack,
        state=state,
        action=action,
        fault=_fault(cause),
        component=part.kind if part else (cause.type.partition(".")[0] if cause else "node"),
        hardware=part.serial if part else node.binding("serial"),
        ticket="",
        opened=_opened(node, cause),
        updated=cause.last_seen if cause else None,
        closed=None,
        account=node.assignment.tenant if node.assignment else "",
        handover=node.handover,
        waits_for=waits,
    )


def _opened(node: Node, cause: Condition | None) -> datetime:
    """When this work on the node began to be asked for: a graver fault that takes over does not open it anew."""
    if cause is None:
        return node.phase_since
    asked = (c.since for c in node.conditions if bars(c) or c.type.startswith("operator."))
    return min([cause.since, *asked])


def _fault(cause: Condition | None) -> str:
    if cause is None:
        return ""
    return f"{cause.type}: {cause.evidence[-1].text}" if cause.evidence else cause.type


def _by_ticket(node: Node | None, ticket: Ticket, state: str) -> WorkRow:
    return WorkRow(
        node=ticket.node,
        rack=node.position.rack if node else "",
        state=state,
        action=ticket.action or ticket.kind,
        fault=ticket.fault or ticket.summary,
        component=ticket.component,
        hardware=ticket.hardware or (node.binding("serial") if node else ""),
        ticket=ticket.id,
        opened=ticket.opened,
        updated=ticket.updated,
        closed=ticket.closed,
        account=ticket.account,
        handover=ticket.handover or (node.handover if node else None),
        resolution=ticket.resolution,
    )


def notices_of(node: Node) -> list[NoticeRow]:
    """Notice that the node is to leave its pool for good."""
    return [
        NoticeRow(node.id, node.position.rack, f"{c.type}: {c.evidence[-1].text if c.evidence else ''}", c.since)
        for c in node.conditions
        if c.type in _LEAVING
    ]


def deeds_of(node: str, ended: Sequence[e.Record], moved: Sequence[e.Record], known_since: datetime | None) -> Deeds:
    """Deeds that were done to the node's hardware, by its ended operations and its parts' moves, each newest first.

    `known_since`: operations are among the records since then, None: all are. Each kind has its own bound, so that
    parts that an inventory shows and does not, in turns, hide no power cycle.
    """
    operations = [
        DeedRow(node, r.at, r.event.kind, r.event.result)
        for r in ended
        if isinstance(r.event, e.OperationFinished) and r.event.kind in DEEDS
    ]
    moves = [_move(node, r.at, r.event) for r in moved if isinstance(r.event, e.PartMoved)]
    kinds = (operations, [one for one in moves if one is not None])
    cut = [rows[DEEDS_MAX - 1].at for rows in kinds if len(rows) > DEEDS_MAX]
    since = max([*cut, *([known_since] if known_since is not None else [])], default=None)
    told = merge(*(rows[:DEEDS_MAX] for rows in kinds), key=lambda row: row.at, reverse=True)
    return Deeds(tuple(told), since)


def _move(node: str, at: datetime, event: e.PartMoved) -> DeedRow | None:
    action = "part_in" if event.after == node else "part_out" if event.before == node else ""
    return DeedRow(node, at, action, "done", event.serial, event.slot) if action else None


def opened_tickets(records: Iterable[e.Record]) -> list[Ticket]:
    """The tickets of a node's history as they were last told, newest first."""
    found: dict[tuple[str, datetime], Ticket] = {}
    for record in sorted(records, key=lambda r: r.seq):
        match record.event:
            case e.TicketOpened(ticket=ticket) | e.TicketUpdated(ticket=ticket):
                found[ticket.id, ticket.opened] = ticket
            case _:
                continue
    return sorted(found.values(), key=lambda t: (t.opened, t.id), reverse=True)


def repair(node: Node | None, ticket: Ticket, closing: Sequence[e.Record]) -> WorkRow:
    """A ticket as a row of the repair history; `closing` are the records about the ticket itself.

    One that was closed and came again has a row for each time.
    """
    row = _by_ticket(node, ticket, "current")
    for record in sorted(closing, key=lambda r: r.seq):
        if isinstance(record.event, e.TicketClosed) and record.at >= ticket.opened:
            over = record.event.resolution
            return replace(row, state="closed", updated=record.at, closed=record.at, resolution=over)
    return row
