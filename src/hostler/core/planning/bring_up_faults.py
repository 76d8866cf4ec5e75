"""Faults with which no bring-up goes on: a phase's own work fails on them, and is not begun again while they stand."""

from hostler.core.policy.remedy_escalation import rule_for
from hostler.core.state.configuration import Policy
from hostler.core.state.model import Condition, Node, Severity
from hostler.core.tables.conditions import CONDITIONS


def bring_up_faults(policy: Policy, node: Node, *, checking: bool = False) -> list[Condition]:
    """The grave conditions of the node that a remedy answers; `checking`: those that a restart shows count too."""
    return [
        c
        for c in node.conditions
        if c.severity >= Severity.critical
        and rule_for(policy, c).remedy
        and (checking or not _shows_restart(c))
        and not c.type.startswith("inventory.")  # a step of its own looks at that
    ]


def fault_text(fault: Condition) -> str:
    """The condition and what was last seen of it."""
    return f"{fault.type}: {fault.evidence[-1].text if fault.evidence else ''}"


def _shows_restart(condition: Condition) -> bool:
    """Whether the phase's own restart shows it; its waits for the agent have limits of their own."""
    kind = CONDITIONS.get(condition.type)
    return kind is not None and kind.restarting
