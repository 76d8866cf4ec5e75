"""Tickets as a ticket system is told of them: one message for each change of each ticket, never collected or held back.

The label is the same in every message about a ticket, and by it the ticket is found again outside, whoever made it
there and however often it was sent.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from zlib import crc32

from hostler.core.notify.message_grouping import Moment, wanted
from hostler.core.notify.messages import Message
from hostler.core.notify.notices import TEXT_MAX, Notice, Place
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_NOW, Ticket
from hostler.core.state.model import Severity
from hostler.core.state.notify_routes import NETBOX, TICKET_KINDS, TOLD_EACH, Route

LABEL_MAX = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def label_of(cell: str, ticket: str) -> str:
    """The label of a ticket outside: letters, digits, "_", "." and "-", LABEL_MAX at most, and no other ticket's."""
    checksum = crc32(f"{cell}/{ticket}".encode())
    return f"hostler-{checksum:08x}-{_UNSAFE.sub('-', ticket)}"[:LABEL_MAX]


def told_outside(event: e.Event, place: Place, routes: Iterable[Route], cell: str, moment: Moment) -> Iterator[Message]:
    """Messages about the event for routes that are told of each ticket; NetBox of those of a node alone.

    Who was not told of its opening has nothing to close.
    """
    match event:
        case e.TicketOpened(ticket=ticket):
            action, summary, details = "open", ticket.summary, _details(ticket, place)
        case e.TicketUpdated(ticket=ticket):
            action, summary, details = "more", _changed(ticket), _details(ticket, place)
        case e.TicketClosed(ticket=name):
            ticket = Ticket(name, "", "", "", moment.at)
            action, summary, details = "over", event.resolution, {"ticket": name, "person": event.person}
        case e.EvidenceKept(node=node, bundle=bundle) if bundle.digest:
            for name in bundle.tickets:
                yield from _files(Ticket(name, node, "", "", bundle.at), event, routes, cell, moment)
            return
        case _:
            return
    severity = Severity.critical if ticket.due == DUE_NOW else Severity.warning
    notice = Notice("ticket", action, f"ticket/{ticket.id}", severity=severity, node=ticket.node, place=place)
    for route in routes:
        somewhere = route.kind != NETBOX or action == "over" or ticket.node
        if route.kind in TOLD_EACH and somewhere and (action == "over" or wanted(route, notice)):
            yield Message(
                id=f"{cell}/ticket/{ticket.id}/{moment.seq}",
                route=route.name,
                key=f"{cell}/ticket/{ticket.id}",
                action=action,
                topic="ticket",
                severity=severity,
                page=False,
                summary=summary[:TEXT_MAX],
                seq=moment.seq,
                since=ticket.opened,
                at=moment.at,
                nodes=(ticket.node,) if ticket.node else (),
                pool=place.pool,
                tenant=place.tenant,
                site=place.site,
                rack=place.rack,
                details=details,
            )


def _files(
    ticket: Ticket, event: e.EvidenceKept, routes: Iterable[Route], cell: str, moment: Moment
) -> Iterator[Message]:
    """A message about a bundle for each ticket system; one that has no such ticket has nothing to attach it to."""
    bundle = event.bundle
    for route in routes:
        if route.kind in TICKET_KINDS:
            yield Message(
                id=f"{cell}/ticket/{ticket.id}/{moment.seq}",
                route=route.name,
                key=f"{cell}/ticket/{ticket.id}",
                action="file",
                topic="ticket",
                severity=Severity.info,
                page=False,
                summary=f"evidence of {ticket.node}, kept {bundle.at:%Y-%m-%d %H:%M} UTC",
                seq=moment.seq,
                since=bundle.at,
                at=moment.at,
                nodes=(ticket.node,),
                details={"ticket": ticket.id, "node": ticket.node, "bundle": bundle.digest, "bytes": str(bundle.size)},
            )


def _changed(ticket: Ticket) -> str:
    if ticket.done_by:
        return f"{ticket.done_by} says that it is done. It stays open here until that is seen."
    return ticket.summary


def _details(ticket: Ticket, place: Place) -> dict[str, str]:
    due: datetime | None = ticket.due_by
    found = {
        "ticket": ticket.id,
        "kind": ticket.kind,
        "node": ticket.node,
        "site": place.site,
        "rack": place.rack,
        "hardware": ticket.hardware,
        "component": ticket.component,
        "fault": ticket.fault,
        "action": ticket.action,
        "owner": ticket.owner,
        "due": f"{due:%Y-%m-%d %H:%M} UTC" if due is not None else "",
        "done_by": ticket.done_by,
        "serial": place.serial if ticket.node else "",
    }
    return {name: value[:TEXT_MAX] for name, value in found.items() if value}
