"""Reads what NVIDIA's UFM Enterprise answers about systems, links and ports as a `Discovery`.

Shapes: UFM Enterprise REST API Guide, "Links REST API", "Ports REST API" and "Systems REST API". A page that is no list
of such objects, as of an error that came with status 200, makes the discovery partial.
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec import Struct

from hostler.core.fabric.discovery import Discovery, FoundDevice, FoundLink, FoundPort
from hostler.core.fabric.rates import Rate, rate_of
from hostler.drivers.infiniband.page_text import plain

SYSTEMS, LINKS, PORTS = "/ufmRest/resources/systems", "/ufmRest/resources/links", "/ufmRest/resources/ports"
MOST_BYTES = 256 * 2**20


T = TypeVar("T")


class _System(Struct, frozen=True):
    type: str
    guid: str = ""
    name: str = ""


class _Link(Struct, frozen=True):
    source_guid: str
    source_port: str
    destination_guid: str
    destination_port: str
    source_port_node_description: str = ""
    destination_port_node_description: str = ""


class _Port(Struct, frozen=True):
    name: str
    active_speed: str = ""
    active_width: str = ""


class UnreadablePageError(ValueError):
    """A page that is not what the address is to answer."""


def read(systems: bytes, links: bytes, ports: bytes) -> Discovery:
    """The devices and links of the three pages. Never raises: what does not fit makes it partial."""
    try:
        switches = {_guid(one.guid or one.name) for one in _of(systems, _System, SYSTEMS) if one.type == "switch"}
        rates = {one.name: rate_of(f"{one.active_width}{one.active_speed}") for one in _of(ports, _Port, PORTS)}
        told = _of(links, _Link, LINKS)
        devices: dict[str, FoundDevice] = {}
        found: dict[FoundPort, FoundLink] = {}
        for link in told:
            _take(link, rates, switches, devices, found)
    except UnreadablePageError as error:
        return Discovery({}, (), f"{error}; nothing is concluded; see what UFM shows there, and update it")
    if not devices:
        return Discovery({}, (), "UFM knows no link; check that UFM manages this network")
    joined = sorted({(one.a, one.z): one for one in found.values()}.items())
    return Discovery(devices, tuple(one for _, one in joined))


def _take(
    link: _Link,
    rates: dict[str, Rate | None],
    switches: set[str],
    devices: dict[str, FoundDevice],
    found: dict[FoundPort, FoundLink],
) -> None:
    a, a_name = _port(link.source_guid, link.source_port), f"{link.source_guid}_{link.source_port}"
    z = _port(link.destination_guid, link.destination_port)
    for port, description in (
        (a, link.source_port_node_description),
        (z, link.destination_port_node_description),
    ):
        devices[port.guid] = FoundDevice(port.guid, port.guid in switches, _device(description))
    one = FoundLink(min(a, z), max(a, z), rates.get(a_name))
    for port in (a, z):
        if port in found and (found[port].a, found[port].z) != (one.a, one.z):
            raise UnreadablePageError(f"UFM tells port {port.number} of {port.guid} with two neighbours")
        found[port] = one


def _of(page: bytes, kind: type[T], where: str) -> tuple[T, ...]:
    try:
        return msgspec.json.decode(page, type=tuple[kind, ...])  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        begins = plain(page[:80].decode(errors="replace"))
        raise UnreadablePageError(f"UFM's {where} is no list that can be read ({error}): {begins!r}") from error


def _port(guid: str, number: str) -> FoundPort:
    if not (number.isascii() and number.isdecimal() and 0 < int(number) < 256):
        raise UnreadablePageError(f"UFM tells a link at port {plain(number)!r} of {plain(guid)!r}")
    return FoundPort(_guid(guid), int(number))


def _guid(text: str) -> str:
    try:
        return f"{int(text, 16):016x}"[:16]
    except ValueError:
        raise UnreadablePageError(f"UFM tells the GUID {plain(text)!r}") from None


def _device(description: str) -> str:
    """Name that the device gives itself: UFM puts the port's label behind a colon."""
    return plain(description.rpartition(":")[0] or description)


def pages() -> Iterator[str]:
    """The addresses that are read, in the order of `read`."""
    yield from (SYSTEMS, LINKS, PORTS)
