"""The one ticket of an incident: what a technician reads, and the tickets of single nodes that it makes superfluous."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.cases import DUE_NOW, Incident, Ticket
from hostler.core.state.counting import first_names
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.scopes import Scope
from hostler.core.state.syndromes import SYNDROMES

NAMED = 8
"""Members named in a ticket; the incident lists them all."""

EVIDENCE_SHOWN = 3

_PARTS = {
    "rack": "rack",
    "power": "power feed",
    "leaf": "leaf switch",
    "switch": "switch",
    "cdu": "coolant distribution unit",
    "nvlink": "NVLink domain",
    "firmware": "firmware",
    "pool": "the management network of pool",
}


def part_name(part: Scope) -> str:
    """The shared part in words: "leaf switch l3"."""
    return f"{_PARTS.get(part.kind, part.kind)} {part.name}"


def opened(context: DecisionContext, incident: Incident) -> Iterator[e.Event]:
    """The ticket is opened."""
    yield e.TicketOpened(_ticket(context, incident))


def told_again(context: DecisionContext, incident: Incident) -> Iterator[e.Event]:
    """The ticket as the incident now stands; nothing where somebody has closed it."""
    known = context.fleet.tickets.get(incident.ticket)
    if known is not None:
        fresh = replace(_ticket(context, incident), opened=known.opened, updated=context.now)
        yield e.TicketUpdated(fresh)


def superfluous(context: DecisionContext, incident: Incident, ids: Iterable[str]) -> Iterator[e.Event]:
    """Tickets about single members are closed where the incident explains what they are about."""
    types = SYNDROMES[incident.syndrome].conditions
    for node_id in ids:
        for ticket in context.fleet.tickets_about(node_id):
            if ticket.kind == "stuck" and ticket.fault in types:
                yield e.TicketClosed(ticket.id, f"explained by incident {incident.id}", "hostler")


def _ticket(context: DecisionContext, incident: Incident) -> Ticket:
    part = incident.scope
    asset = context.fleet.assets.get(part.name)
    serial = next((b.value for b in asset.bindings if b.kind == "serial" and b.until is None), "") if asset else ""
    return Ticket(
        id=incident.ticket,
        node=part.text,
        kind="incident",
        summary=_summary(context, incident),
        opened=incident.opened,
        hardware=serial,
        component=part.kind,
        fault=", ".join(incident.conditions),
        action=SYNDROMES[incident.syndrome].investigate,
        owner=incident.owner if incident.state == "overdue" else "technician",
        due=DUE_NOW,
    )


def _summary(context: DecisionContext, incident: Incident) -> str:
    """The shared part, who shows what since when, in whose words."""
    members = sorted(incident.members)
    since = min(incident.members.values(), default=incident.opened)
    shows = SYNDROMES[incident.syndrome].shows
    also = f" (or {', '.join(part_name(scope) for scope in incident.also)})" if incident.also else ""
    said = "; ".join(_evidence(context, incident, members))
    return (
        f"{part_name(incident.scope)}{also}: {len(members)} of {incident.size} nodes {shows} "
        f"since {since:%Y-%m-%d %H:%M:%S} UTC: {first_names(members, NAMED)}. {said}"
    )


def _evidence(context: DecisionContext, incident: Incident, members: list[str]) -> Iterator[str]:
    for node_id in members[:EVIDENCE_SHOWN]:
        node = context.fleet.nodes.get(node_id)
        conditions = node.conditions if node is not None else ()
        shown = next((c for c in conditions if c.type in incident.conditions and c.evidence), None)
        if shown is not None:
            yield f"{node_id}: {shown.evidence[-1].text}"
