"""Common cause: when faults of many nodes are one incident, whom it blames, what it holds back, and when it ends.

Looks only at what changed nodes share, through the index: its cost follows the nodes that changed and the part that is
blamed, never the size of the fleet.
"""

from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from math import ceil

from msgspec import Struct

from hostler.core.policy.incident_tickets import opened, part_name, superfluous, told_again
from hostler.core.policy.remedy_escalation import rule_for
from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.durations import duration
from hostler.core.state.fabrics import CABLING
from hostler.core.state.fleet import Fleet
from hostler.core.state.index_keys import syndromes_of
from hostler.core.state.model import Blocker, Condition, Node
from hostler.core.state.scopes import FIRMWARE, POOL, Scope
from hostler.core.state.syndromes import SYNDROME_OF, SYNDROMES, Syndrome
from hostler.core.state.verbs.tickets import CloseIncident, TreatIndividually
from hostler.core.state.ways_out import by_act, observed
from hostler.core.tables.recipe_facts import is_protective

HOSTLER = "hostler"
OPEN, OVERDUE, INDIVIDUAL = "open", "overdue", "individual"


def review(context: DecisionContext, suspects: Iterable[str]) -> Iterator[e.Event]:
    """Events of incidents from nodes whose conditions have changed.

    Each event must be folded before the next is asked for.
    """
    ids = [node_id for node_id in suspects if node_id in context.fleet.nodes or context.fleet.incidents_of(node_id)]
    yield from _follow(context, ids)
    for syndrome, scopes in _questions(context, ids).items():
        yield from _blame(context, SYNDROMES[syndrome], scopes)


def _follow(context: DecisionContext, ids: list[str]) -> Iterator[e.Event]:
    """Members that recovered leave their incident; nodes of the blamed part that show the same join it."""
    fleet = context.fleet
    standing = {(i.syndrome, i.scope): i for i in fleet.incidents.values() if i.syndrome != CABLING}
    if not standing:
        return
    joined: dict[str, dict[str, datetime]] = {}
    left: dict[str, dict[str, None]] = {}
    for node_id in ids:
        node = fleet.nodes.get(node_id)
        shown = syndromes_of(node) if node is not None else ()
        mine = [incident for incident in fleet.incidents_of(node_id) if incident.syndrome != CABLING]
        for incident in mine:
            if incident.syndrome not in shown:
                left.setdefault(incident.id, {})[node_id] = None
        if node is None:
            continue
        for syndrome in shown:
            if any(i.syndrome == syndrome for i in mine):
                continue
            fits = next((i for scope in node.shares if (i := standing.get((syndrome, scope)))), None)
            if fits is not None and (since := _belongs(context, node, fits)) is not None:
                joined.setdefault(fits.id, {})[node_id] = since
    for incident in list(standing.values()):
        gone = left.get(incident.id, {})
        changed = [node_id for node_id in ids if node_id in incident.members and node_id not in gone]
        yield from _moved(context, incident, joined.get(incident.id, {}), tuple(gone), changed)


def _belongs(context: DecisionContext, node: Node, incident: Incident) -> datetime | None:
    """Since when the node shows what the incident explains; None where that is an older story."""
    window = timedelta(seconds=context.fleet.policy.incidents.window_s)
    since = _first(node, incident.syndrome, incident.opened - window)
    return since if since is not None and _is_suspect(context, node, incident.scope, since) else None


def _moved(
    context: DecisionContext, incident: Incident, joined: dict[str, datetime], left: tuple[str, ...], changed: list[str]
) -> Iterator[e.Event]:
    after = len(incident.members) + len(joined) - len(left)
    calm = (incident.calm_since or context.now) if after < _release_below(context.fleet, incident) else None
    seen = _types(context.fleet, incident.syndrome, (*joined, *changed))
    types = tuple(kind for kind in seen if kind not in incident.conditions)
    if not joined and not left and not types and calm == incident.calm_since:
        return
    yield e.IncidentUpdated(incident.id, incident.scope, incident.state, joined, left, types, calm)
    if joined:
        yield from superfluous(context, incident, joined)
        if len(incident.members).bit_length() < after.bit_length():
            yield from told_again(context, context.fleet.incidents[incident.id])


def _release_below(fleet: Fleet, incident: Incident) -> int:
    """With fewer members than this it is disproved, once that has lasted; well below what it took to open it."""
    return max(1, ceil(incident.needed * fleet.policy.incidents.release_percent / 100))


def _questions(context: DecisionContext, ids: list[str]) -> dict[str, list[Scope]]:
    """Syndrome → the parts that changed nodes share, that could cause it, and that are not blamed for it yet.

    Where a part is blamed already, only wider ones can explain more.
    """
    fleet = context.fleet
    blamed = {(i.syndrome, i.scope) for i in fleet.incidents.values()}
    kinds = fleet.policy.incidents.domains
    found: dict[str, dict[Scope, int]] = {}
    for node_id in ids:
        node = fleet.nodes.get(node_id)
        for syndrome in syndromes_of(node) if node is not None and node.conditions else ():
            assert node is not None, "only a node shows anything"
            known = max((i.size for i in fleet.incidents_of(node_id) if i.syndrome == syndrome), default=0)
            for scope in node.shares:
                causes = scope.kind in SYNDROMES[syndrome].causes and scope.kind in kinds
                if causes and (syndrome, scope) not in blamed:
                    found.setdefault(syndrome, {}).setdefault(scope, known)
    return {
        syndrome: [scope for scope, known in scopes.items() if fleet.index.count(scope.shared) > known]
        for syndrome, scopes in found.items()
    }


class _Suspect(Struct, frozen=True):
    """A shared part that explains enough: how many share it, how many had to show it, and who does since when."""

    scope: Scope
    size: int
    needed: int
    shown: dict[str, datetime]

    @property
    def rank(self) -> tuple[int, int, Scope]:
        """Rank of a candidate: the one that explains most first; of those that explain the same, the narrowest."""
        return (-len(self.shown), self.size, self.scope)


def _blame(context: DecisionContext, syndrome: Syndrome, scopes: list[Scope]) -> Iterator[e.Event]:
    """Open incidents: for the part that explains most, then for parts that explain what is left."""
    found = [suspect for scope in scopes if (suspect := _suspect(context, syndrome, scope)) is not None]
    while found:
        best, *others = sorted(found, key=lambda s: s.rank)
        also = tuple(o.scope for o in others if o.size == best.size and o.shown.keys() == best.shown.keys())
        yield from _open(context, syndrome, best, also)
        found = [fewer for o in others if (fewer := _without(o, best.shown)) is not None]


def _without(suspect: _Suspect, explained: Container[str]) -> _Suspect | None:
    shown = {k: v for k, v in suspect.shown.items() if k not in explained}
    return _Suspect(suspect.scope, suspect.size, suspect.needed, shown) if len(shown) >= suspect.needed else None


def _suspect(context: DecisionContext, syndrome: Syndrome, scope: Scope) -> _Suspect | None:
    fleet = context.fleet
    threshold = fleet.policy.incidents.domains[scope.kind]
    key, size = f"shows:{syndrome.name}:{scope.text}", fleet.index.count(scope.shared)
    needed = max(1, threshold.count, ceil(size * threshold.percent / 100))
    if fleet.index.count(key) < needed:
        return None
    shown = _burst(context, syndrome, scope)
    return _Suspect(scope, size, needed, shown) if len(shown) >= needed else None


def _burst(context: DecisionContext, syndrome: Syndrome, scope: Scope) -> dict[str, datetime]:
    """The largest number of the part's nodes that began to show the syndrome within one window, with since when."""
    fleet = context.fleet
    over = {c.scope: c.at for c in fleet.cell.closures if c.syndrome == syndrome.name}
    began: list[tuple[datetime, str]] = []
    for node_id in fleet.index.members(f"shows:{syndrome.name}:{scope.text}"):
        node = fleet.nodes[node_id]
        settled = max((over[share] for share in node.shares if share in over), default=None)
        since = _first(node, syndrome.name, settled)
        alone = any(i.syndrome == syndrome.name and not i.holds for i in fleet.incidents_of(node_id))
        if since is not None and not alone and _is_suspect(context, node, scope, since):
            began.append((since, node_id))
    began.sort()
    window = timedelta(seconds=fleet.policy.incidents.window_s)
    best, start = (0, 0), 0
    for end in range(len(began)):
        while began[end][0] - began[start][0] > window:
            start += 1
        if end + 1 - start > best[1] - best[0]:
            best = (start, end + 1)
    return {node_id: since for since, node_id in began[slice(*best)]}


def _first(node: Node, syndrome: str, after: datetime | None) -> datetime | None:
    """Since when the node shows the syndrome, leaving out what began by `after`."""
    began = (
        c.since
        for c in node.conditions
        if c.clears != "age" and (s := SYNDROME_OF.get(c.type)) is not None and s.name == syndrome
    )
    return min((at for at in began if after is None or at > after), default=None)


def _is_suspect(context: DecisionContext, node: Node, scope: Scope, since: datetime) -> bool:
    """Firmware is suspected for a while after it was changed; the management network where a scheduler sees life."""
    if scope.kind == FIRMWARE:
        recent = timedelta(seconds=context.fleet.policy.incidents.recent_change_s)
        return node.changed_at is not None and node.changed_at <= since <= node.changed_at + recent
    return scope.kind != POOL or context.live.of(node.id).ready is True


def _open(
    context: DecisionContext, syndrome: Syndrome, suspect: _Suspect, also: tuple[Scope, ...]
) -> Iterator[e.Event]:
    """The incident with its ticket; narrower ones of the same syndrome that it explains become part of it."""
    fleet, ids = context.fleet, suspect.shown.keys()
    touching = {i.id: i for node_id in ids for i in fleet.incidents_of(node_id) if i.syndrome == syndrome.name}
    merged = sorted((i for i in touching.values() if i.members.keys() <= ids), key=lambda i: (i.opened, i.id))
    apart = {node_id: None for i in touching.values() if not i.members.keys() <= ids for node_id in i.members}
    left = _without(suspect, apart)
    if left is None or (len(merged) == 1 and len(merged[0].members) == len(left.shown)):
        return  # what stands explains as much already, and is narrower
    pool = fleet.configuration.pools.get(suspect.scope.name) if suspect.scope.kind == POOL else None
    limits = fleet.policy.incidents
    fresh = f"i{fleet.cell.seq}"
    incident = Incident(
        id=fresh,
        scope=suspect.scope,
        syndrome=syndrome.name,
        conditions=_types(fleet, syndrome.name, left.shown),
        members=left.shown,
        size=suspect.size,
        needed=suspect.needed,
        opened=context.now,
        deadline=context.now + timedelta(seconds=limits.deadline_s),
        owner=(pool.owner if pool else "") or limits.owner,
        ticket=merged[0].ticket if merged else f"{fresh}-ticket",
        also=also,
    )
    yield e.IncidentOpened(incident)
    for part in merged:
        reason = f"part of incident {fresh}: {part_name(incident.scope)}"
        yield e.IncidentClosed(part.id, part.scope, part.syndrome, tuple(part.members), HOSTLER, reason, fresh)
        if part.ticket != incident.ticket:
            yield e.TicketClosed(part.ticket, reason, HOSTLER)
    yield from told_again(context, incident) if merged else opened(context, incident)
    yield from superfluous(context, incident, left.shown)


def _types(fleet: Fleet, syndrome: str, ids: Iterable[str]) -> tuple[str, ...]:
    """The condition types of the syndrome that these nodes show."""
    shown = (c.type for i in ids if (node := fleet.nodes.get(i)) is not None for c in node.conditions)
    return tuple(sorted(frozenset(t for t in shown if (s := SYNDROME_OF.get(t)) is not None and s.name == syndrome)))


def closed(incident: Incident, by: str, reason: str) -> tuple[e.Event, ...]:
    """The incident and its ticket are over; whoever still shows something is treated by itself, within budgets."""
    ended = e.IncidentClosed(incident.id, incident.scope, incident.syndrome, tuple(incident.members), by, reason)
    return (ended, e.TicketClosed(incident.ticket, reason, by)) if incident.ticket else (ended,)


def by_clock(context: DecisionContext) -> Iterator[e.Event]:
    """Incidents that have been calm for long enough are released; those past their deadline become their owner's."""
    limits = context.fleet.policy.incidents
    for incident in list(context.fleet.incidents.values()):
        if incident.calm_since is not None and _calm_until(context.fleet, incident.calm_since) <= context.now:
            left = f"{len(incident.members)} of {incident.size} nodes still show it, {incident.needed} would be needed"
            yield from closed(incident, HOSTLER, f"disproved: {left}")
        elif incident.state == OPEN and incident.deadline <= context.now:
            reason = f"open for {duration(limits.deadline_s)}: {incident.owner} decides"
            yield _as(incident, OVERDUE, HOSTLER, reason)
            yield from told_again(context, context.fleet.incidents[incident.id])


def moments(fleet: Fleet) -> Iterator[datetime]:
    """When the clock alone changes an incident."""
    for incident in fleet.incidents.values():
        if incident.calm_since is not None:
            yield _calm_until(fleet, incident.calm_since)
        if incident.state == OPEN:
            yield incident.deadline


def _calm_until(fleet: Fleet, calm_since: datetime) -> datetime:
    return calm_since + timedelta(seconds=fleet.policy.incidents.hold_down_s)


def _as(incident: Incident, state: str, by: str, reason: str) -> e.Event:
    calm = incident.calm_since
    return e.IncidentUpdated(incident.id, incident.scope, state, calm_since=calm, by=by, reason=reason)


def individually(incident: Incident, by: str, reason: str) -> e.Event:
    """From here on the members are treated each by itself; the ticket about the shared part stays open."""
    return _as(incident, INDIVIDUAL, by, reason)


def explains(fleet: Fleet, incident: Incident, condition: Condition) -> bool:
    """Whether the incident explains a member's condition: neither a person's request nor what asks for protection.

    A member that can be neither heard nor proven sound has nothing that could be treated by itself.
    """
    syndrome = SYNDROMES.get(incident.syndrome)
    if syndrome is None or condition.remedy or not incident.holds:
        return False
    node = fleet.nodes.get(condition.node)
    policy = fleet.policy_of(node) if node is not None else fleet.policy
    if is_protective(rule_for(policy, condition).remedy):
        return False
    return syndrome.mute or condition.type in syndrome.conditions


def explained(fleet: Fleet, node: Node) -> frozenset[str]:
    """The ids of the node's conditions that an incident explains, so that their remedies wait."""
    mine = fleet.incidents_of(node.id)
    if not mine:
        return frozenset()
    return frozenset(c.id for c in node.conditions if any(explains(fleet, i, c) for i in mine))


def holding(fleet: Fleet, node: Node, causes: tuple[str, ...]) -> list[Blocker]:
    """The incidents that keep a remedy for these conditions of the node waiting: they explain every one of them."""
    mine = fleet.incidents_of(node.id)
    standing = [c for c in node.conditions if c.id in causes] if mine else []
    by = [[i for i in mine if explains(fleet, i, c)] for c in standing]
    if not by or not all(by):
        return []
    return [_blocker(i) for i in mine if any(i in found for found in by)]


def _blocker(incident: Incident) -> Blocker:
    types = ", ".join(incident.conditions)
    text = (
        f"incident {incident.id}: {part_name(incident.scope)} is suspected of {types} "
        f"since {incident.opened:%Y-%m-%d %H:%M:%S} UTC (ticket {incident.ticket})"
    )
    ways = (
        observed("its members recover", "hostler"),
        by_act(
            CloseIncident(),
            incident.id,
            f"{incident.owner} decides by {incident.deadline:%Y-%m-%d %H:%M} UTC and closes it",
        ),
        by_act(TreatIndividually(), incident.id, "its members are treated one by one"),
    )
    return Blocker("incident", incident.id, text, ways)
