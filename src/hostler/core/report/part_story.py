"""The story of a part, by its serial number: the nodes that it has been in, and the returns to vendors that name it."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.model import Part
from hostler.core.state.rma_cases import CaseKind, CaseResult, CaseStep, RmaCase


class PartPlace(Struct, frozen=True):
    """One stay of a part. `node` is "" while it lay on a shelf or was with its vendor.

    `since` and `until` are None where no record says so: leaving a node alone always is. `here`: it is now there.
    """

    node: str
    slot: str
    since: datetime | None
    until: datetime | None
    here: bool = False


class RoleInCase(StrEnum):
    """Part that a serial number plays in a return: it is returned, it was fitted instead, or it is to be fitted."""

    returned = "returned"
    fitted = "fitted"
    announced = "announced"


class PartCase(Struct, frozen=True):
    """A return to a vendor that names a part. `result` None: it is open; `closed` since when it is not."""

    id: str
    part_is: RoleInCase
    node: str
    kind: CaseKind
    state: CaseStep
    result: CaseResult | None
    fault: str
    vendor: str
    vendor_case: str
    serial: str
    fitted: str
    opened: datetime
    closed: datetime | None


def places(serial: str, part: Part | None, records: Iterable[Record]) -> tuple[PartPlace, ...]:
    """Stays of the part, the latest first, from its records in any order; `part` None: it is forgotten or unknown."""
    stays: list[PartPlace] = []
    for record in sorted(records, key=lambda one: one.seq):
        move = record.event
        if not isinstance(move, e.PartMoved) or move.serial != serial:
            continue
        if not stays or stays[-1].node != move.before:
            stays.append(PartPlace(move.before, "", None, None))
        stays[-1] = replace(stays[-1], until=record.at)
        stays.append(PartPlace(move.after, move.slot, record.at, None))
    if part is not None:
        if not stays or stays[-1].node != part.node:
            stays.append(PartPlace(part.node, part.slot, part.since, None))
        stays[-1] = replace(stays[-1], slot=part.slot, here=True)
    return tuple(reversed(stays))


def cases(serial: str, standing: Iterable[RmaCase], records: Iterable[Record]) -> tuple[PartCase, ...]:
    """Returns that name the part, the latest first: those that stand, and of others what was recorded of them last."""
    found = {case.id: _case(serial, case) for case in standing}
    for record in sorted(records, key=lambda one: one.seq, reverse=True):
        event = record.event
        if isinstance(event, e.RmaCaseClosed):
            found.setdefault(event.case.id, _case(serial, event.case, event.result, record.at))
    named = (row for row in found.values() if row is not None)
    return tuple(sorted(named, key=lambda row: row.opened, reverse=True))


def _case(
    serial: str, case: RmaCase, result: CaseResult | None = None, closed: datetime | None = None
) -> PartCase | None:
    """The case as the part's story tells it, None where it does not name the part."""
    roles = {case.replacement: RoleInCase.announced, case.fitted: RoleInCase.fitted, case.serial: RoleInCase.returned}
    role = roles.get(serial)
    if role is None:
        return None
    return PartCase(
        id=case.id, part_is=role, node=case.node, kind=case.kind, state=case.state, result=result, fault=case.fault,
        vendor=case.vendor, vendor_case=case.vendor_case, serial=case.serial, fitted=case.fitted, opened=case.opened,
        closed=closed,
    )  # fmt: skip


def is_named(event: e.Event, serial: str) -> bool:
    """Tell whether the event is of a part, or of a return, of this serial number: other names are subjects too."""
    match event:
        case e.PartMoved():
            return event.serial == serial
        case e.RmaCaseOpened() | e.RmaCaseChanged() | e.RmaCaseClosed():
            return serial in (event.case.serial, event.case.fitted)
        case e.RecurrenceCounted():
            return event.part == serial
        case _:
            return False
