"""Nouns of a SKU's hardware manifest, beyond counts and models, and the names of readings that it is held against.

Readings are texts under names "ASPECT.PLACE" ("pcie.gpu0", "bios.SriovEnable"), each with its source in front once it
is recorded ("agent/pcie.gpu0"). A source that could not read an aspect says why under "unread.ASPECT".
"""

import re

from msgspec import Struct

from hostler.core.state.model import Facts, Node, Profile
from hostler.core.state.packed_strings import Pairs, pairs

SCHEMA = 1
"""The version of `HardwareManifest` that is written and understood."""

AGENT, BMC = "agent", "bmc"
PCIE, BIOS, LLDP, CARRIER, DIMM, DRIVE, DMI = "pcie.", "bios.", "lldp.", "carrier.", "dimm.", "drive.", "dmi."
ERASE, CANNOT_ERASE, TPM = "erase.", "cannot", "tpm"
"""How a drive would be erased and the TPM cleared; a word that begins with CANNOT_ERASE says why it would not."""
DPU = "dpu."
"""Before the slot of a DPU, whose reading is its serial number."""
UNREAD = "unread."
PREFIXES = (PCIE, BIOS, LLDP, CARRIER, DIMM, DRIVE, DMI, ERASE, DPU, UNREAD)
OWN = (LLDP, DMI, DPU)
"""Readings that differ from machine to machine of one SKU."""

MAX_READINGS = 1024
MAX_NAME, MAX_VALUE = 96, 160

_LINK = re.compile(r"x(1|2|4|8|12|16|32) ([0-9]{1,3}(?:\.[0-9])?) GT/s")


class HardwareManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """Hardware of each machine of a SKU, as `hostler sku from-node` writes it down; Seatrial compares what it names.

    `schema`: the version of this document. `pcie`: slot → the least link, "x16 32 GT/s". `bios`: attribute → value as
    the BMC shows it. `neighbours`: Ethernet interface → "SWITCH PORT" as LLDP tells it; {rack}, {row}, {u}, {site} and
    {node} in it are the node's own. `memory_gib`: socket of a module → GiB, 0 for an empty one. `supplies_needed`:
    supplies that carry the load, so that one more must be well; 0 compares none. `sensors_s`: for so long all sensors
    must be in range, 0 for never. `drives`: each drive's own word of health. `serials`: the machine's serial number in
    DMI is the one that is registered. `erasable`: its agent can erase what its SKU has erased
    between tenants. `writes_bios`: Zap writes the attributes of `bios` that are others.
    """

    schema: int = SCHEMA
    pcie: dict[str, str] = {}
    bios: dict[str, str] = {}
    neighbours: dict[str, str] = {}
    memory_gib: dict[str, float] = {}
    supplies_needed: int = 0
    sensors_s: float = 0.0
    drives: bool = False
    serials: bool = False
    erasable: bool = False
    writes_bios: bool = False


_NEVER_WRITTEN = re.compile(r"boot.{0,24}(order|seq|prio)|one ?time.{0,8}boot|^hddseq|^fbo\d|password", re.IGNORECASE)
"""Attributes of the order of boots, which is the boot override's and the provisioner's, and secrets."""


def bios_to_write(node: Node, manifest: HardwareManifest | None) -> dict[str, str]:
    """The BIOS attributes that Zap writes where they are others; of an unmanaged node at its first delivery only."""
    if manifest is None or not manifest.writes_bios:
        return {}
    if node.profile is Profile.unmanaged and node.handover is not None:
        return {}
    return {name: value for name, value in sorted(manifest.bios.items()) if not _NEVER_WRITTEN.search(name)}


def bios_differs(node: Node, manifest: HardwareManifest | None) -> bool:
    """Whether the BMC has shown in this boot that an attribute is to be written."""
    said = dict(node.hardware) if dict(node.hardware_boots).get(BMC) == node.boot_id else {}
    wanted = bios_to_write(node, manifest).items()
    return any(said.get(f"{BMC}/{BIOS}{name}", value) != value for name, value in wanted)


class PcieLink(Struct, frozen=True):
    """Lanes and transfer rate (in GT/s) of a PCIe link."""

    lanes: int
    rate_gts: float

    def __str__(self) -> str:
        return f"x{self.lanes} {self.rate_gts:g} GT/s"

    def carries(self, wanted: "PcieLink") -> bool:
        """Whether it is as wide and as fast as the other, or more."""
        return self.lanes >= wanted.lanes and self.rate_gts >= wanted.rate_gts


def pcie_link(text: str) -> PcieLink | None:
    """The link that a text such as "x16 32 GT/s" names, None where it names none."""
    found = _LINK.fullmatch(text)
    return PcieLink(int(found[1]), float(found[2])) if found else None


def readings_of(facts: Facts) -> dict[str, str]:
    """Readings among the facts of an inventory, bounded: what is too long is cut, what is too much is left out."""
    named = ((name, value) for name, value in facts.items() if name.startswith(PREFIXES) and value is not None)
    texts = ((name[:MAX_NAME], " ".join(str(value).split())[:MAX_VALUE]) for name, value in named)
    return dict(list(texts)[:MAX_READINGS])


def without_bios(readings: Pairs) -> Pairs:
    """The readings without a BIOS's attributes; the same object where there are none."""
    marked = f"{BMC}/{BIOS}"
    if not any(name.startswith(marked) for name in readings.names):
        return readings
    return pairs(pair for pair in readings if not pair[0].startswith(marked))
