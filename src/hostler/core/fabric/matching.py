"""The fewest findings that explain how a fabric differs from its design.

In this order, as each step takes away what would look like many faults to the next: devices that stand in each other's
place, devices that are dark, a wrong map of adapters, and then each independent repair of cables by itself.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from hostler.core.fabric.binding import Bound
from hostler.core.fabric.components import Component, components, repair
from hostler.core.fabric.design import Design, DeviceKind, Port, ends
from hostler.core.fabric.findings import FabricFinding, Grade, Kind
from hostler.core.fabric.rates import Rate, shortfall
from hostler.core.fabric.votes import in_place, standing_for

LEAST_HOSTS = 3
"""Fewer hosts with the same adapters exchanged are a mistake at each; as many are one map that is wrong."""

MAP_SHARE = 0.5
"""Of the hosts of a model that were seen, so many show the same exchange where it is the map that is wrong."""

Permutation = tuple[tuple[str, str], ...]
"""Places of each adapter's plug, where it is and where it belongs, by port, in order."""


def match(design: Design, bound: Bound) -> tuple[FabricFinding, ...]:
    """All findings, by key. None of them has a port in common with another but by a device's place."""
    designed = _designed(design)
    places = standing_for(designed, bound.links, frozenset(design.devices.keys() - bound.seen))
    here = in_place(places)
    found, rates = {here(a): here(z) for a, z in bound.links.items()}, {here(a): r for a, r in bound.rates.items()}
    findings = list(_in_wrong_places(design, places, bound))
    dark = _dark(designed, found)
    findings += [_dark_finding(design, device, designed) for device in dark]
    wanted = _without(designed, dark, found)
    ways = list(components(wanted, found))
    maps = _wrong_maps(design, ways)
    findings += [_map_finding(model, permutation, hosts) for model, permutation, hosts in maps]
    if maps:
        at = _by_map(design, {model: dict(permutation) for model, permutation, _ in maps})
        found, rates = {at(a): at(z) for a, z in found.items()}, {at(a): rate for a, rate in rates.items()}
        behind = standing_for(designed, found, frozenset(design.devices.keys() - bound.seen - {*places.values()}))
        findings += _in_wrong_places(design, behind, bound)  # by the wrong map too few of their links named another
        there = in_place(behind)
        found, rates = {there(a): there(z) for a, z in found.items()}, {there(a): r for a, r in rates.items()}
        ways = list(components(wanted, found))
    findings += [_cabling(design, bound, way, found) for way in ways]
    findings += _degraded(design, found, rates)
    return tuple(sorted(findings, key=lambda finding: finding.key))


def _designed(design: Design) -> dict[Port, Port]:
    designed = {cable.a: cable.z for cable in design.cables}
    designed.update({cable.z: cable.a for cable in design.cables})
    return designed


# --- devices


def _in_wrong_places(design: Design, places: Mapping[str, str], bound: Bound) -> Iterator[FabricFinding]:
    """Repairs, one for each ring of devices that have changed places, one for each stranger in a place that is free."""
    left = dict(places)
    while left:
        ring = _ring(min(left), left)
        for device in ring:
            left.pop(device, None)
        strangers = [device for device in ring if device in bound.strangers]
        names = tuple(sorted(ring))
        if strangers:
            said = ", ".join(f"{one} calls itself {bound.strangers[one].description!r}" for one in strangers)
            yield FabricFinding(f"place:{names[0]}", Kind.unidentified, Grade.medium, (), devices=names, text=said)
        else:
            grade = _grade(design, names)
            text = ", ".join(f"{one} stands in the place of {places[one]}" for one in names if one in places)
            yield FabricFinding(f"place:{names[0]}", Kind.swapped_devices, grade, (), devices=names, text=text)


def _ring(start: str, places: Mapping[str, str]) -> set[str]:
    """Devices that are moved because one is: along the places both ways."""
    back = {place: device for device, place in places.items()}
    ring, todo = {start}, [start]
    while todo:
        one = todo.pop()
        for other in (places.get(one), back.get(one)):
            if other is not None and other not in ring:
                ring.add(other)
                todo.append(other)
    return ring


def _dark(designed: Mapping[Port, Port], found: Mapping[Port, Port]) -> list[str]:
    """Devices of whose cables not one is up."""
    lit = {port.device for port in found}
    return sorted({port.device for port in designed} - lit)


def _without(designed: Mapping[Port, Port], dark: Iterable[str], found: Mapping[Port, Port]) -> dict[Port, Port]:
    """The design less the cables that a dark device excuses: those whose other end is empty too."""
    unlit = frozenset(dark)
    excused = {
        port
        for port, at in designed.items()
        if (port.device in unlit or at.device in unlit) and port not in found and at not in found
    }
    return {port: at for port, at in designed.items() if port not in excused} if excused else dict(designed)


def _dark_finding(design: Design, device: str, designed: Mapping[Port, Port]) -> FabricFinding:
    ports = tuple(sorted(port for port in designed if port.device == device))
    text = f"none of its {len(ports)} cables is up"
    return FabricFinding(
        f"dark:{device}", Kind.dark_device, _grade(design, (device,)), ports, devices=(device,), text=text
    )


# --- maps of adapters


def _wrong_maps(design: Design, ways: Iterable[Component]) -> list[tuple[str, Permutation, tuple[str, ...]]]:
    """Models most of whose hosts show the same exchange of adapters, with the exchange and who shows it."""
    exchanged: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for way in ways:
        if (host := _inside_host(design, way)) is not None:
            exchanged[host[0]] += host[1]
    shown: defaultdict[tuple[str, Permutation], list[str]] = defaultdict(list)
    for name, pairs in exchanged.items():
        shown[design.devices[name].model, tuple(sorted(pairs))].append(name)
    hosts = Counter(device.model for device in design.devices.values() if device.kind is DeviceKind.host)
    return [
        (model, permutation, tuple(sorted(names)))
        for (model, permutation), names in sorted(shown.items())
        if len(names) >= LEAST_HOSTS and len(names) >= MAP_SHARE * hosts[model]
    ]


def _inside_host(design: Design, way: Component) -> tuple[str, list[tuple[str, str]]] | None:
    """The host among whose own ports alone the plugs of this cycle are to be moved, and which goes where."""
    if not way.closed:
        return None
    for first in (0, 1):
        side = way.ports[first::2]
        device = design.devices.get(side[0].device)
        if device and device.kind is DeviceKind.host and all(port.device == device.name for port in side):
            # The found cable at side[i] lies between it and its neighbour of the other side, whose designed end is
            # the next port of this side ahead (first 1) or behind (first 0).
            step = 1 if first == 1 else -1
            pairs = [(side[i].port, side[(i + step) % len(side)].port) for i in range(len(side))]
            return device.name, pairs
    return None


def _by_map(design: Design, maps: Mapping[str, Mapping[str, str]]) -> Callable[[Port], Port]:
    """The name that the cabling gives an adapter of these models."""

    def at(port: Port) -> Port:
        device = design.devices.get(port.device)
        if device is None or device.kind is not DeviceKind.host or device.model not in maps:
            return port
        return Port(port.device, maps[device.model].get(port.port, port.port))

    return at


def _map_finding(model: str, permutation: Permutation, hosts: tuple[str, ...]) -> FabricFinding:
    text = ", ".join(f"{is_} is designed as {should}" for is_, should in permutation)
    key = f"hca_map:{model}:{permutation[0][0]}"
    return FabricFinding(key, Kind.hca_map, Grade.high, (), devices=hosts, text=text)


# --- cables


def _cabling(design: Design, bound: Bound, way: Component, found: Mapping[Port, Port]) -> FabricFinding:
    key, kind = f"port:{min(way.ports)}", _kind(way, bound, found)
    if kind is Kind.unidentified:
        (name,) = (port.device for port in way.ports if port.device in bound.strangers)
        text = f"{name} calls itself {bound.strangers[name].description!r}"
        return FabricFinding(key, kind, Grade.medium, way.ports, text=text)
    racks = {port.device: design.devices[port.device].rack for port in way.ports if port.device in design.devices}
    return FabricFinding(key, kind, _cable_grade(design, way, kind), way.ports, repair(way, racks))


def _cable_grade(design: Design, way: Component, kind: Kind) -> Grade:
    if kind is Kind.unexpected:
        return Grade.medium
    grade = _grade(design, {port.device for cable in way.designed for port in cable})
    return Grade.low if grade is Grade.medium and _cosmetic(way) else grade


def _kind(way: Component, bound: Bound, found: Mapping[Port, Port]) -> Kind:
    designed, there = len(way.designed), len(way.found)
    if way.closed:
        return Kind.swapped if designed == 2 else Kind.rotated
    if there == 0:
        return Kind.missing
    if designed == 0:
        return Kind.unexpected
    if designed != there:
        return Kind.half_swapped
    return Kind.unidentified if designed == 1 and _is_stranger_in_place(way, bound, found) else Kind.moved


def _is_stranger_in_place(way: Component, bound: Bound, found: Mapping[Port, Port]) -> bool:
    """A device that nobody knows is cabled as one of the design that nobody has seen."""
    wanted = way.ports[0] if way.designed_first else way.ports[-1]
    there = way.ports[-1] if way.designed_first else way.ports[0]
    return there.device in bound.strangers and wanted not in found


def _cosmetic(way: Component) -> bool:
    """The same pairs of switches are joined as designed, by other ports; a host's port is a rail of its own."""
    return Counter(_pairs(way.designed)) == Counter(_pairs(way.found))


def _pairs(cables: Iterable[tuple[Port, Port]]) -> list[tuple[str, ...]]:
    return [tuple(sorted((a.device, z.device))) for a, z in cables]


def _grade(design: Design, devices: Iterable[str]) -> Grade:
    """High where a host is among them."""
    kinds = {design.devices[name].kind for name in devices if name in design.devices}
    return Grade.high if DeviceKind.host in kinds else Grade.medium


def _degraded(design: Design, found: Mapping[Port, Port], rates: Mapping[Port, Rate]) -> Iterator[FabricFinding]:
    """Cables that lie as designed and whose link has fewer lanes, or slower ones, than it is to have."""
    for cable in design.cables:
        if cable.rate is None or found.get(cable.a) != cable.z or (rate := rates.get(cable.a)) is None:
            continue
        if lacks := shortfall(rate, cable.rate):
            ports = ends(cable.a, cable.z)
            grade = _grade(design, (cable.a.device, cable.z.device))
            yield FabricFinding(f"rate:{ports[0]}", Kind.degraded, grade, ports, text=lacks)
