"""Reads the parts of one machine and their words of health, wherever its BMC lists them."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from hostler.core.diagnose.serials import HOLDS_OTHERS, meaningful
from hostler.core.state.hardware import UNREAD
from hostler.core.state.model import Facts, Part
from hostler.drivers.redfish import part_status, resource_tree, wire, wire_hardware, wire_parts, wire_sensors
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.sensor_layout import ResourceTree
from hostler.drivers.redfish.tolerant_json import Document, WireError, document, link, objects, text
from hostler.ports import UnreachableError

MAX_WORDED = 256
"""Parts of each kind whose health is read: more than any server has, fewer than a broken BMC may list."""


class BmcInventory(Struct, frozen=True):
    """The parts; a serial of "" says nothing and is shown so. `gaps` says what is missing and why.

    `covers` are the kinds of part of which absence means something: all that the BMC lists of them was read.
    `complete` is False where something that the BMC lists could not be read. `hardware` are readings of links, memory
    sockets, drives and BIOS attributes.
    """

    parts: tuple[Part, ...]
    gaps: tuple[str, ...]
    covers: tuple[str, ...]
    complete: bool
    hardware: Facts = {}


class HealthReadings(Struct, frozen=True):
    """Words of health as `part_status.part_facts` names them; `complete` is False where something could not be read."""

    facts: Facts
    gaps: tuple[str, ...]
    complete: bool


async def inventory(client: RedfishClient, system: wire.System) -> BmcInventory:
    """All parts of one machine. Raises UnreachableError only where the BMC stops answering at all."""
    machine = await _machine(client, system)
    parts: list[Part] = []
    covers: set[str] = set()
    hardware: Facts = {}
    for what, read_docs, read_part in _SECTIONS:
        faults = machine.survey.faults
        docs = await read_docs(machine)
        found = machine.survey.parts(what, docs, read_part)
        parts += found
        for doc in docs:
            hardware |= _readings(what, doc, read_part(doc))
        if machine.survey.faults == faults:
            covers |= {part.kind for part in found}
    survey = machine.survey
    hardware |= await _bios(machine)
    return BmcInventory(_once(parts), tuple(survey.gaps), tuple(sorted(covers)), not survey.broken, hardware)


async def health(client: RedfishClient, system: wire.System) -> HealthReadings:
    """Words of the parts, of the boards that carry them, and of the machine. Raises UnreachableError on silence."""
    machine = await _machine(client, system)
    survey = machine.survey
    found: Facts = {f"health:system:{system.id}": system.health} if system.health else {}
    for kind, read_docs in _WORDED:
        docs = await read_docs(machine)
        if len(docs) > MAX_WORDED:
            survey.pass_over(f"{len(docs)} {kind} parts, {MAX_WORDED} are read")
        for doc in docs[:MAX_WORDED]:
            told = part_status.part_facts(doc, wire_parts.carried_kind(doc) if kind == HOLDS_OTHERS else kind)
            found = part_status.joined(found, told) if kind == HOLDS_OTHERS else found | told
    for doc in await _chassis(machine):
        found |= part_status.intrusion(doc)
    return HealthReadings(found, tuple(survey.gaps), not survey.broken)


def _readings(what: str, doc: Document, part: Part | None) -> Facts:
    slot = part.slot if part is not None else wire_parts.slot_of(doc)
    return _READINGS[what](doc, slot) if what in _READINGS else {}


async def _bios(machine: "_Machine") -> Facts:
    """Attributes of the machine's BIOS, or why they are not known: a Bios that hangs hides no part that was read."""
    place = machine.system.collections.get("Bios", "")
    if not place:
        return {f"{UNREAD}bios": "its BMC has no Bios resource"}
    try:
        found = wire_hardware.bios_readings(document(await machine.survey.client.get(place), place))
    except (BmcFailureError, NotOfferedError, UnreachableError, WireError) as error:
        return {f"{UNREAD}bios": str(error)}
    return found or {f"{UNREAD}bios": "its BMC's Bios resource has no attributes"}


class _Machine(Struct, frozen=True):
    """One machine with the places that belong to it."""

    survey: Survey
    system: wire.System
    baseboards: tuple[wire.System, ...]
    tree: ResourceTree


async def _machine(client: RedfishClient, system: wire.System) -> _Machine:
    survey = Survey(client)
    places = await resource_tree.known(survey, system)
    beside = [await client.system_if_shown(path) for path in places.baseboards]
    for board in beside:
        if board.unread:
            survey.pass_over(f"system {board.id} could not be read")
    return _Machine(survey, system, tuple(beside), places)


async def _chassis(machine: _Machine) -> list[Document]:
    return await resource_tree.chassis(machine.survey, machine.tree)


async def _own(machine: _Machine) -> list[Document]:
    """The chassis that the system names; the one that shows its serial where it names none."""
    docs = await _chassis(machine)
    named = set(machine.system.chassis)
    own = [doc for doc in docs if link(doc) in named]
    return own or [doc for doc in docs if machine.system.serial and text(doc, "SerialNumber") == machine.system.serial]


async def _carried(machine: _Machine) -> list[Document]:
    """The other chassis: boards in the machine, some of them one part."""
    own = [link(doc) for doc in await _own(machine)]
    return [doc for doc in await _chassis(machine) if link(doc) not in own]


async def _numbered_boards(machine: _Machine) -> list[Document]:
    """Keep boards that are a part, or show a number by which they can be followed."""
    return [
        doc
        for doc in await _carried(machine)
        if wire_parts.carried_kind(doc) != HOLDS_OTHERS or meaningful(text(doc, "SerialNumber"))
    ]


async def _gpu_devices(machine: _Machine) -> list[Document]:
    """GPUs among the PCIe devices, where no list of processors has any."""
    survey = machine.survey
    if any(wire_parts.processor_kind(doc) == "gpu" for doc in await _PROCESSORS(machine)):
        return []
    places = [link(doc, "PCIeDevices") for doc in await _chassis(machine)]
    paths = [path for place in places if place for path in await survey.listed(place, "PCIeDevices")]
    return [doc for path in paths if wire_parts.is_gpu(path) and (doc := await survey.one(path))]


def _collection(key: str) -> "_ReadDocs":
    """The members that the machine's own system lists under this key, and those of its baseboards."""

    async def read(machine: _Machine) -> list[Document]:
        found = await machine.survey.many(machine.system.collections.get(key, ""), key)
        for board in machine.baseboards:
            if place := board.collections.get(key, ""):
                found += await machine.survey.many(place, key)
        return found

    return read


async def _drives(machine: _Machine) -> list[Document]:
    survey = machine.survey
    storages = await survey.many(machine.system.collections.get("Storage", ""), "Storage")
    listed = [drive for storage in storages for drive in objects(storage, "Drives")]
    return [drive if len(drive) > 1 else await survey.one(link(drive)) for drive in listed if link(drive)]


async def _adapters(machine: _Machine) -> list[Document]:
    places = [place for doc in await _chassis(machine) if (place := link(doc, "NetworkAdapters"))]
    return [doc for place in places or [""] for doc in await machine.survey.many(place, "NetworkAdapters")]


async def _supplies(machine: _Machine) -> list[Document]:
    """Power supplies of the newer PowerSubsystem, else of the older Power; with names that differ."""
    survey = machine.survey
    found: list[Document] = []
    for doc in await _chassis(machine):
        whole = link(doc, "PowerSubsystem")
        place = link(await survey.one(whole), "PowerSupplies") if whole else ""
        here = await survey.many(place, "PowerSupplies") if place else []
        if not here and (older := link(doc, "Power")):
            here = list(objects(await survey.one(older), "PowerSupplies"))
        found += here
    return wire_sensors.named_apart(found)


def _once(parts: list[Part]) -> tuple[Part, ...]:
    """Without what two lists show of one thing: a GPU is a processor of the baseboard and a chassis by itself.

    They are one where both show one serial, or the same place of the same kind; what shows a serial is kept.
    """
    kept: dict[tuple[str, str], Part] = {}
    for part in parts:
        place = part.kind, _place(part.slot)
        before = kept.get(place)
        if before is None or (part.serial and not before.serial):
            kept[place] = part
    return tuple(kept.values())


def _place(slot: str) -> str:
    """A slot without what vendors put before it: HGX_GPU_SXM_1 and GPU_SXM_1 are one place."""
    return slot.lower().removeprefix("hgx_").removeprefix("mgx_")


_ReadDocs = Callable[[_Machine], Awaitable[list[Document]]]
_PROCESSORS = _collection("Processors")
_SECTIONS: tuple[tuple[str, _ReadDocs, Callable[[Document], Part | None]], ...] = (
    ("chassis", _own, wire_parts.chassis_part),
    ("Processors", _PROCESSORS, wire_parts.processor_part),
    ("PCIeDevices", _gpu_devices, wire_parts.device_part),
    ("chassis", _numbered_boards, wire_parts.carried_part),
    ("Memory", _collection("Memory"), wire_parts.memory_part),
    ("Drives", _drives, wire_parts.drive_part),
    ("NetworkAdapters", _adapters, wire_parts.adapter_part),
    ("PowerSupplies", _supplies, wire_parts.supply_part),
    ("EthernetInterfaces", _collection("EthernetInterfaces"), wire_parts.ethernet_part),
)

_READINGS: dict[str, Callable[[Document, str], Facts]] = {
    "Processors": wire_hardware.link_reading,
    "PCIeDevices": wire_hardware.link_reading,
    "NetworkAdapters": wire_hardware.link_reading,
    "Memory": wire_hardware.socket_reading,
    "Drives": wire_hardware.drive_reading,
}
"""Resources that show readings beside the part that they are."""

_WORDED: tuple[tuple[str, _ReadDocs], ...] = (
    ("processor", _PROCESSORS),
    ("gpu", _gpu_devices),
    (HOLDS_OTHERS, _carried),
    ("memory", _collection("Memory")),
    ("drive", _drives),
    ("nic", _adapters),
)
"""Resources that have a word of health → how each is found."""
