"""Events of networks: designs, validations, and the findings that stand open."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows
from hostler.core.state.fabrics import VERSIONS_KEPT, Fabric, FabricCase, FabricLook, Recabling
from hostler.core.state.fleet import Fleet
from hostler.core.state.subnets import SubnetFacts, SubnetManager


class FabricRegistered(Struct, frozen=True, tag="fabric_registered"):
    """A network became known with its design, or has a new one; findings that stand open go on."""

    fabric: Fabric
    person: str


class RecablingPlanned(Struct, frozen=True, tag="recabling_planned"):
    """The network is to be cabled by a new design within a window of time."""

    fabric: str
    recabling: Recabling


class RecablingMoved(Struct, frozen=True, tag="recabling_moved"):
    """The window of a planned re-cabling is another."""

    fabric: str
    starts: datetime
    ends: datetime
    person: str
    reason: str


class DesignTakenOver(Struct, frozen=True, tag="design_taken_over"):
    """The window of a re-cabling is over: the new design holds from now on."""

    fabric: str
    design: str


class RecablingEnded(Struct, frozen=True, tag="recabling_ended"):
    """A re-cabling is followed no more: everything lies as its design has it, or it was called off by a person."""

    fabric: str
    person: str
    reason: str


class FabricRemoved(Struct, frozen=True, tag="fabric_removed"):
    """The network is no longer validated; its findings are over."""

    fabric: str
    person: str
    reason: str


class FabricValidationAsked(Struct, frozen=True, tag="fabric_validation_asked"):
    """A validation is asked for at once: by a person, or because somebody says that a repair is done."""

    fabric: str
    person: str
    reason: str


class FabricValidated(Struct, frozen=True, tag="fabric_validated"):
    """The network was compared with its design, and the result is another than the last that was recorded."""

    fabric: str
    look: FabricLook


class FabricFindingOpened(Struct, frozen=True, tag="fabric_finding_opened"):
    """A place where the network differs from its design."""

    case: FabricCase


class FabricFindingChanged(Struct, frozen=True, tag="fabric_finding_changed"):
    """The whole case as it now stands: partly repaired, not seen once, said to be done, ticketed."""

    case: FabricCase


class FabricFindingClosed(Struct, frozen=True, tag="fabric_finding_closed"):
    """The finding is over: repaired, as validations show, or its network is removed."""

    case: FabricCase
    reason: str


class SubnetChanged(Struct, frozen=True, tag="subnet_changed"):
    """A subnet has other managers, partitions or routing than were told before; `before`: who was master."""

    fabric: str
    facts: SubnetFacts
    before: SubnetManager | None = None


FabricEvent = (
    FabricRegistered
    | FabricRemoved
    | FabricValidationAsked
    | FabricValidated
    | FabricFindingOpened
    | FabricFindingChanged
    | FabricFindingClosed
    | SubnetChanged
)

RecablingEvent = RecablingPlanned | RecablingMoved | DesignTakenOver | RecablingEnded


def fabric_subject(name: str) -> str:
    """The subject under which a network's history is found."""
    return f"fabric:{name}"


def _of_network(
    event: FabricRemoved | FabricValidationAsked | FabricValidated | SubnetChanged | RecablingEvent,
) -> tuple[str, ...]:
    return (fabric_subject(event.fabric),)


def _of_case(event: FabricFindingOpened | FabricFindingChanged | FabricFindingClosed) -> tuple[str, ...]:
    case = event.case
    return (fabric_subject(case.fabric), *((case.ticket,) if case.ticket else ()))


def _register(fleet: Fleet, event: FabricRegistered, _at: datetime) -> None:
    """Take the network over; the design's text is found by this record from now on."""
    fabric, versions = event.fabric, event.fabric.versions
    if versions and not versions[-1].seq:
        versions = (*versions[:-1], replace(versions[-1], seq=fleet.cell.seq))
    fleet.fabrics.put(fabric.name, replace(fabric, versions=versions))


def _remove(fleet: Fleet, event: FabricRemoved, _at: datetime) -> None:
    fleet.fabrics.put(event.fabric, None)
    fleet.manual_tests.put(event.fabric, None)
    for case in fleet.cases_of(event.fabric):
        fleet.fabric_cases.put(case.id, None)


def _ask(fleet: Fleet, event: FabricValidationAsked, at: datetime) -> None:
    if (known := fleet.fabrics.get(event.fabric)) is not None:
        fleet.fabrics.put(known.name, replace(known, asked=at, asked_why=event.reason))


def _validate(fleet: Fleet, event: FabricValidated, _at: datetime) -> None:
    """Take the result over. A whole validation that began after it was asked for is the answer."""
    fabric, look = fleet.fabrics.get(event.fabric), event.look
    if fabric is None:
        return
    answers = fabric.asked is not None and look.began >= fabric.asked and look.verdict.concludes
    asked = None if answers else fabric.asked
    why = fabric.asked_why if asked else ""
    fleet.fabrics.put(fabric.name, replace(fabric, look=look, asked=asked, asked_why=why))


def _plan(fleet: Fleet, event: RecablingPlanned, _at: datetime) -> None:
    """Note the planned design; its text is found by this record from now on."""
    if (known := fleet.fabrics.get(event.fabric)) is None:
        return
    version = replace(event.recabling.version, seq=fleet.cell.seq)
    fleet.fabrics.put(known.name, replace(known, recabling=replace(event.recabling, version=version)))


def _move(fleet: Fleet, event: RecablingMoved, _at: datetime) -> None:
    known = fleet.fabrics.get(event.fabric)
    if known is not None and known.recabling is not None:
        moved = replace(known.recabling, starts=event.starts, ends=event.ends)
        fleet.fabrics.put(known.name, replace(known, recabling=moved))


def _take_over(fleet: Fleet, event: DesignTakenOver, _at: datetime) -> None:
    """Let the new design hold, and keep the old one's text, by which late work is told."""
    known = fleet.fabrics.get(event.fabric)
    if known is None or (work := known.recabling) is None or work.version.digest != event.design:
        return
    fresh = replace(
        known,
        design=work.design,
        digest=work.version.digest,
        hosts=work.hosts,
        switches=work.switches,
        cables=work.cables,
        models=work.models,
        versions=(*known.versions, work.version)[-VERSIONS_KEPT:],
        recabling=replace(work, design="", before=known.design),
    )
    fleet.fabrics.put(known.name, fresh)


def _end_work(fleet: Fleet, event: RecablingEnded, _at: datetime) -> None:
    if (known := fleet.fabrics.get(event.fabric)) is not None:
        fleet.fabrics.put(known.name, replace(known, recabling=None))


def _change_subnet(fleet: Fleet, event: SubnetChanged, _at: datetime) -> None:
    if (known := fleet.fabrics.get(event.fabric)) is not None:
        fleet.fabrics.put(known.name, replace(known, subnet=event.facts))


ROWS: EventRows = (
    EventRow(
        FabricRegistered,
        lambda e: (fabric_subject(e.fabric.name),),
        _register,
    ),
    EventRow(FabricRemoved, _of_network, _remove),
    EventRow(FabricValidationAsked, _of_network, _ask),
    EventRow(FabricValidated, _of_network, _validate),
    EventRow(SubnetChanged, _of_network, _change_subnet),
    EventRow(RecablingPlanned, _of_network, _plan),
    EventRow(RecablingMoved, _of_network, _move),
    EventRow(DesignTakenOver, _of_network, _take_over),
    EventRow(RecablingEnded, _of_network, _end_work),
    EventRow(FabricFindingOpened, _of_case, lambda fleet, e, _at: fleet.fabric_cases.put(e.case.id, e.case)),
    EventRow(FabricFindingChanged, _of_case, lambda fleet, e, _at: fleet.fabric_cases.put(e.case.id, e.case)),
    EventRow(FabricFindingClosed, _of_case, lambda fleet, e, _at: fleet.fabric_cases.put(e.case.id, None)),
)
