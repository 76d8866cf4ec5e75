"""Judges the word of health that a BMC has for a part: a drive, a processor, a memory module, a network adapter.

The BMC sums up what it has seen; the node's own drivers name it more exactly. Where they have, what the BMC says is
evidence of that same condition and never a second one. Its "OK" ends only what its own word has raised: it takes
nothing back that is seen from inside, and what is well from inside takes nothing back that the BMC still says.
"""

from hostler.core.conditions import CONDITIONS
from hostler.core.configuration import Sku
from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over, stands
from hostler.core.diagnose.line import printable
from hostler.core.diagnose.sensor_rules import SENSOR_RULES
from hostler.core.diagnose.sensors import Subject, unreadable
from hostler.core.diagnose.slots import Slots
from hostler.core.model import Condition, Facts, Node, Observation, Severity

UNHEALTHY = "part.unhealthy"
FAILED = {"drive": "storage.failed"}
"""Kind of part → the condition of which its word "critical" is the very meaning, from inside as from outside."""

_FAMILIES: dict[str, tuple[str, ...]] = {
    "gpu": ("gpu.", "pcie.", "accelerator."),
    "cpu": ("cpu.",),
    "memory": ("memory.",),
    "drive": ("storage.",),
    "nic": ("network.", "pcie."),
}
_OTHERS = ("accelerator.", "pcie.")
_WORD, _SERIAL, _SAYS = "health:", "serial:", "says:"
_MOMENTS = frozenset({"bmc", "kernel_log"})


def judge_part_health(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """Facts "health:KIND:SLOT" are words of health, "serial:KIND:SLOT" and "says:KIND:SLOT" belong to them."""
    told = part_subjects(observation, node, sku)
    findings = [joined for subject in told.values() for one in subject.findings for joined in _joined(one, node)]
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
        return [over(condition, text, part) for condition in dict.fromkeys((UNHEALTHY, FAILED.get(kind, UNHEALTHY)))]
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


def _joined(finding: Finding, node: Node) -> list[Finding]:
    """A fault as the condition that stands of it already; that it is over, for each that the BMC is a witness of."""
    if not finding.standing:
        theirs = [c for c in node.conditions if c.part == finding.part and _bmc_may_leave(c)]
        kinds = dict.fromkeys((finding.type, *(c.type for c in theirs)))
        return [over(kind, finding.text, finding.part) for kind in kinds]
    exact = explained_by(str(finding.facts.get("kind", "")), finding.part, node)
    if exact is None:
        return [finding]
    return [Finding(exact.type, exact.severity, finding.text, finding.part, facts=finding.facts)]


def _bmc_may_leave(condition: Condition) -> bool:
    """Whether the BMC is a witness of it among others that are still heard, or the only one.

    A kernel log cannot say that something is over, so beside it the BMC stays.
    """
    paths = set(condition.paths)
    return "bmc" in paths and paths != _MOMENTS and any(condition.type.startswith(f) for f in _ALL_FAMILIES)


_ALL_FAMILIES = tuple({prefix for family in (*_FAMILIES.values(), _OTHERS) for prefix in family})


def explained_by(kind: str, part: str, node: Node) -> Condition | None:
    """The gravest fault of that part which the node itself shows, None where it shows none."""
    exact = [c for c in node.conditions if c.part == part and explains(c.type, kind)]
    return max(exact, key=lambda c: (c.severity, c.type), default=None)


def explains(condition: str, kind: str) -> bool:
    """Whether a condition of this type names what is wrong with a part of this kind more exactly than its BMC does."""
    row = CONDITIONS.get(condition)
    family = _FAMILIES.get(kind, _OTHERS)
    return row is not None and row.severity >= Severity.degraded and condition.startswith(family)
