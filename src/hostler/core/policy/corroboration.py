"""Corroboration of a fault: silence on one path alone convicts no node, nor does a kernel log that a tenant can write.

Where a tenant has root on a node, remedies that would not wait for anybody need NVML, PCI or the BMC to agree; an
inventory is what NVML and PCI show, a gpu_state what NVML counts. A person's request and protection need no witness.
"""

from hostler.core.conditions.staleness import doubts
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.remedy_escalation import rule_for
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import OFF, LiveState
from hostler.core.state.model import Blocker, Condition, Node
from hostler.core.state.verbs.remedies import Reboot
from hostler.core.state.ways_out import by_act, observed
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


def uncorroborated_conditions(fleet: Fleet, node: Node) -> frozenset[str]:
    """The ids of conditions that are unknown, or ask for an immediate remedy on the word of a log of the tenant's."""
    unknown = frozenset(c.id for c in node.conditions if c.unknown_since is not None)
    if not node.conditions or not tenant_has_root(fleet, node):
        return unknown
    return unknown.union(c.id for c in node.conditions if _needs_witness(fleet, node, c) and not _agrees(node, c))


def _needs_witness(fleet: Fleet, node: Node, condition: Condition) -> bool:
    rule = rule_for(fleet.policy_of(node), condition)
    at_once = rule.timing == "immediate" and rule.remedy != "" and not is_protective(rule.remedy)
    return at_once and not condition.remedy and not condition.drill and condition.paths == (KERNEL_LOG,)


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


def doubtful_causes(fleet: Fleet, node: Node, causes: tuple[str, ...]) -> list[Blocker]:
    """The blocker of a remedy whose every cause is unknown, or the word of such a kernel log alone."""
    if unknown := doubts(node, causes):
        return unknown
    standing = [c.id for c in node.conditions if c.id in causes]
    if not standing or not uncorroborated_conditions(fleet, node).issuperset(standing):
        return []
    text = "only the kernel log shows it, and its tenant can write there as root; NVML, PCI and BMC do not show it"
    return [
        Blocker(
            "confirmation",
            node.id,
            text,
            (
                observed("NVML, PCI or the BMC shows it too", "agent"),
                by_act(Reboot(), node.id, "a person asks for a remedy, such as a reboot"),
            ),
        )
    ]


def uncorroborated(context: DecisionContext, request: DisruptionRequest) -> list[Blocker]:
    """Blockers of a remedy for which one witness alone speaks: a silent path, or a kernel log that a tenant writes."""
    doubtful = [b for node in request.nodes for b in doubtful_causes(context.fleet, node, request.causes)]
    if not request.confirm or doubtful:
        return doubtful
    silent = [node for node in request.nodes if not is_confirmed_down(context.live, node)]
    return [
        Blocker(
            "confirmation",
            node.id,
            "only one path to the node is silent; neither its scheduler nor its BMC says that it is down",
            (observed("a second independent path fails too", "bmc"), observed("the node is heard again", "agent")),
        )
        for node in silent
    ]


def is_confirmed_down(live: LiveState, node: Node) -> bool:
    """The scheduler calls the node not ready, or its BMC says that it is off."""
    seen = live.of(node.id)
    return seen.ready is False or seen.power == OFF
