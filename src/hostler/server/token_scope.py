"""Scope of a token: which nodes it sees, what it may act on, and which intervals a tenant reads."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.intents.bounds import concerned, within
from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.fleet import Fleet
from hostler.core.state.intent import Bounds
from hostler.core.state.model import Node, Phase
from hostler.journal.named_records import record_names
from hostler.server.narrow_redaction import NarrowRedaction
from hostler.server.problems import refuse
from hostler.server.tenant_redaction import TenantRedaction
from hostler.server.tokens import Identity, Role

T = TypeVar("T")


def sees(who: Identity, node: Node) -> bool:
    """Tell whether the caller sees this node now."""
    if who.role is Role.agent:
        return node.id == who.grant.node
    return within(who.grant.bounds, node)


def shown(who: Identity, fleet: Fleet, value: T, also: frozenset[str] = frozenset()) -> T:
    """The value as the caller is shown it: redacted for a tenant, without others' nodes for a token that is narrowed.

    `also` are nodes that were theirs when what is shown happened.
    """
    if who.role is Role.tenant:
        value = TenantRedaction(fleet, who.grant.tenant, also).over(value)
    narrow = who.grant.site or who.grant.pool
    return NarrowRedaction(fleet, who.grant.bounds, also).over(value) if narrow else value


def incident_within(who: Identity, fleet: Fleet, incident: Incident) -> Incident | None:
    """The incident with the members that the caller sees; None where there are none."""
    if who.whole:
        return incident
    members = {i: since for i, since in incident.members.items() if _sees_id(who, fleet, i)}
    return replace(incident, members=members) if members else None


def _sees_id(who: Identity, fleet: Fleet, node_id: str) -> bool:
    node = fleet.nodes.get(node_id)
    return node is not None and sees(who, node)


def demand_visible(who: Identity, fleet: Fleet, target: str, named: Iterable[str] = ()) -> None:
    """Raises ProblemError (403) where an act on `target` would leave what the caller reaches.

    A rack or pool is within reach when each of its nodes in production is; FLEET is for tokens that see all. The core
    asks again when it decides (`bounds.check_bounds`): a node may have changed hands by then.
    """
    if who.whole:
        return
    nodes = concerned(fleet, target, named)
    if not nodes or not all(sees(who, node) for node in nodes):
        raise refuse(
            403,
            "forbidden",
            f"'{target[:100]}' has nodes that you do not see",
            "name one that you see (hostler node list)",
        )


class Interval(Struct, frozen=True):
    """A span of records in which a node was a tenant's; `until` is None while it is."""

    since: int
    until: int | None = None


def intervals(records: Sequence[e.Record], tenant: str) -> tuple[Interval, ...]:
    """Intervals in which a node served this tenant, from its records in any order."""

    def theirs(event: e.Event) -> bool | None:
        holder = _holder(event)
        return None if holder is None else holder == tenant

    return _spans(records, theirs)


def _spans(records: Sequence[e.Record], theirs: Callable[[e.Event], bool | None]) -> tuple[Interval, ...]:
    """Intervals in which a node is theirs; asked of each record in order, None says that nothing has changed."""
    found: list[Interval] = []
    begun: int | None = None
    for record in sorted(records, key=lambda r: r.seq):
        holds = theirs(record.event)
        if holds is None:
            continue
        if begun is not None and not holds:
            found.append(Interval(begun, record.seq))
            begun = None
        elif begun is None and holds:
            begun = record.seq
    if begun is not None:
        found.append(Interval(begun))
    return tuple(found)


def _holder(event: e.Event) -> str | None:
    """Tenant of the node from this record on ("" for none), None where the record does not say."""
    match event:
        case e.NodeAssigned(assignment=assignment):
            return assignment.tenant
        case e.NodeRegistered(node=node):
            return node.assignment.tenant if node.assignment else ""
        case e.NodeReleased():
            return ""
        case e.PhaseChanged(after=Phase.retired):
            return ""
        case _:
            return None


class _Place:
    """Site and pool of a node as its records tell them, against the bounds of a token. What is not told is outside."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._at_site, self._in_pool = not bounds.site, not bounds.pool

    def __call__(self, event: e.Event) -> bool | None:
        bounds = self._bounds
        match event:
            case e.NodeRegistered(node=node):
                self._at_site = bounds.site in ("", node.position.site)
                self._in_pool = bounds.pool in ("", node.pool)
            case e.NodeFieldChanged(field="site", after=site):
                self._at_site = bounds.site in ("", site)
            case e.NodeAssigned(assignment=assignment):
                self._in_pool = bounds.pool in ("", assignment.pool)
            case e.NodeReleased():
                self._in_pool = not bounds.pool
            case e.PhaseChanged(after=Phase.retired):
                return False
            case _:
                return None
        return self._at_site and self._in_pool


HOLDERS = record_names(e.NodeRegistered, e.NodeAssigned, e.NodeReleased, e.PhaseChanged)
"""Records that say whose a node is."""
PLACES = (*HOLDERS, *record_names(e.NodeFieldChanged))
"""Records that say in which pool and at which site it is, too."""


def own_intervals(records: Sequence[e.Record], bounds: Bounds) -> tuple[Interval, ...]:
    """Intervals in which a node was within the bounds of a token, from its records of the names PLACES, in any order.

    Of a tenant those in which the node served it; of others those in which it was in their pool and at their site.
    """
    return intervals(records, bounds.tenant) if bounds.tenant else _spans(records, _Place(bounds))
