"""A node's health: one function says *healthy*, for pools, nodes, spares, the console and metrics.

That somebody who would say otherwise is silent is never health, and neither is that nobody has looked. What a pool's
budget counts is another thing: who is in service (`is_serving`), whatever ails it; else faults would use up the budget
that their own remedies need.
"""

from hostler.core.state.model import Condition, Node, Phase, Severity, Verdict
from hostler.core.state.plan_rules import Releases
from hostler.core.state.requalification import has_proven_itself

BARS = Severity.degraded
"""A condition of this severity or a graver one keeps a node from counting as healthy."""

UNHEARD = frozenset({"agent.lost", "agent.outdated", "agent.refused"})
"""Conditions of a node that is not heard at all."""
DOUBTS = UNHEARD | {
    "agent.collector_failed",
    "agent.says_too_much",
    "bmc.says_too_much",
    "reading.missing",
    "check.inconclusive",
    "inventory.unseen_kind",
}
"""Conditions that say that somebody who looks, or a check, cannot tell."""
CLAIMED = "inventory.claimed_twice"
"""Condition of a part that two nodes show: it bars nothing, or one node could bar all."""
NOT_ITS_SKU = frozenset({"inventory.missing_part", "inventory.below_sku", "inventory.mismatch"})
"""Conditions of a node that is not what its SKU says, whatever their severity."""


def is_serving(node: Node) -> bool:
    """In production, with no disruptive plan, no delivery and no cordon of ours: nothing of it is taken away."""
    plan = node.plan
    disrupted = (
        plan is not None and plan.state != "proposed" and (plan.disruptive or plan.rules.releases is Releases.undone)
    )
    return node.phase is Phase.production and not disrupted and not node.cordons


def is_healthy(node: Node) -> bool:
    """In service, heard, seen to be its SKU in this boot, barred by no condition, and its last gate passed."""
    if not is_serving(node) or is_doubted(node) or not _last_gate_passed(node):
        return False
    return not any(bars(condition) for condition in node.conditions)


def bars(condition: Condition) -> bool:
    """Whether a node with this condition is not healthy."""
    return condition.severity >= BARS or condition.type in NOT_ITS_SKU


def is_doubted(node: Node) -> bool:
    """Whether nobody can say how it is: a source is silent, a condition is unknown, or nobody saw it in this boot."""
    if node.inventory_at is None or node.inventory_boot != node.boot_id:
        return True
    return any(c.type in DOUBTS or c.unknown_since is not None for c in node.conditions)


def _last_gate_passed(node: Node) -> bool:
    """A node that was never gated has been adopted; what was done to any other has been proven since.

    A burn-in looks at more than a gate: one that passed later outweighs the gate that sent the node to be repaired.
    """
    gate = next((check for check in node.checks if check.profile == "gate"), None)
    if gate is not None and gate.verdict is not Verdict.passed:
        later = (check for check in node.checks if check.profile == "burn_in" and check.at > gate.at)
        if not any(check.verdict is Verdict.passed for check in later):
            return False
    return has_proven_itself(node)


def is_unheard(node: Node) -> bool:
    """Whether its agent is not heard, not understood, or refused."""
    return any(c.type in UNHEARD for c in node.conditions)
