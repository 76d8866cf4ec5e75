"""A walk: one ticket for all open findings of a rack or row, in the order in which a technician comes to them.

A finding that has a ticket keeps it and is linked; one that has none is asked for by the walk, as long as that is open.
A technician ticks stop by stop, and a validation proves each tick or takes it back. A walk ends when none of its
findings is open, or by a person's word; then a validation shows what stays.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec.structs import replace

from hostler.core.fabric.natural_order import natural
from hostler.core.state import events as e
from hostler.core.state.cases import DUE_DAY, Ticket, WalkStop
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fabrics import Fabric, FabricCase
from hostler.core.state.fleet import Fleet

WALK = "cabling_walk"
"""The kind of a walk's ticket."""

STOPS_MOST = 200
"""More findings than that are no walk: the design is wrong, or of another hall."""


def stops(fleet: Fleet, fabric: str, wanted: Callable[[str], bool]) -> tuple[WalkStop, ...]:
    """Open findings of a network that have a device in a wanted rack: by rack, then from the lowest unit up."""
    found = []
    for case in fleet.cases_of(fabric):
        here = [place for place in case.finding.places if wanted(place[0])]
        if here:
            rack, unit, device = here[0]
            found.append(((natural(rack), natural(unit), natural(device), case.id), _stop(case, rack, unit)))
    return tuple(stop for _, stop in sorted(found, key=lambda one: one[0]))


def _stop(case: FabricCase, rack: str, unit: str) -> WalkStop:
    finding = case.finding
    return WalkStop(case.id, rack, unit, finding.headline, finding.steps, case.ticket)


def opened(context: DecisionContext, fabric: Fabric, where: str, found: tuple[WalkStop, ...]) -> Iterator[e.Event]:
    """The walk's ticket; findings that had none say that it asks for them."""
    ticket = _ticket(context, fabric, where, found)
    yield e.TicketOpened(ticket)
    for stop in found:
        case = context.fleet.fabric_cases.get(stop.finding)
        if case is not None and not case.ticket:
            yield e.FabricFindingChanged(replace(case, waits=_waits(ticket)))


def _ticket(context: DecisionContext, fabric: Fabric, where: str, found: tuple[WalkStop, ...]) -> Ticket:
    linked = sum(bool(stop.ticket) for stop in found)
    have = f"; {linked} of them have tickets of their own" if linked else ""
    return Ticket(
        id=f"{fabric.name}-w{context.fleet.cell.seq}",
        node=e.fabric_subject(fabric.name),
        kind=WALK,
        summary=f"{where} of network {fabric.name}: {len(found)} findings on one walk{have}.",
        opened=context.now,
        component=where,
        action="Go from stop to stop and tick each. A validation proves it; the ticket closes once all are proved.",
        owner="technician",
        due=DUE_DAY,
        walk=found,
    )


def asked_by_walk(fleet: Fleet, case: FabricCase) -> str:
    """Why a finding has no ticket of its own: an open walk asks for it. "" where none does."""
    walk = next((one for one in _walks(fleet, case.fabric) if any(s.finding == case.id for s in one.walk)), None)
    return _waits(walk) if walk is not None else ""


def _waits(walk: Ticket) -> str:
    return f"ticket {walk.id} asks for it on a walk of {walk.component}"


def walk_at(fleet: Fleet, fabric: str, where: str) -> Ticket | None:
    """The open walk of this place."""
    return next((one for one in _walks(fleet, fabric) if one.component == where), None)


def ticked(context: DecisionContext, walk: Ticket, number: int, person: str, reason: str) -> Iterator[e.Event]:
    """A person says that a stop is done: its finding's own ticket is closed, and the network is validated."""
    stop = walk.walk[number - 1]
    told = f"stop {number} of ticket {walk.id} was ticked: {reason}"[:500]
    yield e.WalkStopChanged(walk.id, number, replace(stop, done_by=person, done_at=context.now, found_again=None))
    case = context.fleet.fabric_cases.get(stop.finding)
    if case is not None:
        if case.ticket:
            yield e.TicketClosed(case.ticket, told, person)
        yield e.FabricFindingChanged(replace(case, ticket="", waits=_waits(walk), done_by=person))
    yield e.FabricValidationAsked(walk.node.partition(":")[2], person, told)


def judged(context: DecisionContext, fabric: str, began: datetime) -> Iterator[e.Event]:
    """Stops after a whole validation that began then: proved where none finds them, no longer ticked where it does."""
    if not context.may_write("walk_stop_changed"):
        return
    for walk in _walks(context.fleet, fabric):
        for number, stop in enumerate(walk.walk, start=1):
            case = context.fleet.fabric_cases.get(stop.finding)
            if case is None and stop.proved is None:
                yield e.WalkStopChanged(walk.id, number, replace(stop, proved=context.now))
            elif case is not None and not case.clean and stop.done_at is not None and stop.done_at <= began:
                yield e.WalkStopChanged(
                    walk.id, number, replace(stop, done_by="", done_at=None, found_again=context.now)
                )


def moved(context: DecisionContext, case: FabricCase, heir: FabricCase) -> Iterator[e.Event]:
    """Stops of a finding that goes on as another's: they are proved when that one is over."""
    if not context.may_write("walk_stop_changed"):
        return
    for walk in _walks(context.fleet, case.fabric):
        for number, stop in enumerate(walk.walk, start=1):
            if stop.finding == case.id:
                yield e.WalkStopChanged(walk.id, number, replace(stop, finding=heir.id))


def ended(fleet: Fleet, fabric: str) -> Iterator[e.Event]:
    """Walks none of whose findings is open any more."""
    for walk in _walks(fleet, fabric):
        if not any(stop.finding in fleet.fabric_cases for stop in walk.walk):
            yield e.TicketClosed(walk.id, "validations find none of its findings any more", "hostler")


def said_done(fleet: Fleet, walk: Ticket, person: str, reason: str) -> Iterator[e.Event]:
    """A person says that the walk is done: the network is validated, and shows what stays."""
    fabric = walk.node.partition(":")[2]
    yield e.TicketClosed(walk.id, reason, person)
    for stop in walk.walk:
        case = fleet.fabric_cases.get(stop.finding)
        if case is not None and not case.ticket:
            waits = f"{person} says that it is repaired; the next validation shows whether it is"
            yield e.FabricFindingChanged(replace(case, waits=waits, done_by=person))
    yield e.FabricValidationAsked(fabric, person, f"ticket {walk.id} was closed: {reason}"[:500])


def removed(fleet: Fleet, fabric: str, why: str, person: str) -> Iterator[e.Event]:
    """All walks of a network that is removed are over."""
    return (e.TicketClosed(walk.id, why, person) for walk in _walks(fleet, fabric))


def _walks(fleet: Fleet, fabric: str) -> list[Ticket]:
    subject = e.fabric_subject(fabric)
    return [ticket for ticket in fleet.tickets_about(subject) if ticket.kind == WALK]
