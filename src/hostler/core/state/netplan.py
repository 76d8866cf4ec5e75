"""The network configuration of a node as netplan has it, version 2: Ethernet ports, bonds, bridges and VLANs.

Names and types are those of netplan's YAML reference (netplan.readthedocs.io, "YAML configuration"). What a device of
another kind holds is passed on as it stands.
"""

from typing import Any

import msgspec
from msgspec import Struct


class NetworkRoute(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A route of a device."""

    to: str
    via: str = ""
    from_: str = msgspec.field(default="", name="from")
    on_link: bool = False
    metric: int = 0
    table: int = 0
    type: str = ""
    scope: str = ""
    mtu: int = 0
    congestion_window: int = 0
    advertised_receive_window: int = 0
    advertised_mss: int = 0


class RoutingRule(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A rule by which a routing table is chosen: a rail answers from its own port."""

    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    table: int = 0
    priority: int = 0
    mark: int = 0
    type_of_service: int = 0


class Nameservers(Struct, frozen=True, forbid_unknown_fields=True):
    """Name servers of a device, and the domains that are searched."""

    addresses: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


class NetworkDevice(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Settings of any device; an address is a string, or a mapping of it to its options."""

    renderer: str = ""
    dhcp4: bool = False
    dhcp6: bool = False
    dhcp4_overrides: dict[str, Any] = {}
    dhcp6_overrides: dict[str, Any] = {}
    dhcp_identifier: str = ""
    accept_ra: bool = False
    link_local: tuple[str, ...] = ()
    addresses: tuple[str | dict[str, dict[str, Any]], ...] = ()
    routes: tuple[NetworkRoute, ...] = ()
    routing_policy: tuple[RoutingRule, ...] = ()
    nameservers: Nameservers = Nameservers()
    macaddress: str = ""
    mtu: int = 0
    optional: bool = False
    critical: bool = False
    ignore_carrier: bool = False
    activation_mode: str = ""
    emit_lldp: bool = False
    gateway4: str = ""
    gateway6: str = ""
    ipv6_address_generation: str = ""
    ipv6_address_token: str = ""
    ipv6_mtu: int = 0
    ipv6_privacy: bool = False
    ra_overrides: dict[str, Any] = {}
    optional_addresses: tuple[str, ...] = ()
    neigh_suppress: bool = False
    networkmanager: dict[str, Any] = {}
    openvswitch: dict[str, Any] = {}


class Match(Struct, frozen=True, forbid_unknown_fields=True):
    """The ports that are meant: by address, by name, by driver."""

    macaddress: str = ""
    name: str = ""
    driver: str | tuple[str, ...] = ""


class Ethernet(NetworkDevice, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A port."""

    match: Match | None = None
    set_name: str = ""
    wakeonlan: bool = False
    link: str = ""
    virtual_function_count: int = 0
    embedded_switch_mode: str = ""
    delay_virtual_functions_rebind: bool = False
    infiniband_mode: str = ""
    auth: dict[str, Any] = {}
    receive_checksum_offload: bool = False
    transmit_checksum_offload: bool = False
    tcp_segmentation_offload: bool = False
    tcp6_segmentation_offload: bool = False
    generic_segmentation_offload: bool = False
    generic_receive_offload: bool = False
    large_receive_offload: bool = False


class BondParameters(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How ports are bonded."""

    mode: str = ""
    lacp_rate: str = ""
    mii_monitor_interval: int | str = ""
    min_links: int = 0
    transmit_hash_policy: str = ""
    ad_select: str = ""
    all_slaves_active: bool = False
    all_members_active: bool = False
    arp_interval: int | str = ""
    arp_ip_targets: tuple[str, ...] = ()
    arp_validate: str = ""
    arp_all_targets: str = ""
    up_delay: int | str = ""
    down_delay: int | str = ""
    fail_over_mac_policy: str = ""
    gratuitous_arp: int = 0
    gratuitious_arp: int = 0
    packets_per_member: int = 0
    packets_per_slave: int = 0
    primary_reselect_policy: str = ""
    resend_igmp: int = 0
    learn_packet_interval: int | str = ""
    primary: str = ""


class Bond(NetworkDevice, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Ports that are one."""

    interfaces: tuple[str, ...] = ()
    parameters: BondParameters = BondParameters()


class Bridge(NetworkDevice, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A bridge over devices."""

    interfaces: tuple[str, ...] = ()
    parameters: dict[str, Any] = {}


class Vlan(NetworkDevice, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A VLAN on a device."""

    id: int | None = None
    link: str = ""


DEVICES: dict[str, type[NetworkDevice]] = {"ethernets": Ethernet, "bonds": Bond, "bridges": Bridge, "vlans": Vlan}
"""Kind of device → what it may say."""
BOND_MODES = frozenset(
    {"balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"}
)
