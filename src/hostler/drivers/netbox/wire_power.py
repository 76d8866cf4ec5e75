"""Outlets that feed a device, as NetBox's cabling has them (REST, versions 3.3 to 4). Pure.

Fields as NetBox's REST API describes them: a power port's `connected_endpoints` and their type, which is
`dcim.poweroutlet` or `dcim.powerfeed`, `connected_endpoints_reachable` (false while a cable on the way is not
connected) and `mark_connected`; an outlet's `device`, `name` and `custom_fields`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hostler.drivers.netbox.wire import address_of, custom, ident_of, text_of

PDU_FIELD = "hostler_outlets"
"""Custom field of a PDU: the Redfish path under which its outlets are. A PDU without it is not entered."""
OUTLET_FIELD = "hostler_outlet"
"""Custom field of an outlet that names its Redfish Id, where that is not its name."""
_OUTLET, _FEED = "dcim.poweroutlet", "dcim.powerfeed"
_PATH = re.compile(r"/redfish/v1/[A-Za-z0-9._/-]{1,100}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

Document = Mapping[str, Any]


def outlets_at(port: Document, where: str) -> tuple[int, ...]:
    """Ids of the outlets that the power port is cabled to; none where it is fed otherwise. Raises ValueError."""
    ends = port.get("connected_endpoints") or []
    if not isinstance(ends, list) or not all(isinstance(one, Mapping) for one in ends):
        raise ValueError(f"{where}: what feeds {_port(port)} is not readable; look at its cable in NetBox")
    if not ends or port.get("connected_endpoints_type") != _OUTLET:
        return ()
    found = tuple(ident_of(one) for one in ends)
    if 0 in found:
        raise ValueError(f"{where}: what feeds {_port(port)} has no id; look at its cable in NetBox")
    return found


def outlets_of(
    ports: Iterable[Document], outlets: Mapping[int, Document], pdus: Mapping[int, Document], where: str
) -> tuple[str, ...]:
    """All outlets that feed the device, none where no PDU of them is entered.

    Raises ValueError where only some of them are known: a machine that is cycled by some of its outlets stays on.
    """
    found: list[str] = []
    missing: list[str] = []
    for port in ports:
        at = outlets_at(port, where)
        if why := _unknown(port, at):
            missing.append(f"{_port(port)} {why}")
        for ident in at if not why else ():
            outlet = outlets.get(ident)
            pdu = pdus.get(ident_of(outlet.get("device"))) if outlet is not None else None
            if outlet is None or pdu is None:
                raise ValueError(f"{where}: {_port(port)} is fed by an outlet whose PDU NetBox does not show")
            if path := custom(pdu, PDU_FIELD):
                found.append(_address(outlet, pdu, path))
            else:
                missing.append(f"{_port(port)} is fed by {_name(pdu)}, which has no {PDU_FIELD}")
    if found and missing:
        raise ValueError(
            f"{where}: only some of its outlets are known: {missing[0]}; give that PDU the field {PDU_FIELD}, or take "
            f"it from {found[0].partition('#')[0]}"
        )
    return tuple(dict.fromkeys(found))


def _unknown(port: Document, at: tuple[int, ...]) -> str:
    """Why nobody can say which outlet feeds the port, "" where one does, or nothing is plugged into it."""
    if port.get("connected_endpoints_type") == _FEED:
        return "is fed by a power feed, which is no outlet"
    if at and port.get("connected_endpoints_reachable") is False:
        return "has a cable that is not connected yet"
    return "is marked as connected, without a cable" if not at and port.get("mark_connected") else ""


def _address(outlet: Document, pdu: Document, path: str) -> str:
    """The outlet's address, as Hostler records it."""
    named = f"netbox:{_name(pdu)}"
    if not _PATH.fullmatch(path):
        example = "/redfish/v1/PowerEquipment/RackPDUs/1/Outlets"
        raise ValueError(f"{named}: {PDU_FIELD} {path[:80]!a} is no path; write one such as {example}")
    address = address_of(pdu, "oob_ip", named) or address_of(pdu, "primary_ip", named)
    if not address:
        raise ValueError(f"{named}: it has {PDU_FIELD} and no address; give it an out-of-band or a primary IP")
    name = custom(outlet, OUTLET_FIELD) or text_of(outlet.get("name"))
    if not _ID.fullmatch(name):
        raise ValueError(f"{named}: outlet {name[:60]!a} is no Redfish Id; write that into its field {OUTLET_FIELD}")
    return f"{address}#{path.rstrip('/')}/{name}"


def _port(port: Document) -> str:
    return f"power port {text_of(port.get('name'))[:60]!a}"


def _name(device: Document) -> str:
    return text_of(device.get("name"))[:60] or str(device.get("id"))
