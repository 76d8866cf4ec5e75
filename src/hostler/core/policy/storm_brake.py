"""The storm brake: too many disruptions within its window stop all of them until a person releases it."""

from datetime import datetime, timedelta

from hostler.core.policy.budgets import leaves
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.durations import duration
from hostler.core.state.model import Blocker
from hostler.core.state.plan_rules import Releases
from hostler.core.state.scopes import FLEET
from hostler.core.state.verbs.modes import ReleaseBrake
from hostler.core.state.ways_out import by_act
from hostler.core.tables.recipe_facts import rules_of


def storm(context: DecisionContext, asking: int) -> str:
    """Why the storm brake must latch before `asking` more nodes are disturbed, "" where it need not."""
    brake = context.fleet.policy.brake
    since = context.sure - _window(context)
    if context.fleet.cell.calm_since is not None:
        since = max(since, context.fleet.cell.calm_since)
    recent = sum(1 for r in context.fleet.cell.recent if r.at > since and _disturbs(r.name))
    limit = max(brake.disruptions, int(len(context.fleet.nodes) * brake.percent / 100))
    if recent + asking <= limit:
        return ""
    return f"{recent + asking} disruptions within {duration(brake.window_s)}, the limit is {limit}"


def _disturbs(name: str) -> bool:
    """Whether plans of this name are counted: a release was asked for, and a person's cordon disturbs nobody."""
    return name != "cordon" and rules_of(name).releases is not Releases.done


def storm_ebbs(context: DecisionContext) -> datetime | None:
    """When the next of what was done to nodes leaves the brake's window; None while none is in it."""
    return leaves(context, _window(context))


def _window(context: DecisionContext) -> timedelta:
    return timedelta(seconds=context.fleet.policy.brake.window_s)


def braked(context: DecisionContext, _request: DisruptionRequest) -> list[Blocker]:
    """Blocker of everything while the brake is latched."""
    if not context.fleet.cell.brake:
        return []
    return [
        Blocker(
            "brake",
            "storm",
            f"the storm brake is latched: {context.fleet.cell.brake}",
            by_act(ReleaseBrake(), FLEET, "a person releases it"),
        )
    ]
