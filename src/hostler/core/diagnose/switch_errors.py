"""An NVSwitch's error is printed in several lines: the first says how grave it is, the others carry its data.

The kernel gives them one by one, so the others are judged after the first has been recorded: they are evidence of it,
not another error of which nobody knows how grave it is.
"""

from datetime import datetime

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.same_fault import is_of_now, just_seen
from hostler.core.state.model import Condition, Facts, Node


def join(node: Node, findings: tuple[Finding, ...], at: datetime) -> tuple[Finding, ...]:
    """The findings; further lines of an error as evidence of what its first line, seen just before, raised."""
    return tuple(_joined(node, finding, at) for finding in findings)


def _joined(node: Node, finding: Finding, at: datetime) -> Finding:
    if finding.facts.get("continuation") is not True or not is_of_now(finding):
        return finding
    first = next((c for c in node.conditions if _began(node, c, finding, at)), None)
    return finding if first is None else replace(finding, type=first.type, severity=first.severity)


def _began(node: Node, condition: Condition, finding: Finding, at: datetime) -> bool:
    beside = condition.part == finding.part and just_seen(node, condition, at)
    return beside and any(_is_first(e.facts, finding) for e in condition.evidence)


def _is_first(facts: Facts, finding: Finding) -> bool:
    return facts.get("code") == finding.facts.get("code") and "continuation" not in facts
