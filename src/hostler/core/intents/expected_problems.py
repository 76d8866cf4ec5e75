"""Finds what is wrong with a list of expected nodes, each with its place. Pure."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from hostler.core.diagnose.serials import meaningful
from hostler.core.intents.entered_addresses import KINDS, EnteredAddresses, names_of
from hostler.core.intents.registration import MAX_NODES, NodeSpec, spec_problems
from hostler.core.state.assets import is_mac, normal_mac
from hostler.core.state.expected import COMPARED, ExpectedNode
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import Problem

PROBLEMS_SHOWN = 50
MACS_MAX = 16
U_MAX = 100
_BMC = re.compile(r"https?://[A-Za-z0-9.\-:\[\]]{1,253}(/[!-~]{0,200})?(#[!-~]{1,64})?")


def normal(entry: ExpectedNode) -> ExpectedNode:
    """The entry with its MAC addresses written in one way."""
    macs = tuple(dict.fromkeys(map(normal_mac, entry.macs)))
    return replace(entry, macs=macs, where=entry.where[:200])


def spec_of(entry: ExpectedNode) -> NodeSpec:
    """The entry as a node is registered."""
    return NodeSpec(**{field: getattr(entry, field) for field in COMPARED})


def problems_of(fleet: Fleet, entries: tuple[ExpectedNode, ...]) -> Iterator[Problem]:
    """Problems that make the list unusable: entries by themselves, and names that two of them have."""
    if not 0 < len(entries) <= MAX_NODES:
        yield Problem("nodes", 0, f"{len(entries)} entries", f"give 1 to {MAX_NODES}")
    places = _places(entries)
    yield from _repeated(entries, places)
    yield from _entered_twice(entries, places)
    for number, entry in enumerate(entries):
        yield from _entry_problems(fleet, entry, entry.where or f"nodes[{number}]")


def _places(entries: tuple[ExpectedNode, ...]) -> list[str]:
    """Each entry's place, no two the same."""
    if len({entry.where for entry in entries if entry.where}) == len(entries):
        return [entry.where for entry in entries]
    return [f"{entry.where} (nodes[{n}])" if entry.where else f"nodes[{n}]" for n, entry in enumerate(entries)]


def _repeated(entries: tuple[ExpectedNode, ...], places: list[str]) -> Iterator[Problem]:
    """Names that two entries have."""
    seen: dict[str, str] = {}
    for entry, where in zip(entries, places, strict=True):
        names = [f"{kind} {name}" for kind in ("serial", "hostname", "bmc") if (name := getattr(entry, kind))]
        for name in (*names, *(f"MAC address {mac}" for mac in entry.macs)):
            if (first := seen.setdefault(name.casefold(), where)) != where:
                yield Problem(where, 0, f"{name} is also given in {first}", "give it once")


def _entered_twice(entries: tuple[ExpectedNode, ...], places: list[str]) -> Iterator[Problem]:
    """Addresses of BMCs, DPUs' BMCs and PDUs' outlets that two entries have, or one entry as two things."""
    addresses = EnteredAddresses()
    for entry, where in zip(entries, places, strict=True):
        for field, kind in KINDS.items():
            for address in names_of(entry, field):
                if held := addresses.clash(where, kind, address):
                    yield Problem(where, 0, f"{field} {address[:200]!a} is {held.text} already", "give it once")
            addresses.add(where, kind, names_of(entry, field))


def _entry_problems(fleet: Fleet, entry: ExpectedNode, where: str) -> Iterator[Problem]:
    if not entry.serial:
        yield Problem(where, 0, "no serial number", "a node is expected by its serial number and MAC addresses")
    elif not meaningful(entry.serial):
        what = f"serial number {entry.serial[:40]!a} is a vendor's placeholder"
        yield Problem(where, 0, what, "program the machine's own into its DMI data, and write that")
    if not 0 < len(entry.macs) <= MACS_MAX:
        yield Problem(where, 0, f"{len(entry.macs)} MAC addresses", f"give 1 to {MACS_MAX}, those it boots from")
    for mac in entry.macs:
        if not is_mac(mac) or mac in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
            yield Problem(where, 0, f"MAC address {mac[:40]!a}", "write six pairs of hex digits, as 52:54:00:12:34:56")
    if entry.bmc and not _BMC.fullmatch(entry.bmc):
        yield Problem(where, 0, f"bmc {entry.bmc[:80]!a} is no address", "write https://HOST, or https://HOST#system")
    if not 0 <= entry.u <= U_MAX:
        yield Problem(where, 0, f"u {entry.u}", f"write the lowest rack unit, 1 to {U_MAX}, or leave it out")
    known = entry if entry.sku else replace(entry, sku=next(iter(fleet.configuration.skus), ""))
    yield from spec_problems(fleet, spec_of(known), where)
