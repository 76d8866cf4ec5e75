"""One look at an asset of a rack through its own BMC: a power shelf, a switch tray, a coolant unit, a PDU.

Sources: DMTF's schemas ServiceRoot (PowerEquipment, ThermalEquipment), PowerEquipment (PowerShelves, RackPDUs),
PowerDistribution (PowerSupplies), ThermalEquipment (CDUs), CoolingUnit (LeakDetection), LeakDetection (LeakDetectors);
a BMC that has none of these shows a system with chassis, as switch trays and many shelves do.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from hostler.core.state.assets import BMC_CERTIFICATE, Asset
from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.model import Facts
from hostler.core.state.racks import CONFIGURED, LISTED_MOST, SYSTEM, AssetLook, Words
from hostler.drivers.redfish import equipment, firmware_inventory, sensor_reader, wire, wire_firmware, wire_sensors
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import ROOT, NotOfferedError, RedfishClient
from hostler.drivers.redfish.http_exchange import parse_address
from hostler.drivers.redfish.shown_certificate import shown_certificate
from hostler.drivers.redfish.tolerant_json import Document, WireError, child, document, link, name_of, text, worst
from hostler.drivers.redfish.wire_nvos import system_images
from hostler.ports import LoginRefusedError, PortError, RefusedError

HANDSHAKE_S = 10.0
IMAGE = "/nvue_v1/system/image"
CONTROLLER = "/nvue_v1/cluster/apps/nmx-controller"
"""Path at which NVOS tells of the NMX controller, which is an NVLink domain's fabric manager."""


class RackReader:
    """Looks at assets through the clients that nodes' BMCs are reached by."""

    def __init__(self, clients: Callable[[str, str], RedfishClient]) -> None:
        self._clients = clients

    async def look(self, asset: Asset, now: datetime) -> AssetLook:
        """Read the asset's BMC; a look that says why where that is not possible. Raises nothing."""
        try:
            return await self._read(asset, now)
        except PortError as error:
            return AssetLook(now, why=str(error)[:300], login_refused=isinstance(error, LoginRefusedError))

    async def _read(self, asset: Asset, now: datetime) -> AssetLook:
        if not asset.binding("bmc"):
            raise RefusedError(f"asset {asset.id} has no bmc binding; register its BMC's address")
        address = parse_address(asset.binding("bmc"))
        client = self._clients(address.origin, asset.binding(BMC_CERTIFICATE))
        client.begin()
        survey = Survey(client)
        root = document(await client.get(ROOT), ROOT)
        shelves = await equipment.listed(survey, root, *equipment.SHELVES)
        units = await equipment.listed(survey, root, *equipment.COOLANT_UNITS)
        pdus = await equipment.listed(survey, root, *equipment.PDUS)
        certificate = await _certificate(client.origin, asset.binding(BMC_CERTIFICATE))
        if shelves or units or pdus:
            return replace(await _of_equipment(survey, now, shelves, units, pdus), certificate=certificate)
        look = await _of_system(client, now, address.system)
        if asset.binding("nvos"):
            look = await self._with_system(look, asset.binding("nvos"))
        return replace(look, control_plane=await self._fabric_manager(asset), certificate=certificate)

    async def _with_system(self, look: AssetLook, address: str) -> AssetLook:
        """The look with the version of the tray's own system, or why it could not be read."""
        client = self._clients(parse_address(address).origin, "")
        client.begin()
        try:
            runs = system_images(await client.get(IMAGE)).current
        except (PortError, WireError) as error:
            return replace(look, gaps=(*look.gaps, f"{SYSTEM} not read: {error}"[:200]))
        if not runs:
            return replace(look, gaps=(*look.gaps, f"{SYSTEM} tells no version that runs"))
        return replace(look, firmware=tuple(sorted((*look.firmware, (SYSTEM, runs)))[:LISTED_MOST]))

    async def _fabric_manager(self, asset: Asset) -> str:
        """The word of the tray's own system (NVOS) for the fabric manager on it, "" where its address is not recorded.

        Source: NVIDIA's NVOS manual, cluster management; its REST API gives `status` and `addition-info`.
        """
        if not asset.binding("nvos"):
            return ""
        client = self._clients(parse_address(asset.binding("nvos")).origin, "")
        client.begin()
        try:
            said = document(await client.get(CONTROLLER), "nmx-controller")
        except PortError as error:
            return f"not read: {error}"[:200]
        state = (text(said, "addition-info") or text(said, "additional-info")).removeprefix("CONTROL_PLANE_STATE_")
        if text(said, "status").lower() == "ok" and state.lower() == CONFIGURED:
            return CONFIGURED
        return f"{text(said, 'status') or 'no status'} {state} {text(said, 'reason')}".strip().lower()[:200]


async def _certificate(origin: str, recorded: str) -> ShownCertificate | None:
    """The certificate that the BMC shows to a handshake; None over plain HTTP, and where it is not the recorded one."""
    if not origin.startswith("https://"):
        return None
    with contextlib.suppress(PortError):
        shown = await shown_certificate(origin, HANDSHAKE_S)
        return shown if recorded in ("", shown.fingerprint) else None
    return None


async def _of_equipment(
    survey: Survey, now: datetime, shelves: list[Document], units: list[Document], pdus: list[Document]
) -> AssetLook:
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
    both = (*shelves, *units, *pdus)
    runs, gaps = await _inventory(survey.client, equipment.as_system(both[0]))
    words = [text(child(doc, "Status"), "Health").lower() for doc in both]
    return AssetLook(
        now,
        serial=",".join(filter(None, (text(doc, "SerialNumber").strip() for doc in both))),
        health=worst(*words),
        supplies=_words(supplies, "_health"),
        leaks=tuple(sorted(leaks)[:LISTED_MOST]),
        firmware=tuple(sorted({**_own_version(both[0]), **runs}.items())[:LISTED_MOST]),
        gaps=(*survey.gaps, *gaps),
    )


async def _of_system(client: RedfishClient, now: datetime, wanted: str) -> AssetLook:
    system = await client.system(wanted)
    read = await sensor_reader.sensors(client, system)
    runs, unlisted = await _inventory(client, system)
    gaps = [*read.gaps, *unlisted]
    return AssetLook(
        now,
        serial=system.serial.strip(),
        health=system.health.lower(),
        supplies=_words({name: word for name, word in read.facts.items() if name.startswith("psu")}, "_health"),
        leaks=_words({name: word for name, word in read.facts.items() if name.startswith("leak_")}, ""),
        firmware=tuple(sorted(runs.items())[:LISTED_MOST]),
        gaps=tuple(gap[:200] for gap in gaps[:8]),
    )


def _own_version(doc: Document) -> dict[str, str]:
    version = text(doc, "FirmwareVersion")
    return {"FirmwareVersion": version} if version else {}


async def _inventory(client: RedfishClient, system: wire.System) -> tuple[dict[str, str], tuple[str, ...]]:
    """Versions that the BMC's update service lists, by component; or why there is none."""
    try:
        components = await firmware_inventory.components(client, system)
    except NotOfferedError as error:
        return {}, (str(error),)
    return wire_firmware.versions(component for component in components if not component.updating), ()


def _words(facts: Facts, ending: str) -> Words:
    """The words of these facts, by name without its ending."""
    named = {name.removesuffix(ending): str(word).lower() for name, word in facts.items() if name.endswith(ending)}
    return tuple(sorted(named.items())[:LISTED_MOST])
