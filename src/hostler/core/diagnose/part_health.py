"""Judges the word of health that a BMC has for a part: a drive, a processor, a memory module, an adapter, a board.

The BMC sums up what it has seen, for the machine too: a word about that is told where no part explains it. Where the
node's own drivers name a fault more exactly, that is the condition (`absorption`).
"""

from collections import Counter

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.bmc_evidence import UNHEALTHY, joined
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.line import printable
from hostler.core.diagnose.part_slots import PartSlots
from hostler.core.diagnose.sensor_findings import Subject, unreadable
from hostler.core.diagnose.sensor_hysteresis import SENSOR_RULES
from hostler.core.diagnose.serials import meaningful
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Facts, Node, Observation, Severity

FAILED = {"drive": "storage.failed"}
"""Kind of part → the condition of which its word "critical" is the very meaning, from inside as from outside."""

MACHINE, OPENED = "system.unhealthy", "chassis.intrusion"
"""Conditions of the machine as a whole, and of its cover, that a BMC reports."""

_WORD, _SERIAL, _SAYS, _COVER = "health:", "serial:", "says:", "intrusion:"
_SYSTEM = "system"
_COVERS = {"normal": False, "hardwareintrusion": True, "tamperingdetected": True}
_NO_PARTS = ("bmc.", "inventory.", "observation.", "firmware.", "system.", "chassis.", "binding.", "check.")
"""Conditions that are of no part's health, and so explain no machine's."""


def judge_part_health(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Facts "health:KIND:SLOT" are words of health, "serial:KIND:SLOT" and "says:KIND:SLOT" belong to them.

    "health:system:ID" is of the machine, "intrusion:CHASSIS" of a cover.
    """
    told = part_subjects(observation, node, sku)
    findings = [
        shown for subject in told.values() for one in subject.findings for shown in joined(one, node, UNHEALTHY)
    ]
    return findings + unreadable([name for subject in told.values() for name in subject.unread])


def part_subjects(observation: Observation, node: Node, sku: Sku | None) -> dict[str, Subject]:
    """Collect the BMC's word about each part, by serial where one is known; what others have seen is left aside."""
    slots = PartSlots(node, sku)
    serials = frozenset(serial for _, serial in node.slots)
    shown = _serials(observation.facts)
    found: dict[str, Subject] = {}
    for name in sorted(observation.facts):
        kind, colon, slot = name.removeprefix(_WORD).partition(":")
        if not name.startswith(_WORD) or not colon or kind == _SYSTEM:
            continue
        place = f"{kind}:{slot}"
        own = shown.get(place, "")
        known = slots.part_of(slot)
        part = own if own in serials or known == slot else known
        subject = found.setdefault(part or own or slot, Subject([], [], []))
        subject.names += [key for key in (name, _SERIAL + place, _SAYS + place) if key in observation.facts]
        judged = _judge(kind, part or own or slot, observation.facts, place)
        if judged is None:
            subject.unread.append(place)
        subject.findings += judged or []
    return found | _covers(observation.facts) | _machine(observation.facts, node, found)


def _serials(facts: Facts) -> dict[str, str]:
    """Place → the serial that tells it from others: none where that says nothing or several of a kind show it."""
    told = {
        name.removeprefix(_SERIAL): meaningful(printable(value))
        for name, value in facts.items()
        if name.startswith(_SERIAL) and isinstance(value, str)
    }
    shown = Counter((place.partition(":")[0], serial) for place, serial in told.items())
    return {place: serial for place, serial in told.items() if shown[place.partition(":")[0], serial] == 1}


def _covers(facts: Facts) -> dict[str, Subject]:
    """Whether each chassis is closed; a word that nobody knows says neither."""
    found: dict[str, Subject] = {}
    for name, value in sorted(facts.items()):
        if not name.startswith(_COVER):
            continue
        word = value.strip().lower() if isinstance(value, str) else ""
        part = f"cover {name.removeprefix(_COVER)}"
        opened = _COVERS.get(word)
        if opened is None:
            found[part] = Subject([name], [], [part])
        elif opened:
            text = f"{part} has been opened: {word}"
            found[part] = Subject([name], [stands(OPENED, text, part, {"state": word})], [])
        else:
            found[part] = Subject([name], [over(OPENED, f"{part} is closed", part)], [])
    return found


def _machine(facts: Facts, node: Node, parts: dict[str, Subject]) -> dict[str, Subject]:
    """Judge the BMC's word about the machine: told where its word about no part is as grave."""
    told = next(((name, facts[name]) for name in sorted(facts) if name.startswith(f"{_WORD}{_SYSTEM}:")), None)
    if told is None:
        return {}
    name, value = told
    word = value.strip().lower() if isinstance(value, str) else ""
    grave = SENSOR_RULES[MACHINE].words.get(word)
    if grave is None and word != "ok":
        return {_SYSTEM: Subject([name], [], [_SYSTEM])}
    said = [one.severity for subject in parts.values() for one in subject.findings if one.standing]
    said += [c.severity for c in node.conditions if "bmc" in c.paths and not c.type.startswith(_NO_PARTS)]
    if grave is None or max(said, default=Severity.info) >= grave:
        why = "the BMC reports the machine as healthy" if grave is None else "the BMC says which part it is"
        return {_SYSTEM: Subject([name], [over(MACHINE, why, _SYSTEM)], [])}
    text = f"the BMC reports the machine as {word}, and none of its parts"
    return {_SYSTEM: Subject([name], [stands(MACHINE, text, _SYSTEM, {"state": word}, grave)], [])}


def _judge(kind: str, part: str, facts: Facts, place: str) -> list[Finding] | None:
    """Judge the word, None for a word that nobody knows: it neither convicts nor clears."""
    told, says = facts[_WORD + place], facts.get(_SAYS + place)
    word = told.strip().lower() if isinstance(told, str) else ""
    if word == "ok":
        text = f"the BMC reports {place} as healthy"
        kinds = dict.fromkeys((UNHEALTHY, FAILED.get(kind, UNHEALTHY)))
        return [replace(over(one, text, part), facts={"kind": kind}) for one in kinds]
    grave = SENSOR_RULES[UNHEALTHY].words.get(word)
    if grave is None:
        return None
    shown: Facts = {"kind": kind, "place": place, "state": word}
    if isinstance(says, str):
        shown["says"] = printable(says)
    text = f"the BMC reports {place} as {word}" + (f": {shown['says']}" if "says" in shown else "")
    if word == "critical" and kind in FAILED:
        return [stands(FAILED[kind], text, part, shown)]
    return [stands(UNHEALTHY, text, part, shown, grave)]
