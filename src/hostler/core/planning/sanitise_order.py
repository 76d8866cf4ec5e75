"""Order to erase a node between tenants: every drive that its inventory shows, by serial, but those its SKU keeps.

The order is frozen with its plan. A drive that is gone or new when it is carried out makes the agent refuse: what a
tenant wrote to the one that is gone is still on it.
"""

import re

from hostler.core.state import events as e
from hostler.core.state.certificates import KeptCertificate
from hostler.core.state.configuration import Sanitising
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import DriveToErase, Sanitise

DRIVE = "drive"
CERTIFICATE, DRIVES_ERASED, TENANT_BEFORE = "certificate", "drives_erased", "tenant_before"
"""Facts of an outcome: the certificate's SHA-256, how many drives it is about, whose they were."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


def sanitise_order(fleet: Fleet, node: Node) -> Sanitise:
    """The order for this node by its SKU; a node without one has every drive erased."""
    sku = fleet.configuration_of(node).skus.get(node.sku)
    rules = sku.sanitise if sku is not None else Sanitising()
    parts = [part for part in fleet.parts.of(node.id) if part.kind == DRIVE and part.slot not in rules.keep]
    drives = [DriveToErase(part.slot, part.serial, part.model) for part in sorted(parts, key=lambda part: part.slot)]
    return Sanitise(tuple(drives), rules.keep, rules.tpm, rules.accounts)


def certified(
    context: DecisionContext, node: Node, operation: Operation, outcome: Outcome
) -> tuple[e.NodeSanitised, ...]:
    """The certificate that an erasure has left; () where nobody keeps certificates, as in a simulated world."""
    digest = str(outcome.facts.get(CERTIFICATE, ""))
    is_one = isinstance(operation.act, Sanitise) and _DIGEST.fullmatch(digest)
    if not is_one or not context.may_write("node_sanitised"):
        return ()
    drives, tenant = outcome.facts.get(DRIVES_ERASED), outcome.facts.get(TENANT_BEFORE)
    count = drives if isinstance(drives, int) else 0
    return (e.NodeSanitised(node.id, KeptCertificate(context.now, digest, str(tenant or ""), count)),)
