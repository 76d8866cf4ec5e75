"""Makes one look of a watch out of a reading of a BMC's sensors: what is out of range, and which supplies are well."""

from datetime import datetime

from hostler.core.diagnose.sensors import subjects
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Node, Observation, Severity
from hostler.core.state.sensor_watch import SensorLook

NAMED = 8
_SUPPLIES = ("power.supply", "power.redundancy")
"""Conditions that are told of the supplies, and not again among what is out of range."""
_WELL = ("ok", "enabled")


def sensor_look(node: Node, sku: Sku | None, seen: Observation, at: datetime) -> SensorLook:
    """The reading as one look at this moment."""
    told = subjects(seen, node, sku)
    standing = [(part, f) for part, one in told.items() for f in one.findings if f.standing]
    grave = [(part, f) for part, f in standing if f.severity >= Severity.degraded and not f.type.startswith(_SUPPLIES)]
    wrong = [(f"{f.type} {part}", f.text) for part, f in grave]
    words = {name: str(seen.facts[name]).lower() for name in sorted(seen.facts) if name.endswith(("_health", "_state"))}
    groups = [word for name, word in words.items() if name.startswith("power_redundancy")]
    return SensorLook(
        at=at,
        read=sum(len(one.names) for one in told.values()),
        wrong=tuple(sorted(wrong))[:NAMED],
        unread=tuple(sorted({name for one in told.values() for name in one.unread}))[:NAMED],
        supplies=_supplies(words),
        redundancy=next((word for word in groups if word not in _WELL), groups[0] if groups else ""),
        gaps=seen.text[:200],
    )


def _supplies(words: dict[str, str]) -> int | None:
    """How many supplies say that they are well in all their words, None where none is shown."""
    said: dict[str, list[str]] = {}
    for name, word in words.items():
        if name.startswith("psu"):
            said.setdefault(name.rpartition("_")[0], []).append(word)
    return sum(all(word in _WELL for word in one) for one in said.values()) if said else None
