"""Whether a node is what its SKU says: every kind of part that it names, how many, of which model, seen in this boot.

Decided from what is recorded, by whoever holds the SKU, and not by the node's own agent. What nobody has looked at is
a gap like what is missing. Evidence against the node is only what it has shown before and shows no more: of what it has
never shown, the SKU may name too many.
"""

from collections.abc import Iterator

from msgspec import Struct

from hostler.core.diagnose.host import MEMORY_PERCENT
from hostler.core.state.configuration import Sku
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import BARS
from hostler.core.state.model import BMC_ONLY, Node, Part
from hostler.core.state.most_parts_seen import MEMORY, shown
from hostler.core.tables.part_kinds import ONLY_BMC_KINDS

_SKU = "sku"


class Gap(Struct, frozen=True):
    """Difference of a node from its SKU: the kind of part, its slots where they are known, what was expected and found.

    `seen`: somebody has looked. `before`: how much the node has shown before, "" where that was no more than now.
    """

    kind: str
    slot: str
    expected: str
    found: str
    seen: bool = True
    before: str = ""

    @property
    def missing(self) -> bool:
        """Whether the node has lost what it had."""
        return bool(self.before)

    def __str__(self) -> str:
        place = f" in {self.slot}" if self.slot else ""
        before = f", {self.before} before" if self.before else ""
        return f"{self.kind}{place}: expected {self.expected}, found {self.found}{before}"


def gaps(fleet: Fleet, node: Node) -> tuple[Gap, ...]:
    """Gaps in which the node is not what its SKU says, in this boot; none means that somebody saw it complete."""
    sku = fleet.configuration_of(node).skus.get(node.sku)
    if sku is None:
        return (Gap(_SKU, "", "a configured SKU", f"{node.sku!r}, which is not in the configuration", seen=False),)
    if node.inventory_at is None:
        return (Gap("inventory", "", "an inventory of this boot", "none at all", seen=False),)
    if node.inventory_boot != node.boot_id:
        return (Gap("inventory", "", "an inventory of this boot", "one of an earlier boot", seen=False),)
    return (*_parts(fleet, node, sku), *_memory(node, sku), *_ailing(node), *_swapped(node))


def is_unseen(fleet: Fleet, node: Node) -> bool:
    """Whether there is something that a known SKU names and that nobody has looked at in this boot."""
    return any(not gap.seen and gap.kind != _SKU for gap in gaps(fleet, node))


def hidden_kinds(node: Node, sku: Sku) -> frozenset[str]:
    """Kinds that the SKU names and that nobody can ever list of this node: it has no BMC, and only a BMC lists them.

    They are no gap, and no plan that looks at the inventory proves them.
    """
    if node.binding("bmc"):
        return frozenset()
    looked = {kind.removeprefix(BMC_ONLY) for kind in node.inventory_covers}
    return (ONLY_BMC_KINDS & sku.counts.keys()) - looked


def has_unseen_kinds(fleet: Fleet, node: Node) -> bool:
    """Whether a known SKU names a kind of part that nobody has looked at in this boot; told without unpacking parts."""
    sku = fleet.configuration_of(node).skus.get(node.sku)
    if sku is None or node.inventory_boot != node.boot_id:
        return False
    looked = {kind.removeprefix(BMC_ONLY) for kind in node.inventory_covers}
    return any(kind not in looked for kind in sku.counts.keys() - hidden_kinds(node, sku))


def _parts(fleet: Fleet, node: Node, sku: Sku) -> Iterator[Gap]:
    here, hidden = fleet.parts.of(node.id), hidden_kinds(node, sku)
    for kind, count in sorted(sku.counts.items()):
        if kind in hidden:
            continue
        found = [part for part in here if part.kind == kind]
        if not {kind, f"{BMC_ONLY}{kind}"} & {*node.inventory_covers}:
            yield Gap(kind, "", str(count), "nothing: no source can see this kind", seen=False)
        elif len(found) < count:
            most = shown(node, kind, by_bmc=kind not in node.inventory_covers)
            before = f"{most:g}" if most > len(found) else ""
            yield Gap(kind, _empty(sku, kind, found), str(count), str(len(found)), before=before)
        yield from _models(kind, _model(sku, kind), found)


def _empty(sku: Sku, kind: str, found: list[Part]) -> str:
    """The slots that the SKU names and in which nothing was found."""
    taken = {part.slot for part in found}
    return ", ".join(slot for slot in sku.slots.get(kind, ()) if slot not in taken)


def _model(sku: Sku, kind: str) -> str:
    return sku.models.get(kind, sku.gpu_model if kind == "gpu" else "")


def _models(kind: str, wanted: str, found: list[Part]) -> Iterator[Gap]:
    """A model matches when it contains the SKU's words: "NVIDIA H100 80GB HBM3" is an "H100"."""
    other = [part for part in found if wanted.lower() not in part.model.lower()]
    if other:
        slots = ", ".join(part.slot or part.serial for part in other)
        models = ", ".join(sorted({part.model or "an unnamed model" for part in other}))
        yield Gap(kind, slots, wanted, models)


def _memory(node: Node, sku: Sku) -> Iterator[Gap]:
    if not sku.memory_gib:
        return
    if not node.memory_gib:
        yield Gap(MEMORY, "", f"{sku.memory_gib:g} GiB", "nothing: no amount was reported", seen=False)
    elif node.memory_gib < sku.memory_gib * MEMORY_PERCENT / 100:
        most = shown(node, MEMORY)
        before = f"{most:.0f} GiB" if node.memory_gib < most * MEMORY_PERCENT / 100 else ""
        yield Gap(MEMORY, "", f"{sku.memory_gib:g} GiB", f"{node.memory_gib:.0f} GiB", before=before)


def _ailing(node: Node) -> Iterator[Gap]:
    """Parts that are there and known to be unwell, as a supply without input."""
    slots = {serial: slot for slot, serial in node.slots}
    for c in node.conditions:
        if c.type.startswith(_OF_PARTS) and c.severity >= BARS and c.unknown_since is None:
            yield Gap(
                c.type,
                slots.get(c.part, c.part),
                "a part that is well",
                c.evidence[-1].text if c.evidence else "one that is not",
            )


def _swapped(node: Node) -> Iterator[Gap]:
    """Parts that stand where a case has another to be, or none."""
    for c in node.conditions:
        if c.type == _UNEXPECTED:
            yield Gap(c.type, c.part, "the part that its case names", c.evidence[-1].text if c.evidence else "another")


_UNEXPECTED = "inventory.unexpected_serial"
_OF_PARTS = ("power.supply", "power.redundancy", "cooling.", "part.", "storage.failed", "network.nic_down")
