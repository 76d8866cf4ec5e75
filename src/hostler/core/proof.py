"""Whether a node has shown that it works since it was last disturbed."""

from hostler.core.model import Node, Verdict

_GENTLE = ("cordon", "drain", "release", "deliver")
"""What ends work at most, and touches nothing that a gate would have to prove again."""


def has_proven_itself(node: Node) -> bool:
    """Whether a check has passed since the node was last disturbed."""
    if not node.attempts:
        return True
    harmless = node.plan.recorded_at if node.plan is not None and not node.plan.disturbed else None
    disturbed = [a.at for a in node.attempts if a.struck and a.at != harmless and a.remedy not in _GENTLE]
    if not disturbed:
        return True
    last = max(disturbed)
    return any(c.at >= last and c.verdict is Verdict.passed for c in node.checks)
