"""A fleet as one body of bytes and back: what a start reads, so that it need not fold the whole journal.

Nodes and the rows of their parts are most of it. What a node's slots have in common with its parts, and its parts with
those of other nodes, is written once.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder
from msgspec.structs import replace

from hostler.core.state import version_1, version_2
from hostler.core.state.assets import Asset
from hostler.core.state.cases import Incident, Ticket
from hostler.core.state.cell_record import CellRecord, StoredAnswer
from hostler.core.state.change_control import Approval, Rollout
from hostler.core.state.configuration import Configuration
from hostler.core.state.fabrics import Fabric, FabricCase
from hostler.core.state.fleet import Fleet
from hostler.core.state.goldens import Golden
from hostler.core.state.links import LinkCase
from hostler.core.state.manual_tests import ManualTest
from hostler.core.state.model import Hold, Node, Part, Tally
from hostler.core.state.packed_strings import NO_PAIRS, Pairs
from hostler.core.state.part_table import Fitted, Layout, PackedParts
from hostler.core.state.rack_runs import Rack
from hostler.core.state.rma_cases import RmaCase, StockLine
from hostler.core.state.scopes import scope_hook, text_hook
from hostler.core.state.windows import Window

SNAPSHOT_VERSION = 5
SNAPSHOTS_READ = (3, 4, SNAPSHOT_VERSION)
"""Versions of snapshots that this Hostler reads; it writes the last of them."""
MERGED_EVERY = 1_000
"""After so many nodes a fleet that is read is merged: the overlay of 100,000 would take as much again as the index."""
PIECE = 200
"""Values encoded at a stretch: about a millisecond's worth."""


class State(Struct, frozen=True):
    """The committed state, as one value."""

    cell: CellRecord
    configuration: Configuration
    nodes: list[Node]
    assets: list[Asset]
    fitted: dict[str, Fitted]
    loose: dict[str, Part]
    holds: list[Hold]
    windows: list[Window]
    tickets: list[Ticket]
    approvals: list[Approval]
    rollouts: list[Rollout]
    incidents: list[Incident]
    answers: list[tuple[str, StoredAnswer]]
    retired: list[tuple[str, datetime]]
    tallies: list[tuple[str, tuple[Tally, ...]]] = []
    fabrics: list[Fabric] = []
    fabric_cases: list[FabricCase] = []
    link_cases: list[LinkCase] = []
    manual_tests: list[ManualTest] = []
    rma_cases: list[RmaCase] = []
    stock: list[StockLine] = []
    goldens: list[Golden] = []
    racks: list[Rack] = []


class NodePartsRow(Struct, frozen=True, array_like=True):
    """A node's parts: their serials, the number of their layout, since when they are there."""

    node: str
    serials: str
    layout: int
    since: tuple[datetime | None, ...]


class _UnderWay(Struct, frozen=True):
    plan: Any = None
    operation: Any = None
    settling: Any = ()
    aside: Any = None


class SnapshotBody(Struct, frozen=True):
    """A snapshot's body. `nodes` and `rows` are encoded on their own; `others` is all that is neither.

    A node whose slots are those of its row is written without them; `bare` are the nodes with a row and without slots.
    """

    version: int
    nodes: list[msgspec.Raw]
    layouts: list[Layout]
    rows: list[msgspec.Raw]
    bare: list[str]
    others: msgspec.Raw


def state_of(fleet: Fleet) -> State:
    """The committed state as one value; cheap: the values are shared, only lists are made."""
    return State(
        cell=fleet.singles.base["cell"],
        configuration=fleet.configurations.base["active"],
        nodes=list(fleet.nodes.base.values()),
        assets=list(fleet.assets.base.values()),
        fitted=dict(fleet.parts.base.rows),
        loose=dict(fleet.parts.base.loose),
        holds=list(fleet.holds.base.values()),
        windows=list(fleet.windows.base.values()),
        tickets=list(fleet.tickets.base.values()),
        approvals=list(fleet.approvals.base.values()),
        rollouts=list(fleet.rollouts.base.values()),
        incidents=list(fleet.incidents.base.values()),
        answers=list(fleet.answers.base.items()),
        retired=list(fleet.retired.base.items()),
        tallies=list(fleet.tallies.base.items()),
        fabrics=list(fleet.fabrics.base.values()),
        fabric_cases=list(fleet.fabric_cases.base.values()),
        link_cases=list(fleet.link_cases.base.values()),
        manual_tests=list(fleet.manual_tests.base.values()),
        rma_cases=list(fleet.rma_cases.base.values()),
        stock=list(fleet.stock.base.values()),
        goldens=list(fleet.goldens.base.values()),
        racks=list(fleet.racks.base.values()),
    )


def dump(state: State, pause: Callable[[], None] = lambda: None) -> bytes:
    """A snapshot's body. It calls `pause` about once a millisecond of work, where a caller lets others go on."""
    numbers: dict[int, int] = {}
    layouts: list[Layout] = []
    for row in state.fitted.values():
        if numbers.setdefault(id(row.layout), len(layouts)) == len(layouts):
            layouts.append(row.layout)
    rows = (NodePartsRow(node, row.serials, numbers[id(row.layout)], row.since) for node, row in state.fitted.items())
    body = {
        "version": SNAPSHOT_VERSION,
        "nodes": _in_pieces((_without_slots(node, state.fitted) for node in state.nodes), len(state.nodes), pause),
        "layouts": layouts,
        "rows": _in_pieces(rows, len(state.fitted), pause),
        "bare": [node.id for node in state.nodes if not node.slots and node.id in state.fitted],
        "others": replace(state, nodes=[], fitted={}),
    }
    return msgspec.msgpack.encode(body, enc_hook=text_hook)


def _without_slots(node: Node, fitted: dict[str, Fitted]) -> Node:
    row = fitted.get(node.id)
    return replace(node, slots=NO_PAIRS) if row is not None and node.slots == _slots_of(row) else node


def _slots_of(row: Fitted) -> Pairs:
    """Slots of a node whose inventory is as it was last seen whole."""
    if "" not in row.layout.slots:
        return Pairs(row.layout.slots, row.serials)
    return Pairs(tuple(part.slot or part.serial for part in row.parts("")), row.serials)


def _in_pieces(values: Iterator[Any], length: int, pause: Callable[[], None]) -> msgspec.Raw:
    """The values as an array, encoded piece by piece."""
    encode = Encoder(enc_hook=text_hook).encode
    pieces = [_opening(length)]
    for start in range(0, length, PIECE):
        piece = [next(values) for _ in range(min(PIECE, length - start))]
        pieces.append(encode(piece)[len(_opening(len(piece))) :])
        pause()
    return msgspec.Raw(b"".join(pieces))


def _opening(length: int) -> bytes:
    """How an array of this length begins, before its values; nothing is one byte long."""
    return msgspec.msgpack.encode([None] * length)[: -length or None]


def load(body: bytes) -> Fleet:
    """The fleet of a snapshot's body. Raises ValueError on a format that this version does not read."""
    stored = msgspec.msgpack.decode(body, type=SnapshotBody)
    if stored.version not in SNAPSHOTS_READ:
        read = ", ".join(map(str, SNAPSHOTS_READ))
        raise ValueError(f"snapshot format {stored.version}; this version reads {read}")
    others = _others(stored)
    fleet = Fleet(others.configuration)
    _take_others(fleet, others)
    parts = fleet.parts.base
    row_of = Decoder(NodePartsRow)
    for raw in stored.rows:
        row = row_of.decode(raw)
        parts.take(row.node, Fitted(row.serials, stored.layouts[row.layout], row.since))
    for number, node in enumerate(_nodes(stored, parts)):
        fleet.put_node(node.id, node)
        if number % MERGED_EVERY == 0:
            fleet.merge()
    fleet.merge()
    return fleet


def _others(stored: SnapshotBody) -> State:
    if stored.version > 3:
        return msgspec.msgpack.decode(stored.others, type=State, dec_hook=scope_hook)
    return msgspec.convert(version_1.state_up(msgspec.msgpack.decode(stored.others)), State, dec_hook=scope_hook)


def _nodes(stored: SnapshotBody, parts: PackedParts) -> Iterable[Node]:
    """The nodes, their slots as of their parts' rows where they were written without."""
    node_of, bare = Decoder(Node, dec_hook=scope_hook), frozenset(stored.bare)
    for raw in stored.nodes:
        node = node_of.decode(raw) if stored.version == SNAPSHOT_VERSION else _older_node(raw, node_of)
        if stored.version == 3 and node.plan is not None:
            node = replace(node, plan=replace(node.plan, rules=version_1.rules_of(node.plan.name)))
        slots = node.slots
        if not slots and node.id not in bare and (row := parts.rows.get(node.id)) is not None:
            slots = _slots_of(row)
        most = parts.share_most(node.most_seen)
        yield replace(node, slots=slots, addresses=parts.share(node.addresses), most_seen=most)


def _older_node(raw: msgspec.Raw, node_of: Decoder[Node]) -> Node:
    """A node of an older snapshot; only those for which something is under way were written otherwise."""
    busy = msgspec.msgpack.decode(raw, type=_UnderWay)
    if not (busy.plan or busy.operation or busy.settling or busy.aside):
        return node_of.decode(raw)
    return msgspec.convert(version_2.node_up(msgspec.msgpack.decode(raw)), Node, dec_hook=scope_hook)


def _take_others(fleet: Fleet, state: State) -> None:
    fleet.singles.base["cell"] = state.cell
    for asset in state.assets:
        fleet.put_asset(asset.id, asset)
    for serial, part in state.loose.items():
        fleet.put_part(serial, part)
    for hold in state.holds:
        fleet.put_hold(hold.id, hold)
    fleet.windows.base.update((w.id, w) for w in state.windows)
    fleet.rollouts.base.update((r.id, r) for r in state.rollouts)
    for approval in state.approvals:
        fleet.put_approval(approval.id, approval)
    fleet.answers.base.update(state.answers)
    fleet.retired.base.update(state.retired)
    fleet.tallies.base.update(state.tallies)
    fleet.fabrics.base.update((f.name, f) for f in state.fabrics)
    fleet.fabric_cases.base.update((c.id, c) for c in state.fabric_cases)
    fleet.link_cases.base.update((c.id, c) for c in state.link_cases)
    fleet.manual_tests.base.update((t.fabric, t) for t in state.manual_tests)
    fleet.stock.base.update((line.id, line) for line in state.stock)
    fleet.racks.base.update((rack.name, rack) for rack in state.racks)
    for golden in state.goldens:
        fleet.put_golden(golden.id, golden)
    for case in state.rma_cases:
        fleet.put_rma_case(case.id, case)
    for ticket in state.tickets:
        fleet.put_ticket(ticket.id, ticket)
    for incident in state.incidents:
        fleet.put_incident(incident.id, incident)
