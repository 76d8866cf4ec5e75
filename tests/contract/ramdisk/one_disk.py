"""A hardware manager for ironic-python-agent that offers one block device as the machine's only disk.

It runs in the agent's own environment, which has none of Hostler's. HOSTLER_DISK names the device; without it, or where
that is no loop device, there is no disk at all.
"""

import os
import re
from pathlib import Path

from ironic_python_agent import hardware  # type: ignore[import-not-found]


class OneDisk(hardware.GenericHardwareManager):  # type: ignore[misc]
    """The real generic manager, but for the disks that it may see."""

    HARDWARE_MANAGER_NAME = "OneDisk"
    HARDWARE_MANAGER_VERSION = "1"

    def evaluate_hardware_support(self) -> int:
        """Come before the generic manager, which is asked for nothing that this one has."""
        return int(hardware.HardwareSupport.SERVICE_PROVIDER)

    def list_block_devices(self, **_: object) -> list[object]:
        """The one disk."""
        name = os.environ.get("HOSTLER_DISK", "")
        if not re.fullmatch(r"/dev/loop\d+", name):
            return []
        sectors = int((Path("/sys/class/block") / Path(name).name / "size").read_text())
        return [hardware.BlockDevice(name, "loop", sectors * 512, False, serial="HOSTLER-LOOP")]

    def list_network_interfaces(self) -> list[object]:
        """The one port: the generic manager passes over a cable between namespaces, which has no device behind it."""
        return [self.get_interface_info("eno1")]
