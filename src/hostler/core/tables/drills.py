"""The faults of drills: how each is injected, and the condition that it leads to.

A drill never leads to a protective power-off, which ends work unasked and which only a person takes back: a heat drill
shows a reading over its caution, not over the limit of the hardware.
"""

from msgspec import Struct

from hostler.core.state.drills import DrillFault
from hostler.core.state.model import Node


class DrillRow(Struct, frozen=True):
    """One fault. `line` is what the agent writes to the kernel log, with {pci} for the address of a GPU; "" for none.

    `by_agent`: the agent injects it. `bmc`: the node needs a BMC.
    """

    fault: DrillFault
    condition: str
    line: str = ""
    by_agent: bool = True
    bmc: bool = False


DRILLS: dict[DrillFault, DrillRow] = {
    row.fault: row
    for row in (
        DrillRow(
            DrillFault.xid79,
            "gpu.fallen_off_bus",
            "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        ),
        DrillRow(
            DrillFault.xid48,
            "gpu.ecc_uncorrectable",
            "NVRM: Xid (PCI:{pci}): 48, pid='<unknown>', name=<unknown>, "
            "An uncorrectable double bit error (DBE) has been detected on GPU.",
        ),
        DrillRow(
            DrillFault.xid95,
            "gpu.ecc_uncontained",
            "NVRM: Xid (PCI:{pci}): 95, pid='<unknown>', name=<unknown>, Uncontained ECC error.",
        ),
        DrillRow(
            DrillFault.nvlink,
            "gpu.nvlink_error",
            "NVRM: Xid (PCI:{pci}): 74, pid='<unknown>', name=<unknown>, "
            "NVLink: fatal error detected on link 0(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
        ),
        DrillRow(DrillFault.link_down, "network.link_event", "mlx5_core 0000:ff:00.0 drill0: Link down"),
        DrillRow(
            DrillFault.memory_ue,
            "memory.uncorrectable",
            "EDAC MC0: 1 UE memory read error on drill_DIMM#0 (channel:0 slot:0 page:0x0 offset:0x0 grain:32)",
        ),
        DrillRow(DrillFault.disk, "storage.read_only", "EXT4-fs (drill0n1): Remounting filesystem read-only"),
        DrillRow(DrillFault.agent_silent, "agent.lost"),
        DrillRow(DrillFault.bmc_silent, "bmc.unreachable", by_agent=False, bmc=True),
        DrillRow(DrillFault.psu, "power.supply", by_agent=False, bmc=True),
        DrillRow(DrillFault.thermal, "thermal.near_limit", by_agent=False, bmc=True),
    )
}
"""Fault → its row."""


def line_of(row: DrillRow, node: Node, gpus: frozenset[str]) -> str | None:
    """The line that the agent writes; None where the row names a GPU, and no PCI address of one is known here.

    `gpus` are the serials of the node's GPUs.
    """
    if "{pci}" not in row.line:
        return row.line
    named = (*node.addresses, *node.slots)
    known = sorted(name.removeprefix("pci:") for name, serial in named if name.startswith("pci:") and serial in gpus)
    return row.line.replace("{pci}", known[0]) if known else None
