"""A validation in the words of the journal: what the controller is told, with each finding's text for the rack."""

from collections import defaultdict
from datetime import datetime
from hashlib import blake2s

import msgspec
from msgspec.structs import replace

from hostler.core.fabric.design import Design, DeviceKind
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import FabricFinding
from hostler.core.fabric.instructions import headline, steps
from hostler.core.fabric.recabling import Against
from hostler.core.fabric.validation import Compared, Validation, compare
from hostler.core.state.fabrics import (
    DesignedLink,
    Fabric,
    FabricFindingSeen,
    FabricLinks,
    FabricLook,
    FabricReport,
    FabricVerdict,
    PlannedWork,
)

MOST_FINDINGS = 5_000
"""More places that differ are not repaired one by one: design and network are not of the same place."""


def report(
    fabric: Fabric, design: Design, discovery: Discovery, began: datetime, planned: Against | None = None
) -> FabricReport:
    """The validation of a network by what a discovery found that began then.

    `design` is the fabric's, parsed; `planned` is what a re-cabling makes of it, which is then compared in its place.
    """
    against = planned or Against(design)
    design = against.design
    seen = compare(design, discovery)
    told = tuple(_as_planned(against, as_told(design, one), one) for one in seen.validation.findings)
    if len(told) > MOST_FINDINGS:
        why = f"{len(told):,} places differ from the design: it is of another network, or of another time"
        few = Validation(FabricVerdict.partial, seen.validation.designed, seen.validation.found, why=why)
        seen, told = Compared(few), ()
    look = replace(_look(fabric, seen.validation, told, began), work=against.work)
    look = replace(look, digest=_with_work(look)) if look.work is not None else look
    return FabricReport(fabric.name, look, told, _by_device(seen.links))


def _with_work(look: FabricLook) -> str:
    """The digest with how far a re-cabling has come: a step on is news."""
    told = msgspec.json.encode((look.digest, look.work))
    return blake2s(told, digest_size=16).hexdigest()


def _as_planned(against: Against, told: FabricFindingSeen, finding: FabricFinding) -> FabricFindingSeen:
    """The finding with the planned work that it belongs to, in its headline too."""
    planned, work = against.planned(finding), against.work
    if planned is PlannedWork.none or work is None:
        return told
    match planned:
        case PlannedWork.early:
            said = f"re-cabled early: the new design holds from {work.ends:%Y-%m-%d %H:%M} UTC"
        case PlannedWork.late:
            said = f"late: it was to be re-cabled by {work.ends:%Y-%m-%d %H:%M} UTC"
        case _:
            said = f"being re-cabled until {work.ends:%Y-%m-%d %H:%M} UTC"
    return replace(told, planned=planned, headline=f"{told.headline}; {said}")


def _look(fabric: Fabric, seen: Validation, findings: tuple[FabricFindingSeen, ...], began: datetime) -> FabricLook:
    told = msgspec.json.encode((fabric.digest, seen.verdict, seen.why, findings))
    return FabricLook(
        began=began,
        design=fabric.digest,
        verdict=seen.verdict,
        designed=seen.designed,
        found=seen.found,
        findings=len(findings),
        digest=blake2s(told, digest_size=16).hexdigest(),
        why=seen.why,
    )


def _by_device(links: tuple[DesignedLink, ...]) -> FabricLinks:
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, link in enumerate(links):
        for device in {link.a.rpartition(":")[0], link.z.rpartition(":")[0]}:
            places[device].append(number)
    return FabricLinks(links, {device: tuple(numbers) for device, numbers in places.items()})


def as_told(design: Design, finding: FabricFinding) -> FabricFindingSeen:
    """The finding by names alone: nothing of the design is needed to read it."""
    names = sorted({*finding.devices, *(port.device for port in finding.ports)})
    return FabricFindingSeen(
        key=finding.key,
        kind=finding.kind.value,
        grade=finding.grade.value,
        ports=tuple(str(port) for port in finding.ports),
        devices=tuple(names),
        switches=tuple(name for name in names if _is_switch(design, name)),
        headline=headline(design, finding),
        places=_places(design, finding, names),
        steps=steps(design, finding),
    )


def _places(design: Design, finding: FabricFinding, names: list[str]) -> tuple[tuple[str, str, str], ...]:
    """Places of its devices; those whose plugs are moved come first."""
    moved = dict.fromkeys(port.device for move in finding.repair.moves for port in (move.source, move.target))
    known = (design.devices[name] for name in dict.fromkeys((*moved, *names)) if name in design.devices)
    return tuple((device.rack, device.unit, device.name) for device in known)


def _is_switch(design: Design, name: str) -> bool:
    device = design.devices.get(name)
    return device is not None and device.kind is DeviceKind.switch
