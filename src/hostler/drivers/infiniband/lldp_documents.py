"""Reads LLDP neighbours as a `Discovery` of an Ethernet network.

Three shapes: `lldpcli -f json` (and json0) of lldpd, OpenConfig's `openconfig-lldp` as gNMI answers it, and rows of
LLDP-MIB's lldpRemTable by column name as SNMP collectors write them. A device is known by its system name alone.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from hostler.core.fabric.discovery import Discovery, FoundDevice, FoundLink, FoundPort
from hostler.drivers.infiniband.page_text import plain

MOST_BYTES = 8 * 2**20
MOST_NEIGHBOURS = 4096
"""Of one document; a switch has fewer ports."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
_NUMBER = re.compile(r"\d+")


class LldpDocument(Struct, frozen=True):
    """Words of one device about its neighbours. `device`: its name where the document does not say it itself."""

    device: str
    switch: bool
    data: bytes


class Neighbour(Struct, frozen=True):
    """A port of ours, and the far device and port that it hears."""

    port: str
    device: str
    far: str


WRITE = "write what `lldpcli -f json show neighbors` prints"


class UnreadableDocumentError(ValueError):
    """A document that is none of the three shapes."""


class _Network(Struct):
    hosts: frozenset[str]
    devices: dict[str, FoundDevice] = field(default_factory=dict)
    names: dict[FoundPort, str] = field(default_factory=dict)
    links: dict[FoundPort, FoundPort] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def read(documents: Iterable[LldpDocument], hosts: Iterable[str]) -> Discovery:
    """The devices and links that the documents tell. `hosts`: names that are hosts, by the design.

    Never raises: a document that cannot be read makes the discovery partial. A cable that only one end tells is taken.
    """
    told = list(documents)
    network = _Network(frozenset(hosts) - {one.device for one in told if one.switch})
    for document in told:
        try:
            for one in neighbours(document.data):
                _join(network, (document.device, one.port), (one.device, one.far))
        except UnreadableDocumentError as error:
            network.wrong.append(f"LLDP of {plain(document.device)}: {error}")
    if not told:
        network.wrong.append("no device has told its LLDP neighbours")
    joined = {(min(a, z), max(a, z)) for a, z in network.links.items()}
    return Discovery(network.devices, tuple(FoundLink(a, z) for a, z in sorted(joined)), "; ".join(network.wrong[:4]))


def _join(network: _Network, one: tuple[str, str], other: tuple[str, str]) -> None:
    a, z = _found(network, *one), _found(network, *other)
    for here, there in ((a, z), (z, a)):
        if network.links.setdefault(here, there) != there:
            network.wrong.append(f"port {network.names[here]} of {here.guid} is told with two neighbours")


def _found(network: _Network, device: str, port: str) -> FoundPort:
    """The port of a switch by its number; that of a host, or of what has no numbered ports, as an adapter."""
    numbers = _NUMBER.findall(port[:64])
    number = int(numbers[-1]) if numbers else 0
    if device in network.hosts or not 0 < number < MOST_NEIGHBOURS:
        at = FoundPort(f"{device} {port}", 1)
        network.devices[at.guid] = FoundDevice(at.guid, switch=False, description=at.guid)
        network.names[at] = port
        return at
    at = FoundPort(device, number)
    network.devices[device] = FoundDevice(device, switch=True, description=device)
    if network.names.setdefault(at, port) != port:
        network.wrong.append(f"ports {network.names[at]} and {plain(port)} of {device} have the same number")
    return at


def neighbours(data: bytes) -> list[Neighbour]:
    """The neighbours that a document tells. Raises UnreadableDocumentError."""
    if len(data) > MOST_BYTES:
        raise UnreadableDocumentError(
            f"{len(data):,} bytes; at most {MOST_BYTES:,} are read; write one document per switch or host"
        )
    try:
        page = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableDocumentError(f"no JSON: {error}; {WRITE}") from error
    try:
        found = list(_any_shape(page))
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise UnreadableDocumentError(
            f"not of its tool's shape ({type(error).__name__}: {str(error)[:120]}); {WRITE}"
        ) from error
    if len(found) > MOST_NEIGHBOURS:
        raise UnreadableDocumentError(
            f"{len(found):,} neighbours; at most {MOST_NEIGHBOURS:,} are read; write one document per switch or host"
        )
    for one in found:
        if bad := [word for word in (one.device, one.port, one.far) if not isinstance(word, str) or not word.strip()]:
            raise UnreadableDocumentError(f"a neighbour without a name: {bad!r}; {WRITE}")
        if not _NAME.fullmatch(one.device):
            raise UnreadableDocumentError(
                f"{plain(one.device)!r} is no name of a device; name the switch or host as the design does"
            )
    return found


def _any_shape(page: Any) -> Iterator[Neighbour]:
    if not isinstance(page, dict):
        raise UnreadableDocumentError(f"no object of lldpcli, openconfig-lldp or lldpRemTable; {WRITE}")
    if "lldp" in page:
        yield from _lldpcli(page["lldp"])
    elif "lldpRemTable" in page:
        yield from (
            Neighbour(row["lldpLocPortId"], _short(row["lldpRemSysName"]), row["lldpRemPortId"])
            for row in page["lldpRemTable"]
        )
    elif (interfaces := page.get("openconfig-lldp:interfaces", page.get("interfaces"))) is not None:
        yield from _openconfig(interfaces)
    else:
        raise UnreadableDocumentError(f"no object of lldpcli, openconfig-lldp or lldpRemTable; {WRITE}")


def _lldpcli(page: Any) -> Iterator[Neighbour]:
    """One neighbour is an object, several a list of objects; json0 has lists of one everywhere."""
    for lldp in _many(page):
        for interface in _many(lldp.get("interface", [])):
            rows = [interface] if "chassis" in interface else [{**v, "name": k} for k, v in interface.items()]
            for row in rows:
                (chassis,) = _many(row["chassis"])[:1]
                name = chassis["name"] if "name" in chassis else next(iter(chassis))
                (port,) = _many(row["port"])[:1]
                yield Neighbour(row["name"], _short(_value(name)), _port_id(port))


def _port_id(port: Any) -> str:
    """The far port: its id where that is a name, else (a MAC address) its description."""
    (identity,) = _many(port["id"])[:1]
    if identity.get("type") in ("ifname", "local"):
        return str(identity["value"])
    return str(_value(port["descr"]))


def _openconfig(page: Any) -> Iterator[Neighbour]:
    for interface in page["interface"]:
        for one in interface.get("neighbors", {}).get("neighbor", []):
            state = one["state"]
            far = state["port-id"] if state.get("port-id-type", "INTERFACE_NAME") != "MAC_ADDRESS" else None
            yield Neighbour(interface["name"], _short(state["system-name"]), far or state["port-description"])


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _value(value: Any) -> str:
    """A name as json has it, or in json0's list of objects."""
    (one,) = _many(value)[:1]
    return str(one["value"] if isinstance(one, dict) else one)


def _short(name: str) -> str:
    """The name without its domain: designs call devices by host names."""
    return name.partition(".")[0]
