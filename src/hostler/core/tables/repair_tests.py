"""Depth of the test after a repair, by action and part: a fan is not a GPU. What is not in the table is tested whole.

Sources. [GPU]: Lenovo's guides for the ThinkSystem SR780a V3 (pubs.lenovo.com/sr780a-v3/install_rear_b200_gpu) have
phase change material and putty pads renewed with a GPU, so its cooling is new and shows under load alone. [DGX]: the
DGX H100 User Guide, "Running the Pre-flight Test", has a stress test before a machine works. A row without a mark is
our judgement, for the reason that stands beside it.
"""

from enum import IntEnum

from msgspec import Struct

from hostler.core.state.repairs import RepairAction, RepairedPart


class Depth(IntEnum):
    """Test of a node on its return, the lightest first; its inventory is held against its SKU in any case."""

    inventory = 0
    gate = 1
    short_burn_in = 2
    full_burn_in = 3


class DepthRow(Struct, frozen=True):
    """The depth after an action on a kind of part, and why."""

    action: RepairAction
    part: RepairedPart
    depth: Depth
    why: str


_LOOK, _CLEAN, _SEAT, _SWAP = RepairAction.inspected, RepairAction.cleaned, RepairAction.reseated, RepairAction.swapped
_PART = RepairedPart

ROWS: tuple[DepthRow, ...] = (
    *(DepthRow(_LOOK, part, Depth.inventory, "nothing was touched: what is there is seen") for part in RepairedPart),
    DepthRow(_CLEAN, _PART.fan, Depth.inventory, "its speed is a sensor, judged in service"),
    DepthRow(_CLEAN, _PART.cable, Depth.gate, "a plug was drawn: the link trains again or does not"),
    DepthRow(_CLEAN, _PART.nic, Depth.gate, "a cage was opened: the link trains again or does not"),
    DepthRow(_CLEAN, _PART.cooling, Depth.short_burn_in, "heat leaves the parts another way: shown under load alone"),
    DepthRow(_SEAT, _PART.fan, Depth.inventory, "its speed is a sensor, judged in service"),
    DepthRow(_SEAT, _PART.psu, Depth.inventory, "supplies are redundant, and each one's input is a sensor"),
    DepthRow(_SEAT, _PART.cable, Depth.gate, "the link trains again or does not"),
    DepthRow(_SEAT, _PART.drive, Depth.gate, "it is listed with its width again or it is not"),
    DepthRow(_SEAT, _PART.nic, Depth.gate, "its slot's width and its links are seen by the gate and by the manifest"),
    DepthRow(_SEAT, _PART.dpu, Depth.gate, "as an adapter"),
    DepthRow(_SEAT, _PART.memory, Depth.short_burn_in, "a poor contact shows as bit errors under load"),
    DepthRow(_SEAT, _PART.gpu, Depth.full_burn_in, "its cooling was opened [GPU]"),
    DepthRow(_SEAT, _PART.cpu, Depth.full_burn_in, "its cooling was opened, and all memory channels hang on its pins"),
    DepthRow(_SWAP, _PART.fan, Depth.inventory, "exchanged in service; its speed is a sensor"),
    DepthRow(_SWAP, _PART.psu, Depth.gate, "redundant and exchanged in service; that it carries its share is seen"),
    DepthRow(
        _SWAP, _PART.cable, Depth.gate, "the link trains at its rate or it does not; errors are judged in service"
    ),
    DepthRow(_SWAP, _PART.drive, Depth.short_burn_in, "a new medium is written and read once"),
    DepthRow(_SWAP, _PART.nic, Depth.short_burn_in, "new firmware and a new link carry traffic once"),
    DepthRow(_SWAP, _PART.dpu, Depth.short_burn_in, "as an adapter"),
    DepthRow(_SWAP, _PART.memory, Depth.short_burn_in, "a new module is filled with patterns"),
    DepthRow(_SWAP, _PART.bmc, Depth.gate, "it is beside the work: power and sensors are seen"),
    DepthRow(_SWAP, _PART.cooling, Depth.full_burn_in, "heat leaves every part another way [GPU]"),
    DepthRow(_SWAP, _PART.cpu, Depth.full_burn_in, "a new chip with new cooling [DGX]"),
    DepthRow(_SWAP, _PART.gpu, Depth.full_burn_in, "a new chip with new cooling [GPU] [DGX]"),
    DepthRow(_SWAP, _PART.nvswitch, Depth.full_burn_in, "every GPU's traffic passes it [DGX]"),
    DepthRow(_SWAP, _PART.baseboard, Depth.full_burn_in, "every GPU was moved [GPU] [DGX]"),
    DepthRow(_SWAP, _PART.chassis, Depth.full_burn_in, "it is another machine [DGX]"),
)

_PLUGS = frozenset({"", _PART.cable, _PART.nic, _PART.dpu, _PART.baseboard, _PART.chassis})
"""Kinds of part whose cleaning, reseating or exchange draws plugs of network cables; "": nobody says which it was."""


def draws_plugs(action: RepairAction, part: str) -> bool:
    """Whether the repair may have put a network cable into another port than before."""
    return action is not _LOOK and (part in _PLUGS or row_of(action, part) is None)


_DEPTHS = {(row.action, row.part.value): row for row in ROWS}


def row_of(action: RepairAction, part: str) -> DepthRow | None:
    """The row of an action on a kind of part, None where the table has none: then the whole burn-in is run."""
    return _DEPTHS.get((action, part))


def depth_of(action: RepairAction, part: str) -> Depth:
    """The depth after an action on a kind of part."""
    row = row_of(action, part)
    return row.depth if row is not None else Depth.full_burn_in
