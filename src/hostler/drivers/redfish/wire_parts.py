"""Redfish's parts → ours, pure: boards, processors, memory, drives, supplies and adapters."""

import re

from hostler.core.diagnose.serials import HOLDS_OTHERS, meaningful
from hostler.core.state.model import Part
from hostler.drivers.redfish.tolerant_json import Document, name_of, objects, text
from hostler.drivers.redfish.wire import absent

_CARRIED = re.compile(r"(?:[HM]GX_)?(gpu|cpu|nvswitch)(?:_sxm)?_?\d{1,3}", re.IGNORECASE)
"""Names of chassis that are one part: HGX_GPU_SXM_3, HGX_CPU_0, MGX_NVSwitch_1; never HGX_ERoT_GPU_SXM_3."""


_GPU_DEVICE = re.compile(r"gpu[_-]?\d{1,3}", re.IGNORECASE)


_PROCESSORS = {"gpu": "gpu", "cpu": "cpu", "dpu": "dpu", "accelerator": "accelerator", "fpga": "fpga"}


def chassis_part(doc: Document) -> Part | None:
    """The machine's own chassis; None for an empty slot, as for all parts. A serial of "" says nothing."""
    return _part(doc, "chassis", ("Name", "Id"))


def carried_part(doc: Document) -> Part | None:
    """A chassis inside the machine's: a GPU, CPU or NVSwitch where it is named for one, else a board without kind."""
    return _part(doc, carried_kind(doc), ("Id", "Name"))


def carried_kind(doc: Document) -> str:
    """gpu, cpu or nvswitch; HOLDS_OTHERS for any other board."""
    found = _CARRIED.fullmatch(name_of(doc))
    return found[1].lower() if found else HOLDS_OTHERS


def processor_part(doc: Document) -> Part | None:
    """A CPU, GPU or DPU, by what the BMC calls its type."""
    return _part(doc, processor_kind(doc), ("Socket", "Id"), firmware=text(doc, "FirmwareVersion"))


def processor_kind(doc: Document) -> str:
    """cpu, gpu, dpu, accelerator or fpga; "processor" where the BMC calls it otherwise."""
    return _PROCESSORS.get(text(doc, "ProcessorType").lower(), "processor")


def device_part(doc: Document) -> Part | None:
    """A GPU that is listed as a PCIe device."""
    return _part(doc, "gpu", ("Id", "Name"), firmware=text(doc, "FirmwareVersion"))


def is_gpu(path: str) -> bool:
    """Whether a PCIe device's link is named for a GPU: what else is on the bus has lists of its own."""
    return _GPU_DEVICE.fullmatch(path.rstrip("/").rpartition("/")[2]) is not None


def memory_part(doc: Document) -> Part | None:
    """A memory module."""
    return _part(doc, "memory", ("DeviceLocator", "Id"), firmware=text(doc, "FirmwareRevision"))


def drive_part(doc: Document) -> Part | None:
    """A drive."""
    return _part(doc, "drive", ("Id", "Name"), firmware=text(doc, "Revision", "FirmwareVersion"))


def supply_part(doc: Document) -> Part | None:
    """A power supply, in the slot by which its readings are named."""
    return _part(doc, "psu", ("Name", "Id", "MemberId"), firmware=text(doc, "FirmwareVersion"))


def adapter_part(doc: Document) -> Part | None:
    """A network adapter, with the firmware of its first controller."""
    controllers = tuple(objects(doc, "Controllers"))
    firmware = text(controllers[0], "FirmwarePackageVersion") if controllers else ""
    return _part(doc, "nic", ("Id", "Name"), firmware=firmware)


def ethernet_part(doc: Document) -> Part | None:
    """A network interface, known by its permanent MAC address as it has no serial number."""
    told = (meaningful(text(doc, key)).lower() for key in ("PermanentMACAddress", "MACAddress"))
    mac = next((one for one in told if one), "")
    return Part(serial=mac, kind="nic_port", slot=text(doc, "Id")) if mac and not absent(doc) else None


def slot_of(doc: Document) -> str:
    """How a member calls itself, for saying which one it is."""
    return name_of(doc) or text(doc, "Name", "@odata.id") or "?"


def _part(doc: Document, kind: str, slots: tuple[str, ...], firmware: str = "") -> Part | None:
    if len(doc) <= 1 or absent(doc):
        return None
    return Part(
        serial=meaningful(text(doc, "SerialNumber")),
        kind=kind,
        model=meaningful(text(doc, "Model")) or meaningful(text(doc, "PartNumber")),
        slot=text(doc, *slots) or name_of(doc),
        firmware=meaningful(firmware),
    )
