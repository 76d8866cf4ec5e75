"""The fleet in memory: committed tables under an overlay of what the current step has changed.

Reading sees the overlay, `merge` makes it part of the base after the commit, `drop` forgets it. Indexes follow
their tables, so a decision never walks 100,000 nodes.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct

from hostler.core.state.change_control import Approval, Rollout
from hostler.core.state.clock_doubt import Doubt
from hostler.core.state.configuration import Configuration, Policy, Pool
from hostler.core.state.health import CLAIMED, is_doubted, is_healthy, is_serving
from hostler.core.state.model import (
    Asset,
    Hold,
    Incident,
    Node,
    Part,
    Phase,
    Remediator,
    Tally,
    Ticket,
    Waiting,
    Window,
)
from hostler.core.state.packed_strings import one_line
from hostler.core.state.part_table import Fitted, PartTable
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.syndromes import SYNDROME_OF

V = TypeVar("V")

Keys = Callable[[V], tuple[str, ...]]


class Table(Generic[V]):
    """A dict with an overlay. Keys come in the order of a plain dict, whenever what was put has been merged.

    `back` are keys of the base that were deleted and put again in the overlay: they have gone to the end.
    """

    def __init__(self, base: dict[str, V] | None = None) -> None:
        self.base: dict[str, V] = base if base is not None else {}
        self.over: dict[str, V | None] = {}
        self.back: dict[str, None] = {}

    def get(self, key: str) -> V | None:
        if key in self.over:
            return self.over[key]
        return self.base.get(key)

    def __getitem__(self, key: str) -> V:
        if key not in self.over:
            return self.base[key]
        value = self.over[key]
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return self._overlaid() if self.over else iter(self.base)

    def _overlaid(self) -> Iterator[str]:
        over, back = self.over, self.back
        yield from (key for key in self.base if key not in back and (key not in over or over[key] is not None))
        yield from (key for key, value in over.items() if value is not None and (key not in self.base or key in back))

    def __len__(self) -> int:
        fresh = sum(1 for key, value in self.over.items() if value is not None and key not in self.base)
        gone = sum(1 for key, value in self.over.items() if value is None and key in self.base)
        return len(self.base) + fresh - gone

    @property
    def bare(self) -> bool:
        """Certainly empty; told without counting."""
        return not self.base and not self.over

    def values(self) -> Iterator[V]:
        return (self[key] for key in self)

    def put(self, key: str, value: V | None) -> None:
        """Set the key, or delete it with None."""
        if value is not None and self.over.get(key, value) is None:
            del self.over[key]
            if key in self.base:
                self.back[key] = None
        self.over[key] = value

    def merge(self) -> None:
        for key in self.back:
            self.base.pop(key, None)
        for key, value in self.over.items():
            if value is None:
                self.base.pop(key, None)
            else:
                self.base[key] = value
        self.over.clear()
        self.back.clear()

    def drop(self) -> None:
        self.over.clear()
        self.back.clear()


class Index:
    """Members by key, with an overlay like a table's. Members are listed sorted: order never depends on history."""

    def __init__(self) -> None:
        self.base: dict[str, dict[str, None]] = {}
        self.over: dict[str, dict[str, bool]] = {}

    def add(self, key: str, member: str) -> None:
        self.over.setdefault(key, {})[member] = True

    def remove(self, key: str, member: str) -> None:
        self.over.setdefault(key, {})[member] = False

    def count(self, key: str) -> int:
        base = self.base.get(key, {})
        change = sum(present - (member in base) for member, present in self.over.get(key, {}).items())
        return len(base) + change

    def members(self, key: str) -> list[str]:
        base, over = self.base.get(key, {}), self.over.get(key)
        if over is None:
            return sorted(base)
        found = [member for member in base if over.get(member, True)]
        found.extend(m for m, present in over.items() if present and m not in base)
        return sorted(found)

    def lacks(self, key: str) -> bool:
        """Certainly without members; told without counting."""
        return key not in self.base and key not in self.over

    def keys(self) -> list[str]:
        return sorted(key for key in {**self.base, **self.over} if self.count(key))

    def merge(self) -> None:
        for key, changes in self.over.items():
            members = self.base.setdefault(key, {})
            for member, present in changes.items():
                if present:
                    members[member] = None
                else:
                    members.pop(member, None)
            if not members:
                del self.base[key]
        self.over.clear()

    def drop(self) -> None:
        self.over.clear()


class Removal(Struct, frozen=True):
    """A disturbance that guards still remember: when, on which node, of which pool, and what kind."""

    at: datetime
    node: str
    pool: str
    name: str


class Closure(Struct, frozen=True):
    """An incident that is over: what its scope showed of this syndrome by then proves nothing any more."""

    scope: str
    syndrome: str
    at: datetime


class DisturbanceByPerson(Struct, frozen=True):
    """Whom one person's word let be disturbed."""

    at: datetime
    person: str
    nodes: tuple[str, ...]


class CellRecord(Struct, frozen=True):
    """What concerns the whole cell: counters for ids, the brake, pauses, modes, recent disturbances and incidents.

    `doubt`: the clock is not believed. `format`: up to which format events may be written. `restored`: since when the
    cell stands still because its journal is a copy, whose last record was `copied`.
    """

    seq: int = 0
    last_at: datetime | None = None
    epoch: int = 0
    brake: str = ""
    brake_since: datetime | None = None
    calm_since: datetime | None = None
    paused: tuple[str, ...] = ()
    modes: tuple[tuple[str, str, str], ...] = ()
    recent: tuple[Removal, ...] = ()
    closures: tuple[Closure, ...] = ()
    intents: int = 0
    acts: tuple[DisturbanceByPerson, ...] = ()
    rollout: str = ""
    doubt: Doubt | None = None
    format: int = 1
    restored: datetime | None = None
    copied: int = 0
    remediators: tuple[Remediator, ...] = ()


class StoredAnswer(Struct, frozen=True):
    """An intent's answer, kept so that the same key gets the same answer. `content`: as in `events.IntentRecorded`."""

    intent: str
    answer: str
    granted: bool
    at: datetime
    approval: str = ""
    content: str = ""


class State(Struct, frozen=True):
    """Everything that is committed, as one value."""

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


ANSWERS_KEPT = 10_000
"""Idempotency keys remembered, the latest; a request with an older one is a new request, and the API says so."""
SHELF_KEPT = 10_000
"""Parts remembered that are in no node, the latest; of older ones the journal tells."""
ACTS_KEPT = 1_000
TALLIED_KEPT = 20_000
"""Nodes and parts of which it is remembered what came back; the ones longest without are forgotten first."""


def is_spare(node: Node) -> bool:
    """Healthy, serving nobody, and with nothing known of it or under way; what others say of its parts bars nothing."""
    known = any(c.type != CLAIMED for c in node.conditions)
    return node.assignment is None and node.plan is None and not known and is_healthy(node)


def is_in_hands(node: Node) -> bool:
    """It stands at a phase in which a person acts next: nothing that ends elsewhere lets it go on."""
    waiting = node.waiting
    return (
        waiting is not None
        and waiting.what == node.phase.value
        and all(blocker.kind == "person" for blocker in waiting.blockers)
    )


def is_idle(node: Node) -> bool:
    """In production, nothing stands on it, runs or waits, and checks have passed since anything was done to it."""
    return (
        node.phase is Phase.production
        and not node.conditions
        and (not node.attempts or (node.assignment is not None and has_proven_itself(node)))
        and (node.assignment is not None or node.inventory_boot == node.boot_id)
        and not node.cordons
        and not node.settling
        and node.plan is None
        and not node.under_way
        and node.waiting is None
        and node.deadline is None
        and node.compared is None
    )


def index_keys(node: Node) -> tuple[str, ...]:
    """The index entries of a node that come and go: phase:, pool:, serving:, spare:, disturbed: domain, waiting.

    "serving:POOL" are its members of which nothing is taken away, by which budgets count; "healthy:POOL" those of them
    that are healthy, "doubted:POOL" those of which nobody can say.
    "shows:SYNDROME:SCOPE" lists who shows what a shared part can cause, for all that the node shares with others;
    "group:" who is, or is to be, part of one act on many; "blocked" who waits and may go on because of others.
    """
    keys = [f"phase:{node.phase.value}"]
    if node.assignment:
        keys.append(f"pool:{node.assignment.pool}")
        if is_serving(node):
            keys.append(f"serving:{node.assignment.pool}")
            if is_healthy(node):
                keys.append(f"healthy:{node.assignment.pool}")
            elif is_doubted(node):
                keys.append(f"doubted:{node.assignment.pool}")
    elif is_spare(node):
        keys.append(f"spare:{node.sku}")
    if not is_idle(node):
        keys.extend(_unrest(node))
    if node.shadows:
        keys.append("shadowed")
    return tuple(keys)


def lasting_keys(node: Node) -> tuple[str, ...]:
    """The index entries of a node that mostly stay as they are: member: of a domain or firmware, and its names."""
    members = [f"member:{domain}" for domain in node.domains]
    members.extend(f"member:firmware:{version}" for version in node.changed)
    return (*members, *(f"{b.kind}:{b.value}" for b in node.bindings if b.until is None))


def _lasts(before: Node, node: Node) -> bool:
    """Whether nothing has changed that `lasting_keys` looks at; told without making them."""
    return before.domains == node.domains and before.changed == node.changed and before.bindings == node.bindings


def _unrest(node: Node) -> Iterator[str]:
    yield "restless"
    if node.plan is not None:
        yield "planned"
        if node.plan.group:
            yield from ("together", f"group:{node.plan.group}")
        if node.plan.disruptive and node.plan.state != "proposed":
            yield from (f"disturbed:{domain}" for domain in node.domains)
    if node.waiting is not None:
        yield from _waiting_keys(node, node.waiting)
    if node.under_way or node.settling:
        yield "operating"
    if node.compared is not None:
        yield "compared"
    if node.differences:
        yield "differing"
    if node.conditions:
        yield from _ailing_keys(node)


def _waiting_keys(node: Node, waiting: Waiting) -> Iterator[str]:
    yield "waiting"
    if not is_in_hands(node):
        yield "blocked"
    if any(blocker.kind == "domain" for blocker in waiting.blockers):
        yield "grouped"


def _ailing_keys(node: Node) -> Iterator[str]:
    yield "ailing"
    if any(c.group for c in node.conditions):
        yield "grouped"
        yield from (f"group:{c.group}" for c in node.conditions if c.group)
    for syndrome in syndromes_of(node):
        yield from (f"shows:{syndrome}:{scope}" for scope in node.shares)


def syndromes_of(node: Node) -> tuple[str, ...]:
    """The syndromes that the node shows now; what an earlier boot showed is history."""
    found = [syndrome.name for c in node.conditions if c.clears != "age" and (syndrome := SYNDROME_OF.get(c.type))]
    return tuple(dict.fromkeys(found)) if found else ()


class Fleet:
    """The fold of the journal. Changed only by `fold.evolve`; `merge` after the commit, `drop` when it failed."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.nodes: Table[Node] = Table()
        self.assets: Table[Asset] = Table()
        self.parts = PartTable()
        self.holds: Table[Hold] = Table()
        self.windows: Table[Window] = Table()
        self.tickets: Table[Ticket] = Table()
        self.approvals: Table[Approval] = Table()
        self.rollouts: Table[Rollout] = Table()
        self.incidents: Table[Incident] = Table()
        self.answers: Table[StoredAnswer] = Table()
        self.retired: Table[datetime] = Table()
        self.tallies: Table[tuple[Tally, ...]] = Table()
        self.index = Index()
        self.singles: Table[CellRecord] = Table({"cell": CellRecord()})
        self.configurations: Table[Configuration] = Table(
            {"active": configuration or Configuration(Policy(rules={}, rungs={}))}
        )

    @property
    def cell(self) -> CellRecord:
        return self.singles["cell"]

    @property
    def configuration(self) -> Configuration:
        return self.configurations["active"]

    @property
    def policy(self) -> Policy:
        """What holds for the whole cell: brake, silence, budgets of domains. For one node ask `policy_of`."""
        return self.configuration.policy

    @property
    def rollout(self) -> Rollout | None:
        """The rollout that runs."""
        running = self.cell.rollout
        return self.rollouts[running] if running else None

    def configuration_of(self, node: Node) -> Configuration:
        """The configuration that decides about this node: while one is rolled out, nodes it has reached follow it."""
        rollout = self.rollout
        if rollout is None or rollout.configuration is None or not rollout.reaches(node.id, node.pool):
            return self.configuration
        return rollout.configuration

    def policy_of(self, node: Node) -> Policy:
        """The rules, rungs and timings that hold for this node."""
        return self.configuration_of(node).policy

    def pool_of(self, node: Node) -> Pool | None:
        """The node's pool, as the configuration that decides about the node has it."""
        return self.configuration_of(node).pools.get(node.pool)

    @property
    def pools(self) -> dict[str, Pool]:
        """The pools with the targets and budgets in force; a rollout changes those of pools that it reached whole."""
        rollout, pools = self.rollout, self.configuration.pools
        if rollout is None or rollout.configuration is None:
            return pools
        fresh = rollout.configuration.pools
        return {name: fresh.get(name, pool) if rollout.reaches_whole(name) else pool for name, pool in pools.items()}

    def put_node(self, node_id: str, node: Node | None) -> None:
        """Set or delete a node and keep the index in step."""
        before = self.nodes.get(node_id)
        self.nodes.put(node_id, node)
        self._reindex(node_id, index_keys(before) if before else (), index_keys(node) if node else ())
        if before is None or node is None or not _lasts(before, node):
            self._reindex(node_id, lasting_keys(before) if before else (), lasting_keys(node) if node else ())

    def _reindex(self, member: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if old == new:
            return
        for key in old:
            if key not in new:
                self.index.remove(key, member)
        for key in new:
            if key not in old:
                self.index.add(key, member)

    def put_part(self, serial: str, part: Part | None) -> None:
        """Set or delete a part and keep the index of the shelf in step."""
        serial = one_line(serial)
        was_loose = self.parts.is_loose(serial)
        self.parts.put(serial, part)
        if part is not None and not part.node:
            self.index.add("shelf", serial)
        elif was_loose:
            self.index.remove("shelf", serial)

    def tallied(self, node_id: str, part: str) -> str:
        """The key under which it is counted what comes back: a part's serial wherever it is, its place, or the node."""
        if not part:
            return f"node:{node_id}"
        return f"part:{part}" if part in self.parts else f"place:{node_id}/{part}"

    def tallies_of(self, node_id: str, part: str) -> tuple[Tally, ...]:
        """What came back on the node (part "") or on the part."""
        return () if self.tallies.bare else self.tallies.get(self.tallied(node_id, part)) or ()

    def put_tallies(self, node_id: str, part: str, tallies: tuple[Tally, ...], at: datetime) -> None:
        """Set what came back there, as the latest; of the others, those that count no more are forgotten."""
        key = self.tallied(node_id, part)
        self.tallies.put(key, None)
        if tallies:
            self.tallies.put(key, tallies)
        too_many = len(self.tallies) > TALLIED_KEPT
        for old in list(islice(self.tallies, 2)):
            if too_many or all(tally.until <= at for tally in self.tallies[old]):
                self.tallies.put(old, None)

    def put_ticket(self, ticket_id: str, ticket: Ticket | None) -> None:
        """Set or delete a ticket and keep the index in step."""
        before = self.tickets.get(ticket_id)
        if before is not None:
            self.index.remove(f"ticket:{before.node}", ticket_id)
        if ticket is not None:
            self.index.add(f"ticket:{ticket.node}", ticket_id)
        self.tickets.put(ticket_id, ticket)

    def put_approval(self, approval_id: str, approval: Approval | None) -> None:
        """Set or delete an approval and keep the index of the nodes it concerns in step."""
        before = self.approvals.get(approval_id)
        old = before.nodes if before else ()
        new = approval.nodes if approval else ()
        if old != new:
            self._reindex_approval(approval_id, old, new)
        self.approvals.put(approval_id, approval)

    def _reindex_approval(self, approval_id: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        for node_id in old:
            self.index.remove(f"approval:{node_id}", approval_id)
        for node_id in new:
            self.index.add(f"approval:{node_id}", approval_id)

    def approvals_for(self, node_id: str) -> list[Approval]:
        """The intents about this node that wait for a second person."""
        return [] if self.approvals.bare else [self.approvals[i] for i in self.index.members(f"approval:{node_id}")]

    def put_incident(self, incident_id: str, incident: Incident | None) -> None:
        """Set or delete an incident and keep the index of its members in step."""
        before = self.incidents.get(incident_id)
        old = before.members if before else {}
        new = incident.members if incident else {}
        for node_id in sorted(old.keys() - new.keys()):
            self.index.remove(f"incident:{node_id}", incident_id)
        for node_id in sorted(new.keys() - old.keys()):
            self.index.add(f"incident:{node_id}", incident_id)
        self.incidents.put(incident_id, incident)

    def incidents_of(self, node_id: str) -> list[Incident]:
        """The incidents that the node is a member of."""
        key = f"incident:{node_id}"
        return [] if self.index.lacks(key) else [self.incidents[i] for i in self.index.members(key)]

    def sharers(self, scope: str) -> str:
        """The index entry of the nodes that share a part ("rack:r1", "pool:train", "firmware:BIOS=1.2.3")."""
        return scope if scope.startswith("pool:") else f"member:{scope}"

    def spares(self, sku: str) -> list[str]:
        return self.index.members(f"spare:{sku}")

    def tickets_about(self, node_id: str) -> list[Ticket]:
        """The open tickets about a node, in the order of their ids."""
        return [self.tickets[i] for i in self.index.members(f"ticket:{node_id}")]

    def has_known(self, node_id: str) -> bool:
        """Whether the id is or was a node's; ids are never used again."""
        return node_id in self.nodes or node_id in self.retired

    def resolve(self, name: str) -> Node | None:
        """A node by id, or by a current binding such as a serial or a hostname."""
        found = self.nodes.get(name)
        if found is not None:
            return found
        for kind in ("hostname", "serial", "kubernetes", "slurm"):
            members = self.index.members(f"{kind}:{name}")
            if len(members) == 1:
                return self.nodes.get(members[0])
        return None

    def holds_on(self, scopes: Iterable[str]) -> list[Hold]:
        wanted = frozenset(scopes)
        return [hold for hold in self.holds.values() if hold.scope in wanted]

    def _tables(self) -> tuple[Table[Any] | PartTable | Index, ...]:
        return (  # one overlay discipline for tables of many types
            self.nodes,
            self.assets,
            self.parts,
            self.holds,
            self.windows,
            self.tickets,
            self.approvals,
            self.rollouts,
            self.incidents,
            self.answers,
            self.retired,
            self.tallies,
            self.index,
            self.singles,
            self.configurations,
        )

    def merge(self) -> None:
        for table in self._tables():
            if table.over:
                table.merge()

    def drop(self) -> None:
        for table in self._tables():
            table.drop()

    def committed(self) -> "Fleet":
        """A view of what is committed: it shares the tables' bases and never sees an overlay."""
        view = Fleet()
        for mine, its in zip(self._tables(), view._tables(), strict=True):
            its.base = mine.base
        return view

    def state(self) -> State:
        """The committed state as one value; cheap: the values are shared, only lists are made."""
        return State(
            cell=self.singles.base["cell"],
            configuration=self.configurations.base["active"],
            nodes=list(self.nodes.base.values()),
            assets=list(self.assets.base.values()),
            fitted=dict(self.parts.base.rows),
            loose=dict(self.parts.base.loose),
            holds=list(self.holds.base.values()),
            windows=list(self.windows.base.values()),
            tickets=list(self.tickets.base.values()),
            approvals=list(self.approvals.base.values()),
            rollouts=list(self.rollouts.base.values()),
            incidents=list(self.incidents.base.values()),
            answers=list(self.answers.base.items()),
            retired=list(self.retired.base.items()),
            tallies=list(self.tallies.base.items()),
        )
