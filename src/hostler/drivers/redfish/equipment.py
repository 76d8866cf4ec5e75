"""Equipment that a BMC serves in the place of a system: a power shelf, a PDU or a coolant distribution unit.

Sources: DMTF's schemas ServiceRoot (PowerEquipment, ThermalEquipment), PowerEquipment (PowerShelves, RackPDUs),
ThermalEquipment (CDUs).
"""

from hostler.drivers.redfish import wire
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import ROOT, RedfishClient
from hostler.drivers.redfish.tolerant_json import Document, child, document, link, text
from hostler.ports import LoginRefusedError, RefusedError

SHELVES = ("PowerEquipment", "PowerShelves")
PDUS = ("PowerEquipment", "RackPDUs")
COOLANT_UNITS = ("ThermalEquipment", "CDUs")
"""The service of the root, and the list there, of a kind of equipment."""


async def listed(survey: Survey, root: Document, service: str, kind: str) -> list[Document]:
    """Equipment of one kind, () where the BMC has no such service."""
    if not link(root, service):
        return []
    return await survey.many(link(await survey.one(link(root, service)), kind), kind)


async def machine(client: RedfishClient, wanted: str) -> wire.System:
    """The system behind the BMC, or its only equipment as one: known by its serial number, without reset or boot.

    Raises RefusedError where it is not clear which is meant.
    """
    no_system: RefusedError | None = None
    if wanted or (await client.root()).systems:
        try:
            return await client.system(wanted)
        except LoginRefusedError:
            raise
        except RefusedError as refused:
            if wanted:
                raise
            no_system = refused
    found = await _all(client)
    if no_system is not None and not found:
        raise no_system
    if len(found) != 1:
        raise RefusedError(
            f"{client.origin} serves no system and {len(found)} pieces of equipment"
            "; name the address of one with its own BMC (hostler asset rebind --kind bmc)"
        )
    return as_system(found[0])


async def _all(client: RedfishClient) -> list[Document]:
    survey = Survey(client)
    root = document(await client.get(ROOT), ROOT)
    return [
        doc for service, kind in (SHELVES, PDUS, COOLANT_UNITS) for doc in await listed(survey, root, service, kind)
    ]


def as_system(doc: Document) -> wire.System:
    """The equipment as drivers know a machine."""
    return wire.System(
        link(doc),
        id=text(doc, "Id"),
        serial=text(doc, "SerialNumber").strip(),
        manufacturer=text(doc, "Manufacturer"),
        model=text(doc, "Model"),
        power=text(doc, "PowerState").lower(),
        health=text(child(doc, "Status"), "Health"),
    )
