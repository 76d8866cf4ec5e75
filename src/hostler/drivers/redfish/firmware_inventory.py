"""Reads the firmware inventory of one machine."""

from hostler.drivers.redfish import resource_tree, wire, wire_firmware
from hostler.drivers.redfish.bulk_read import Survey
from hostler.drivers.redfish.client import NotOfferedError, RedfishClient
from hostler.drivers.redfish.tolerant_json import Document, document, link, text


async def components(client: RedfishClient, system: wire.System) -> tuple[wire_firmware.FirmwareComponent, ...]:
    """List the machine's own part of the BMC's firmware inventory. Raises NotOfferedError where the BMC has none."""
    root = await client.root()
    if not root.update:
        raise NotOfferedError(
            f"{client.origin} offers no update service, so no firmware inventory"
            "; update the BMC's firmware by the vendor's means"
        )
    reference = wire_firmware.update_service(await client.get(root.update)).inventory
    if not reference:
        raise NotOfferedError(
            f"{client.origin} offers no firmware inventory; update the BMC's firmware by the vendor's means"
        )
    found = [wire_firmware.component(await _named(client, doc)) for doc in await client.collection(reference)]
    others = await resource_tree.others(Survey(client), system)
    return wire_firmware.components_of(system, [component for component in found if component], others)


async def _named(client: RedfishClient, doc: Document) -> Document:
    """Read a waiting component by itself where a list came without names: it is known by its name."""
    if text(doc, "Name") or not wire_firmware.is_staged(doc) or not link(doc):
        return doc
    return document(await client.get(link(doc)), "firmware")
