"""One fault is one condition: what a BMC merely called unhealthy or hot becomes evidence of what is named exactly."""

from msgspec.structs import replace

from hostler.core.conditions.lifecycle import EVIDENCE_KEPT
from hostler.core.diagnose.bmc_evidence import NEAR_LIMIT, UNHEALTHY, explains
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Node


def take_in(node: Node, raised: Condition) -> tuple[e.Event, ...]:
    """Events where `raised` names the fault of a part of which only its BMC has spoken until now."""
    alike = [c for c in node.conditions if c.part == raised.part and _is_vague(c, raised)]
    if not alike:
        return ()
    told = replace(
        raised,
        paths=tuple(dict.fromkeys((*raised.paths, *(path for c in alike for path in c.paths)))),
        evidence=(*(seen for c in alike for seen in c.evidence), *raised.evidence)[-EVIDENCE_KEPT:],
        count=raised.count + sum(c.count for c in alike),
    )
    text = f"it is named more exactly now: {raised.type}"
    cleared = (e.ConditionCleared(node.id, c.id, "observation", text) for c in alike)
    return (e.ConditionUpdated(told), *cleared)


def _is_vague(condition: Condition, raised: Condition) -> bool:
    """Whether the BMC alone has told of it, and `raised` is what it meant."""
    if condition.type not in (UNHEALTHY, NEAR_LIMIT) or set(condition.paths) != {"bmc"}:
        return False
    kind = next((str(seen.facts["kind"]) for seen in reversed(condition.evidence) if "kind" in seen.facts), "")
    return explains(raised.type, condition.type, kind)
