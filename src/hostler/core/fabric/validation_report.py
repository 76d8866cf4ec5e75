"""A validation in the words of the journal: what the controller is told, with each finding's text for the rack."""

from collections import defaultdict
from datetime import datetime
from hashlib import blake2s

import msgspec

from hostler.core.fabric.design import Design, DeviceKind
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import FabricFinding
from hostler.core.fabric.instructions import headline, steps
from hostler.core.fabric.validation import Compared, Validation, compare
from hostler.core.state.fabrics import (
    DesignedLink,
    Fabric,
    FabricFindingSeen,
    FabricLinks,
    FabricLook,
    FabricReport,
    FabricVerdict,
)

MOST_FINDINGS = 5_000
"""More places that differ are not repaired one by one: design and network are not of the same place."""


def report(fabric: Fabric, design: Design, discovery: Discovery, began: datetime) -> FabricReport:
    """The validation of a network by what a discovery found that began then. `design` is the fabric's, parsed."""
    seen = compare(design, discovery)
    told = tuple(as_told(design, finding) for finding in seen.validation.findings)
    if len(told) > MOST_FINDINGS:
        why = f"{len(told):,} places differ from the design: it is of another network, or of another time"
        few = Validation(FabricVerdict.partial, seen.validation.designed, seen.validation.found, why=why)
        seen, told = Compared(few), ()
    return FabricReport(fabric.name, _look(fabric, seen.validation, told, began), told, _by_device(seen.links))


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
        steps=steps(design, finding),
    )


def _is_switch(design: Design, name: str) -> bool:
    device = design.devices.get(name)
    return device is not None and device.kind is DeviceKind.switch
