"""NetBox's devices and interfaces (REST, versions 3.3 to 4) as expected nodes. Pure.

Fields as NetBox's REST API describes them: `serial`, `device_type.slug`, `site.slug`, `rack.name`, `position` and
`oob_ip`; of an interface `mgmt_only`, `enabled`, `type.value` and `mac_address`, since 4.2 that of its primary MAC.
"""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_interface
from typing import Any

from hostler.core.state.expected import ExpectedNode

SKU_FIELD = "hostler_sku"
"""Custom field of a device that names its SKU; without it the device type's slug does."""
VIRTUAL = frozenset({"virtual", "bridge", "lag"})
"""Types of interface that no machine boots from."""

Document = Mapping[str, Any]


def expected_node(device: Document, interfaces: Iterable[Document]) -> ExpectedNode:
    """The device as an expected node; what it does not say stays empty. Raises ValueError naming the device."""
    where = f"netbox:{_text(device.get('name')) or device.get('id')}"
    own = device.get("custom_fields")
    sku = _text(own.get(SKU_FIELD)) if isinstance(own, Mapping) else ""
    return ExpectedNode(
        serial=_text(device.get("serial")).strip(),
        macs=tuple(mac for one in interfaces if (mac := _boot_mac(one))),
        sku=sku or _of(device, "device_type", "slug"),
        hostname=_text(device.get("name")),
        bmc=_bmc(_of(device, "oob_ip", "address"), where),
        site=_of(device, "site", "slug"),
        rack=_of(device, "rack", "name"),
        u=_unit(device.get("position"), where),
        where=where[:200],
    )


def device_of(interface: Document) -> int:
    """The id of the device that has this interface, 0 where it is not said."""
    device = interface.get("device")
    number = device.get("id") if isinstance(device, Mapping) else device
    return number if isinstance(number, int) else 0


def _boot_mac(interface: Document) -> str:
    """The MAC address that a machine may boot from; "" for the BMC's own port and what is no port."""
    if interface.get("mgmt_only") or interface.get("enabled") is False or _of(interface, "type", "value") in VIRTUAL:
        return ""
    return _text(interface.get("mac_address")).lower()


def _bmc(address: str, where: str) -> str:
    """The Redfish address of the device's out-of-band address, which NetBox writes with its prefix."""
    if not address:
        return ""
    try:
        ip = ip_interface(address).ip
    except ValueError:
        raise ValueError(
            f"{where}: out-of-band address {address[:60]!a} is no address"
            "; correct the device's out-of-band IP in NetBox"
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
    return _text(nested.get(key)) if isinstance(nested, Mapping) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
