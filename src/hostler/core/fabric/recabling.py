"""A network between two designs: which parts of a planned re-cabling are done, begun or still to do.

Two designs differ in parts that have nothing to do with each other (`design_changes.ways_between`). Each part by itself
is compared with the design that it follows now; what a validation finds at its ports says how the work stands.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.binding import bind
from hostler.core.fabric.components import Component, Matching
from hostler.core.fabric.design import Design, Port, ends
from hostler.core.fabric.design_changes import ways_between
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import FabricFinding
from hostler.core.fabric.rates import Rate
from hostler.core.state.fabrics import PlannedWork, Recabling, RecablingStage, WorkDone


class RecablingPart(Struct, frozen=True):
    """A part of the re-cabling as it was found. `new` and `old`: whether any cable of that design lies there."""

    way: Component
    new: bool
    old: bool
    done: bool
    untouched: bool


class Against(Struct, frozen=True):
    """The design that a network is compared with now, and what that makes of findings at ports of the re-cabling.

    `whole`: devices all of whose cables belong to parts of one kind of planned work.
    """

    design: Design
    at: Mapping[Port, PlannedWork] = {}
    work: WorkDone | None = None
    whole: Mapping[str, PlannedWork] = {}

    def planned(self, finding: FabricFinding) -> PlannedWork:
        """The planned work that a finding belongs to, by all of its ports, or its devices where it names no port."""
        told = {self.at.get(port, PlannedWork.none) for port in finding.ports}
        told = told or {self.whole.get(device, PlannedWork.none) for device in finding.devices}
        return told.pop() if len(told) == 1 else PlannedWork.none


def against(recabling: Recabling, old: Design, new: Design, discovery: Discovery, now: datetime) -> Against:
    """The design that the network is compared with at that moment, by what was found."""
    both = Design({**old.devices, **new.devices}, (), {**old.models, **new.models})
    found = bind(both, discovery).links
    parts = [_part(way, found) for way in ways_between(old, new)]
    stage = recabling.stage(now)
    work = WorkDone(
        stage,
        recabling.starts,
        recabling.ends,
        sum(part.done for part in parts),
        sum(part.new and not part.done for part in parts),
        len(parts),
    )
    match stage:
        case RecablingStage.planned:
            early = {port: PlannedWork.early for part in parts if part.new for port in part.way.ports}
            return Against(old, early, work, _whole(old, early))
        case RecablingStage.over:
            late = {port: PlannedWork.late for part in parts if part.old for port in part.way.ports}
            return Against(new, late, work, _whole(new, late))
        case RecablingStage.under_way:
            begun = (part for part in parts if not part.done and not part.untouched)
            expected = {port: PlannedWork.under_way for part in begun for port in part.way.ports}
            between = _between(old, new, parts)
            return Against(between, expected, work, _whole(between, expected))


def _whole(design: Design, at: Mapping[Port, PlannedWork]) -> dict[str, PlannedWork]:
    """Devices that are moved whole: all their designed cables are of one kind of planned work."""
    told: dict[str, set[PlannedWork]] = {}
    for port in (port for cable in design.cables for port in (cable.a, cable.z)):
        told.setdefault(port.device, set()).add(at.get(port, PlannedWork.none))
    return {device: works.pop() for device, works in told.items() if len(works) == 1}


def _part(way: Component, found: Matching) -> RecablingPart:
    new = [found.get(a) == z for a, z in way.designed]
    old = [found.get(a) == z for a, z in way.found]
    return RecablingPart(
        way,
        new=any(new),
        old=any(old),
        done=all(new) and not any(old),
        untouched=all(old) and not any(new),
    )


def _between(old: Design, new: Design, parts: list[RecablingPart]) -> Design:
    """Common cables, the old ones of parts that nobody has touched, and the new ones of all others.

    A cable that stays and gets another rate is held to the lesser of both.
    """
    before = {ends(c.a, c.z): c for c in old.cables}
    after = {ends(c.a, c.z): c for c in new.cables}
    gone = {ends(a, z) for part in parts if not part.untouched for a, z in part.way.found}
    later = {ends(a, z) for part in parts if part.untouched for a, z in part.way.designed}
    kept = [
        replace(cable, rate=_lesser(cable.rate, after[pair].rate)) if pair in after else cable
        for pair, cable in before.items()
        if pair not in gone
    ]
    fresh = [cable for pair, cable in after.items() if pair not in before and pair not in later]
    cables = tuple(sorted((*kept, *fresh), key=lambda cable: (cable.a, cable.z)))
    names = {port.device for cable in cables for port in (cable.a, cable.z)}
    devices = {name: new.devices.get(name) or old.devices[name] for name in sorted(names)}
    return Design(devices, cables, {**old.models, **new.models})


def _lesser(one: Rate | None, other: Rate | None) -> Rate | None:
    if one is None or other is None:
        return None
    slower = min(one, other, key=lambda rate: rate.lane_gbps)
    return Rate(min(one.width, other.width), slower.speed)
