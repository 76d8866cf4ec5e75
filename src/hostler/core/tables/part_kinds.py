"""Kinds of part: the one vocabulary of SKUs, of the agent's inventory and of the BMC's.

A SKU that names another kind would wait for ever for somebody to see it, so `policy check` refuses it.
"""

AGENT_KINDS = frozenset({"baseboard", "chassis", "cpu", "drive", "gpu", "memory", "nic", "nvswitch"})
"""Kinds that a node's agent looks for (`agent.collectors.inventory`)."""

BMC_KINDS = frozenset(
    {"accelerator", "chassis", "cpu", "dpu", "drive", "fpga", "gpu", "memory", "nic", "nic_port", "nvswitch", "psu"}
)
"""Kinds that a BMC's tree is read for (`drivers.redfish.part_inventory`); boards that only carry parts are none."""

ONLY_BMC_KINDS = BMC_KINDS - AGENT_KINDS
"""Kinds of which only a BMC tells: of a node without one nobody can say whether they are there."""

PART_KINDS = tuple(sorted(AGENT_KINDS | BMC_KINDS))
