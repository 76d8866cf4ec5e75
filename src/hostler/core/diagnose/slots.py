"""Which part a BMC means: by serial where it shows one, else through the slots that the SKU names in the BMC's words.

A BMC says "HGX_GPU_SXM_3", the agent "gpu2", both mean one serial number; only under that do what NVML and what the
BMC sees of a part become one condition.
"""

import re

from hostler.core.configuration import Sku
from hostler.core.model import Node

_SEPARATORS = re.compile(r"[^a-z0-9]+")


def plain(name: str) -> str:
    """A name in lower case with single underscores: vendors differ in both."""
    return _SEPARATORS.sub("_", name.lower()).strip("_")


def slot_of(name: str, node: Node, sku: Sku | None) -> str:
    """The node's slot that a BMC's name for a sensor or place begins with, "" where none does; the longest counts."""
    told = plain(name)
    table = {plain(slot): slot for slot, _ in node.slots}
    if sku is not None:
        table |= {plain(theirs): ours for theirs, ours in sku.bmc_slots.items()}
    best = ""
    for theirs in table:
        begins = told == theirs or told.startswith(f"{theirs}_")
        if begins and len(theirs) > len(best):
            best = theirs
    return table.get(best, "")


def part_of(name: str, node: Node, sku: Sku | None) -> str:
    """The serial of the part in that slot; the name itself where no slot or no serial is known."""
    slot = slot_of(name, node, sku)
    return dict(node.slots).get(slot, "") or name
