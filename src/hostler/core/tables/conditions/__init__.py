"""Every condition a node can have: one row each, by family, with all that is known of it.

The response to each row is the operator's choice and lives in the policy document (`policy/default_policy.yaml`); a
test holds the two together. `state/syndromes` says what many nodes show for one cause, `state/health` what bars health.
"""

from hostler.core.tables.conditions import (
    accelerators,
    checks,
    gpu,
    host,
    network,
    parts,
    power_and_cooling,
    requests,
    sources,
    storage,
)
from hostler.core.tables.conditions.row import ConditionKind

__all__ = ["CONDITIONS", "ConditionKind"]

CONDITIONS: dict[str, ConditionKind] = {
    kind.type: kind
    for family in (gpu, accelerators, sources, parts, checks, power_and_cooling, network, storage, host, requests)
    for kind in family.KINDS
}
