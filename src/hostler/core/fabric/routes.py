"""Ways through a network: the switches and links from one host's port to another's, by its switches' forwarding tables.

A way is told by tables and cables as they were found, and only where it ends at the port that was asked for. Where
switches choose for each packet there is no one way: it may be any of the equal links above the leaf.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.fabric.design import Design, DeviceKind, Port
from hostler.core.fabric.discovery import NO_PORT, Discovery, FoundPort
from hostler.core.state.fabrics import RouteSource

MOST_HOPS = 16
"""Switches of a way; a tree of three tiers has five at most."""
NOT_ASKED = "the routes of this network are not read: register it with --routes"


class Routes(Struct, frozen=True):
    """Ways of a network. `far`: far port by host port, or by switch and number. `lids` are of hosts' ports.

    `since`: from when on these tables are known to stand, None from the first look on. `adaptive`: switches choose.
    `why` says why ways are not known; "" where all tables were read.
    """

    far: Mapping[str, Port] = {}
    above: Mapping[str, Mapping[int, Port]] = {}
    tables: Mapping[str, bytes] = {}
    lids: Mapping[str, int] = {}
    since: datetime | None = None
    adaptive: bool = False
    why: str = NOT_ASKED

    def between(self, a: str, z: str, at: datetime) -> tuple[Port, ...] | None:
        """Ports by which what `a` sent to `z` then left each switch; None where nobody knows."""
        lid, entry = self.lids.get(z), self.far.get(a)
        if lid is None or entry is None or (self.since is not None and at < self.since):
            return None
        left: list[Port] = []
        device = entry.device
        while len(left) < MOST_HOPS and (table := self.tables.get(device)) is not None:
            number = table[lid] if lid < len(table) else NO_PORT
            far = self.above[device].get(number)
            if far is None:
                return None
            left.append(Port(device, str(number)))
            if f"{far.device}:{far.port}" == z:
                return tuple(left)
            device = far.device
        return None

    def after(self, before: "Routes", began: datetime) -> "Routes":
        """The routes as a look read them that began then: those that are as before are known from as early."""
        same = (self.tables, self.lids, self.far) == (before.tables, before.lids, before.far)
        return replace(self, since=before.since if same else began)

    def up_links(self, leaf: str) -> tuple[Port, ...]:
        """Ports of a switch that lead to other switches."""
        here = self.above.get(leaf, {})
        return tuple(Port(leaf, str(number)) for number, far in sorted(here.items()) if far.device in self.above)


NO_ROUTES = Routes()


def routes_of(design: Design, names: Mapping[FoundPort, Port], seen: Discovery, asked: RouteSource) -> Routes:
    """The ways of a network as a discovery saw it. `names`: found ports by the names of the design."""
    if asked is RouteSource.none:
        return NO_ROUTES
    far, above = _joined(design, names, seen)
    if asked is RouteSource.adaptive:
        return Routes(far, above, adaptive=True, why="its switches choose among equal links (adaptive routing)")
    read = seen.forwarding
    if read is None or not read.tables:
        return Routes(far, above, why=read.partial if read is not None else "no forwarding tables were read")
    by_guid = {at.guid: name.device for at, name in names.items() if name.device in above}
    tables = {by_guid[guid]: table for guid, table in read.tables.items() if guid in by_guid}
    lids = {str(names[at]): lid for at, lid in _lids(seen, read.lids).items() if at in names}
    few = sorted(above.keys() - tables.keys())
    missing = f"{len(few)} switches of the design have no forwarding table, {few[0]} first" if few else ""
    why = read.partial or missing or ("" if lids else "the discovery tells no LIDs")
    return Routes(far, above, tables, lids, why=why)


def _joined(
    design: Design, names: Mapping[FoundPort, Port], seen: Discovery
) -> tuple[dict[str, Port], dict[str, dict[int, Port]]]:
    """Far ports of hosts' ports by name, and of switches' ports by switch and number."""
    far: dict[str, Port] = {}
    above: dict[str, dict[int, Port]] = {
        device.name: {} for device in design.devices.values() if device.kind is DeviceKind.switch
    }
    for link in seen.links:
        for here, there in ((link.a, link.z), (link.z, link.a)):
            if here not in names or there not in names:
                continue
            if (ports := above.get(names[here].device)) is not None:
                ports[here.number] = names[there]
            else:
                far[str(names[here])] = names[there]
    return far, above


def _lids(seen: Discovery, told: Mapping[str, int]) -> dict[FoundPort, int]:
    """LIDs of ports as the tables tell them, else as the discovery does."""
    by_table = {at: told[guid] for guid, at in seen.also.items() if guid in told}
    by_table |= {FoundPort(guid, 1): told[guid] for guid in seen.devices.keys() & told.keys()}
    return by_table or dict(seen.lids)
