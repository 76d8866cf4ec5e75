"""Events of nodes and assets: known, named, moved along the graph, assigned, checked."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.assets import Asset, Binding
from hostler.core.state.configuration import STRIKES_KEPT_S
from hostler.core.state.drills import running
from hostler.core.state.events.inventory import shelve
from hostler.core.state.events.plans import ATTEMPTS_KEPT
from hostler.core.state.events.row import EventRow, EventRows, FoldError, node_of, of_node, of_others
from hostler.core.state.fleet import Fleet
from hostler.core.state.hardware import without_bios
from hostler.core.state.model import Assignment, Attempt, CheckResult, Node, Phase, Verdict, Waiting
from hostler.core.state.racks import DRY, LISTED_MOST, WET_WORD, AssetLook
from hostler.core.state.repairs import REPAIRS_KEPT, RepairDone
from hostler.core.state.scopes import RACK, Scope

BOOTS_KEPT = 8
ENDED_NAMES_KEPT = 16
_WORKED_ON = (Phase.rma, Phase.debug)
"""Phases in which others decide what a machine consists of: what it showed before says nothing of what comes back."""


_LOOKED_AT = (Phase.onboard, Phase.production, Phase.debug, Phase.rma)
"""Phases in which hands, engineers, a vendor or customers' work show what a machine is worth."""
_SEEN_TO = (Phase.onboard, Phase.debug, Phase.rma)
"""Phases in which a person sees to a machine: what sent it to triage before counts no more."""


class NodeRegistered(Struct, frozen=True, tag="node_registered"):
    """A node became known (from an inventory, or adopted with `node.phase` production)."""

    node: Node
    adopted: bool = False


class AssetRegistered(Struct, frozen=True, tag="asset_registered"):
    """An asset that is not a node became known."""

    asset: Asset


class AssetChanged(Struct, frozen=True, tag="asset_changed"):
    """The asset moved along its small lifecycle."""

    asset: str
    state: str
    reason: str


class AssetRebound(Struct, frozen=True, tag="asset_rebound"):
    """The outside has a new name for the asset: it was swapped, or its BMC was."""

    asset: str
    binding: Binding


class BindingChanged(Struct, frozen=True, tag="binding_changed"):
    """The outside has a new name for the node; the old binding of that kind ends."""

    node: str
    binding: Binding


class NodeFieldChanged(Struct, frozen=True, tag="node_field_changed"):
    """A field of the node's inventory changed, by an admitted inventory or a person: sku, macs, site, row, rack or u.

    `before` and `after` are its value as text, MAC addresses with a space between them; `source` is netbox, file, or
    hostler where a person said so here.
    """

    node: str
    field: str
    before: str
    after: str
    source: str


class PhaseChanged(Struct, frozen=True, tag="phase_changed"):
    """The node moved along an edge of TRANSITIONS; `deadline` ends the new phase where it has a limit.

    `probation_until`: it was repaired, and until then the ladder begins one rung higher. `convicted` is the evidence
    that led here, "" where there was none: a visit to triage without any counts towards nothing.
    """

    node: str
    before: Phase
    after: Phase
    reason: str
    deadline: datetime | None = None
    person: str = ""
    probation_until: datetime | None = None
    convicted: str = ""


class BootObserved(Struct, frozen=True, tag="boot_observed"):
    """The node is heard in another boot than before."""

    node: str
    boot_id: str


class WaitingChanged(Struct, frozen=True, tag="waiting_changed"):
    """Change of what the node waits for; None when it no longer waits."""

    node: str
    waiting: Waiting | None


class CheckRecorded(Struct, frozen=True, tag="check_recorded"):
    """A check profile gave its verdict."""

    node: str
    check: CheckResult


class RepairRecorded(Struct, frozen=True, tag="repair_recorded"):
    """Hands did something to a part of the node: what, as a technician says or an inventory shows."""

    node: str
    repair: RepairDone


class NodeAssigned(Struct, frozen=True, tag="node_assigned"):
    """The node serves a pool, and so a tenant, from here on.

    `reason`: whose dark places it comes for, and why no spare without probation.
    """

    node: str
    assignment: Assignment
    reason: str = ""


class NodeReleased(Struct, frozen=True, tag="node_released"):
    """The assignment ended; the tenant sees nothing of the node that comes later."""

    node: str
    at: datetime
    reason: str


class NodeCertified(Struct, frozen=True, tag="node_certified"):
    """A technician has inspected and cabled the node."""

    node: str
    person: str


def _bind(fleet: Fleet, event: BindingChanged, at: datetime) -> None:
    node = node_of(fleet, event.node)
    ended = tuple(
        replace(b, until=at) if b.kind == event.binding.kind and b.until is None else b for b in node.bindings
    )
    fleet.put_node(node.id, replace(node, bindings=_remembered_names((*ended, event.binding))))


def _remembered_names(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
    """All names that hold, and of those that ended the latest."""
    ended = [b for b in bindings if b.until is not None][-ENDED_NAMES_KEPT:]
    return (*ended, *(b for b in bindings if b.until is None))


def _change_field(fleet: Fleet, event: NodeFieldChanged, at: datetime) -> None:
    node, value = node_of(fleet, event.node), event.after
    match event.field:
        case "sku":
            changed = replace(node, sku=value)
        case "macs":
            ended = tuple(replace(b, until=at) if b.kind == "mac" and b.until is None else b for b in node.bindings)
            fresh = tuple(Binding("mac", mac, at) for mac in value.split())
            changed = replace(node, bindings=_remembered_names((*ended, *fresh)))
        case "rack":
            others = tuple(domain for domain in node.domains if domain != Scope(RACK, node.position.rack))
            placed = replace(node.position, rack=value)
            changed = replace(node, position=placed, domains=(Scope(RACK, value), *others))
        case "u":
            changed = replace(node, position=replace(node.position, u=int(value)))
        case "site" | "row":
            changed = replace(node, position=replace(node.position, **{event.field: value}))
        case _:
            raise FoldError(f"{node.id} has no field {event.field} that an inventory changes")
    fleet.put_node(node.id, changed)


def _change_phase(fleet: Fleet, event: PhaseChanged, at: datetime) -> None:
    node = node_of(fleet, event.node)
    if node.phase is not event.before:
        raise FoldError(f"{node.id} is in {node.phase}, not in {event.before}")
    if event.after is Phase.retired:
        fleet.put_node(node.id, None)
        fleet.retired.put(node.id, at)
        for part in fleet.parts.of(node.id):
            shelve(fleet, replace(part, node="", slot="", since=at))
        return
    changed = replace(
        node,
        phase=event.after,
        phase_since=at,
        stay_granted=None,
        deadline=event.deadline,
        visits=_visits(node, event, at),
        waiting=None,
        inspection=None if Phase.onboard in (event.before, event.after) else node.inspection,
        certified_by="" if event.after is Phase.onboard else node.certified_by,
        handover=node.handover or (at if event.after is Phase.production else None),
        most_seen=() if event.before in _WORKED_ON else node.most_seen,
        probation_until=event.probation_until if event.after is Phase.production else None,
        repairs=() if Phase.production in (event.before, event.after) else node.repairs,
        came_from=event.before if event.after is Phase.triage else None,
        rounds=_rounds(node, event),
    )
    fleet.put_node(node.id, changed)


def _visits(node: Node, event: PhaseChanged, at: datetime) -> tuple[Attempt, ...]:
    """The visits to triage and vendor, each with the part for which it was planned; what hands saw to is forgiven."""
    if event.after in _SEEN_TO:
        return tuple(replace(visit, forgiven=True) for visit in _with_visit(node, event, at))
    return _with_visit(node, event, at)


def _with_visit(node: Node, event: PhaseChanged, at: datetime) -> tuple[Attempt, ...]:
    drilled = running(node.drill) is not None and not (event.convicted or event.person)
    if event.after not in (Phase.triage, Phase.rma) or drilled:
        return node.visits
    planned = event.before is Phase.production and node.attempts and node.attempts[-1].remedy == event.after.value
    part = node.attempts[-1].part if planned and not event.person else ""
    return (*node.visits, Attempt(event.after.value, part, at, struck=bool(event.convicted)))[-ATTEMPTS_KEPT:]


def _rounds(node: Node, event: PhaseChanged) -> int:
    """Visits to triage in a row that convicted nobody: hands, a vendor, engineers and service begin anew."""
    if event.after in _LOOKED_AT:
        return 0
    drilled = running(node.drill) is not None
    return node.rounds + (event.after is Phase.triage and not event.convicted and not event.person and not drilled)


def _record_repair(fleet: Fleet, event: RepairRecorded, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    fleet.put_node(node.id, replace(node, repairs=(*node.repairs, event.repair)[-REPAIRS_KEPT:]))


def _observe_boot(fleet: Fleet, event: BootObserved, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    boots = (*(b for b in node.boots if b != event.boot_id), event.boot_id)[-BOOTS_KEPT:]
    fleet.put_node(node.id, replace(node, boot_id=event.boot_id, boots=boots))


def _record_check(fleet: Fleet, event: CheckRecorded, _at: datetime) -> None:
    node, check = node_of(fleet, event.node), event.check
    others = tuple(c for c in node.checks if c.profile != check.profile)
    fleet.put_node(node.id, replace(node, checks=(*others, check), attempts=_remembered(node, check)))


def _remembered(node: Node, check: CheckResult) -> tuple[Attempt, ...]:
    """The attempts that some rung may still count, or that no check has followed yet."""
    if check.verdict is not Verdict.passed:
        return node.attempts
    return tuple(a for a in node.attempts if a.at > check.at - timedelta(seconds=STRIKES_KEPT_S))


def _assigned(node: Node, assignment: Assignment) -> Node:
    """The node with its pool; a BIOS's hundreds of settings are kept of nodes that serve nobody."""
    node = replace(node, hardware=without_bios(node.hardware))
    if assignment.cluster == node.left_cluster:
        return replace(node, assignment=assignment, left_cluster="", left_pool="", aside_failed=None)
    return replace(node, assignment=assignment)


def _released(node: Node) -> Node:
    """Take a node that serves nobody out of its cluster, with its cordon."""
    left, pool = node.left_cluster, node.left_pool
    if node.assignment is not None and node.assignment.cluster:
        left, pool = node.assignment.cluster, node.assignment.pool
    return replace(node, assignment=None, cordons=of_others(node.cordons), left_cluster=left, left_pool=pool)


def _certify(fleet: Fleet, event: NodeCertified, _at: datetime) -> None:
    fleet.put_node(event.node, replace(node_of(fleet, event.node), certified_by=event.person))


def _wait(fleet: Fleet, event: WaitingChanged, _at: datetime) -> None:
    fleet.put_node(event.node, replace(node_of(fleet, event.node), waiting=event.waiting))


class AssetSeen(Struct, frozen=True, tag="asset_seen"):
    """One look at an asset through its own BMC, where it shows something else, or the last one has grown old."""

    asset: str
    look: AssetLook


def _see_asset(fleet: Fleet, event: AssetSeen, _at: datetime) -> None:
    asset, words = fleet.assets[event.asset], dict(event.look.leaks)
    wet = dict.fromkeys((*asset.wet, *(name for name, word in words.items() if word == WET_WORD)))
    own = not event.look.why and event.look.serial == (asset.binding("serial") or event.look.serial)
    left = tuple(name for name in wet if not own or words.get(name) != DRY)[:LISTED_MOST]
    fleet.put_asset(event.asset, replace(asset, look=event.look, wet=left))


def _rebind_asset(fleet: Fleet, event: AssetRebound, at: datetime) -> None:
    asset = fleet.assets[event.asset]
    ended = tuple(
        replace(b, until=at) if b.kind == event.binding.kind and b.until is None else b for b in asset.bindings
    )
    wet = () if event.binding.kind == "serial" else asset.wet  # another machine has detectors of its own
    fleet.put_asset(asset.id, replace(asset, bindings=_remembered_names((*ended, event.binding)), wet=wet))


def _change_asset(fleet: Fleet, event: AssetChanged, _at: datetime) -> None:
    fleet.put_asset(event.asset, replace(fleet.assets[event.asset], state=event.state))


ROWS: EventRows = (
    EventRow(NodeRegistered, lambda e: (e.node.id,), lambda fleet, e, _at: fleet.put_node(e.node.id, e.node)),
    EventRow(AssetRegistered, lambda e: (e.asset.id,), lambda fleet, e, _at: fleet.put_asset(e.asset.id, e.asset)),
    EventRow(AssetSeen, lambda e: (e.asset,), _see_asset),
    EventRow(AssetChanged, lambda e: (e.asset,), _change_asset),
    EventRow(AssetRebound, lambda e: (e.asset,), _rebind_asset),
    EventRow(BindingChanged, of_node, _bind),
    EventRow(NodeFieldChanged, of_node, _change_field),
    EventRow(PhaseChanged, of_node, _change_phase),
    EventRow(BootObserved, of_node, _observe_boot),
    EventRow(WaitingChanged, of_node, _wait),
    EventRow(CheckRecorded, of_node, _record_check),
    EventRow(RepairRecorded, of_node, _record_repair),
    EventRow(
        NodeAssigned,
        of_node,
        lambda fleet, e, _at: fleet.put_node(e.node, _assigned(node_of(fleet, e.node), e.assignment)),
    ),
    EventRow(NodeReleased, of_node, lambda fleet, e, _at: fleet.put_node(e.node, _released(node_of(fleet, e.node)))),
    EventRow(NodeCertified, of_node, _certify),
)
