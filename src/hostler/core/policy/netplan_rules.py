"""Rules of the network configuration that boots are given: netplan's own keys and values, and devices that exist.

A layer holds a part of it, so what names another device is looked for in all layers.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from hostler.core.state.boot import CloudInitLayer
from hostler.core.state.input_problems import WrongEntry
from hostler.core.state.netplan import BOND_MODES, DEVICES, Bond, NetworkDevice, NetworkRoute, Vlan
from hostler.core.state.node_places import PLACEHOLDERS

TOP = frozenset(
    {
        "version",
        "renderer",
        *DEVICES,
        "tunnels",
        "vrfs",
        "wifis",
        "modems",
        "dummy-devices",
        "nm-devices",
        "openvswitch",
    }
)
VLAN_MOST = 4094
REFERENCE = "see netplan's YAML reference"
_OWN = re.compile(r"boot\d{1,2}")
"""Names that Hostler gives the ports that a node boots from."""
_BRACED = re.compile(r"\{[^{}]*\}")

Layers = Iterable[tuple[tuple[str, ...], CloudInitLayer]]


def network_problems(layers: Layers) -> Iterator[WrongEntry]:
    """Every problem of the layers' network; none where there is none."""
    told = [((*path, "network"), layer.network) for path, layer in layers if layer.network]
    known = {name for _, network in told for name, _, _ in _devices(network)}
    for path, network in told:
        yield from (wrong.below(path) for wrong in _layer(network))
        yield from (wrong.below(path) for wrong in _members(network, known))
    yield from _vlans(told)


def _layer(network: Mapping[str, Any]) -> Iterator[WrongEntry]:
    for key in sorted(set(network) - TOP):
        yield WrongEntry(f"netplan knows no key '{key[:80]}'", "write what stands below `network:`", (key,))
    if network.get("version", 2) != 2:
        yield WrongEntry("netplan's version is 2", "write version: 2", ("version",))
    kinds: dict[str, str] = {}
    for name, kind, said in _devices(network):
        at, named = (kind, name), f"{kind} {name[:40]}"
        if kinds.setdefault(name, kind) != kind:
            yield WrongEntry(f"'{name[:40]}' is also one of {kinds[name]}", "give each device a name of its own", at)
        try:
            device = msgspec.convert(said, type=DEVICES[kind])
        except msgspec.ValidationError as error:
            yield WrongEntry(f"{named}: {_words(str(error))}", REFERENCE, at)
            continue
        yield from (wrong.below(at, named) for wrong in _device(device))
    for text in sorted(_texts(network)):
        for braced in _BRACED.findall(text):
            if braced not in PLACEHOLDERS:
                yield WrongEntry(f"no placeholder {braced[:40]}", f"write one of {', '.join(PLACEHOLDERS)}")


def _devices(network: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Name, kind and value of each device whose kind is known here."""
    for kind in DEVICES:
        named = network.get(kind)
        if isinstance(named, dict):
            yield from ((str(name), kind, said) for name, said in named.items())


def _words(error: str) -> str:
    return error.replace("Object contains unknown field", "netplan knows no key").replace("`", "'")


def _device(device: NetworkDevice) -> Iterator[WrongEntry]:
    for one in device.addresses:
        address = one if isinstance(one, str) else next(iter(one), "")
        if "/" not in address or not _is(ipaddress.ip_interface, address):
            yield WrongEntry(f"'{address[:60]}' is no address with its prefix", "write such as 10.1.0.7/24")
    for one in device.nameservers.addresses:
        if not _is(ipaddress.ip_address, one):
            yield WrongEntry(f"'{one[:60]}' is no address of a name server", "write an IP address")
    yield from (wrong for route in device.routes for wrong in _route(route))
    if device.mtu and not 68 <= device.mtu <= 65_536:
        yield WrongEntry(f"mtu {device.mtu} is none", "write 68 to 65536")
    if isinstance(device, Bond) and device.parameters.mode and device.parameters.mode not in BOND_MODES:
        mode = device.parameters.mode[:40]
        yield WrongEntry(f"no bond mode '{mode}'", f"write one of {', '.join(sorted(BOND_MODES))}")
    if isinstance(device, Vlan) and device.id is not None and not 0 <= device.id <= VLAN_MOST:
        yield WrongEntry(f"VLAN {device.id} is none", f"write 0 to {VLAN_MOST}")


def _route(route: NetworkRoute) -> Iterator[WrongEntry]:
    if route.to != "default" and not _is(ipaddress.ip_interface, route.to):
        yield WrongEntry(f"'{route.to[:60]}' is no network to go to", "write default, or such as 10.0.0.0/8")
    if route.via and not _is(ipaddress.ip_address, route.via):
        yield WrongEntry(f"'{route.via[:60]}' is no address to go by", "write an IP address")


def _is(kind: Any, text: str) -> bool:
    """Whether it is of the kind, once placeholders are a number."""
    for placeholder in PLACEHOLDERS:
        text = text.replace(placeholder, "1")
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _members(network: Mapping[str, Any], known: set[str]) -> Iterator[WrongEntry]:
    """Ports of bonds and bridges, and what VLANs lie on: each is a device, and of one bond or bridge."""
    taken: dict[str, str] = {}
    for name, kind, said in _devices(network):
        held = said.get("interfaces", ()) if isinstance(said, dict) else ()
        on = said.get("link", "") if isinstance(said, dict) and kind == "vlans" else ""
        for member in (*(held if isinstance(held, list) else ()), *((on,) if on else ())):
            if str(member) not in known and not _OWN.fullmatch(str(member)):
                told = f"{kind} {name[:40]}: no device '{str(member)[:40]}'"
                yield WrongEntry(told, "name it under ethernets, or correct the name", (kind, name))
        for member in held if isinstance(held, list) else ():
            if taken.setdefault(str(member), name) != name:
                told = f"{kind} {name[:40]}: '{str(member)[:40]}' is in {taken[str(member)][:40]} already"
                yield WrongEntry(told, "leave it in one of them", (kind, name))


def _vlans(told: list[tuple[tuple[str, ...], dict[str, Any]]]) -> Iterator[WrongEntry]:
    """Each VLAN has its number and its device in some layer."""
    whole: dict[str, dict[str, Any]] = {}
    first: dict[str, tuple[str, ...]] = {}
    for path, network in told:
        for name, kind, said in _devices(network):
            if kind == "vlans" and isinstance(said, dict):
                whole[name] = {**whole.get(name, {}), **said}
                first.setdefault(name, (*path, kind, name))
    for name, said in sorted(whole.items()):
        if lacks := [key for key in ("id", "link") if key not in said]:
            yield WrongEntry(f"vlans {name[:40]} has no {' and no '.join(lacks)}", REFERENCE, first[name])


def _texts(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {text for one in value.values() for text in _texts(one)}
    if isinstance(value, list | tuple):
        return {text for one in value for text in _texts(one)}
    return {value} if isinstance(value, str) else set()
