"""One look at an asset of a rack through its own BMC: a power shelf, a switch tray, a coolant unit.

Sources: DMTF's schemas ServiceRoot (PowerEquipment, ThermalEquipment), PowerEquipment (PowerShelves),
PowerDistribution (PowerSupplies), ThermalEquipment (CDUs), CoolingUnit (LeakDetection), LeakDetection (LeakDetectors);
a BMC that has none of these shows a system with chassis, as switch trays and many shelves do.
"""

from collections.abc import Callable
from datetime import datetime

from hostler.core.state.model import BMC_CERTIFICATE, Asset, Facts
from hostler.core.state.racks import LISTED_MOST, AssetLook, Words
from hostler.drivers.redfish import firmware_inventory, sensor_reader, wire_firmware, wire_sensors
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import ROOT, NotOfferedError, RedfishClient
from hostler.drivers.redfish.http_exchange import parse_address
from hostler.drivers.redfish.tolerant_json import Document, child, document, link, name_of, text, worst
from hostler.ports import PortError, RefusedError


class RackReader:
    """Looks at assets through the clients that nodes' BMCs are reached by."""

    def __init__(self, clients: Callable[[str, str], RedfishClient]) -> None:
        self._clients = clients

    async def look(self, asset: Asset, now: datetime) -> AssetLook:
        """Read the asset's BMC; a look that says why where that is not possible. Raises nothing."""
        try:
            return await self._read(asset, now)
        except PortError as error:
            return AssetLook(now, why=str(error)[:300])

    async def _read(self, asset: Asset, now: datetime) -> AssetLook:
        if not asset.binding("bmc"):
            raise RefusedError(f"asset {asset.id} has no bmc binding; register its BMC's address")
        address = parse_address(asset.binding("bmc"))
        client = self._clients(address.origin, asset.binding(BMC_CERTIFICATE))
        client.begin()
        survey = Survey(client)
        root = document(await client.get(ROOT), ROOT)
        shelves = await _equipment(survey, root, "PowerEquipment", "PowerShelves")
        units = await _equipment(survey, root, "ThermalEquipment", "CDUs")
        if shelves or units:
            return await _of_equipment(survey, now, shelves, units)
        return await _of_system(client, now, address.system)


async def _equipment(survey: Survey, root: Document, service: str, kind: str) -> list[Document]:
    if not link(root, service):
        return []
    return await survey.many(link(await survey.one(link(root, service)), kind), kind)


async def _of_equipment(survey: Survey, now: datetime, shelves: list[Document], units: list[Document]) -> AssetLook:
    """One shelf or one unit answers for itself; of several behind one BMC the serials stand together."""
    supplies: Facts = {}
    for shelf in shelves:
        listed = await survey.many(link(shelf, "PowerSupplies"), "PowerSupplies")
        supplies |= wire_sensors.facts(r for doc in wire_sensors.named_apart(listed) for r in wire_sensors.supply(doc))
        supplies |= {f"psu_{name_of(doc)}_health": "" for doc in listed if not wire_sensors.supply(doc)}
    leaks: list[tuple[str, str]] = []
    for unit in units:
        detection = await survey.one(link(unit, "LeakDetection")) if link(unit, "LeakDetection") else {}
        detectors = await survey.many(link(detection, "LeakDetectors"), "LeakDetectors")
        leaks.extend((name_of(doc), text(doc, "DetectorState").lower()) for doc in detectors)
    both = (*shelves, *units)
    words = [text(child(doc, "Status"), "Health").lower() for doc in both]
    return AssetLook(
        now,
        serial=",".join(filter(None, (text(doc, "SerialNumber").strip() for doc in both))),
        health=worst(*words),
        supplies=_words(supplies, "_health"),
        leaks=tuple(sorted(leaks)[:LISTED_MOST]),
        firmware=tuple(("FirmwareVersion", v) for doc in both[:1] if (v := text(doc, "FirmwareVersion"))),
        gaps=tuple(survey.gaps),
    )


async def _of_system(client: RedfishClient, now: datetime, wanted: str) -> AssetLook:
    system = await client.system(wanted)
    read = await sensor_reader.sensors(client, system)
    gaps = list(read.gaps)
    try:
        components = await firmware_inventory.components(client, system)
    except NotOfferedError as error:
        components = ()
        gaps.append(str(error))
    runs = wire_firmware.versions(component for component in components if not component.updating)
    return AssetLook(
        now,
        serial=system.serial.strip(),
        health=system.health.lower(),
        supplies=_words({name: word for name, word in read.facts.items() if name.startswith("psu")}, "_health"),
        leaks=_words({name: word for name, word in read.facts.items() if name.startswith("leak_")}, ""),
        firmware=tuple(sorted(runs.items())[:LISTED_MOST]),
        gaps=tuple(gap[:200] for gap in gaps[:8]),
    )


def _words(facts: Facts, ending: str) -> Words:
    """The words of these facts, by name without its ending."""
    named = {name.removesuffix(ending): str(word).lower() for name, word in facts.items() if name.endswith(ending)}
    return tuple(sorted(named.items())[:LISTED_MOST])
