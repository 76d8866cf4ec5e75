"""Work that a new design asks for: which plugs move, which cables come and go, and who is touched by it.

The old design takes the place of what is found, so the same fewest acts come of it as of a validation. A design that is
to be activated is shown so before anything follows from it.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from hostler.core.fabric.components import Component, Matching, components, repair
from hostler.core.fabric.design import Cable, Design, DeviceKind, ends

SHOWN_MOST = 10_000
"""So many changes are listed; the rest are counted."""

MOVES, COMES, GOES, RATE = "plug moves", "cable comes", "cable goes", "rate changes"
DEVICE_COMES, DEVICE_GOES = "device comes", "device goes"


class DesignChange(Struct, frozen=True):
    """One change. Of a plug that moves, its cable stays at `a`; it is at `before` now and belongs at `z`.

    Of a rate `before` and `rate` are those of both designs; a device is `a` alone.
    """

    change: str
    a: str
    z: str = ""
    before: str = ""
    rate: str = ""


class DesignChanges(Struct, frozen=True):
    """Changes from one design to another, counted by kind. `more`: how many are not listed.

    `hosts`, `switches` and `racks` are those at whose ports something changes.
    """

    changes: tuple[DesignChange, ...]
    counts: dict[str, int]
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    racks: tuple[str, ...]
    more: Annotated[int, Meta(ge=0)] = 0

    @property
    def summary(self) -> str:
        """The whole change in one line."""
        if not self.counts:
            return "both designs are the same"
        told = ", ".join(f"{kind}: {number:,}" for kind, number in self.counts.items())
        where = f"{len(self.hosts):,} hosts and {len(self.switches):,} switches in {len(self.racks):,} racks"
        return f"{told}; at {where}"


def changes(old: Design, new: Design) -> DesignChanges:
    """Changes that bring a network from design `old` to `new`."""
    found = list(_changes(old, new))
    touched = {p.device for c in _differing(old, new) for p in (c.a, c.z)} | (old.devices.keys() ^ new.devices.keys())
    devices = {name: new.devices.get(name) or old.devices[name] for name in sorted(touched)}
    counts: dict[str, int] = {}
    for one in found:
        counts[one.change] = counts.get(one.change, 0) + 1
    return DesignChanges(
        tuple(found[:SHOWN_MOST]),
        counts,
        tuple(name for name, device in devices.items() if device.kind is DeviceKind.host),
        tuple(name for name, device in devices.items() if device.kind is DeviceKind.switch),
        tuple(sorted({device.rack for device in devices.values() if device.rack})),
        max(0, len(found) - SHOWN_MOST),
    )


def ways_between(old: Design, new: Design) -> Iterator[Component]:
    """The parts in which two designs differ, independent of each other: `designed` are new cables, `found` old ones."""
    return components(matching(new), matching(old))


def matching(design: Design) -> Matching:
    """Each port's designed neighbour."""
    joined = {cable.a: cable.z for cable in design.cables}
    joined.update({cable.z: cable.a for cable in design.cables})
    return joined


def _changes(old: Design, new: Design) -> Iterator[DesignChange]:
    for name in sorted(old.devices.keys() - new.devices.keys()):
        yield DesignChange(DEVICE_GOES, name)
    for name in sorted(new.devices.keys() - old.devices.keys()):
        yield DesignChange(DEVICE_COMES, name)
    racks = {name: device.rack for name, device in {**old.devices, **new.devices}.items()}
    rates = {ends(c.a, c.z): str(c.rate) if c.rate else "" for c in new.cables}
    for way in ways_between(old, new):
        acts = repair(way, racks)
        for act in acts.moves:
            rate = rates.get(ends(act.stays, act.target), "")
            yield DesignChange(MOVES, str(act.stays), str(act.target), str(act.source), rate)
        for a, z in acts.lay:
            yield DesignChange(COMES, str(a), str(z), rate=rates.get(ends(a, z), ""))
        for a, z in acts.remove:
            yield DesignChange(GOES, str(a), str(z))
    before = {ends(c.a, c.z): str(c.rate) if c.rate else "" for c in old.cables}
    for pair in sorted(pair for pair in before.keys() & rates.keys() if before[pair] != rates[pair]):
        yield DesignChange(RATE, str(pair[0]), str(pair[1]), before[pair], rates[pair])


def _differing(old: Design, new: Design) -> Iterator[Cable]:
    before = {ends(c.a, c.z): c for c in old.cables}
    after = {ends(c.a, c.z): c for c in new.cables}
    for pair in before.keys() | after.keys():
        one, other = before.get(pair), after.get(pair)
        if one is None or other is None or one.rate != other.rate:
            yield other or before[pair]
