"""Reads much of a BMC at once: parts, firmware, sensors, log. What cannot be read is said, never left out silently."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from hostler.core.model import Facts, Part
from hostler.drivers.redfish import wire
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.layout import USES, ChassisLinks, Layout
from hostler.drivers.redfish.reading import Document, WireError, document, link, links

MAX_GAPS = 32
_T = TypeVar("_T")
_ReadPart = Callable[[Document], Part | None]
_ReadValues = Callable[[Document], tuple[wire.Reading, ...]]


class Inventory(Struct, frozen=True):
    """The parts that have a serial number; `gaps` says what else is missing and why.

    `covers` are the kinds of part of which absence means something: all that the BMC lists of them was read.
    `complete` is False where something that the BMC lists could not be read.
    """

    parts: tuple[Part, ...]
    gaps: tuple[str, ...]
    covers: tuple[str, ...]
    complete: bool


class Readings(Struct, frozen=True):
    """Sensor name → value; `gaps` says what is missing and why."""

    facts: Facts
    gaps: tuple[str, ...]


async def inventory(client: RedfishClient, system: wire.System) -> Inventory:
    """All parts of one system. Raises UnreachableError only where the BMC stops answering at all."""
    survey = _Survey(client)
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


async def sensors(client: RedfishClient, system: wire.System) -> Readings:
    """Temperatures, fans, power and leak detectors of a system's chassis: newer resources first, else the older."""
    survey = _Survey(client)
    found: list[wire.Reading] = []
    for place in (await _layout(survey, client, system)).chassis:
        listed = await survey.many(place.sensors, "Sensors")
        modern = [reading for doc in listed for reading in wire.sensor(doc)]
        found += modern or await _older(survey, place.thermal, wire.thermal)
        listed = await survey.many(place.supplies, "PowerSupplies") if place.supplies else []
        supplies = [reading for doc in listed for reading in wire.supply(doc)]
        found += supplies or await _older(survey, place.power_older, wire.power)
        found += await _subsystems(survey, place)
        if place.detectors:
            listed = await survey.many(place.detectors, "LeakDetectors")
            found += _kept(wire.leak_detector(doc) for doc in listed)
    if survey.broken:
        client.layouts.pop(system.path, None)
    return Readings(wire.facts(found), tuple(survey.gaps))


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


class _Survey:
    """Reads on where a resource is missing or broken, and notes it; only silence of the BMC ends it."""

    def __init__(self, client: RedfishClient) -> None:
        self.gaps: list[str] = []
        self.faults = 0
        self.broken = False
        self._client = client
        self._read: dict[str, Document] = {}

    async def one(self, reference: str) -> Document:
        """The object behind a link, read once per survey; an empty one where it cannot be read."""
        if reference not in self._read:
            try:
                self._read[reference] = document(await self._client.get(reference), reference)
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
            found = await self._client.collection(reference)
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

    def _note(self, gap: str, broken: bool = False) -> None:
        self.broken = self.broken or broken
        self.faults += broken
        if len(self.gaps) < MAX_GAPS:
            self.gaps.append(gap)


async def _chassis(survey: _Survey, system: wire.System) -> list[Document]:
    return [await survey.one(path) for path in system.chassis]


def _collection(key: str) -> "_ReadDocs":
    async def read(survey: _Survey, system: wire.System) -> list[Document]:
        return await survey.many(system.collections.get(key, ""), key)

    return read


async def _drives(survey: _Survey, system: wire.System) -> list[Document]:
    storages = await survey.many(system.collections.get("Storage", ""), "Storage")
    return [await survey.one(drive) for storage in storages for drive in links(storage, "Drives")]


async def _adapters(survey: _Survey, system: wire.System) -> list[Document]:
    places = [link(chassis, "NetworkAdapters") for chassis in await _chassis(survey, system)]
    return [doc for place in places for doc in await survey.many(place, "NetworkAdapters")]


_ReadDocs = Callable[[_Survey, wire.System], Awaitable[list[Document]]]
_SECTIONS: tuple[tuple[str, _ReadDocs, _ReadPart], ...] = (
    ("chassis", _chassis, wire.chassis_part),
    ("Processors", _collection("Processors"), wire.processor_part),
    ("Memory", _collection("Memory"), wire.memory_part),
    ("Drives", _drives, wire.drive_part),
    ("NetworkAdapters", _adapters, wire.adapter_part),
    ("EthernetInterfaces", _collection("EthernetInterfaces"), wire.ethernet_part),
)


async def _layout(survey: _Survey, client: RedfishClient, system: wire.System) -> Layout:
    """Where the readings lie: as learned before, else learned now. What could not be read whole is not remembered."""
    known = client.layouts.get(system.path)
    if known is not None and known.uses < USES:
        known.uses += 1
        return known
    learned = Layout(tuple([await _chassis_links(survey, path) for path in system.chassis]))
    if not survey.broken:
        client.layouts[system.path] = learned
    return learned


async def _chassis_links(survey: _Survey, path: str) -> ChassisLinks:
    """Chassis → PowerSubsystem and ThermalSubsystem → what they hold. Air-cooled machines detect no leaks: no gap."""
    chassis = await survey.one(path)
    power_path, cooling_path = link(chassis, "PowerSubsystem"), link(chassis, "ThermalSubsystem")
    power = await survey.one(power_path) if power_path else {}
    cooling = await survey.one(cooling_path) if cooling_path else {}
    detection = await survey.one(link(cooling, "LeakDetection")) if link(cooling, "LeakDetection") else {}
    return ChassisLinks(
        sensors=link(chassis, "Sensors"),
        thermal=link(chassis, "Thermal"),
        power_older=link(chassis, "Power"),
        power=power_path if "PowerSupplyRedundancy" in power else "",
        supplies=link(power, "PowerSupplies"),
        cooling=cooling_path if "FanRedundancy" in cooling else "",
        fans=link(cooling, "Fans"),
        detectors=link(detection, "LeakDetectors"),
    )


async def _older(survey: _Survey, reference: str, read: _ReadValues) -> tuple[wire.Reading, ...]:
    return read(await survey.one(reference)) if reference else ()


async def _subsystems(survey: _Survey, place: ChassisLinks) -> list[wire.Reading]:
    """Fans and their redundancy, and the redundancy of power, where the BMC tells of them."""
    found: list[wire.Reading] = []
    if place.fans:
        found += [reading for doc in await survey.many(place.fans, "Fans") for reading in wire.fan(doc)]
    if place.cooling:
        found += wire.redundancy(await survey.one(place.cooling), "FanRedundancy", "cooling")
    if place.power:
        found += wire.redundancy(await survey.one(place.power), "PowerSupplyRedundancy", "power")
    return found


def _kept(found: Iterable[_T | None]) -> list[_T]:
    return [item for item in found if item is not None]
