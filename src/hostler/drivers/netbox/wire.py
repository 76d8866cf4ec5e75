"""NetBox's devices and interfaces (REST, versions 3.3 to 4) as expected nodes. Pure.

Fields as NetBox's REST API describes them: `serial`, `device_type.slug`, `site.slug`, `rack.name`, `position` and
`oob_ip`; of an interface `mgmt_only`, `enabled`, `type.value` and `mac_address`, since 4.2 that of its primary MAC; of
a device bay `installed_device`, a device of its own with its role (`device_role` before 3.6).
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_interface
from typing import Any

from msgspec import Struct

from hostler.core.state.assets import normal_mac
from hostler.core.state.expected import ExpectedNode

SKU_FIELD = "hostler_sku"
"""Custom field of a device that names its SKU; without it the device type's slug does."""
DPU_FIELD = "hostler_dpu_bmcs"
"""Custom field of a device that names the BMCs of its DPUs; without it the DPUs in its device bays do."""
DPU_ROLE = "dpu"
"""Slug of the role of a device that is a DPU of the device in whose bay it is installed."""
VIRTUAL = frozenset({"virtual", "bridge", "lag"})
"""Types of interface that no machine boots from."""

Document = Mapping[str, Any]


class DeviceParts(Struct, frozen=True):
    """Parts of a device that NetBox lists beside it: interfaces, outlets that feed it, devices in its bays."""

    interfaces: tuple[Document, ...] = ()
    outlets: tuple[str, ...] = ()
    installed: tuple[Document, ...] = ()


def expected_node(device: Document, parts: DeviceParts) -> ExpectedNode:
    """The device as an expected node; what it does not say stays empty. Raises ValueError naming the device."""
    where = place_of(device)
    return ExpectedNode(
        serial=text_of(device.get("serial")).strip(),
        macs=tuple(mac for one in parts.interfaces if (mac := _boot_mac(one))),
        sku=custom(device, SKU_FIELD) or _of(device, "device_type", "slug"),
        hostname=text_of(device.get("name")),
        bmc=address_of(device, "oob_ip", where),
        outlets=parts.outlets,
        dpu_bmcs=_dpu_bmcs(device, parts.installed, where),
        site=_of(device, "site", "slug"),
        rack=_of(device, "rack", "name"),
        u=_unit(device.get("position"), where),
        where=where[:200],
    )


def place_of(device: Document) -> str:
    """How the device is named to a person."""
    return f"netbox:{text_of(device.get('name')) or device.get('id')}"


def device_of(component: Document) -> int:
    """The id of the device that has this interface, power port or bay, 0 where it is not said."""
    return ident_of(component.get("device"))


def ident_of(nested: object) -> int:
    """The id of a nested object, 0 where there is none."""
    number = nested.get("id") if isinstance(nested, Mapping) else nested
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


def custom(document: Document, field: str) -> str:
    """A custom field's text, "" where it has none."""
    own = document.get("custom_fields")
    return text_of(own.get(field)).strip() if isinstance(own, Mapping) else ""


def _dpu_bmcs(device: Document, installed: Iterable[Document], where: str) -> tuple[str, ...]:
    """Addresses of the BMCs of its DPUs. Raises ValueError for a DPU without one: the list is given whole."""
    if said := custom(device, DPU_FIELD):
        return tuple(said.replace(",", " ").split())
    found: list[str] = []
    for one in installed:
        if DPU_ROLE not in (_of(one, "role", "slug"), _of(one, "device_role", "slug")):
            continue
        at = place_of(one)
        if not (address := address_of(one, "oob_ip", at)):
            raise ValueError(f"{where}: its DPU {at[:80]} has no out-of-band IP; give it its BMC's address in NetBox")
        found.append(address)
    return tuple(found)


def _boot_mac(interface: Document) -> str:
    """The MAC address that a machine may boot from; "" for the BMC's own port and what is no port."""
    if interface.get("mgmt_only") or interface.get("enabled") is False or _of(interface, "type", "value") in VIRTUAL:
        return ""
    return normal_mac(text_of(interface.get("mac_address")))


def address_of(device: Document, field: str, where: str) -> str:
    """The Redfish address at one of the device's IPs, which NetBox writes with its prefix. Raises ValueError."""
    if not (address := _of(device, field, "address")):
        return ""
    try:
        ip = ip_interface(address).ip
    except ValueError:
        raise ValueError(
            f"{where}: {field} {address[:60]!a} is no address; correct the device's IP address in NetBox"
        ) from None
    return f"https://[{ip}]" if isinstance(ip, IPv6Address) else f"https://{ip}"


def _unit(position: object, where: str) -> int:
    """The lowest rack unit; NetBox knows halves."""
    if position is None:
        return 0
    if isinstance(position, bool) or not isinstance(position, int | float) or not 0 <= position <= 1_000:
        raise ValueError(
            f"{where}: position {str(position)[:40]!a} is no rack unit; correct the device's position in NetBox"
        )
    return int(position)


def _of(document: Document, field: str, key: str) -> str:
    """A field of a nested object, "" where there is none."""
    nested = document.get(field)
    return text_of(nested.get(key)) if isinstance(nested, Mapping) else ""


def text_of(value: object) -> str:
    """The value where it is a text, else ""."""
    return value if isinstance(value, str) else ""
