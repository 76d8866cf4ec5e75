"""Identity of found ports: by GUID where the design knows it, else by what the device calls itself."""

import re
from collections import Counter

from msgspec import Struct

from hostler.core.fabric.design import Design, DeviceKind, Port
from hostler.core.fabric.discovery import Discovery, FoundDevice, FoundPort
from hostler.core.fabric.rates import Rate

_AGGREGATION = "Mellanox Technologies Aggregation Node"
"""A switch's own adapter for in-network reduction calls itself so; it is no cable's end."""

_CHASSIS = re.compile(r"MF0;([^:;]+)(?::[^/]*/U\d+)?")
"""NVIDIA's switches: `MF0;leaf01:MQM9700/U1`, name before the colon, model and unit after it."""


class Bound(Struct, frozen=True):
    """Findings of a discovery, by names of the design. `strangers`: devices that are in no design, by their name here.

    `renamed`: who is known by GUID and calls itself otherwise; `ambiguous`: names that several answer to.
    """

    links: dict[Port, Port]
    rates: dict[Port, Rate]
    seen: frozenset[str]
    strangers: dict[str, FoundDevice]
    renamed: dict[str, str]
    ambiguous: tuple[str, ...]


def stranger(guid: str) -> str:
    """The name of a device that no design knows."""
    return f"guid-{guid}"


def bind(design: Design, discovery: Discovery) -> Bound:
    """Names for all that was found. A name that two answer to is nobody's: both stay strangers."""
    by_guid, names, ambiguous = _names(design, discovery)
    links, rates = _joined(discovery, names)
    return Bound(
        links=links,
        rates=rates,
        seen=frozenset(at.device for at in names.values()),
        strangers={stranger(g): d for g, d in discovery.devices.items() if g not in names and not _is_internal(d)},
        renamed=_renamed(design, discovery, by_guid),
        ambiguous=tuple(sorted(str(at) for at in ambiguous)),
    )


def names_of(design: Design, discovery: Discovery) -> dict[str, Port]:
    """GUID → the designed device, or adapter of one, that it is; strangers have no name."""
    return _names(design, discovery)[1]


def _names(design: Design, discovery: Discovery) -> tuple[dict[str, Port], dict[str, Port], set[Port]]:
    """Names by the design's GUIDs, all names, and those that several answer to."""
    by_guid = {guid: Port(d.name, port) for d in design.devices.values() for port, guid in d.guids}
    called = {
        guid: at
        for guid, device in discovery.devices.items()
        if guid not in by_guid and (at := _called(design, device))
    }
    known = {by_guid[guid] for guid in discovery.devices if guid in by_guid}
    count = Counter(called.values())
    ambiguous = {at for at, n in count.items() if n > 1 or at in known}
    names = {guid: at for guid, at in called.items() if at not in ambiguous}
    names |= {guid: at for guid, at in by_guid.items() if guid in discovery.devices}
    return by_guid, names, ambiguous


def _called(design: Design, device: FoundDevice) -> Port | None:
    """The designed device, or adapter of one, that calls itself so."""
    name, adapter = plain_name(device)
    designed = design.devices.get(name)
    if designed is None or device.switch is not (designed.kind is DeviceKind.switch):
        return None
    if device.switch:
        return Port(name, "")
    model = design.models.get(designed.model)
    return Port(name, model.port(adapter) if model else adapter) if adapter else None


def plain_name(device: FoundDevice) -> tuple[str, str]:
    """Device and adapter in what it calls itself: ("gpu-0412", "mlx5_0"), of a switch ("leaf01", "")."""
    text = device.description.strip()
    if device.switch:
        chassis = _CHASSIS.fullmatch(text)
        return (chassis[1] if chassis else text), ""
    name, _, adapter = text.partition(" ")
    return name, adapter.strip()


def _is_internal(device: FoundDevice) -> bool:
    return device.description.startswith(_AGGREGATION)


def _joined(discovery: Discovery, names: dict[str, Port]) -> tuple[dict[Port, Port], dict[Port, Rate]]:
    links: dict[Port, Port] = {}
    rates: dict[Port, Rate] = {}
    internal = {guid for guid, device in discovery.devices.items() if _is_internal(device)}
    for link in discovery.links:
        if link.a.guid in internal or link.z.guid in internal:
            continue
        a, z = _port(link.a, names), _port(link.z, names)
        links[a], links[z] = z, a
        if link.rate:
            rates[a] = rates[z] = link.rate
    return links, rates


def _port(found: FoundPort, names: dict[str, Port]) -> Port:
    at = names.get(found.guid)
    if at is None:
        return Port(stranger(found.guid), str(found.number))
    if not at.port:
        return Port(at.device, str(found.number))
    return at if found.number == 1 else Port(at.device, f"{at.port}/{found.number}")


def _renamed(design: Design, discovery: Discovery, by_guid: dict[str, Port]) -> dict[str, str]:
    """Devices known by GUID that call themselves by another device's name, or another adapter's."""
    renamed = {}
    for guid, at in by_guid.items():
        device = discovery.devices.get(guid)
        if device is not None and (called := _called(design, device)) is not None and called != at:
            renamed[str(at) if at.port else at.device] = device.description
    return renamed
