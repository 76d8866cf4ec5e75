"""Inventory that Ironic keeps of an inspection → parts and amounts, pure: of redfish or of its ramdisk's agent.

Both keep one shape (ironic.drivers.modules.redfish.inspect, release 39; ironic-python-agent 13). How many sockets there
are it does not say: `cpu.count` are threads, and modules of memory are not listed.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from hostler.core.diagnose.serials import meaningful
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts, Part

MOST_PARTS = 512
TEXT_MAX = 100
MIB_IN_KIB = 1024
LARGEST_MIB = 1 << 32
"""More memory than this, 4 PiB, is no amount."""


class InspectedMachine(Struct, frozen=True):
    """Drives and network ports, the memory as the fact `memory_kib`, and why something that was looked for is missing.

    The fact `covers` names kinds of which something is listed: a list that could not be read looks like an empty one.
    """

    parts: tuple[Part, ...] = ()
    facts: Facts = {}
    gaps: tuple[str, ...] = ()


def inspected(body: bytes) -> InspectedMachine:
    """The answer of /v1/nodes/NAME/inventory."""
    try:
        said = msgspec.json.decode(body)
    except UNREADABLE:
        said = None
    found = said.get("inventory") if isinstance(said, dict) else None
    if not isinstance(found, dict):
        return InspectedMachine(gaps=("Ironic's inventory cannot be read",))
    parts = tuple(part for part in (*_drives(found), *_ports(found)) if part.serial or part.slot)[:MOST_PARTS]
    kinds = sorted({part.kind for part in parts})
    facts: Facts = {"covers": ",".join(kinds)}
    gaps = [f"no {word} is listed" for kind, word in (("drive", "drive"), ("nic_port", "port")) if kind not in kinds]
    if mib := _amount(found):
        facts["memory_kib"] = mib * MIB_IN_KIB
    else:
        gaps.append("no amount of memory is told")
    return InspectedMachine(parts, facts, tuple(gaps))


def _amount(found: dict[str, Any]) -> int:
    """Memory in MiB, 0 for none."""
    memory = found.get("memory")
    value = memory.get("physical_mb") if isinstance(memory, dict) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0
    return int(value) if 0 < value < LARGEST_MIB else 0


def _drives(found: dict[str, Any]) -> Iterator[Part]:
    """Drives behind their controllers, which name the bay; else the plain list of an older Ironic and of its agent."""
    behind = [drive for one in _objects(found, "storage_controllers") for drive in _objects(one, "drives")]
    for drive in behind or _objects(found, "disks"):
        yield Part(
            serial=meaningful(_text(drive, "serial_number", "serial")),
            kind="drive",
            model=meaningful(_text(drive, "model")),
            slot=_text(drive, "id", "name"),
            firmware=meaningful(_text(drive, "revision")),
        )


def _ports(found: dict[str, Any]) -> Iterator[Part]:
    for port in _objects(found, "interfaces"):
        if mac := meaningful(_text(port, "mac_address")).lower():
            yield Part(serial=mac, kind="nic_port", slot=_text(port, "name"))


def _objects(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    listed = said.get(name)
    return [one for one in listed[:MOST_PARTS] if isinstance(one, dict)] if isinstance(listed, list) else []


def _text(said: dict[str, Any], *names: str) -> str:
    told = (value.strip()[:TEXT_MAX] for name in names if isinstance(value := said.get(name), str))
    return next((one for one in told if one), "")
