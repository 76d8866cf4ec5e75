"""Nodes in service that a configuration's new firmware baseline is written to: who lags behind it. Pure.

The slices of the configuration's rollout are the waves: a slice has settled once its nodes run the baseline.
"""

from collections.abc import Iterable

from hostler.core.planning.firmware_plan import firmware_rows
from hostler.core.policy.pool_modes import mode_of
from hostler.core.state.configuration import Configuration
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.model import Node, Phase
from hostler.core.state.pool_mode import Mode

DRIFT, WRITES = "firmware.drift", "firmware_update"
"""The condition of a node off its baseline, and the remedy that brings it there."""


def brings(before: Configuration, fresh: Configuration, sku: str) -> bool:
    """Whether the fresh configuration has another firmware baseline for the SKU."""
    old, new = before.skus.get(sku), fresh.skus.get(sku)
    if old is None or new is None:
        return False
    return (old.firmware, old.updates, old.images) != (new.firmware, new.updates, new.images)


def behind(after: DecisionContext, before: Configuration, nodes: Iterable[Node]) -> tuple[str, ...]:
    """The nodes that are still to be written. `after` has the fresh configuration, `before` is the one until now.

    A version that no BMC has listed yet is not known to be off the baseline, until a drift of it is seen.
    """
    fresh = after.fleet.configuration
    rule = fresh.policy.rules.get(DRIFT)
    if rule is None or rule.remedy != WRITES:
        return ()
    changed = {name for name in fresh.skus if brings(before, fresh, name)}
    return tuple(node.id for node in nodes if node.sku in changed and _is_behind(after, node))


def _is_behind(after: DecisionContext, node: Node) -> bool:
    if node.phase is not Phase.production or mode_of(after, node, WRITES) is not Mode.act:
        return False
    if any(condition.type == DRIFT for condition in node.conditions):
        return True
    rows = firmware_rows(node, after.fleet.configuration.skus[node.sku])
    return any(row.reported and row.act in ("write", "activate") for row in rows)
