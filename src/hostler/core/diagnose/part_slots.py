"""Finds the part that a BMC means: by serial where it shows one, else through the SKU's slots in the BMC's words.

A BMC says "HGX_GPU_SXM_3", the agent "gpu2", both mean one serial number; only under that do what NVML and what the
BMC sees of a part become one condition.
"""

import re
from functools import lru_cache

from hostler.core.state.configuration import Sku
from hostler.core.state.model import Node

_SEPARATORS = re.compile(r"[^a-z0-9]+")
NAMES_KEPT = 8192
"""BMCs of one model say the same names again and again; so many are remembered in their plain form."""


@lru_cache(maxsize=NAMES_KEPT)
def plain(name: str) -> str:
    """A name in lower case with single underscores: vendors differ in both."""
    return _SEPARATORS.sub("_", name.lower()).strip("_")


class PartSlots:
    """The slots of one node under all names that they go by: its own, and those that the SKU says its BMC uses."""

    def __init__(self, node: Node, sku: Sku | None) -> None:
        self._serials = dict(node.slots)
        self._table = {plain(slot): slot for slot in self._serials}
        if sku is not None:
            self._table |= {plain(theirs): ours for theirs, ours in sku.bmc_slots.items()}

    def slot_of(self, name: str) -> str:
        """The node's slot that a BMC's name for a sensor begins with, "" where none does; the longest counts."""
        told = plain(name)
        while told:
            if (slot := self._table.get(told)) is not None:
                return slot
            told = told.rpartition("_")[0]
        return ""

    def part_of(self, name: str) -> str:
        """The serial of the part in that slot; the name itself where no slot or no serial is known."""
        return self._serials.get(self.slot_of(name), "") or name
