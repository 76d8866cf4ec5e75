"""What a node in triage waits for: somebody's hands, or its next examination, where the last could not be made.

An examination that never came to its checks has found nothing: a BMC that restarts, a management network that is away.
Only when it could not be made time and again does the node go back to its vendor.
"""

from datetime import datetime, timedelta

from hostler.core.answers import Wait
from hostler.core.configuration import scaled
from hostler.core.model import Attempt, Blocker, Node, Plan
from hostler.core.scene import Scene

EXAMINE = "examine"
AGAIN_S = (600.0, 3600.0, 4 * 3600.0)
"""So long after an examination that could not be made began the next one does; after the last there is none."""


def waits(scene: Scene, node: Node) -> Wait | None:
    """Whom a node in triage waits for; None where it may be examined now."""
    asked = next((c for c in node.conditions if c.type == "operator.maintenance"), None)
    if asked is not None:
        text = f"{asked.owner} took it out for maintenance"
        return Wait(
            "maintenance", (Blocker("person", "technician", text, "the work is ended (hostler node end-work)"),)
        )
    vain = _in_vain(node)
    again = _again_at(scene, node, vain)
    if again is None or again <= scene.now:
        return None
    text = f"it could not be restarted for its examination ({len(vain)} of {len(AGAIN_S) + 1})"
    ends = f"a technician sees to its BMC, or it is tried again after {again:%H:%M} UTC"
    return Wait(EXAMINE, (Blocker("person", "technician", text, ends),), until=again)


def is_tried_again(node: Node, plan: Plan) -> bool:
    """Whether this plan, which fails, is an examination that came to no check, and another is to come."""
    checks = next((n for n, step in enumerate(plan.steps) if step.operation == "run_checks"), len(plan.steps))
    return plan.name == EXAMINE and plan.index < checks and len(_in_vain(node)) < len(AGAIN_S)


def _in_vain(node: Node) -> list[Attempt]:
    """The examinations of this visit that could not be made."""
    return [a for a in node.attempts if a.remedy == EXAMINE and a.failed and a.at >= node.phase_since]


def _again_at(scene: Scene, node: Node, vain: list[Attempt]) -> datetime | None:
    if not vain:
        return None
    pause_s = AGAIN_S[min(len(vain), len(AGAIN_S)) - 1]
    return vain[-1].at + timedelta(seconds=scaled(scene.fleet.policy_of(node), pause_s))
