"""Result of a discovery of the fabric, whoever did it: devices by GUID, and links between their ports."""

from typing import NamedTuple

from msgspec import Struct

from hostler.core.fabric.rates import Rate


class FoundPort(NamedTuple):
    """A port of a device that answered. `number` counts from 1; port 0 of a switch is its own processor."""

    guid: str
    number: int


class FoundDevice(Struct, frozen=True):
    """A switch, or one adapter of a host. `guid`: 16 hexadecimal digits. `description`: what it calls itself."""

    guid: str
    switch: bool
    description: str


class FoundLink(Struct, frozen=True):
    """Two ports that are joined now. `rate` is None where the tool does not say it."""

    a: FoundPort
    z: FoundPort
    rate: Rate | None = None


LID_MOST = 0xBFFF
"""The highest LID of one port; those above are of groups."""
NO_PORT = 255
"""Out port of a forwarding table where a switch has no way to a LID."""


class Forwarding(Struct, frozen=True):
    """Forwarding tables of switches: by GUID the out port for each LID, `NO_PORT` for none.

    `lids`: LIDs by the port's GUID, where the tables tell them. `partial` says why tables are missing.
    """

    tables: dict[str, bytes] = {}
    lids: dict[str, int] = {}
    partial: str = ""


class Discovery(Struct, frozen=True):
    """One look at a fabric. `partial` says why it may be less than all there is; "" for a whole one.

    From a partial one nothing is concluded that needs everything to have been seen. `also`: GUIDs of adapters' ports,
    where a tool tells them beside the adapter's own; `lids`: LIDs of adapters' ports, where it tells those.
    `forwarding` is None where the network's registration does not ask for routes. `off`: hosts that are known to have
    no power, by their names in the design.
    """

    devices: dict[str, FoundDevice]
    links: tuple[FoundLink, ...]
    partial: str = ""
    also: dict[str, FoundPort] = {}
    lids: dict[FoundPort, int] = {}
    forwarding: Forwarding | None = None
    off: frozenset[str] = frozenset()
