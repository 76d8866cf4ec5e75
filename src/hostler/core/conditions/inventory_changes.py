"""Changes that an inventory makes to the record: parts that came, went or moved, what was seen in which boot."""

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from hostler.core.conditions.part_claims import AGENT, BMC, Tell, Told, settle_claims, tell_anybody
from hostler.core.diagnose.inventory import seen_by_agent
from hostler.core.diagnose.serials import by_slot, identified, is_by_slot
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import BMC_ONLY, Node, Observation, Outcome, Part
from hostler.core.tables.part_kinds import AGENT_KINDS

_EVER = datetime.min.replace(tzinfo=UTC)


def of_inventory(
    fleet: Fleet, node: Node, seen: Observation | Outcome, at: datetime, tell: Tell = tell_anybody
) -> Iterator[e.Event]:
    """Parts that came, went or moved, or were seen in another boot; nothing where all is as it was.

    `tell` says whether something may be recorded on another node because of it.
    """
    machine = node.binding("serial") or node.id
    known = {part.serial: part for part in fleet.parts.of(node.id)}
    by_agent = seen_by_agent(seen.source if isinstance(seen, Observation) else "bmc", node)
    told = _told(identified(seen.parts, machine), list(known.values()), machine)
    claims = settle_claims(fleet, node, _look(seen, told, at), tell)
    yield from claims.events
    parts = tuple(part for part in claims.parts if part.kind not in by_agent)
    if not parts:
        return
    kinds = (frozenset(p.kind for p in parts) | _covers(seen)) - by_agent
    others = tuple(p for p in known.values() if p.kind not in kinds)  # agent and BMC see different ones
    slots = {(p.slot or p.serial, p.serial) for p in (*parts, *others)}
    looked = _looked(node, seen, kinds, _addresses(node, seen, dict(slots)))
    if node.inventory_at is not None and _is_as_before(node, looked, slots) and _same_models(known, parts):
        return
    live = frozenset(serial for _, serial in slots)
    for part in parts:
        before = known.get(part.serial) or fleet.parts.get(part.serial)
        if before is not None and before.node not in ("", node.id):
            yield e.PartMoved(part.serial, before.node, node.id, part.slot)
    for serial in known:
        if serial not in live:
            yield e.PartMoved(serial, node.id, "", "")
    yield replace(looked, at=at, parts=(*parts, *others))


def _look(seen: Observation | Outcome, parts: tuple[Part, ...], at: datetime) -> Told:
    by_agent = isinstance(seen, Observation) and seen.source == "agent"
    kinds = frozenset(part.kind for part in parts) | _covers(seen)
    observation = seen.id if isinstance(seen, Observation) else ""
    return Told(parts, kinds, AGENT if by_agent else BMC, at, observation)


def _is_as_before(node: Node, looked: e.InventorySeen, slots: set[tuple[str, str]]) -> bool:
    before = (set(node.slots), tuple(node.addresses), node.inventory_boot, node.inventory_covers, node.memory_gib)
    return before == (slots, looked.addresses, looked.boot_id, looked.covers, looked.memory_gib)


def _same_models(known: dict[str, Part], parts: tuple[Part, ...]) -> bool:
    return all(part.serial in known and known[part.serial].model == part.model for part in parts)


def _told(parts: tuple[Part, ...], known: list[Part], machine: str) -> tuple[Part, ...]:
    """The parts, without kinds that this observer knows by slot only where another has told their serial numbers.

    A BMC that shows no numbers of GPUs takes none back that the node's own driver has read.
    """
    numbered = {part.kind for part in known if not is_by_slot(part.serial)}
    vague = {part.kind for part in parts if part.serial == by_slot(part.slot, machine)}
    return tuple(part for part in parts if part.kind not in vague & numbered)


def _covers(seen: Observation | Outcome) -> frozenset[str]:
    """The kinds of which absence means something, as the observer says."""
    told = seen.facts.get("covers")
    if isinstance(told, str):
        return frozenset(kind.strip() for kind in told.split(",") if kind.strip())
    return AGENT_KINDS if isinstance(seen, Observation) and seen.source == "agent" else frozenset()


def _looked(
    node: Node, seen: Observation | Outcome, kinds: frozenset[str], addresses: tuple[tuple[str, str], ...]
) -> e.InventorySeen:
    """In which boot it was seen, and what was looked at in that boot so far; a BMC sees the boot that is known."""
    boot = seen.boot_id if isinstance(seen, Observation) and seen.source == "agent" else node.boot_id
    late = boot != node.boot_id and boot in node.boots
    boot = node.inventory_boot if late else boot
    same = boot == node.inventory_boot
    agents = isinstance(seen, Observation) and seen.source == "agent"
    fresh = kinds if agents else frozenset(f"{BMC_ONLY}{kind}" for kind in kinds)
    covers = tuple(sorted(fresh | (frozenset(node.inventory_covers) if same else frozenset())))
    kib = seen.facts.get("memory_kib")
    read = kib / 2**20 if isinstance(kib, int | float) and not isinstance(kib, bool) else 0.0
    if not agents and "memory" in seen_by_agent("bmc", node):
        read = 0.0  # the node's agent has read it in this boot, and knows what is in use
    memory_gib = round(read, 1) or (node.memory_gib if same else 0.0)
    return e.InventorySeen(node.id, _EVER, (), addresses=addresses, boot_id=boot, covers=covers, memory_gib=memory_gib)


def _addresses(node: Node, seen: Observation | Outcome, slots: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """PCI address or UUID → serial, as an agent says it ("pci:0000:4c:00" is a slot); a BMC's look changes none."""
    kinds = ("pci:", "uuid:")
    stated = {name: slots[str(slot)] for name, slot in seen.facts.items() if name.startswith(kinds) and slot in slots}
    if not stated:
        live = frozenset(slots.values())
        stated = {name: serial for name, serial in node.addresses if serial in live}
    return tuple(sorted(stated.items()))
