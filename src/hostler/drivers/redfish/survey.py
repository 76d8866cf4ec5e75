"""Reads much of a BMC at once: parts, their health, firmware, log. What cannot be read is said, never left out."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from hostler.core.model import Facts, Part
from hostler.drivers.redfish import status, wire
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.reading import Document, WireError, document, link, objects

MAX_GAPS = 32
MAX_WORDED = 256
"""Parts of each kind whose health is read: more than any server has, fewer than a broken BMC may list."""
_T = TypeVar("_T")
_ReadPart = Callable[[Document], Part | None]


class Inventory(Struct, frozen=True):
    """The parts that have a serial number; `gaps` says what else is missing and why.

    `covers` are the kinds of part of which absence means something: all that the BMC lists of them was read.
    `complete` is False where something that the BMC lists could not be read.
    """

    parts: tuple[Part, ...]
    gaps: tuple[str, ...]
    covers: tuple[str, ...]
    complete: bool


class Health(Struct, frozen=True):
    """Words of health as `status.part_facts` names them; `complete` is False where something could not be read."""

    facts: Facts
    gaps: tuple[str, ...]
    complete: bool


async def inventory(client: RedfishClient, system: wire.System) -> Inventory:
    """All parts of one system. Raises UnreachableError only where the BMC stops answering at all."""
    survey = Survey(client)
    parts: list[Part] = []
    covers: set[str] = set()
    for what, read_docs, read_part in _SECTIONS:
        faults = survey.faults
        found = survey.parts(what, await read_docs(survey, system), read_part)
        parts += found
        if survey.faults == faults:
            covers |= {part.kind for part in found}
    return Inventory(tuple(parts), tuple(survey.gaps), tuple(sorted(covers)), not survey.broken)


async def firmware(client: RedfishClient, system: wire.System) -> tuple[wire.Component, ...]:
    """The firmware inventory of one system. Raises NotOfferedError where the BMC has none."""
    root = await client.root()
    if not root.update:
        raise NotOfferedError(f"{client.origin} offers no update service, so no firmware inventory")
    reference = wire.update_service(await client.get(root.update)).inventory
    if not reference:
        raise NotOfferedError(f"{client.origin} offers no firmware inventory")
    found = [wire.component(doc) for doc in await client.collection(reference)]
    return wire.components_of(system, [component for component in found if component])


async def log(client: RedfishClient, system: wire.System, cursor: str = "") -> tuple[tuple[wire.LogEntry, ...], str]:
    """Entries of the system event log behind `cursor`, oldest first, and the new cursor.

    Raises NotOfferedError where neither the system nor its manager keeps a log.
    """
    services = system.collections.get("LogServices", "") or (await client.manager(system)).logs
    if not services:
        raise NotOfferedError(f"{client.origin} keeps no event log for system {system.id}")
    found = await client.collection(services)
    chosen = next((doc for doc in found if "sel" in wire.slot_of(doc).lower()), found[0] if found else {})
    entries = link(chosen, "Entries")
    if not entries:
        raise NotOfferedError(f"{client.origin} keeps no event log for system {system.id}")
    return wire.after(_kept(wire.log_entry(doc) for doc in await client.collection(entries)), cursor)


async def health(client: RedfishClient, system: wire.System) -> Health:
    """Words of processors, memory, drives and network adapters. Raises UnreachableError where the BMC falls silent."""
    survey = Survey(client)
    found: Facts = {}
    for kind, read_docs in _WORDED:
        docs = await read_docs(survey, system)
        if len(docs) > MAX_WORDED:
            survey.pass_over(f"{len(docs)} {kind} parts, {MAX_WORDED} are read")
        for doc in docs[:MAX_WORDED]:
            found |= status.part_facts(doc, kind)
    return Health(found, tuple(survey.gaps), not survey.broken)


class Survey:
    """Reads on where a resource is missing or broken, and notes it; only silence of the BMC ends it."""

    def __init__(self, client: RedfishClient) -> None:
        self.gaps: list[str] = []
        self.faults = 0
        self.broken = False
        self.client = client
        self.wholes: dict[str, Document] = {}
        self._read: dict[str, Document] = {}

    async def one(self, reference: str) -> Document:
        """The object behind a link, read once per survey; an empty one where it cannot be read."""
        if reference not in self._read:
            try:
                self._read[reference] = document(await self.client.get(reference), reference)
            except (BmcFailureError, WireError, NotOfferedError) as error:
                self._note(str(error), broken=True)
                self._read[reference] = {}
        return self._read[reference]

    async def many(self, reference: str, what: str) -> list[Document]:
        """The members behind a link to a collection; none where it is missing or broken."""
        if not reference:
            self._note(f"the BMC offers no {what}")
            return []
        try:
            found = await self.client.collection(reference)
        except NotOfferedError as error:
            self._note(str(error))
            return []
        except (BmcFailureError, WireError) as error:
            self._note(str(error), broken=True)
            return []
        for doc in found:
            if len(doc) <= 1:
                self._note(f"{what} {wire.slot_of(doc)} could not be read", broken=True)
        return [doc for doc in found if len(doc) > 1]

    def parts(self, what: str, docs: Iterable[Document], read: _ReadPart) -> list[Part]:
        """Members as parts; one without a serial number cannot be tracked and is noted."""
        found = []
        for doc in docs:
            if part := read(doc):
                found.append(part)
            elif doc and not wire.absent(doc):
                self.faults += 1
                self._note(f"{what} {wire.slot_of(doc)} shows no serial number")
        return found

    def pass_over(self, gap: str) -> None:
        """Say that something was there and was not read."""
        self._note(gap, broken=True)

    def _note(self, gap: str, broken: bool = False) -> None:
        self.broken = self.broken or broken
        self.faults += broken
        if len(self.gaps) < MAX_GAPS:
            self.gaps.append(gap)


async def _chassis(survey: Survey, system: wire.System) -> list[Document]:
    return [await survey.one(path) for path in system.chassis]


def _collection(key: str) -> "_ReadDocs":
    async def read(survey: Survey, system: wire.System) -> list[Document]:
        return await survey.many(system.collections.get(key, ""), key)

    return read


async def _drives(survey: Survey, system: wire.System) -> list[Document]:
    storages = await survey.many(system.collections.get("Storage", ""), "Storage")
    listed = [drive for storage in storages for drive in objects(storage, "Drives")]
    return [drive if len(drive) > 1 else await survey.one(link(drive)) for drive in listed if link(drive)]


async def _adapters(survey: Survey, system: wire.System) -> list[Document]:
    places = [link(chassis, "NetworkAdapters") for chassis in await _chassis(survey, system)]
    return [doc for place in places for doc in await survey.many(place, "NetworkAdapters")]


_ReadDocs = Callable[[Survey, wire.System], Awaitable[list[Document]]]
_SECTIONS: tuple[tuple[str, _ReadDocs, _ReadPart], ...] = (
    ("chassis", _chassis, wire.chassis_part),
    ("Processors", _collection("Processors"), wire.processor_part),
    ("Memory", _collection("Memory"), wire.memory_part),
    ("Drives", _drives, wire.drive_part),
    ("NetworkAdapters", _adapters, wire.adapter_part),
    ("EthernetInterfaces", _collection("EthernetInterfaces"), wire.ethernet_part),
)

_WORDED: tuple[tuple[str, _ReadDocs], ...] = (
    ("processor", _collection("Processors")),
    ("memory", _collection("Memory")),
    ("drive", _drives),
    ("nic", _adapters),
)
"""What is asked for its word of health → how it is found."""


def _kept(found: Iterable[_T | None]) -> list[_T]:
    return [item for item in found if item is not None]
