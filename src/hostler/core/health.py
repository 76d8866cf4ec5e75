"""What is known of a node's health: that somebody who would say otherwise is silent is never health."""

from hostler.core.model import Node

UNHEARD = frozenset({"agent.lost", "agent.outdated"})
"""Conditions of a node that is not heard at all."""
DOUBTS = UNHEARD | {"agent.collector_failed", "reading.missing", "check.inconclusive"}
"""Conditions that say that somebody who looks, or a check, cannot tell."""


def is_doubted(node: Node) -> bool:
    """Whether nobody can say how it is, wholly or in part: a source is silent, or a condition is unknown by now."""
    return any(c.type in DOUBTS or c.unknown_since is not None for c in node.conditions)


def is_unheard(node: Node) -> bool:
    """Whether its agent is not heard, or not understood."""
    return any(c.type in UNHEARD for c in node.conditions)
