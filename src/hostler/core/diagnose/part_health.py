"""Judges the word of health that a BMC has for a part: a drive, a processor, a memory module, a network adapter.

The BMC sums up what it has seen. Where the node's own drivers name it more exactly, that is the condition (`joining`).
"""

from msgspec.structs import replace

from hostler.core.configuration import Sku
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.joining import UNHEALTHY, joined
from hostler.core.diagnose.line import printable
from hostler.core.diagnose.sensor_rules import SENSOR_RULES
from hostler.core.diagnose.sensors import Subject, unreadable
from hostler.core.diagnose.slots import Slots
from hostler.core.model import Facts, Node, Observation

FAILED = {"drive": "storage.failed"}
"""Kind of part → the condition of which its word "critical" is the very meaning, from inside as from outside."""

_WORD, _SERIAL, _SAYS = "health:", "serial:", "says:"


def judge_part_health(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Facts "health:KIND:SLOT" are words of health, "serial:KIND:SLOT" and "says:KIND:SLOT" belong to them."""
    told = part_subjects(observation, node, sku)
    findings = [
        shown for subject in told.values() for one in subject.findings for shown in joined(one, node, UNHEALTHY)
    ]
    return findings + unreadable([name for subject in told.values() for name in subject.unread])


def part_subjects(observation: Observation, node: Node, sku: Sku | None) -> dict[str, Subject]:
    """What the BMC says of each part, by its serial where one is known; what others have seen is left aside."""
    slots = Slots(node, sku)
    serials = frozenset(serial for _, serial in node.slots)
    found: dict[str, Subject] = {}
    for name in sorted(observation.facts):
        kind, colon, slot = name.removeprefix(_WORD).partition(":")
        if not name.startswith(_WORD) or not colon:
            continue
        place = f"{kind}:{slot}"
        serial = observation.facts.get(_SERIAL + place)
        own = printable(serial) if isinstance(serial, str) else ""
        known = slots.part_of(slot)
        part = own if own in serials or known == slot else known
        subject = found.setdefault(part or own or slot, Subject([], [], []))
        subject.names += [key for key in (name, _SERIAL + place, _SAYS + place) if key in observation.facts]
        judged = _judge(kind, part or own or slot, observation.facts, place)
        if judged is None:
            subject.unread.append(place)
        subject.findings += judged or []
    return found


def _judge(kind: str, part: str, facts: Facts, place: str) -> list[Finding] | None:
    """None for a word that nobody knows: it neither convicts nor clears."""
    told, says = facts[_WORD + place], facts.get(_SAYS + place)
    word = told.strip().lower() if isinstance(told, str) else ""
    if word == "ok":
        text = f"the BMC calls {place} well"
        kinds = dict.fromkeys((UNHEALTHY, FAILED.get(kind, UNHEALTHY)))
        return [replace(over(one, text, part), facts={"kind": kind}) for one in kinds]
    grave = SENSOR_RULES[UNHEALTHY].words.get(word)
    if grave is None:
        return None
    shown: Facts = {"kind": kind, "place": place, "state": word}
    if isinstance(says, str):
        shown["says"] = printable(says)
    text = f"the BMC calls {place} {word}" + (f": {shown['says']}" if "says" in shown else "")
    if word == "critical" and kind in FAILED:
        return [stands(FAILED[kind], text, part, shown)]
    return [stands(UNHEALTHY, text, part, shown, grave)]
