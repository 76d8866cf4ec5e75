"""Whether what an agent told of its node's parts still says all that telling it again would say."""

from hostler.core.conditions.part_claims import AGENT
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import KnownInventory
from hostler.core.state.model import Node, Observation

DIGEST_MAX = 128


def known_inventory(fleet: Fleet, node: Node, seen: Observation) -> KnownInventory | None:
    """The digest and moment kept of an agent's inventory once it is judged; None for one that bears no digest."""
    digest = seen.facts.get("digest")
    if not isinstance(digest, str) or not 0 < len(digest) <= DIGEST_MAX:
        return None
    sku = fleet.configuration_of(node).skus.get(node.sku)
    return KnownInventory(digest, seen.boot_id, sku, node.inventory_at, node.slots, node.addresses)


def still_known(fleet: Fleet, node: Node, boot_id: str, known: KnownInventory | None) -> str:
    """The digest of the inventory that needs no telling in this boot, "" where it is to be told whole.

    It is told again in another boot, where the SKU or anything that is recorded of the node's parts has changed since,
    and as long as a condition stands that an agent's inventory affirms or ends.
    """
    if known is None or not known.boot_id == boot_id == node.boot_id == node.inventory_boot:
        return ""
    recorded = (node.inventory_at, node.slots, node.addresses)
    if recorded != (known.at, known.slots, known.addresses):
        return ""
    if fleet.configuration_of(node).skus.get(node.sku) != known.sku:
        return ""
    if any(AGENT in c.paths or c.type.startswith("inventory.") for c in node.conditions):
        return ""
    return known.digest
