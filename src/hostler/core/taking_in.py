"""One fault is one condition: what a BMC merely called unhealthy becomes evidence of what is now named exactly."""

from msgspec.structs import replace

from hostler.core import events as e
from hostler.core.diagnose.part_health import UNHEALTHY, explains
from hostler.core.model import Condition, Node
from hostler.core.standing import EVIDENCE_KEPT


def take_in(node: Node, raised: Condition) -> tuple[e.Event, ...]:
    """What follows where `raised` names the fault of a part of which only its BMC has spoken until now."""
    vague = next((c for c in node.conditions if c.type == UNHEALTHY and c.part == raised.part), None)
    if vague is None or not explains(raised.type, str(vague.evidence[-1].facts.get("kind", ""))):
        return ()
    paths = tuple(dict.fromkeys((*raised.paths, *vague.paths)))
    evidence = (*vague.evidence, *raised.evidence)[-EVIDENCE_KEPT:]
    told = replace(raised, paths=paths, evidence=evidence, count=raised.count + vague.count)
    text = f"it is named more exactly now: {raised.type}"
    return (e.ConditionUpdated(told), e.ConditionCleared(node.id, vague.id, "observation", text))
