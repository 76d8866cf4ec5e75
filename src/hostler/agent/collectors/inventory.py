"""Parts of this node with their serials, from sysfs, SMBIOS and NVML.

Everything below `root` is read as text or small binary files, so a directory that looks like a node's is one. A part
without a readable serial gets a stable name made of its place and the node's serial.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.agent import child_process
from hostler.agent.collectors import hardware, nvml_inventory, vital_product_data
from hostler.agent.collectors.kernel_files import MAX_READ, bytes_of, children_of, text_of
from hostler.core.diagnose.serials import meaningful
from hostler.core.state.model import Facts, Part

DEADLINE_S = 60.0
MAX_PARTS = 512
NVIDIA, MELLANOX = "0x10de", "0x15b3"
BLUEFIELDS = frozenset({"0xa2d2", "0xa2d6", "0xa2dc", "0xa2df"})
"""Network functions of BlueField, -2, -3 and -4 as Linux's mlx5_core lists them (drivers/net/ethernet/mellanox)."""
_UNNUMBERED = "pci:"
_OF_THE_MOMENT = (".link_width", ".link_speed", ".state", ".rate")
VIRTUAL_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr", "nbd", "fd")


class NodeInventory(Struct, frozen=True):
    """The parts, and facts that belong to no part: memory_kib, driver, "pci:0000:4c:00" (its slot) and so on."""

    parts: tuple[Part, ...] = ()
    facts: Facts = {}

    def digest(self) -> str:
        """The same for the same parts and facts, but for the state of links, which nobody judges by these."""
        kept = {name: value for name, value in self.facts.items() if not name.endswith(_OF_THE_MOMENT)}
        return hashlib.sha256(msgspec.json.encode((self.parts, kept), order="sorted")).hexdigest()[:32]


class _Device(Struct, frozen=True):
    """A PCI device: its address, sysfs directory, vendor and class as sysfs writes them."""

    address: str
    path: Path
    vendor: str
    device: str
    pci_class: str

    @property
    def model(self) -> str:
        return f"{self.vendor.removeprefix('0x')}:{self.device.removeprefix('0x')}"


def report(node: str, deadline_s: float = DEADLINE_S, root: str = "/", twin: str = "") -> NodeInventory:
    """The inventory of the machine at `root`, read in a child: sysfs reads of broken devices hang too.

    `twin`: a file of recorded GPUs in place of the driver's.

    Raises `child_process.HungError`, OSError, `msgspec.MsgspecError`.
    """
    done = child_process.run((sys.executable, "-m", "hostler.agent.collectors.inventory", node, root, twin), deadline_s)
    return msgspec.json.decode(done.output, type=NodeInventory)


def read(root: Path, node: str, gpus: nvml_inventory.NvmlInventory) -> NodeInventory:
    """The inventory of the node whose file system is at `root`. Never raises for a missing or odd file."""
    serial = node_serial(root)
    devices = list(_devices(root))
    sources: tuple[Callable[[], Iterator[Part]], ...] = (
        lambda: _boards(root, serial),
        lambda: _processors(root, serial),
        lambda: _memory(root, serial),
        lambda: _gpus(devices, gpus, serial),
        lambda: _switches(devices, serial),
        lambda: _nics(root, devices, serial),
        lambda: _disks(root, serial),
    )
    parts = [replace(part, node=node) for source in sources for part in source()]
    facts = _facts(root, devices, gpus, parts) | hardware.read(root, _slots(root, devices)) | _dpus(devices, parts)
    return NodeInventory(tuple(parts[:MAX_PARTS]), facts)


def node_serial(root: Path) -> str:
    """The serial by which the machine is known: of the system, the board or the chassis, else its machine id."""
    dmi = root / "sys/class/dmi/id"
    names = ("product_serial", "board_serial", "chassis_serial")
    found = next((text for name in names if (text := meaningful(text_of(dmi / name)))), "")
    return found or f"machine-id:{text_of(root / 'etc/machine-id') or 'unknown'}"


def _boards(root: Path, serial: str) -> Iterator[Part]:
    dmi = root / "sys/class/dmi/id"
    model = meaningful(text_of(dmi / "product_name"))
    yield Part(serial, "chassis", model, "chassis", text_of(dmi / "bios_version"))
    board = meaningful(text_of(dmi / "board_serial"))
    if text_of(dmi / "board_name") or board:
        yield Part(board or f"baseboard@{serial}", "baseboard", text_of(dmi / "board_name"), "baseboard")


def _processors(root: Path, serial: str) -> Iterator[Part]:
    """One part per socket. A processor's serial cannot be read by software."""
    sockets: dict[str, dict[str, str]] = {}
    for block in text_of(root / "proc/cpuinfo", MAX_READ * 64).split("\n\n"):
        fields = dict(_field(line) for line in block.splitlines() if ":" in line)
        if fields:
            sockets.setdefault(fields.get("physical id", "0"), fields)
    for socket, fields in sorted(sockets.items()):
        slot = f"cpu{socket}"
        yield Part(f"{slot}@{serial}", "cpu", fields.get("model name", ""), slot, fields.get("microcode", ""))


def _memory(root: Path, serial: str) -> Iterator[Part]:
    for entry in sorted((root / "sys/firmware/dmi/entries").glob("17-*")):
        dimm = vital_product_data.smbios_dimm(bytes_of(entry / "raw"))
        if dimm and dimm.size_mib:
            model = f"{dimm.maker} {dimm.model} {dimm.size_mib} MiB".strip()
            slot = dimm.locator or f"dimm{entry.name.removeprefix('17-')}"
            yield Part(dimm.serial or f"{slot}@{serial}", "memory", model, slot)


def _gpus(devices: list[_Device], seen: nvml_inventory.NvmlInventory, serial: str) -> Iterator[Part]:
    """GPUs on the PCI bus, with what NVML adds. One that NVML does not see is a part all the same."""
    known = {pci_address(gpu.pci): gpu for gpu in seen.gpus}
    for place, device in enumerate(_gpu_devices(devices)):
        gpu = known.pop(device.address, None) or nvml_inventory.NvmlGpu(place, device.address)
        yield Part(
            meaningful(gpu.serial) or gpu.uuid or _synthetic(device.address, serial),
            "gpu",
            gpu.name or device.model,
            f"gpu{place}",
            gpu.vbios,
        )


def _switches(devices: list[_Device], serial: str) -> Iterator[Part]:
    switches = (d for d in devices if d.vendor == NVIDIA and d.pci_class.startswith("0x0680"))
    for place, device in enumerate(switches):
        yield Part(_synthetic(device.address, serial), "nvswitch", device.model, f"nvswitch{place}")


def _nics(root: Path, devices: list[_Device], serial: str) -> Iterator[Part]:
    """One part per card: the functions of one device share their serial."""
    firmware = _infiniband_firmware(root)
    cards: dict[str, Part] = {}
    for device in devices:
        if not device.pci_class.startswith("0x02"):
            continue
        vpd = vital_product_data.pci_vpd(bytes_of(device.path / "vpd"))
        card = vpd.get("SN") or _synthetic(device.address, serial)
        model = vpd.get("PN") or vpd.get("name") or device.model
        cards.setdefault(card, Part(card, "nic", model, _port_of(device), firmware.get(device.address, "")))
    yield from cards.values()


def _dpus(devices: list[_Device], parts: list[Part]) -> Facts:
    """The serial numbers of cards that are DPUs, by slot; "" of one that tells none."""
    cards = [d for d in devices if d.vendor == MELLANOX and d.device in BLUEFIELDS and d.pci_class.startswith("0x02")]
    slots = {_port_of(card) for card in cards}
    own = {part.slot: "" if part.serial.startswith(_UNNUMBERED) else part.serial for part in parts}
    return {f"dpu.{slot}": own[slot] for slot in sorted(slots & own.keys())}


def _disks(root: Path, serial: str) -> Iterator[Part]:
    for block in sorted(children_of(root / "sys/block")):
        if block.name.startswith(VIRTUAL_DISKS):
            continue
        device = block / "device"
        found = meaningful(text_of(device / "serial")) or meaningful(text_of(block / "serial"))
        found = found or vital_product_data.scsi_serial(bytes_of(device / "vpd_pg80"))
        firmware = text_of(device / "firmware_rev") or text_of(device / "rev")
        yield Part(found or f"disk:{block.name}@{serial}", "drive", text_of(device / "model"), block.name, firmware)


def _facts(root: Path, devices: list[_Device], gpus: nvml_inventory.NvmlInventory, parts: list[Part]) -> Facts:
    meminfo = dict(_field(line) for line in text_of(root / "proc/meminfo").splitlines() if ":" in line)
    facts: Facts = {
        "memory_kib": int(meminfo.get("MemTotal", "0 kB").split()[0]),
        "gpus_on_pci": len(_gpu_devices(devices)),
        "gpus_in_nvml": len(gpus.gpus),
        "nvml": gpus.unavailable or "available",
        "driver": gpus.driver,
        "kernel": text_of(root / "proc/sys/kernel/osrelease"),
        "covers": ",".join(_covers(root)),
        "firmware.bios": text_of(root / "sys/class/dmi/id/bios_version"),
    }
    if len(parts) > MAX_PARTS:
        facts["parts_left_out"] = len(parts) - MAX_PARTS
    for place, device in enumerate(_gpu_devices(devices)):
        facts[f"pci:{device.address.rpartition('.')[0]}"] = f"gpu{place}"
        here = (gpu.uuid for gpu in gpus.gpus if gpu.uuid and _is_at(gpu.pci, device.address))
        facts |= {f"uuid:{uuid}": f"gpu{place}" for uuid in here}
        facts[f"gpu{place}.link_width"] = text_of(device.path / "current_link_width")
        facts[f"gpu{place}.link_speed"] = text_of(device.path / "current_link_speed")
    return facts | _infiniband_facts(root)


def _slots(root: Path, devices: list[_Device]) -> Iterator[hardware.Slot]:
    """The parts on the PCI bus under the names of their slots; of a card of several functions the first."""
    for place, device in enumerate(_gpu_devices(devices)):
        yield hardware.Slot(f"gpu{place}", device.path, idles=True)
    cards: set[str] = set()
    for device in devices:
        if device.pci_class.startswith("0x02") and device.address.partition(".")[0] not in cards:
            cards.add(device.address.partition(".")[0])
            yield hardware.Slot(_port_of(device), device.path)
    for block in sorted(children_of(root / "sys/block")):
        if block.name.startswith("nvme"):
            address = text_of(block / "device/address")
            yield hardware.Slot(block.name, root / "sys/bus/pci/devices" / (address or "none"))


def _port_of(device: _Device) -> str:
    """The name by which an adapter goes: its InfiniBand device, its interface, or its address."""
    return _first_name(device.path / "infiniband") or _first_name(device.path / "net") or device.address


def _is_at(pci: str, address: str) -> bool:
    """Tell whether NVML's address ("00000000:1B:00.0") is this one of sysfs."""
    return pci.lower()[-12:] == address.lower()


def _covers(root: Path) -> list[str]:
    """The kinds that were looked at: where there is no SMBIOS, the absence of a board or module means nothing."""
    kinds = ["chassis", "cpu", "gpu", "nvswitch", "nic", "drive"]
    kinds += ["baseboard"] if (root / "sys/class/dmi/id").exists() else []
    return kinds + (["memory"] if any((root / "sys/firmware/dmi/entries").glob("17-*")) else [])


def _infiniband_facts(root: Path) -> Facts:
    facts: Facts = {}
    for adapter in sorted(children_of(root / "sys/class/infiniband")):
        facts[f"{adapter.name}.guid"] = text_of(adapter / "node_guid")
        for port in sorted(children_of(adapter / "ports")):
            facts[f"{adapter.name}.{port.name}.state"] = text_of(port / "state")
            facts[f"{adapter.name}.{port.name}.rate"] = text_of(port / "rate")
    return facts


def _infiniband_firmware(root: Path) -> dict[str, str]:
    """PCI address → firmware version of the adapter there."""
    adapters = children_of(root / "sys/class/infiniband")
    return {(a / "device").resolve().name: text_of(a / "fw_ver") for a in adapters}


def _devices(root: Path) -> Iterator[_Device]:
    for path in sorted(children_of(root / "sys/bus/pci/devices")):
        yield _Device(path.name, path, text_of(path / "vendor"), text_of(path / "device"), text_of(path / "class"))


def _gpu_devices(devices: list[_Device]) -> list[_Device]:
    """Display and 3D controllers by NVIDIA; the class of a mainboard's VGA chip is the same, its vendor is not."""
    return [d for d in devices if d.vendor == NVIDIA and d.pci_class.startswith(("0x0300", "0x0302"))]


def pci_address(text: str) -> str:
    """The address as sysfs writes it: NVML's domain has eight digits and upper-case letters."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _synthetic(address: str, serial: str) -> str:
    return f"{_UNNUMBERED}{address}@{serial}"


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _first_name(path: Path) -> str:
    return min((child.name for child in children_of(path)), default="")


def _asked(node: str, root: str, twin: str) -> NodeInventory:
    return read(Path(root), node, nvml_inventory.report(twin=twin))


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_asked(*sys.argv[1:4])))
