"""Whether a node has shown that it works since its hardware was last acted upon."""

from hostler.core.state.model import Node, Phase, Verdict


def has_proven_itself(node: Node) -> bool:
    """Whether a check has passed since the node was last touched, and a whole return since hands were in a spare.

    Before production every phase looks for itself at what hands did.
    """
    if node.repairs and node.phase is Phase.production:
        return False
    if not node.attempts:
        return True
    harmless = node.plan.recorded_at if node.plan is not None and not node.plan.touched else None
    touched = [a.at for a in node.attempts if a.touched and a.at != harmless]
    if not touched:
        return True
    last = max(touched)
    return any(c.at >= last and c.verdict is Verdict.passed for c in node.checks)
