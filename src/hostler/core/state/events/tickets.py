"""Events of tickets and incidents."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.cases import ROUNDS, Incident, Ticket, WalkStop
from hostler.core.state.cell_record import Closure
from hostler.core.state.events.row import EventRow, EventRows, FoldError
from hostler.core.state.fleet import Fleet
from hostler.core.state.scopes import Scope

CLOSURES_KEPT = 256


class TicketOpened(Struct, frozen=True, tag="ticket_opened"):
    """Work for a person."""

    ticket: Ticket


class TicketUpdated(Struct, frozen=True, tag="ticket_updated"):
    """The whole ticket as it now stands."""

    ticket: Ticket


class TicketFileAdded(Struct, frozen=True, tag="ticket_file_added"):
    """A person has attached a photo or file to the ticket, which is about this node or asset."""

    ticket: str
    node: str
    file: AttachedFile


class TicketClaimed(Struct, frozen=True, tag="ticket_claimed"):
    """A person works on the ticket until then. `before`: who had it, and whose shift is over; "" for nobody."""

    ticket: str
    node: str
    person: str
    until: datetime
    reason: str
    before: str = ""


class TicketHandedOver(Struct, frozen=True, tag="ticket_handed_over"):
    """`person` has given the ticket of `before` to somebody until then, or back to the queue (`to` is "")."""

    ticket: str
    node: str
    person: str
    before: str
    to: str
    until: datetime | None
    reason: str


class WalkStopChanged(Struct, frozen=True, tag="walk_stop_changed"):
    """The whole stop of a walk's ticket as it now stands, by its number from 1: ticked, found again, or proved."""

    ticket: str
    number: int
    stop: WalkStop


class TicketClosed(Struct, frozen=True, tag="ticket_closed"):
    """The work is done, or no longer needed."""

    ticket: str
    resolution: str
    person: str


class IncidentOpened(Struct, frozen=True, tag="incident_opened"):
    """Many nodes show what one shared part can have caused: from here on it is held responsible."""

    incident: Incident


class IncidentUpdated(Struct, frozen=True, tag="incident_updated"):
    """Members that joined (since when) and left; `state` and `calm_since` as they are now. `by`: person or hostler."""

    incident: str
    scope: Scope
    state: str
    joined: dict[str, datetime] = {}
    left: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    calm_since: datetime | None = None
    by: str = "hostler"
    reason: str = ""


class IncidentClosed(Struct, frozen=True, tag="incident_closed"):
    """End of an incident: over, disproved, or part of a wider one (`merged_into`). `nodes` were its members to the end.

    Unless merged, what those nodes of `scope` show already never again counts towards an incident of this `syndrome`.
    """

    incident: str
    scope: Scope
    syndrome: str
    nodes: tuple[str, ...]
    by: str
    reason: str
    merged_into: str = ""


def _of_ticket(event: TicketOpened | TicketUpdated) -> tuple[str, ...]:
    ticket = event.ticket
    return tuple(name for name in (ticket.node, ticket.hardware, ticket.id) if name)


def _put(fleet: Fleet, event: TicketOpened | TicketUpdated, _at: datetime) -> None:
    fleet.put_ticket(event.ticket.id, event.ticket)


def _add_file(fleet: Fleet, event: TicketFileAdded, at: datetime) -> None:
    if (ticket := fleet.tickets.get(event.ticket)) is not None:
        fleet.put_ticket(ticket.id, replace(ticket, files=(*ticket.files, event.file), updated=at))


def _ticket_and_node(event: TicketFileAdded | TicketClaimed | TicketHandedOver) -> tuple[str, ...]:
    return tuple(name for name in (event.ticket, event.node) if name)


def _claim(fleet: Fleet, event: TicketClaimed, at: datetime) -> None:
    _give(fleet, event.ticket, event.person, event.until, at)


def _hand_over(fleet: Fleet, event: TicketHandedOver, at: datetime) -> None:
    _give(fleet, event.ticket, event.to, event.until, at)


def _give(fleet: Fleet, name: str, person: str, until: datetime | None, at: datetime) -> None:
    ticket = fleet.tickets.get(name)
    if ticket is None:
        raise FoldError(f"no ticket {name}")
    since = at if person else None
    fleet.put_ticket(name, replace(ticket, claimed_by=person, claimed_at=since, claimed_until=until, updated=at))


def _change_stop(fleet: Fleet, event: WalkStopChanged, at: datetime) -> None:
    ticket = fleet.tickets.get(event.ticket)
    if ticket is not None and 0 < event.number <= len(ticket.walk):
        place = event.number - 1
        walk = (*ticket.walk[:place], event.stop, *ticket.walk[place + 1 :])
        fleet.put_ticket(ticket.id, replace(ticket, walk=walk, updated=at))


def _close_ticket(fleet: Fleet, event: TicketClosed, _at: datetime) -> None:
    """Closing a ticket about something that failed again and again lets it be tried anew."""
    ticket = fleet.tickets.get(event.ticket)
    fleet.put_ticket(event.ticket, None)
    node = fleet.nodes.get(ticket.node) if ticket is not None and ticket.kind == "stuck" else None
    if ticket is not None and node is not None:
        attempts = tuple(replace(a, forgiven=True) if a.remedy == ticket.action else a for a in node.attempts)
        node = replace(node, attempts=attempts)
        if ticket.action == ROUNDS:
            node = replace(node, rounds=0, visits=tuple(replace(visit, forgiven=True) for visit in node.visits))
        fleet.put_node(node.id, node)


def _update_incident(fleet: Fleet, event: IncidentUpdated, _at: datetime) -> None:
    incident = fleet.incidents.get(event.incident)
    if incident is None:
        raise FoldError(f"no incident {event.incident}")
    members = {**incident.members, **event.joined}
    for node_id in event.left:
        members.pop(node_id, None)
    conditions = tuple(sorted({*incident.conditions, *event.conditions}))
    changed = replace(incident, members=members, conditions=conditions, state=event.state, calm_since=event.calm_since)
    fleet.put_incident(incident.id, changed)


def _close_incident(fleet: Fleet, event: IncidentClosed, at: datetime) -> None:
    fleet.put_incident(event.incident, None)
    if not event.merged_into:
        day = at - timedelta(days=1)
        kept = tuple(c for c in fleet.cell.closures if c.at > day)
        closures = (*kept, Closure(event.scope, event.syndrome, at))[-CLOSURES_KEPT:]
        fleet.singles.put("cell", replace(fleet.cell, closures=closures))


ROWS: EventRows = (
    EventRow(TicketOpened, _of_ticket, _put),
    EventRow(TicketUpdated, _of_ticket, _put),
    EventRow(TicketFileAdded, _ticket_and_node, _add_file),
    EventRow(TicketClaimed, _ticket_and_node, _claim),
    EventRow(TicketHandedOver, _ticket_and_node, _hand_over),
    EventRow(WalkStopChanged, lambda e: (e.ticket, f"fabric:{e.stop.finding.partition('/')[0]}"), _change_stop),
    EventRow(TicketClosed, lambda e: (e.ticket,), _close_ticket),
    EventRow(
        IncidentOpened,
        lambda e: (e.incident.id, e.incident.scope.text, *e.incident.members),
        lambda fleet, e, _at: fleet.put_incident(e.incident.id, e.incident),
    ),
    EventRow(IncidentUpdated, lambda e: (e.incident, e.scope.text, *e.joined, *e.left), _update_incident),
    EventRow(IncidentClosed, lambda e: (e.incident, e.scope.text, *e.nodes), _close_incident),
)
