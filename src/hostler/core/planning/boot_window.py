"""The boot window of a node: opened by a recorded power-on of its plan, closed when the node has come up. Pure."""

from hostler.core.state.model import Node, Plan

STARTS = ("power_on", "reboot")
"""Operations that open it."""
HANDS_OVER = ("set_boot_network", *STARTS)
"""Operations with which a BMC is given the secret of a boot."""
_WAITS = ("wait_boot", "wait_agent")


def window_of(node: Node) -> str:
    """The plan whose power-on lets the node boot now, "" where no boot of it is expected."""
    return _opened_by(node, STARTS)


def medium_window_of(node: Node) -> str:
    """The plan whose boot medium may be read now: it goes into its drive before the power-on."""
    return _opened_by(node, HANDS_OVER)


def _opened_by(node: Node, kinds: tuple[str, ...]) -> str:
    plan = node.plan
    if plan is None or plan.state != "running" or _is_home(node, plan):
        return ""
    opened = -1
    for number, step in enumerate(plan.steps[: plan.index + 1]):
        if step.operation in kinds and (number < plan.index or _is_under_way(node, step.operation)):
            opened = number
        elif step.operation in _WAITS and number < plan.index:
            opened = -1
    return plan.id if opened >= 0 else ""


def _is_home(node: Node, plan: Plan) -> bool:
    return node.boot is not None and node.boot.plan == plan.id and node.boot.home is not None


def _is_under_way(node: Node, kind: str) -> bool:
    return node.operation is not None and node.operation.kind == kind
