"""The parts of a fleet by serial, packed by node: 100,000 nodes hold some six million, most alike but for the serial.

What a node's parts have in common with those of other nodes (slots, kinds, models, firmware) is held once.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.model import MostSeen, Part
from hostler.core.state.packed_strings import SEPARATOR, Pairs, Shared, join, one_line


class Layout(Struct, frozen=True):
    """Layout: what the parts of like nodes have in common, in columns."""

    slots: tuple[str, ...]
    kinds: tuple[str, ...]
    models: tuple[str, ...]
    firmware: tuple[str, ...]


class Fitted(Struct, frozen=True):
    """The parts of one node by slot, then by serial. `since` is one moment where all share it."""

    serials: str
    layout: Layout
    since: tuple[datetime | None, ...]

    def parts(self, node: str) -> list[Part]:
        """The table's parts, unpacked."""
        at = self.layout
        since = self.since if len(self.since) == len(at.slots) else self.since * len(at.slots)
        columns = zip(self.serials.split(SEPARATOR), at.kinds, at.models, at.slots, at.firmware, since, strict=True)
        return [
            Part(serial, kind, model, slot, firmware, node, moment)
            for serial, kind, model, slot, firmware, moment in columns
        ]

    def part(self, serial: str, node: str) -> Part | None:
        """The part of this serial."""
        if serial not in self.serials:
            return None
        serials = self.serials.split(SEPARATOR)
        if serial not in serials:
            return None
        i, at = serials.index(serial), self.layout
        since = self.since[i if len(self.since) > 1 else 0]
        return Part(serial, at.kinds[i], at.models[i], at.slots[i], at.firmware[i], node, since)


class PackedParts:
    """The committed parts: a row for each node, loose parts that are in none, and which node a serial is in."""

    def __init__(self) -> None:
        self.rows: dict[str, Fitted] = {}
        self.loose: dict[str, Part] = {}
        self._words: Shared[str] = Shared()
        self._columns: Shared[tuple[str, ...]] = Shared()
        self._layouts: Shared[Layout] = Shared()
        self._most: Shared[MostSeen] = Shared()
        self._where = SerialIndex()

    def get(self, serial: str) -> Part | None:
        """The part of this serial."""
        if (loose := self.loose.get(serial)) is not None:
            return loose
        for node in self._where.candidates(serial):
            if (part := self.rows[node].part(serial, node)) is not None:
                return part
        return None

    def of(self, node: str) -> list[Part]:
        """The parts of a node, by slot and serial."""
        row = self.rows.get(node)
        return row.parts(node) if row else []

    def fit(self, node: str, parts: Iterable[Part]) -> None:
        """Have the node hold just these."""
        listed = sorted(parts, key=in_order)
        before, after = {p.serial for p in self.of(node)}, {p.serial for p in listed}
        for serial in before - after:
            self._where.remove(serial, node)
        self._where.add(after - before, node)
        if listed:
            self.rows[node] = self._row(listed)
        else:
            self.rows.pop(node, None)
            self._where.forget(node)

    def _row(self, parts: list[Part]) -> Fitted:
        layout = Layout(
            tuple(part.slot for part in parts),
            tuple(part.kind for part in parts),
            tuple(part.model for part in parts),
            tuple(part.firmware for part in parts),
        )
        moments = tuple(part.since for part in parts)
        since = moments[:1] if len(set(moments)) == 1 else moments
        return Fitted(join(part.serial for part in parts), self._layouts.one(layout), since)

    def share(self, given: Pairs) -> Pairs:
        """The pairs, whose names are held once: as a whole where other nodes have the same, else one by one."""
        return Pairs(self._columns.one(tuple(map(self._words.one, given.names))), given.serials)

    def share_whole(self, given: Pairs) -> Pairs:
        """The pairs, held once with names and texts: what all nodes of a kind show alike."""
        return Pairs(self.share(given).names, self._words.one(given.serials))

    def share_most(self, most: MostSeen) -> MostSeen:
        """The marks, held once for all nodes that have shown as much."""
        return self._most.one(most)

    def take(self, node: str, row: Fitted) -> None:
        """Hold a row as a snapshot has it."""
        self.rows[node] = row
        self._where.add(row.serials.split(SEPARATOR), node)


BUCKETS = 1 << 16
_NUMBER_BITS = 32
hash_of = hash
"""Number that stands for a serial in memory; it differs from process to process and is never written."""


class SerialIndex:
    """Nodes that may hold a serial, in eight bytes a part: half of the serial's hash, and the node's number."""

    def __init__(self) -> None:
        self._buckets: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        self._numbers: dict[str, int] = {}
        self._nodes: list[str] = []
        self._free: list[int] = []

    def candidates(self, serial: str) -> Iterator[str]:
        """The nodes that hold the serial, or another one of the same hash."""
        bucket, half = _hashed(serial)
        for entry in self._buckets.get(bucket, ()):
            if entry >> _NUMBER_BITS == half:
                yield self._nodes[entry & ((1 << _NUMBER_BITS) - 1)]

    def add(self, serials: Iterable[str], node: str) -> None:
        """The node holds the serials from now on. A start does so for millions: `_hashed` is written out."""
        number, buckets = self._number(node), self._buckets
        for hashed in map(hash_of, serials):
            buckets[hashed % BUCKETS].append((hashed >> 16 & 0xFFFF_FFFF) << _NUMBER_BITS | number)

    def remove(self, serial: str, node: str) -> None:
        """The node holds the serial no more."""
        bucket, half = _hashed(serial)
        entries = self._buckets[bucket]
        entries.remove(half << _NUMBER_BITS | self._number(node))
        if not entries:
            del self._buckets[bucket]

    def forget(self, node: str) -> None:
        """The node holds nothing more; its number may be another's."""
        if (number := self._numbers.pop(node, None)) is not None:
            self._nodes[number] = ""
            self._free.append(number)

    def _number(self, node: str) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = self._free.pop() if self._free else len(self._nodes)
            self._nodes[number : number + 1] = [node]
        return number


def _hashed(serial: str) -> tuple[int, int]:
    """The bucket, and 32 other bits. Which serials meet differs from run to run and changes no answer."""
    hashed = hash_of(serial)
    return hashed % BUCKETS, hashed >> 16 & 0xFFFF_FFFF


class PartTable:
    """The parts with an overlay of what the current step has changed, as `fleet.Table` has one."""

    def __init__(self) -> None:
        self.base = PackedParts()
        self.over: dict[str, Part | None] = {}
        self._came: dict[str, dict[str, None]] = {}

    def get(self, serial: str) -> Part | None:
        """The part of this serial number, None where it is not known."""
        serial = one_line(serial)
        if serial in self.over:
            return self.over[serial]
        return self.base.get(serial)

    def __getitem__(self, serial: str) -> Part:
        part = self.get(serial)
        if part is None:
            raise KeyError(serial)
        return part

    def __contains__(self, serial: str) -> bool:
        return self.get(serial) is not None

    def is_loose(self, serial: str) -> bool:
        """Whether the part is known and in no node; told without unpacking a row."""
        serial = one_line(serial)
        part = self.over[serial] if serial in self.over else self.base.loose.get(serial)
        return part is not None and not part.node

    def of(self, node: str) -> list[Part]:
        """The parts that are in this node, by slot and serial."""
        kept = self.base.of(node)
        if not self.over:
            return kept
        there = [part for part in kept if part.serial not in self.over]
        changed = (self.over.get(serial) for serial in self._came.get(node, ()))
        return sorted((*there, *(part for part in changed if part is not None and part.node == node)), key=in_order)

    def put(self, serial: str, part: Part | None) -> None:
        """Set the part, or forget it with None."""
        key = one_line(serial)
        self.over[key] = part if part is None or part.serial == key else replace(part, serial=key)
        if part is not None:
            self._came.setdefault(part.node, {})[key] = None

    def merge(self) -> None:
        """Make the overlay part of the base, each node's row made once."""
        changed = {node: self.of(node) for node in self._changed()}
        for serial, part in self.over.items():
            if part is None or part.node:
                self.base.loose.pop(serial, None)
            else:
                self.base.loose[serial] = part
        for node, parts in changed.items():
            self.base.fit(node, parts)
        self.drop()

    def _changed(self) -> dict[str, None]:
        """The nodes to which parts have come, or which parts have left."""
        held = {node: {part.serial for part in self.base.of(node)} for node in self._came if node}
        changed = dict.fromkeys(held)
        for serial, part in self.over.items():
            stays = part is not None and serial in held.get(part.node, ())
            if not stays and (before := self.base.get(serial)) is not None and before.node:
                changed[before.node] = None
        return changed

    def drop(self) -> None:
        """Forget what the step has changed."""
        self.over.clear()
        self._came.clear()


def in_order(part: Part) -> tuple[str, str]:
    """By what a node's parts are listed: slot, then serial; a part without a slot by its serial."""
    return part.slot or part.serial, part.serial
