"""Compares expected nodes with the registered ones: what is added, what changes, and where two sources disagree. Pure.

The plan is a function of the fleet and of what is expected. It is carried out by its digest alone, so that what a
person has read is what happens.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.intents import registration
from hostler.core.intents.ask import Ask, Granted, Handler, Handlers, RefusalError
from hostler.core.intents.entered_addresses import KINDS, EnteredAddresses, names_of, written_once
from hostler.core.intents.expected_problems import PROBLEMS_SHOWN, normal, problems_of, spec_of
from hostler.core.intents.registration import NodeSpec
from hostler.core.state import events as e
from hostler.core.state.assets import Binding, normal_mac
from hostler.core.state.expected import COMPARED, LISTS, AdmissionRules, ExpectedNode, FieldOwner
from hostler.core.state.fleet import Fleet
from hostler.core.state.input_problems import InvalidInputError, Problem
from hostler.core.state.intent import Bounds
from hostler.core.state.model import Node, Phase
from hostler.core.state.verbs.nodes import Admit
from hostler.core.tables.operations import OPERATIONS

_NAMED = ("hostname", "bmc")
"""Names of one node alone, beside its serial number and MAC addresses."""
_ADDRESSES = tuple(field for field in LISTS if field in KINDS)
"""Lists of addresses at which Hostler enters."""
_SKU_OPEN = (Phase.registered, Phase.onboard, Phase.debug, Phase.rma)
"""Phases in which a node's SKU may change: its parts have not been held against one, or will all be again."""


class FieldChange(Struct, frozen=True):
    """One field: its value as registered, its value as expected, and who decides it."""

    field: str
    registered: str
    expected: str
    owner: FieldOwner


class NodeChange(Struct, frozen=True):
    """A registered node with the fields that would change."""

    node: str
    where: str
    fields: tuple[FieldChange, ...]


class AdmissionConflict(Struct, frozen=True):
    """A field of which two sources say different things. It stays. `says`: who decides, and the way out."""

    node: str
    where: str
    field: FieldChange
    says: str


class AdmissionPlan(Struct, frozen=True):
    """The whole difference. `digest` names it; `unchanged` counts entries that are registered as they are expected."""

    source: FieldOwner
    adds: tuple[ExpectedNode, ...]
    changes: tuple[NodeChange, ...]
    conflicts: tuple[AdmissionConflict, ...]
    unchanged: int
    digest: str = ""

    @property
    def specs(self) -> tuple[NodeSpec, ...]:
        """The nodes that it adds, as they are registered."""
        return tuple(spec_of(entry) for entry in self.adds)


def read_expected(document: str) -> tuple[ExpectedNode, ...]:
    """The entries of a JSON document. Raises InvalidInputError."""
    try:
        return msgspec.json.decode(document, type=tuple[ExpectedNode, ...])
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError) as error:
        problem = Problem("nodes", 0, str(error), "see `hostler admission plan --help` for the fields")
        raise InvalidInputError((problem,)) from error


def compare(fleet: Fleet, source: FieldOwner, expected: tuple[ExpectedNode, ...]) -> AdmissionPlan:
    """The plan. Raises InvalidInputError, with each entry's place, where an entry is not usable: then there is none."""
    entries = tuple(normal(entry) for entry in expected)
    if problems := tuple(islice(problems_of(fleet, entries), PROBLEMS_SHOWN)):
        raise InvalidInputError(problems)
    plan = _compared(_Comparison(fleet, source, entries), entries)
    if bare := [
        Problem(one.where, 0, "no SKU", "write the SKU of a node that is new") for one in plan.adds if not one.sku
    ]:
        raise InvalidInputError(tuple(bare[:PROBLEMS_SHOWN]))
    return _digested(plan)


def admit(ask: Ask[Admit]) -> Granted:
    """The plan of this digest is carried out."""
    if ask.intent.bounds != Bounds():
        raise RefusalError("only an operator of the whole cell may admit nodes: their BMCs' addresses are among it")
    fleet = ask.context.fleet
    plan = compare(fleet, ask.act.source, read_expected(ask.act.nodes))
    if plan.digest != ask.act.digest:
        raise RefusalError(
            f"the plan is {plan.digest[:12]} now, not {ask.act.digest[:12]}: the fleet, the configuration or the "
            "inventory has changed since it was shown; run `hostler admission plan` again and read what it says"
        )
    added = registration.register(fleet, plan.specs, adopt=False, now=ask.context.now) if plan.adds else ()
    changed = tuple(event for change in plan.changes for event in _events(ask, change))
    counts = f"{len(plan.changes)} changed, {len(plan.conflicts)} conflict(s) left as they are"
    text = f"{len(added)} node(s) admitted, {counts}"
    return text, (*added, *changed)


def _events(ask: Ask[Admit], change: NodeChange) -> Iterator[e.Event]:
    for one in change.fields:
        if one.field in ("serial", *_NAMED, *KINDS):
            kind = KINDS.get(one.field, one.field)
            yield e.BindingChanged(change.node, Binding(kind, one.expected, ask.context.now))
        else:
            yield e.NodeFieldChanged(change.node, one.field, one.registered, one.expected, ask.act.source.value)


class _Comparison:
    """The fleet by serial number and MAC address, whatever case they are written in."""

    def __init__(self, fleet: Fleet, source: FieldOwner, entries: Iterable[ExpectedNode]) -> None:
        self.fleet = fleet
        self.source = source
        self.rules = fleet.configuration.admission or AdmissionRules()
        self.addresses = EnteredAddresses.of(
            fleet, (a for entry in entries for field in KINDS for a in names_of(entry, field))
        )
        self._holders: dict[tuple[str, str], str] = {}
        for node_id in fleet.nodes:
            for bound in fleet.nodes[node_id].bindings:
                if bound.until is None:
                    self._holders[bound.kind, bound.value.casefold()] = node_id

    def holder(self, kind: str, value: str) -> str:
        """The node that has this name, "" for none."""
        return self._holders.get((kind, value.casefold()), "")

    def decides(self, field: str) -> bool:
        """Whether this source decides the field."""
        return self.rules.owner(field) is self.source


def _compared(against: _Comparison, entries: Iterable[ExpectedNode]) -> AdmissionPlan:
    adds: list[ExpectedNode] = []
    changes: list[NodeChange] = []
    conflicts: list[AdmissionConflict] = []
    unchanged = 0
    for entry in entries:
        node, strange = _match(against, entry)
        conflicts.extend(strange)
        if strange:
            continue
        if node is None:
            adds.append(entry)
            continue
        fields, kept = _fields(against, node, entry)
        conflicts.extend(kept)
        if fields:
            changes.append(NodeChange(node.id, entry.where, fields))
        unchanged += not fields and not kept
    return AdmissionPlan(against.source, tuple(adds), tuple(changes), tuple(conflicts), unchanged)


def _match(against: _Comparison, entry: ExpectedNode) -> tuple[Node | None, list[AdmissionConflict]]:
    """The registered node that the entry means, and names of it that are another's: then nothing of it is done."""
    by_serial = against.holder("serial", entry.serial)
    by_mac = {holder: mac for mac in reversed(entry.macs) if (holder := against.holder("mac", mac))}
    if not by_serial and len(by_mac) == 1 and not against.fleet.nodes[next(iter(by_mac))].binding("serial"):
        by_serial = next(iter(by_mac))
    taken = [("macs", mac, holder) for holder, mac in by_mac.items()]
    taken += [(kind, name, against.holder(kind, name)) for kind in _NAMED if (name := getattr(entry, kind))]
    strange = [
        _elsewhere(against, entry, kind, name, holder) for kind, name, holder in taken if holder not in ("", by_serial)
    ]
    return (against.fleet.nodes[by_serial] if by_serial else None), strange or _entered_already(
        against, entry, by_serial
    )


def _elsewhere(against: _Comparison, entry: ExpectedNode, kind: str, name: str, holder: str) -> AdmissionConflict:
    serial = against.fleet.nodes[holder].binding("serial") or "no serial number"
    told = (
        f"{name} is bound to {holder} ({serial}); nothing of this entry is done: correct the inventory, or rebind or "
        f"retire {holder}"
    )
    return AdmissionConflict(holder, entry.where, FieldChange(kind, name, entry.serial, FieldOwner.hostler), told)


def _entered_already(against: _Comparison, entry: ExpectedNode, node: str) -> list[AdmissionConflict]:
    """Addresses that are somebody's already, or are known for something else: a password would go there."""
    found: list[AdmissionConflict] = []
    for field, kind in KINDS.items():
        for address in names_of(entry, field):
            if (held := against.addresses.clash(node, kind, address)) is None:
                continue
            way_out = f"correct the inventory, or rebind {held.holder}"
            told = f"{address} is {held.text}; nothing of this entry is done: {way_out}"
            changed = FieldChange(field, address, entry.serial, FieldOwner.hostler)
            found.append(AdmissionConflict(held.holder, entry.where, changed, told))
    return found


def _fields(
    against: _Comparison, node: Node, entry: ExpectedNode
) -> tuple[tuple[FieldChange, ...], list[AdmissionConflict]]:
    """Fields that change, and those that differ and stay."""
    has, wants = _of_node(node), _of_entry(against.fleet, entry)
    changes: list[FieldChange] = []
    kept: list[AdmissionConflict] = []
    for field in COMPARED:
        if not wants[field] or _same(field, wants[field], has[field]):
            continue
        one = FieldChange(field, has[field], wants[field], against.rules.owner(field))
        if why := _stays(against, node, one):
            kept.append(AdmissionConflict(node.id, entry.where, one, why))
        else:
            changes.append(one)
    return tuple(changes), kept


def _same(field: str, one: str, other: str) -> bool:
    if field in _ADDRESSES:
        kind = KINDS[field]
        return {written_once(kind, a) for a in one.split()} == {written_once(kind, a) for a in other.split()}
    return one.casefold() == other.casefold()


def _stays(against: _Comparison, node: Node, one: FieldChange) -> str:
    """Why the field stays as it is registered, "" where it changes."""
    if one.registered and not against.decides(one.field):
        return f"{one.owner.value} decides {one.field}, so '{one.registered}' stays (admission.owners.{one.field})"
    if one.field == "sku" and node.phase not in _SKU_OPEN:
        return f"the SKU of a node in {node.phase.value} stays: its parts are held against it"
    if one.field in KINDS and node.operation is not None and OPERATIONS[node.operation.kind].port == "bmc":
        return f"{node.operation.kind} is under way through its BMC; plan again when it is over"
    return ""


def _of_node(node: Node) -> Mapping[str, str]:
    macs = sorted(normal_mac(b.value) for b in node.bindings if b.kind == "mac" and b.until is None)
    named = {kind: node.binding(kind) for kind in ("serial", *_NAMED)}
    at = node.position
    placed = {"site": at.site, "row": at.row, "rack": at.rack, "u": str(at.u) if at.u else ""}
    lists = {field: " ".join(sorted(node.binding(KINDS[field]).split())) for field in _ADDRESSES}
    return {**named, **placed, **lists, "sku": node.sku, "macs": " ".join(macs)}


def _of_entry(fleet: Fleet, entry: ExpectedNode) -> Mapping[str, str]:
    plain = {field: str(getattr(entry, field)) for field in COMPARED if field not in (*LISTS, "u", "bmc")}
    lists = {field: " ".join(sorted(getattr(entry, field))) for field in LISTS}
    bmc = registration.bmc_of(spec_of(entry), fleet.configuration.skus)
    return {**plain, **lists, "bmc": bmc, "u": str(entry.u) if entry.u else ""}


def _digested(plan: AdmissionPlan) -> AdmissionPlan:
    said = msgspec.json.encode((plan.source, plan.adds, plan.changes, plan.conflicts))
    return replace(plan, digest=hashlib.sha256(said).hexdigest())


HANDLERS: Handlers = {Admit: Handler(admit)}
