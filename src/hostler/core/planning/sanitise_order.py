"""Order to erase a node between tenants: every drive that its inventory shows, by serial, but those its SKU keeps.

The order is frozen with its plan. A drive that is gone or new when it is carried out makes the agent refuse: what a
tenant wrote to the one that is gone is still on it.
"""

from hostler.core.state.configuration import Sanitising
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node
from hostler.core.state.operations import DriveToErase, Sanitise

DRIVE = "drive"


def sanitise_order(fleet: Fleet, node: Node) -> Sanitise:
    """The order for this node by its SKU; a node without one has every drive erased."""
    sku = fleet.configuration_of(node).skus.get(node.sku)
    rules = sku.sanitise if sku is not None else Sanitising()
    parts = [part for part in fleet.parts.of(node.id) if part.kind == DRIVE and part.slot not in rules.keep]
    drives = [DriveToErase(part.slot, part.serial, part.model) for part in sorted(parts, key=lambda part: part.slot)]
    return Sanitise(tuple(drives), rules.keep, rules.tpm, rules.accounts)
