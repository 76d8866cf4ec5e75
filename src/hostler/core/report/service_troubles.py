"""Time in service and troubles of each node, and of each part over all nodes that it has been in. Pure.

A trouble is an episode: all that a node shows until a quiet day has passed is one, however many conditions tell of it,
and a return to the vendor belongs to the trouble that led to it. What many nodes share (an incident) is none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec import Struct

from hostler.core.diagnose.serials import is_by_slot
from hostler.core.report.part_story import places
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.health import BARS, CLAIMED, DOUBTS
from hostler.core.state.model import Condition, Node, Part, Phase
from hostler.core.tables.conditions import CONDITIONS

READ = (
    "node_registered", "phase_changed", "part_moved", "condition_raised", "condition_cleared", "incident_opened",
    "incident_updated", "incident_closed", "rma_case_opened",
)  # fmt: skip
"""Names of the records that tell of time in service and of troubles."""
QUIET = timedelta(days=1)
"""A trouble is over when its node has shown nothing for so long."""
RETURN_WITHIN = timedelta(days=30)
"""A return to the vendor belongs to the trouble that began so long before at most."""
BEFORE_INCIDENT = timedelta(minutes=10)
"""Conditions of an incident's member are the incident's from so long before the member joined."""
RETURNED = "return to the vendor"
CONVICTED = frozenset({"check.bits_differ", "check.meetings_failed"})
"""Conditions of Hostler's own that convict a node by its work."""
NO_FAULTS = DOUBTS | {"firmware.drift"}

Stretch = tuple[datetime, datetime]


class NodeTrouble(Struct):
    """An episode of a node: when it began and with what, which parts showed it, and which part went back for it."""

    at: datetime
    kind: str
    parts: set[str] = msgspec.field(default_factory=set)
    returned: str | None = None

    def part(self) -> str:
        """The part that it counts for: the one returned, else the only one that showed it; "" where nobody knows."""
        if self.returned is not None:
            return self.returned
        return next(iter(self.parts)) if len(self.parts) == 1 else ""


class UnitHistory(Struct, frozen=True):
    """A node, or a part by its serial number: days in service, where, and its troubles by how they began.

    `kind`: the node's SKU, or what kind of part. `node`: where it is now. `nodes`: where its days were spent, in order.
    """

    unit: Literal["node", "part"]
    name: str
    kind: str
    node: str
    nodes: tuple[str, ...]
    days: float
    troubles: dict[str, int]

    @property
    def count(self) -> int:
        """How many troubles it had."""
        return sum(self.troubles.values())


def counts(condition: Condition) -> bool:
    """Whether the condition is a fault of the machine: grave, seen by an observer, and no mere doubt."""
    row = CONDITIONS.get(condition.type)
    if row is None or condition.drill or condition.severity < BARS or condition.type in NO_FAULTS:
        return False
    return row.source == "observer" or condition.type in CONVICTED


def histories(fleet: Fleet, records: Iterable[e.Record], since: datetime, until: datetime) -> list[UnitHistory]:
    """Histories of all nodes and parts of the fleet between two moments, from the records of READ since the first.

    `fleet` is the fleet at `until`. A node that is retired and a part that is forgotten have none; neither has a part
    that two nodes claim, or one that is known by its slot alone. Moments that go back count as standing still.
    """
    told = list(_forward(records, since, until))
    service = _service(fleet, told, since, until)
    troubles = _EpisodeReading(fleet, told, since, until).read()
    return [*_of_nodes(fleet, service, troubles), *_of_parts(fleet, told, service, troubles, (since, until))]


def _forward(records: Iterable[e.Record], since: datetime, until: datetime) -> Iterator[tuple[datetime, e.Record]]:
    """The records in their order, each at a moment that is not before the last one's."""
    last = since
    for record in sorted(records, key=lambda one: one.seq):
        last = max(last, min(record.at, until))
        yield last, record


def _service(
    fleet: Fleet, told: Sequence[tuple[datetime, e.Record]], since: datetime, until: datetime
) -> dict[str, list[Stretch]]:
    """For each node the stretches that it was in production."""
    begun = _served_first(fleet, told, since, until)
    found: dict[str, list[Stretch]] = {}
    for at, record in told:
        match record.event:
            case e.NodeRegistered(node=node) if node.phase is Phase.production:
                begun[node.id] = at
            case e.PhaseChanged(node=name, after=after):
                opened = begun.get(name)
                if opened is not None and after is not Phase.production:
                    found.setdefault(name, []).append((opened, at))
                begun[name] = (opened or at) if after is Phase.production else None
            case _:
                pass
    for name, opened in begun.items():
        if opened is not None:
            found.setdefault(name, []).append((opened, until))
    return found


def _served_first(
    fleet: Fleet, told: Sequence[tuple[datetime, e.Record]], since: datetime, until: datetime
) -> dict[str, datetime | None]:
    """For each node since when it served before its first record of a phase; None where it did not."""
    found: dict[str, datetime | None] = {}
    for _, record in told:
        match record.event:
            case e.NodeRegistered(node=node):
                found.setdefault(node.id, None)
            case e.PhaseChanged(node=name, before=before):
                found.setdefault(name, since if before is Phase.production else None)
            case _:
                pass
    for node in fleet.nodes.values():
        serves = node.phase is Phase.production
        found.setdefault(node.id, max(since, min(node.registered_at, until)) if serves else None)
    return found


class _EpisodeReading:
    """Troubles of all nodes while the records are read: which phase a node is in, what stands, and its last trouble."""

    def __init__(
        self, fleet: Fleet, told: Sequence[tuple[datetime, e.Record]], since: datetime, until: datetime
    ) -> None:
        self._fleet, self._told = fleet, told
        self._shared = _shared(fleet, told, since, until)
        first = _served_first(fleet, told, since, until)
        self._serves = {node: begun is not None for node, begun in first.items()}
        self._standing = {node.id: _stood(node, since) for node in fleet.nodes.values()}
        self._last: dict[str, datetime] = {}
        self._now: dict[str, NodeTrouble] = {}
        self._found: dict[str, list[NodeTrouble]] = {}

    def read(self) -> dict[str, list[NodeTrouble]]:
        """For each node its troubles, the earliest first."""
        for at, record in self._told:
            match record.event:
                case e.NodeRegistered(node=node):
                    self._serves[node.id] = node.phase is Phase.production
                case e.PhaseChanged(node=name, after=after):
                    self._serves[name] = after is Phase.production
                case e.ConditionRaised(condition=fresh) if counts(fresh) and not self._is_shared(fresh.node, at):
                    self._raised(fresh, at)
                case e.ConditionCleared(node=name, condition=over):
                    self._cleared(name, over, at)
                case e.RmaCaseOpened(case=case):
                    self._returned(case.node, case.serial if case.component != "node" else "", at)
                case _:
                    pass
        return self._found

    def _raised(self, fresh: Condition, at: datetime) -> None:
        node, standing = fresh.node, self._standing.setdefault(fresh.node, set())
        goes_on = bool(standing) or (node in self._last and at - self._last[node] < QUIET)
        if not goes_on:
            self._now.pop(node, None)
            if self._serves.get(node):
                self._begins(node, NodeTrouble(at, fresh.type))
        if (trouble := self._now.get(node)) is not None and fresh.part in self._fleet.parts:
            trouble.parts.add(fresh.part)
        standing.add(fresh.id)
        self._last[node] = at

    def _cleared(self, node: str, over: str, at: datetime) -> None:
        standing = self._standing.get(node, set())
        if over in standing:
            standing.discard(over)
            self._last[node] = at

    def _returned(self, node: str, serial: str, at: datetime) -> None:
        led = self._found.get(node, [])
        if led and at - led[-1].at <= RETURN_WITHIN and led[-1].returned is None:
            led[-1].returned = serial
        else:
            self._begins(node, NodeTrouble(at, RETURNED, returned=serial))
        self._last[node] = at

    def _begins(self, node: str, trouble: NodeTrouble) -> None:
        self._found.setdefault(node, []).append(trouble)
        self._now[node] = trouble

    def _is_shared(self, node: str, at: datetime) -> bool:
        return any(begin <= at <= end for begin, end in self._shared.get(node, ()))


def _stood(node: Node, since: datetime) -> set[str]:
    return {condition.id for condition in node.conditions if condition.since < since and counts(condition)}


def _shared(
    fleet: Fleet, told: Sequence[tuple[datetime, e.Record]], since: datetime, until: datetime
) -> dict[str, list[Stretch]]:
    """For each node the stretches in which it was a member of an incident that was not treated node by node."""
    members: dict[str, dict[str, Stretch]] = {}
    for one in fleet.incidents.values():
        if one.opened < since and one.state != "individual":
            members[one.id] = {node: (began - BEFORE_INCIDENT, until) for node, began in one.members.items()}
    for at, record in told:
        match record.event:
            case e.IncidentOpened(incident=fresh):
                members[fresh.id] = {n: (began - BEFORE_INCIDENT, until) for n, began in fresh.members.items()}
            case e.IncidentUpdated(incident=name, state="individual"):
                members.pop(name, None)
            case e.IncidentUpdated(incident=name, joined=joined, left=left) if name in members:
                known = members[name]
                known |= {node: (began - BEFORE_INCIDENT, until) for node, began in joined.items()}
                known |= {node: (known[node][0], at) for node in left if node in known}
            case e.IncidentClosed(incident=name) if name in members:
                members[name] = {node: (began, min(end, at)) for node, (began, end) in members[name].items()}
            case _:
                pass
    found: dict[str, list[Stretch]] = {}
    for stretches in members.values():
        for node, stretch in stretches.items():
            found.setdefault(node, []).append(stretch)
    return found


def _of_nodes(
    fleet: Fleet, service: dict[str, list[Stretch]], troubles: dict[str, list[NodeTrouble]]
) -> Iterator[UnitHistory]:
    for node in fleet.nodes.values():
        if node.phase is not Phase.retired:
            days, had = _days(service.get(node.id, ())), Counter(_still_had(fleet, node, troubles.get(node.id, [])))
            yield UnitHistory("node", node.id, node.sku, node.id, (node.id,) if days else (), days, dict(had))


def _still_had(fleet: Fleet, node: Node, troubles: Sequence[NodeTrouble]) -> Iterator[str]:
    """Kinds of the troubles that are the node's still: those of one part that has left it went with the part.

    Those of several parts that have left stay, for then the node may be what breaks them.
    """
    parts = {part for one in troubles if (part := one.part())}
    left = {part for part in parts if (known := fleet.parts.get(part)) is None or known.node != node.id}
    yield from (one.kind for one in troubles if len(left) > 1 or one.part() not in left)


def _of_parts(
    fleet: Fleet,
    told: Sequence[tuple[datetime, e.Record]],
    service: dict[str, list[Stretch]],
    troubles: dict[str, list[NodeTrouble]],
    span: Stretch,
) -> Iterator[UnitHistory]:
    moves: dict[str, list[e.Record]] = {}
    for at, record in told:
        if isinstance(record.event, e.PartMoved):
            moves.setdefault(record.event.serial, []).append(msgspec.structs.replace(record, at=at))
    had: dict[str, Counter[str]] = {}
    for one in (one for all_of in troubles.values() for one in all_of):
        had.setdefault(one.part(), Counter())[one.kind] += 1
    claimed = {c.part for node in fleet.nodes.values() for c in node.conditions if c.type == CLAIMED}
    for part in _parts(fleet, moves):
        if part.serial in claimed or is_by_slot(part.serial):
            continue
        days: dict[str, float] = {}
        for stay in reversed(places(part.serial, part, moves.get(part.serial, ()))):
            within = (stay.since or span[0], stay.until or span[1])
            spent = _days(service.get(stay.node, ()), within)
            if spent:
                days[stay.node] = days.get(stay.node, 0.0) + spent
        counted = dict(had.get(part.serial, {}))
        yield UnitHistory("part", part.serial, part.kind, part.node, tuple(days), sum(days.values()), counted)


def _parts(fleet: Fleet, moves: Iterable[str]) -> Iterator[Part]:
    """Parts in nodes, and those in none that are still known."""
    for node in fleet.nodes.values():
        yield from fleet.parts.of(node.id)
    yield from (part for serial in moves if (part := fleet.parts.get(serial)) is not None and not part.node)


def _days(stretches: Iterable[Stretch], within: Stretch | None = None) -> float:
    """Days of the stretches, of those within another where it is given; one that ends before it begins has none."""
    total = 0.0
    for begin, end in stretches:
        first, last = (max(begin, within[0]), min(end, within[1])) if within else (begin, end)
        total += max(0.0, (last - first).total_seconds())
    return total / 86_400
