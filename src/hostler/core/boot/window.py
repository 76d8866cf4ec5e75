"""The boot window of a node: opened by a recorded power-on of its plan, closed when the node has come up. Pure."""

from hostler.core.state.model import Node, Plan

_POWERS_ON = ("power_on", "reboot")
_WAITS = ("wait_boot", "wait_agent")


def window_of(node: Node) -> str:
    """The plan whose power-on lets the node boot now, "" where no boot of it is expected."""
    plan = node.plan
    if plan is None or plan.state != "running" or _is_home(node, plan):
        return ""
    opened = -1
    for number, step in enumerate(plan.steps[: plan.index + 1]):
        if step.operation in _POWERS_ON and (number < plan.index or _is_under_way(node, step.operation)):
            opened = number
        elif step.operation in _WAITS and number < plan.index:
            opened = -1
    return plan.id if opened >= 0 else ""


def _is_home(node: Node, plan: Plan) -> bool:
    return node.boot is not None and node.boot.plan == plan.id and node.boot.home is not None


def _is_under_way(node: Node, kind: str) -> bool:
    return node.operation is not None and node.operation.kind == kind
