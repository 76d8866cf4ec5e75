"""Serial numbers that say something: placeholders are none, and parts that share one are known by their slots."""

from collections.abc import Iterable

from msgspec.structs import replace

from hostler.core.state.model import Part

_PLACEHOLDERS = frozenset(
    {
        *("none", "null", "nil", "n/a", "na", "unknown", "undefined", "unspecified", "empty", "invalid", "tbd", "oem"),
        *("default string", "default", "not specified", "not available", "not applicable", "not present", "no dimm"),
        *("to be filled by o.e.m.", "to be filled by oem", "system serial number", "chassis serial number"),
        *("base board serial number", "serial number", "serialnumber", "no asset tag", "asset tag", "placeholder"),
        *("0123456789", "123456789", "1234567890", "no serial number", "not settable", "filled by oem"),
    }
)
_FILLING = " 0.-_:xXfF?*#\t"
"""Characters of which a text that says nothing may wholly consist: zeros, blanks, an erased memory's Fs."""

_ONE_THING = frozenset({"chassis", "baseboard", "drive", "nic", "nic_port"})
"""Kinds of which one thing is listed several times: a midplane, namespaces, functions, ports."""

HOLDS_OTHERS = "module"
"""A board that carries parts; it often shows the number of one of them."""


def meaningful(text: str) -> str:
    """The text without padding, "" where a vendor left a placeholder."""
    text = text.strip().strip("\x00").strip()
    return "" if text.lower().strip("<>[]() ") in _PLACEHOLDERS or not text.strip(_FILLING) else text


def by_slot(slot: str, machine: str) -> str:
    """The identity of a part that no number of its own tells from others: its slot in the machine of this serial."""
    return f"{slot}@{machine}"


def is_by_slot(serial: str) -> bool:
    """Whether this identity is a place in a machine; with the part itself it does not move."""
    return "@" in serial


def identified(parts: Iterable[Part], machine: str) -> tuple[Part, ...]:
    """The parts, each under an identity of its own: its serial, or its slot where that says nothing or is shared.

    One that has neither is left out; so is what was listed twice, and a board that shows the number of what it carries.
    """
    listed = [replace(part, serial=meaningful(part.serial)) for part in parts]
    shared = _shared(listed)
    taken = {part.serial for part in listed if part.kind != HOLDS_OTHERS and part.serial}
    kept: dict[str, Part] = {}
    for part in listed:
        if part.kind == HOLDS_OTHERS and part.serial in taken:
            continue
        if (not part.serial or part.serial in shared) and part.slot:
            part = replace(part, serial=by_slot(part.slot, machine))  # noqa: PLW2901
        if part.serial:
            kept.setdefault(part.serial, part)
    return tuple(kept.values())


def doubtful(parts: Iterable[Part]) -> dict[str, str]:
    """Kind of part → why its parts are known by slot: which number several of them show."""
    listed = [replace(part, serial=meaningful(part.serial)) for part in parts]
    shared = _shared(listed)
    told: dict[str, str] = {}
    for kind in sorted({part.kind for part in listed}):
        mine = [part for part in listed if part.kind == kind]
        alike = sorted({part.serial for part in mine if part.serial in shared} - {""})
        blank = sorted(part.slot for part in mine if not part.serial and part.slot)
        said = [f"{', '.join(_slots(mine, serial))} show one serial number, {serial}" for serial in alike]
        said += [f"{', '.join(blank)} show none"] if blank else []
        if said:
            told[kind] = "; ".join(said)
    return told


def _slots(parts: list[Part], serial: str) -> list[str]:
    return sorted({part.slot for part in parts if part.serial == serial})


def _shared(parts: list[Part]) -> set[str]:
    """Numbers that more than one thing shows."""
    things: dict[str, set[tuple[str, str]]] = {}
    for part in parts:
        if part.serial and part.kind not in _ONE_THING and part.kind != HOLDS_OTHERS:
            things.setdefault(part.serial, set()).add((part.kind, part.slot))
    return {serial for serial, places in things.items() if len(places) > 1}
