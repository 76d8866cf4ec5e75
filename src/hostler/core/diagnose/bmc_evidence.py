"""One fault of one part is one condition: what a BMC says of it is evidence of what the node itself names more exactly.

The BMC's word that all is well ends only what its own word has raised: it takes nothing back that is seen from inside,
and what is well from inside takes nothing back that the BMC still says.
"""

from hostler.core.diagnose import Finding
from hostler.core.diagnose.findings import over
from hostler.core.state.model import Condition, Node, Severity
from hostler.core.tables.conditions import CONDITIONS

UNHEALTHY, NEAR_LIMIT, HOT = "part.unhealthy", "thermal.near_limit", "gpu.thermal"

_FAMILIES: dict[str, tuple[str, ...]] = {
    "gpu": ("gpu.", "pcie.", "accelerator."),
    "cpu": ("cpu.",),
    "memory": ("memory.",),
    "drive": ("storage.",),
    "nic": ("network.", "pcie."),
}
_OTHERS = ("accelerator.", "pcie.")
_MOMENTS = frozenset({"bmc", "kernel_log"})


def explains(exact: str, vague: str, kind: str = "") -> bool:
    """Whether `exact` names the fault that a BMC tells of as `vague`; `kind` is that of the part, where it is known."""
    if vague == NEAR_LIMIT:
        return exact == HOT
    row = CONDITIONS.get(exact)
    family = _FAMILIES.get(kind, _OTHERS)
    return vague == UNHEALTHY and row is not None and row.severity >= Severity.degraded and exact.startswith(family)


def joined(finding: Finding, node: Node, vague: str) -> list[Finding]:
    """A BMC's finding as the condition that stands of the same fault; what is over, for each that it is a witness of.

    `vague` is the condition by which it is known where nothing more exact stands.
    """
    kind = str(finding.facts.get("kind", ""))
    alike = [c for c in node.conditions if c.part == finding.part and explains(c.type, vague, kind)]
    if finding.standing:
        exact = max(alike, key=lambda c: (c.severity, c.type), default=None)
        if exact is None:
            return [finding]
        return [Finding(exact.type, exact.severity, finding.text, finding.part, facts=finding.facts)]
    kinds = dict.fromkeys((finding.type, *(c.type for c in alike if _may_leave(c))))
    return [over(one, finding.text, finding.part) for one in kinds]


def _may_leave(condition: Condition) -> bool:
    """Whether the BMC is a witness of it among others that are still heard, or the only one.

    A kernel log cannot say that something is over, so beside it the BMC stays.
    """
    paths = set(condition.paths)
    return "bmc" in paths and paths != _MOMENTS
