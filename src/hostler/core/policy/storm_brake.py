"""The storm brake: too many disruptions within its window stop all of them until a person releases it."""

from datetime import timedelta

from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Blocker
from hostler.core.state.plan_rules import Releases
from hostler.core.tables.recipe_facts import rules_of


def storm(scene: DecisionContext, asking: int) -> str:
    """Why the storm brake must latch before `asking` more nodes are disturbed, "" where it need not."""
    brake = scene.fleet.policy.brake
    since = scene.sure - timedelta(seconds=brake.window_s)
    if scene.fleet.cell.calm_since is not None:
        since = max(since, scene.fleet.cell.calm_since)
    recent = sum(1 for r in scene.fleet.cell.recent if r.at > since and rules_of(r.name).releases is not Releases.done)
    limit = max(brake.disruptions, int(len(scene.fleet.nodes) * brake.percent / 100))
    if recent + asking <= limit:
        return ""
    return f"{recent + asking} disruptions within {brake.window_s / 60:.0f} min, the limit is {limit}"


def braked(scene: DecisionContext, _request: DisruptionRequest) -> list[Blocker]:
    """Blocker of everything while the brake is latched."""
    if not scene.fleet.cell.brake:
        return []
    return [
        Blocker(
            "brake",
            "storm",
            f"the storm brake is latched: {scene.fleet.cell.brake}",
            "a person releases it (hostler brake release)",
        )
    ]
