"""Readings of links, neighbours, memory sockets, serial numbers and drives, as facts "ASPECT.PLACE" of an inventory.

What cannot be read says why under "unread.ASPECT": a reading that is missing is then known to be missing.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hostler.agent import child_process
from hostler.agent.collectors import vital_product_data
from hostler.agent.collectors.kernel_files import MAX_READ, bytes_of, children_of
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts

LLDP_S = 10.0
MAX_PORTS = 64
_SERIALS = ("product_serial", "board_serial", "chassis_serial")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) GT/s")
_HARD = re.compile(r"[^ -~]")


class Slot(Struct, frozen=True):
    """A part on the PCI bus: its slot and its sysfs directory. `idles`: its link slows down while nothing uses it."""

    name: str
    path: Path
    idles: bool = False


def read(root: Path, slots: Iterable[Slot]) -> Facts:
    """Read what the file system at `root` and lldpd show. Never raises for a missing or odd file."""
    return {**_links(slots), **_dimms(root), **_serials(root), **_neighbours(root)}


def drive_words(drives: Iterable[str], health: Facts) -> Facts:
    """Each drive's own word of health, out of what its tools told ("drive:NAME"); who gave none is named."""
    words = {name: health.get(f"drive:{name}") for name in drives}
    facts: Facts = {f"drive.{name}": word for name, word in words.items() if word is not None}
    if silent := [name for name, word in words.items() if word is None]:
        facts["unread.drive"] = f"neither smartctl nor nvme says anything of {', '.join(silent[:8])}"
    return facts


def _links(slots: Iterable[Slot]) -> Facts:
    """The lanes that are up, and the rate: as it runs, or of a link that idles what both of its ends can do."""
    facts: Facts = {}
    blank: list[str] = []
    for slot in slots:
        lanes, now = _text(slot.path / "current_link_width"), _text(slot.path / "current_link_speed")
        able = [_text(slot.path / "max_link_speed"), _text(slot.path.resolve().parent / "max_link_speed")]
        rates = [float(found[1]) for text in (able if slot.idles else [now]) if (found := _RATE.match(text))]
        if lanes and (rates or now):
            facts[f"pcie.{slot.name}"] = f"x{lanes} {min(rates):g} GT/s" if rates else f"x{lanes} {now}"
        else:
            blank.append(slot.name)
    if blank:
        facts["unread.pcie"] = f"sysfs shows no link of {', '.join(blank[:8])}"
    return facts


def _dimms(root: Path) -> Facts:
    """Sockets of memory modules with the size of what is in each; sockets of one name are told apart by number."""
    facts: Facts = {}
    entries = sorted((root / "sys/firmware/dmi/entries").glob("17-*"))
    found = [(entry.name, vital_product_data.smbios_dimm(bytes_of(entry / "raw"))) for entry in entries]
    names = [dimm.locator for _, dimm in found if dimm]
    for entry, dimm in found:
        if dimm is None:
            continue
        place = dimm.locator if names.count(dimm.locator) == 1 else f"{dimm.locator}#{entry.removeprefix('17-')}"
        facts[f"dimm.{place}"] = f"{dimm.size_mib / 1024:g} GiB" if dimm.size_mib else "empty"
    return facts or {"unread.dimm": "SMBIOS shows no memory sockets; the agent needs root, and a real machine"}


def _serials(root: Path) -> Facts:
    """The serial numbers in DMI as they stand there, blank ones too."""
    facts: Facts = {}
    for name in _SERIALS:
        try:
            raw = (root / "sys/class/dmi/id" / name).read_bytes()[:MAX_READ]
        except OSError:
            continue
        facts[f"dmi.{name}"] = _printable(raw.decode("utf-8", "replace"))
    return facts or {"unread.dmi": "DMI's serial numbers cannot be read; the agent needs root"}


def _neighbours(root: Path) -> Facts:
    """Neighbour of each Ethernet port: switch and port, as lldpd has heard them."""
    ports = [path for path in sorted(children_of(root / "sys/class/net")) if (path / "device").exists()][:MAX_PORTS]
    facts: Facts = {f"carrier.{port.name}": _text(port / "carrier") or "0" for port in ports}
    if not ports:
        return {"unread.lldp": "the node has no Ethernet port"}
    try:
        done = child_process.run(("lldpctl", "-f", "json0"), LLDP_S)
    except OSError:
        return facts | {"unread.lldp": "lldpctl is not installed (package lldpd)"}
    except child_process.HungError as error:
        return facts | {"unread.lldp": str(error)}
    if done.code != 0:
        return facts | {"unread.lldp": f"lldpctl: {_printable(done.errors)[-100:] or f'exit status {done.code}'}"}
    heard = {name: who for name, who in neighbours(done.output).items() if f"carrier.{name}" in facts}
    facts |= {f"lldp.{name}": who for name, who in heard.items()}
    if deaf := [port.name for port in ports if port.name not in heard]:
        facts["unread.lldp"] = f"lldpd has heard no neighbour on {', '.join(deaf[:8])}"
    return facts


def neighbours(output: bytes) -> dict[str, str]:
    """Interface → "SWITCH PORT" in lldpctl's answer (json0). Output that is no answer gives nothing.

    A port whose id is an address is named by its description. Of several neighbours none is told: it is no cable.
    """
    try:
        said = msgspec.json.decode(output)
    except UNREADABLE:
        return {}
    found: dict[str, list[str]] = {}
    for place in _list(said, "lldp"):
        for port in _list(place, "interface"):
            name = port.get("name")
            if isinstance(name, str) and (who := _neighbour(port)):
                found.setdefault(_printable(name), []).append(who)
    return {name: who[0] for name, who in found.items() if len(set(who)) == 1}


def _neighbour(port: dict[str, Any]) -> str:
    chassis = next(iter(_list(port, "chassis")), {})
    there = next(iter(_list(port, "port")), {})
    identity = next(iter(_list(there, "id")), {})
    switch = _value(chassis, "name") or _value(chassis, "id")
    place = _value(there, "descr") if identity.get("type") == "mac" else ""
    return f"{switch} {place or _value(there, 'id')}".strip()


def _list(said: Any, key: str) -> list[dict[str, Any]]:
    held = said.get(key) if isinstance(said, dict) else None
    return [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []


def _value(said: dict[str, Any], key: str) -> str:
    value = next(iter(_list(said, key)), {}).get("value")
    return _printable(value) if isinstance(value, str) else ""


def _printable(text: str) -> str:
    return _HARD.sub(" ", text[:256]).strip()


def _text(path: Path) -> str:
    return _printable(bytes_of(path).decode("utf-8", "replace"))
