"""Events of what nodes consist of: inventories, parts that move, the shelf."""

from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import most_parts_seen
from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import SHELF_KEPT, Fleet
from hostler.core.state.hardware import OWN
from hostler.core.state.model import Node, Part
from hostler.core.state.packed_strings import pairs

_EVER = datetime.min.replace(tzinfo=UTC)


class InventorySeen(Struct, frozen=True, tag="inventory_seen"):
    """The node's parts as seen at `at`; recorded only when they differ from what was known.

    `addresses` are (PCI address, serial): how the kernel's log names a part. `boot_id` is the boot in which they were
    seen, `covers` the kinds that were looked at in it so far, `memory_gib` the host's memory, 0 where nobody read it.
    """

    node: str
    at: datetime
    parts: tuple[Part, ...]
    firmware: tuple[tuple[str, str], ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
    boot_id: str = ""
    covers: tuple[str, ...] = ()
    memory_gib: float = 0.0


class HardwareSeen(Struct, frozen=True, tag="hardware_seen"):
    """Readings of links, settings and places by one source ("agent", "bmc"), recorded when they differ from before.

    They take the place of what that source has read before. `boot_id` is the boot in which they were read.
    """

    node: str
    source: str
    boot_id: str
    readings: tuple[tuple[str, str], ...]


class PartMoved(Struct, frozen=True, tag="part_moved"):
    """A serial left one node ("" = shelf) and was seen in another."""

    serial: str
    before: str
    after: str
    slot: str


def _see_inventory(fleet: Fleet, event: InventorySeen, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    since = {part.serial: part.since for part in fleet.parts.of(node.id)}
    for part in event.parts:
        fleet.put_part(part.serial, replace(part, node=node.id, since=since.get(part.serial) or event.at))
    share = fleet.parts.base.share
    slots = share(pairs(sorted((p.slot or p.serial, p.serial) for p in event.parts)))
    seen = replace(
        node,
        slots=slots,
        addresses=share(pairs(event.addresses)),
        inventory_at=event.at,
        inventory_boot=event.boot_id,
        inventory_covers=event.covers,
        memory_gib=event.memory_gib,
        most_seen=fleet.parts.base.share_most(
            most_parts_seen.raised(node.most_seen, event.covers, event.parts, event.memory_gib)
        ),
    )
    fleet.put_node(node.id, runs(seen, event.firmware, event.at) if event.firmware else seen)


def _see_hardware(fleet: Fleet, event: HardwareSeen, _at: datetime) -> None:
    node, share = node_of(fleet, event.node), fleet.parts.base.share
    mark = f"{event.source}/"
    told = [(f"{mark}{name}", value) for name, value in event.readings]
    kept = [pair for held in (node.hardware, node.hardware_own) for pair in held if not pair[0].startswith(mark)]
    readings = sorted((*kept, *told))
    own = [pair for pair in readings if _is_own(pair[0])]
    boots = {**dict(node.hardware_boots), event.source: event.boot_id}
    seen = replace(
        node,
        hardware=fleet.parts.base.share_whole(pairs(pair for pair in readings if not _is_own(pair[0]))),
        hardware_own=share(pairs(own)),
        hardware_boots=tuple(sorted(boots.items())),
    )
    fleet.put_node(node.id, seen)


def _is_own(name: str) -> bool:
    return name.partition("/")[2].startswith(OWN)


def _move_part(fleet: Fleet, event: PartMoved, at: datetime) -> None:
    part = fleet.parts.get(event.serial)
    if part is None:
        return
    moved = replace(part, node=event.after, slot=event.slot, since=at)
    donor = fleet.nodes.get(event.before) if event.after else None
    if donor is not None:
        fleet.put_node(donor.id, replace(donor, most_seen=most_parts_seen.lowered(donor.most_seen, part.kind)))
    if moved.node:
        fleet.put_part(moved.serial, moved)
    else:
        shelve(fleet, moved)


def shelve(fleet: Fleet, part: Part) -> None:
    """The part is in no node; of those that have lain there longest a tenth is forgotten once there are too many."""
    fleet.put_part(part.serial, part)
    if fleet.index.count("shelf") > SHELF_KEPT:
        by_age = sorted((fleet.parts[serial].since or _EVER, serial) for serial in fleet.index.members("shelf"))
        for _, serial in by_age[: 1 + SHELF_KEPT // 10]:
            fleet.put_part(serial, None)


def runs(node: Node, firmware: tuple[tuple[str, str], ...], at: datetime) -> Node:
    """The node with this firmware; versions that replaced others are its last change. First sight changes nothing."""
    had = dict(node.firmware)
    changed = tuple(f"{name}={version}" for name, version in firmware if had.get(name, version) != version)
    if not changed:
        return replace(node, firmware=firmware)
    return replace(node, firmware=firmware, changed=changed, changed_at=at)


ROWS: EventRows = (
    EventRow(InventorySeen, of_node, _see_inventory),
    EventRow(HardwareSeen, of_node, _see_hardware),
    EventRow(PartMoved, lambda e: tuple(name for name in (e.serial, e.before, e.after) if name), _move_part),
)
