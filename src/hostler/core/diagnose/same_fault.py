"""Recognises that lines which come one by one are of one fault: a finding of now, and a condition seen just before."""

from datetime import datetime, timedelta

from hostler.core.diagnose import Finding
from hostler.core.state.model import Condition, Node

SAME_FAULT_WITHIN = timedelta(seconds=60)
"""How long the lines of one fault may be apart."""


def is_of_now(finding: Finding) -> bool:
    """Whether it tells of something that is there, and not of an earlier boot."""
    return finding.standing and not finding.facts.get("earlier_boot")


def just_seen(node: Node, condition: Condition, at: datetime) -> bool:
    """Whether the condition is of this boot and was seen so little time before or after this moment."""
    return condition.boot_id in ("", node.boot_id) and abs(at - condition.last_seen) <= SAME_FAULT_WITHIN
