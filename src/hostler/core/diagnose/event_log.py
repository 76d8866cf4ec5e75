"""Judges entries of a BMC's event log (SEL): what it held grave stays visible for a time, and convicts nobody alone.

An entry is a moment, not a state: what is so now the sensors tell. So entries never end a condition, and an entry that
says that all is well again is not told. The severity is the BMC's own word; one that is not known is a warning.
"""

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import stands
from hostler.core.diagnose.line import printable
from hostler.core.diagnose.part_slots import PartSlots
from hostler.core.state.configuration import Sku
from hostler.core.state.model import Facts, Node, Observation, Severity

TEXT_CHARS = 256

_SEVERITIES = {"critical": Severity.degraded, "fatal": Severity.degraded, "warning": Severity.warning}
_ROUTINE = frozenset({"ok", "informational", "info", "normal", "deassert"})


def judge_event_log(observation: Observation, node: Node, sku: Sku | None) -> list[Finding]:
    """One entry: `text` its message; facts "severity", "entry", "created", "sensor", and "lost" entries before it."""
    facts = observation.facts
    told = facts.get("severity")
    word = told.strip().lower() if isinstance(told, str) else ""
    found: list[Finding] = []
    lost = facts.get("lost")
    if isinstance(lost, int) and not isinstance(lost, bool) and lost > 0:
        text = f"{lost} entries of the BMC's event log were passed over: it had more than are read at once"
        found.append(stands("bmc.log_overrun", text, facts={"lost": lost}))
    if word in _ROUTINE or not (observation.text or word):
        return found
    sensor = facts.get("sensor")
    name = printable(str(sensor)[:64]) if sensor else ""
    shown: Facts = {key: facts[key] for key in ("entry", "created", "severity") if key in facts}
    text = f"the BMC's event log: {printable(observation.text[:TEXT_CHARS])}"
    grave = _SEVERITIES.get(word, Severity.warning)
    return [*found, stands("bmc.event", text, PartSlots(node, sku).part_of(name) if name else "", shown, grave)]
