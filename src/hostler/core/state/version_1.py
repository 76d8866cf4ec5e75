"""Bodies of version 1 as version 2 writes them, and back."""

from typing import Any

import msgspec

from hostler.core.state.plan_rules import PlanRules

_RULES: dict[str, dict[str, object]] = {
    "deliver": {"on_failure": "undoes", "answers": "nothing", "releases": "undone"},
    "release": {"left_phase": "triage", "releases": "done"},
    "examine": {"found_phase": "rma", "answers": "examined"},
    "return_to_service": {"on_failure": "raises", "answers": "earlier_boots", "hands": True},
    "seatrial": {"hands": True},
    "drain": {"keeps": "cordon"},
    "power_off": {"keeps": "power"},
    "triage": {"answers": "nothing"},
    "cordon": {"answers": "nothing"},
    "uncordon": {"answers": "nothing"},
    "protective_power_off": {"answers": "nothing"},
    "gpu_reset": {"cures": "gpu_reset"},
    "reboot": {"cures": "reboot"},
    "power_cycle": {"cures": "power_on"},
    "bmc_reset": {"cures": "bmc_cold_reset"},
}
"""Recipe → the rules that Hostler had for its plans when plans were recorded without any."""


def rules_of(recipe: str) -> PlanRules:
    """The rules that were in force for plans of the recipe."""
    return msgspec.convert(_RULES.get(recipe, {}), PlanRules)


def plan_recorded_up(body: dict[str, Any]) -> dict[str, Any]:
    """A recorded plan, with the rules that were in force for its recipe."""
    plan = body["plan"]
    return {**body, "plan": {**plan, "rules": _RULES.get(str(plan["name"]), {})}}


def plan_recorded_down(body: dict[str, Any]) -> dict[str, Any]:
    """A recorded plan, without its rules."""
    return {**body, "plan": {name: value for name, value in body["plan"].items() if name != "rules"}}
