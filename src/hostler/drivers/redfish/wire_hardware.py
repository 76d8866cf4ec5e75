"""Redfish's PCIe links, memory sockets, drives' words and BIOS attributes → readings "ASPECT.PLACE", pure."""

import re

from hostler.core.state.hardware import BIOS, DIMM, DRIVE, PCIE, PcieLink
from hostler.core.state.model import Facts
from hostler.drivers.redfish.tolerant_json import Document, child, number, objects, printable, text
from hostler.drivers.redfish.wire import absent

MAX_ATTRIBUTES = 640
"""BIOS attributes that are read: vendors have up to some 500."""
_RATES = {"gen1": 2.5, "gen2": 5.0, "gen3": 8.0, "gen4": 16.0, "gen5": 32.0, "gen6": 64.0}
"""PCIeTypes of the PCIeDevice schema → GT/s (PCI Express base specification)."""
_LANES = (1, 2, 4, 8, 12, 16, 32)
_NO_NAME = re.compile(r"[^!-~]")


def link_reading(doc: Document, slot: str) -> Facts:
    """The link of a processor, adapter or PCIe device in the words of its BMC; nothing where it shows none."""
    controllers = [child(one, "PCIeInterface") for one in objects(doc, "Controllers")]
    for place in (child(doc, "PCIeInterface"), child(doc, "SystemInterface", "PCIe"), *controllers):
        lanes, rate = number(place, "LanesInUse"), _RATES.get(text(place, "PCIeType").lower())
        if lanes in _LANES and lanes is not None and rate is not None:
            return {f"{PCIE}{slot}": str(PcieLink(int(lanes), rate))}
    return {}


def socket_reading(doc: Document, slot: str) -> Facts:
    """Size of the module in a memory socket, or that it is empty; nothing where its size is not shown."""
    if absent(doc):
        return {f"{DIMM}{text(doc, 'DeviceLocator', 'Id') or slot}": "empty"}
    mib = number(doc, "CapacityMiB")
    return {f"{DIMM}{slot}": f"{mib / 1024:g} GiB"} if mib is not None and 0 < mib < 1 << 40 else {}


def drive_reading(doc: Document, slot: str) -> Facts:
    """A drive's word of health; one that predicts its failure says so."""
    health = text(child(doc, "Status"), "Health").lower()
    if doc.get("FailurePredicted") is True:
        health = "failing: it predicts its failure"
    return {f"{DRIVE}{slot}": health} if health else {}


def bios_readings(doc: Document) -> Facts:
    """Attributes of a Bios resource as texts. Passwords and what has no printable name are left out."""
    found: Facts = {}
    for name, value in sorted(child(doc, "Attributes").items()):
        if len(found) >= MAX_ATTRIBUTES:
            break
        if _NO_NAME.search(name) or "password" in name.lower() or not isinstance(value, str | int | float | bool):
            continue
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        found[f"{BIOS}{name}"] = printable(shown)
    return found
