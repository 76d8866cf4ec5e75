"""Corroboration of a fault: where a tenant has root on a node, its kernel log is the tenant's word.

There, remedies that would not wait for anybody need NVML, PCI or the BMC to agree; an inventory is what NVML and PCI
show, a gpu_state what NVML counts. A person's request and protection need no witness.
"""

from hostler.core.conditions.staleness import doubts
from hostler.core.policy.response import rule_for
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, Condition, Node
from hostler.core.tables.recipe_facts import is_protective

KERNEL_LOG = "kernel_log"
INDEPENDENT = frozenset({"gpu_state", "inventory", "bmc"})
"""Ways of seeing a fault (`Evidence.path`) that a forged line of kernel log does not reach."""


def tenant_has_root(fleet: Fleet, node: Node) -> bool:
    """Whether somebody else than us may write the node's kernel log now, by its pool's or its SKU's setting."""
    if node.assignment is None:
        return False
    configuration = fleet.configuration_of(node)  # as its policy: while one is rolled out, the node's own
    pool, sku = configuration.pools.get(node.pool), configuration.skus.get(node.sku)
    return bool((pool and pool.tenant_root) or (sku and sku.tenant_root))


def unconfirmed(fleet: Fleet, node: Node) -> frozenset[str]:
    """The ids of conditions that are unknown, or ask for an immediate remedy on the word of a log of the tenant's."""
    unknown = frozenset(c.id for c in node.conditions if c.unknown_since is not None)
    if not node.conditions or not tenant_has_root(fleet, node):
        return unknown
    return unknown.union(c.id for c in node.conditions if _needs_witness(fleet, node, c) and not _agrees(node, c))


def _needs_witness(fleet: Fleet, node: Node, condition: Condition) -> bool:
    rule = rule_for(fleet.policy_of(node), condition)
    at_once = rule.timing == "immediate" and rule.remedy != "" and not is_protective(rule.remedy)
    return at_once and not condition.remedy and condition.paths == (KERNEL_LOG,)


def _agrees(node: Node, condition: Condition) -> bool:
    """Whether another way of seeing shows a fault of the same part, or that the part is gone."""
    slots = dict(node.slots)
    here = condition.part in slots or condition.part in slots.values()
    for other in node.conditions:
        if INDEPENDENT.isdisjoint(other.paths) or other.unknown_since is not None:
            continue
        same = other.part == condition.part or slots.get(other.part) == condition.part
        gone = other.type == "inventory.missing_part" and condition.type.startswith(f"{other.part}.") and not here
        if same or gone:
            return True
    return False


def doubted(fleet: Fleet, node: Node, causes: tuple[str, ...]) -> list[Blocker]:
    """The blocker of a remedy whose every cause is unknown, or the word of such a kernel log alone."""
    if unknown := doubts(node, causes):
        return unknown
    standing = [c.id for c in node.conditions if c.id in causes]
    if not standing or not unconfirmed(fleet, node).issuperset(standing):
        return []
    text = "only the kernel log shows it, and its tenant can write there as root; NVML, PCI and BMC do not show it"
    return [
        Blocker("confirmation", node.id, text, "NVML, PCI or the BMC shows it too, or a person asks for the remedy")
    ]
