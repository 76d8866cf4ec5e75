"""Bodies of version 1 as version 2 writes them, and back."""

from typing import Any

import msgspec

from hostler.core.state.intent import act_of, arguments
from hostler.core.state.plan_rules import PlanRules
from hostler.core.state.scopes import NODES

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


def intent_up(intent: dict[str, Any]) -> dict[str, Any]:
    """An intent, its verb and arguments read as today's are."""
    others = {name: value for name, value in intent.items() if name not in ("verb", "args")}
    args = dict(intent.get("args", {}))
    listed = args.pop(NODES, "") if intent["target"] == NODES else ""
    act = msgspec.to_builtins(act_of(str(intent["verb"]), args))
    return {**others, "act": act, "nodes": [name for name in listed.split(",") if name]}


def intent_down(intent: dict[str, Any]) -> dict[str, Any]:
    """An intent, its arguments as text."""
    others = {name: value for name, value in intent.items() if name not in ("act", "nodes", "own_work", "known_as")}
    act, nodes = intent["act"], intent["nodes"]
    args = arguments(act) | ({NODES: ",".join(nodes)} if nodes else {})
    return {**others, "verb": act.get("said", act["verb"]), "args": args}


def intent_recorded_up(body: dict[str, Any]) -> dict[str, Any]:
    """A recorded intent."""
    return {**body, "intent": intent_up(body["intent"])}


def intent_recorded_down(body: dict[str, Any]) -> dict[str, Any]:
    """A recorded intent."""
    return {**body, "intent": intent_down(body["intent"])}


def approval_up(approval: dict[str, Any]) -> dict[str, Any]:
    """An approval with its intent."""
    return {**approval, "intent": intent_up(approval["intent"])}


def approval_requested_up(body: dict[str, Any]) -> dict[str, Any]:
    """A requested approval with its intent."""
    return {**body, "approval": approval_up(body["approval"])}


def approval_requested_down(body: dict[str, Any]) -> dict[str, Any]:
    """A requested approval with its intent."""
    approval = body["approval"]
    return {**body, "approval": {**approval, "intent": intent_down(approval["intent"])}}


def state_up(state: dict[str, Any]) -> dict[str, Any]:
    """The committed state of a snapshot, without its nodes: its approvals."""
    return {**state, "approvals": [approval_up(one) for one in state["approvals"]]}


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
