"""Reads counters of Ethernet switches' interfaces: OpenConfig's `openconfig-interfaces` as gNMI answers it.

Shapes: the tree itself (JSON_IETF, as SONiC and Arista EOS give it), and what `gnmic get` and `gnmic subscribe` write
around it: updates with paths. A document is one switch's, and read whole or refused.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.links import PortReading
from hostler.drivers.infiniband.page_text import plain

MOST_BYTES = 8 * 2**20
MOST_PORTS = 4096
MOST_COUNT = 2**63 - 1
_PHYSICAL = re.compile(r"(?:Ethernet|Eth|eth|swp|et-|xe-)(?:\d{1,3}[/:-])*(\d{1,4})")
"""Names of ports with a plug; the last number is the design's. Port channels, VLANs and management have others."""
_PATH = re.compile(r"/?(?:openconfig-interfaces:)?interfaces/interface\[name=([^\]]{1,64})\]/state(?:/(.*))?")
_UP, _DOWN = frozenset({"UP"}), frozenset({"DOWN", "LOWER_LAYER_DOWN"})
INSTEAD = "write openconfig-interfaces as JSON_IETF, or what `gnmic get` prints"


def parse(switch: str, page: bytes) -> dict[FoundPort, PortReading]:
    """The readings of the switch's ports. Raises ValueError with what is wrong; then nothing of it counts."""
    if len(page) > MOST_BYTES:
        raise ValueError(f"{len(page):,} bytes; at most {MOST_BYTES:,} are read")
    states: dict[str, dict[str, Any]] = {}
    try:
        for value in _values(page.decode("utf-8-sig")):
            for name, leaf, told in _told(value):
                _take(states.setdefault(name, {}), leaf, told)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not as its shape has it ({type(error).__name__}: {error})"[:200]) from error
    return _ports(switch, states)


def _values(text: str) -> Iterator[Any]:
    """JSON values one after the other, as a subscription writes them."""
    reader, place = json.JSONDecoder(parse_constant=_refuse), 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            value, place = reader.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise ValueError(f"no JSON: {error}; {INSTEAD}") from error
        yield from value if isinstance(value, list) else (value,)


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON; {INSTEAD}")


def _told(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Interfaces with a leaf or container below their state, and what is told of it."""
    if not isinstance(value, dict):
        raise ValueError(f"{plain(str(value))!r} is no object; {INSTEAD}")  # noqa: TRY004 - every wrong document is a ValueError
    tree = value.get("openconfig-interfaces:interfaces", value.get("interfaces"))
    if tree is not None:
        for interface in tree["interface"]:
            yield interface["name"], "", interface.get("state", {})
    elif "updates" in value:
        for update in value["updates"]:
            path = _PATH.fullmatch(update["Path"])
            if path is not None:
                (told,) = update["values"].values()
                yield path[1], path[2] or "", told
    elif not value.get("sync-response"):
        raise ValueError(f"no interfaces and no updates; {INSTEAD}")


def _take(state: dict[str, Any], leaf: str, told: Any) -> None:
    """Put what is told at its place; of the same leaf the last counts."""
    *above, last = leaf.split("/")
    for name in above:
        state = state.setdefault(_bare(name), {})
    if not isinstance(told, dict):
        state[_bare(last)] = told
        return
    here = state.setdefault(_bare(last), {}) if last else state
    for name, one in told.items():
        _take(here, name, one)


def _bare(name: str) -> str:
    """The name without its module."""
    return name.rpartition(":")[2]


def _ports(switch: str, states: dict[str, dict[str, Any]]) -> dict[FoundPort, PortReading]:
    """Readings by port number. Raises ValueError where two ports have the same, or one is told wrongly."""
    found: dict[FoundPort, PortReading] = {}
    called: dict[int, str] = {}
    for name, state in states.items():
        physical = _PHYSICAL.fullmatch(name)
        if physical is None:
            continue
        if (other := called.setdefault(int(physical[1]), name)) != name:
            raise ValueError(f"ports {other} and {name} have the same number")
        found[FoundPort(switch, int(physical[1]))] = _reading(name, state)
    if not 0 < len(found) <= MOST_PORTS:
        raise ValueError(f"{len(found):,} ports; 1 to {MOST_PORTS:,} are read; {INSTEAD}")
    return found


def _reading(name: str, state: dict[str, Any]) -> PortReading:
    """A flap is two transitions of the carrier; frames with a wrong checksum are errors that no FEC has mended."""
    counters = state.get("counters", {})
    moves = _count(name, counters, "carrier-transitions")
    status = state.get("oper-status", "")
    return PortReading(
        link_downed=moves // 2 if moves is not None else None,
        symbol_errors=_count(name, counters, "in-fcs-errors"),
        state="active" if status in _UP else "down" if status in _DOWN else "",
    )


def _count(name: str, counters: dict[str, Any], leaf: str) -> int | None:
    """A counter, which JSON_IETF writes as text; None where it is not told."""
    told = counters.get(leaf)
    if told is None:
        return None
    text = told if isinstance(told, str) else str(told) if type(told) is int else ""
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or int(text) > MOST_COUNT:
        raise ValueError(f"{plain(name)}: {leaf} is {plain(str(told))!r}, no count")
    return int(text)
