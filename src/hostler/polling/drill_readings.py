"""A drill's share of the looks at its node's BMC: readings that are laid over its own, or looks that are left out.

What is laid over has names that no BMC has, so that a drill hides no reading, and none of its part. Pure.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from hostler.core.diagnose.debounce import RepeatedReading
from hostler.core.state.drills import SENSOR, SILENT_S, SUPPLY, Drill, DrillFault, running
from hostler.core.state.model import Facts, Node, Observation

_READINGS: dict[DrillFault, Facts] = {
    DrillFault.psu: {f"{SUPPLY}_health": "critical"},
    DrillFault.thermal: {f"{SENSOR}_c": 95.0, f"{SENSOR}_caution_c": 90.0, f"{SENSOR}_limit_c": 110.0},
}
"""A supply that has failed; a temperature above its caution and well below its limit, which would cut the power."""


def laid_over(node: Node, seen: Observation, now: datetime) -> Observation:
    """The readings with those of the node's drill among them, while what they show may still be seen."""
    drill = _shown(node, now)
    facts = _READINGS.get(drill.fault) if drill is not None else None
    return replace(seen, facts={**seen.facts, **facts}) if facts else seen


def shown(node: Node, seen: Observation, now: datetime, heard: dict[str, RepeatedReading]) -> Observation:
    """The same; of a drill that is over what was `heard` is let go, so that the next one is told of as this one was."""
    with_drill = laid_over(node, seen, now)
    if with_drill is seen:
        for part in (SENSOR, SUPPLY):
            heard.pop(part, None)
    return with_drill


def keeps_silent(node: Node, now: datetime) -> bool:
    """Whether a drill has the node's BMC not asked now: until its remedy has acted, or its silence is over."""
    drill = running(node.drill)
    if drill is None or drill.fault is not DrillFault.bmc_silent or drill.injected_at is None:
        return False
    acted = node.plan is not None and node.plan.drill == drill.id and node.plan.index > 0
    return not acted and now < drill.injected_at + timedelta(seconds=SILENT_S)


def _shown(node: Node, now: datetime) -> Drill | None:
    drill = running(node.drill)
    return drill if drill is not None and drill.shows(drill.condition, now) else None
