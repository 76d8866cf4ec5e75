"""Reads a part's Status, pure: its word of health and the message behind it, by DMTF's schema bundle 2024.4."""

import re

from hostler.core.diagnose.serials import meaningful
from hostler.core.state.model import Facts
from hostler.drivers.redfish.tolerant_json import Document, child, objects, text, truth, word_of, worst
from hostler.drivers.redfish.wire import absent
from hostler.drivers.redfish.wire_parts import processor_kind, slot_of

_SLOTS: dict[str, tuple[str, ...]] = {
    "processor": ("Socket", "Id"),
    "memory": ("DeviceLocator", "Id"),
    "drive": ("Id", "Name"),
    "nic": ("Id", "Name"),
}
MAX_SAYS = 200
_WORD, _SAYS = "health:", "says:"
_MAKERS = re.compile(r":[hm]gx_", re.IGNORECASE)
"""Prefixes of NVIDIA's boards before the name of the part that they are."""


def part_facts(doc: Document, kind: str) -> Facts:
    """One part's facts: "health:KIND:SLOT" its word, and with it "serial:…" and "says:…" where it shows these.

    A serial that says nothing is left out. Empty for an empty slot and for a part of which nothing is said: that proves
    nothing. A drive that predicts its own failure is critical.
    """
    status = child(doc, "Status")
    word = word_of(status)
    if kind == "drive" and truth(doc, "FailurePredicted"):
        word = worst(word, "critical")
    if not word or absent(doc):
        return {}
    slot = text(doc, *_SLOTS.get(kind, ("Id", "Name"))) or slot_of(doc)
    named = f"{processor_kind(doc) if kind == 'processor' else kind}:{slot}"
    shown: Facts = {f"health:{named}": word}
    serial, says = meaningful(text(doc, "SerialNumber")), _says(doc, status)
    if serial:
        shown[f"serial:{named}"] = serial
    if says:
        shown[f"says:{named}"] = says
    return shown


def joined(known: Facts, board: Facts) -> Facts:
    """Facts of parts with those of a board that may be one of them: HGX_CPU_0 is CPU_0, as bad as the worse word."""
    slot = next((name.removeprefix(_WORD) for name in board if name.startswith(_WORD)), "")
    part = _MAKERS.sub(":", slot)
    if part == slot or _WORD + part not in known:
        return known | board
    told = worst(str(known[_WORD + part]), str(board[_WORD + slot]))
    says = board.get(_SAYS + slot)
    return known | {_WORD + part: told} | ({_SAYS + part: says} if says else {})


def intrusion(doc: Document) -> Facts:
    """Whether a chassis was opened: "intrusion:CHASSIS" is normal, hardwareintrusion or tamperingdetected."""
    security = child(doc, "PhysicalSecurity")
    told = text(security, "IntrusionSensor").lower()
    return {f"intrusion:{slot_of(doc)}": told} if told else {}


def _says(doc: Document, status: Document) -> str:
    """The messages of the conditions that the status holds."""
    said = [
        ": ".join(filter(None, (text(one, "MessageId"), text(one, "Message")))) for one in objects(status, "Conditions")
    ]
    predicted = ["it predicts its own failure"] if truth(doc, "FailurePredicted") else []
    return "; ".join(dict.fromkeys(one for one in (*said, *predicted) if one))[:MAX_SAYS]
