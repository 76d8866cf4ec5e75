"""Block devices of this machine: which drive each belongs to by its serial number, and whether anybody uses it.

The kernel itself says whether a device is used: one that is mounted, swapped to or part of another device is claimed,
in whichever namespace, and cannot be opened exclusively.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from hostler.agent.collectors import vital_product_data
from hostler.agent.collectors.inventory import VIRTUAL_DISKS
from hostler.agent.collectors.kernel_files import bytes_of, children_of, text_of
from hostler.agent.host_commands import NotPossibleError
from hostler.core.diagnose.serials import meaningful

SECTOR = 512
"""Bytes in which sysfs counts a device's size (Documentation/ABI/stable/sysfs-block)."""


class BlockDevice(Struct, frozen=True):
    """A whole device: its name in sysfs, the serial number of its drive ("" where it shows none), its size in bytes."""

    name: str
    serial: str
    bytes: int
    path: Path

    @property
    def is_nvme(self) -> bool:
        """Whether it is a namespace of an NVMe drive."""
        return self.name.startswith("nvme")

    @property
    def controller(self) -> str:
        """The character device of its NVMe controller."""
        return str(self.path.parent / self.name.rpartition("n")[0])


def devices(root: Path) -> list[BlockDevice]:
    """Every drive's device at `root`, by name; virtual ones and empty places of media are none."""
    found = []
    for block in sorted(children_of(root / "sys/block")):
        sectors = text_of(block / "size")
        if block.name.startswith(VIRTUAL_DISKS) or sectors == "0":
            continue
        size = int(sectors) * SECTOR if sectors.isdecimal() else 0
        found.append(BlockDevice(block.name, _serial(block), size, root / "dev" / block.name))
    return found


def _serial(block: Path) -> str:
    device = block / "device"
    found = meaningful(text_of(device / "serial")) or meaningful(text_of(block / "serial"))
    return found or vital_product_data.scsi_serial(bytes_of(device / "vpd_pg80"))


@contextlib.contextmanager
def claimed(device: BlockDevice) -> Iterator[int]:
    """The device opened for us alone, past the page cache. Raises NotPossibleError where somebody uses it."""
    try:
        descriptor = os.open(device.path, os.O_RDWR | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise NotPossibleError(
                f"{device.name} is in use: it is mounted, swapped to, or part of another device; see `lsblk` there"
            ) from error
        raise NotPossibleError(f"{device.name} cannot be opened: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
