"""A GPU's double-bit error and the row that was taken out of use for it are one fault: the row says what is to be done.

Xid 48 alone asks for a reset at once. Where the driver has recorded the bad row as well (63) or contained the error
(94), the GPU goes on until its work has ended and is reset then; where it could not record the row (64), only another
GPU helps. The lines come within a second of each other, in either order (NVIDIA's "GPU Debug Guidelines", Xid 48).
"""

from datetime import datetime

from msgspec.structs import replace

from hostler.core.diagnose import Finding
from hostler.core.diagnose.same_fault import is_of_now, just_seen
from hostler.core.state.model import Condition, Node
from hostler.core.tables.conditions import CONDITIONS

DOUBLE_BIT = "gpu.ecc_uncorrectable"
DOUBLE_BIT_CODES = frozenset({48, 171, 172})
"""Xid 48, and the details of it that newer drivers add."""
DECIDES = ("gpu.row_remap_failure", "gpu.row_remap_pending", "gpu.ecc_contained")
"""Conditions that decide about a double-bit error of the same GPU and minute, the gravest first."""
DECIDING_CODES = frozenset({63, 64, 94})


def join(node: Node, findings: tuple[Finding, ...], at: datetime) -> tuple[Finding, ...]:
    """The findings; double-bit errors as evidence of what has been said, or is said here, about the same GPU."""
    return tuple(_joined(node, f, findings, at) if _is_double_bit(f) else f for f in findings)


def _joined(node: Node, finding: Finding, findings: tuple[Finding, ...], at: datetime) -> Finding:
    here = {f.type for f in findings if _decides(f) and f.part == finding.part}
    stood = {c.type for c in node.conditions if c.part == finding.part and _stood(node, c, at)}
    decided = next((kind for kind in DECIDES if kind in here | stood), None)
    if decided is None:
        return finding
    return replace(finding, type=decided, severity=CONDITIONS[decided].severity)


def superseded(node: Node, finding: Finding, at: datetime) -> Condition | None:
    """The double-bit error that stands alone on the GPU of which this finding says what is to be done."""
    if not _decides(finding):
        return None
    mine = (c for c in node.conditions if c.type == DOUBLE_BIT and c.part == finding.part)
    return next((c for c in mine if _stood(node, c, at) and _only_double_bits(c)), None)


def _is_double_bit(finding: Finding) -> bool:
    named = finding.type == DOUBLE_BIT and finding.part != ""
    return named and is_of_now(finding) and finding.facts.get("code") in DOUBLE_BIT_CODES


def _decides(finding: Finding) -> bool:
    return is_of_now(finding) and finding.type in DECIDES and finding.facts.get("code") in DECIDING_CODES


def _stood(node: Node, condition: Condition, at: datetime) -> bool:
    return condition.clears != "age" and just_seen(node, condition, at)


def _only_double_bits(condition: Condition) -> bool:
    """Whether nothing else has been seen of it: an error that escaped the books of bad rows (140) needs its reset."""
    return all(seen.facts.get("code") in DOUBLE_BIT_CODES for seen in condition.evidence)
