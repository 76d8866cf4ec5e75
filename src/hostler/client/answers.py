"""Types of the API's answers: the server makes them and programs read them.

Members that a newer server adds are passed over.
"""

from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from hostler.client import routes
from hostler.core.state.assets import Position
from hostler.core.state.attached_files import AttachedFile
from hostler.core.state.cases import WalkStop
from hostler.core.state.configuration import Pool
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import ActClass, Blocker, Condition, Hold, Operation, Part, Phase, Plan, Profile
from hostler.core.state.scopes import scope_hook

T = TypeVar("T")


class NodeRow(Struct, frozen=True):
    """A node in a list. `severity` is its gravest condition's (-1: none), `waiting` its first blocker's own text.

    Where an act has failed since something was done last, `waiting` begins with what failed, when and why.
    `unknown` are those of its `conditions` of which nobody can say whether they still stand. `names`: how it is called
    in its clusters, where that is not its id, by the kind of scheduler.
    """

    id: str
    hostname: str
    serial: str
    sku: str
    phase: Phase
    phase_since: datetime
    pool: str
    tenant: str
    position: Position
    profile: Profile
    severity: int
    conditions: tuple[str, ...]
    unknown: tuple[str, ...]
    plan: str
    step: str
    waiting: str
    waiting_since: datetime | None
    cordoned: bool
    healthy: bool
    handover: datetime | None
    names: dict[str, str] = {}


class AgentView(Struct, frozen=True):
    """A node's agent: when it was last heard (None: not since the controller started), and what it said of itself."""

    node: str
    heard: bool
    last_heard: datetime | None
    version: str
    rss_kib: int
    profiles: tuple[str, ...] | None = None


class ExcludedRemedies(Struct, frozen=True):
    """Remedies that cannot be carried out on a node for one reason: the operation that is missing, why, what to do."""

    operation: str
    why: str
    mend: str
    remedies: tuple[str, ...]


class NodeAbilities(Struct, frozen=True):
    """A node and what cannot be done on it, () where everything can or nobody knows yet."""

    node: str
    pool: str
    phase: Phase
    excluded: tuple[ExcludedRemedies, ...]


class ConditionRow(Struct, frozen=True):
    """A condition with where its node stands."""

    condition: Condition
    phase: Phase
    pool: str
    rack: str
    plan: str


class GpuCounts(Struct, frozen=True):
    """A pool's GPUs (CAP01-03), counted as its nodes are. `in_use` None: schedulers have not told."""

    reserved: int
    delivered: int
    healthy: int
    in_use: int | None


class BudgetUser(Struct, frozen=True):
    """A node that uses its pool's budget: what is done to it (`doing`, at `step`), since when, and what that waits for.

    Tenants are not told what it waits for.
    """

    node: str
    doing: str
    since: datetime
    step: str = ""
    waits_for: str = ""


class BudgetUse(Struct, frozen=True):
    """How far a pool's budget is used: of `limit` members, `reserve` more for immediate remedies, `used` are away.

    `users` are the first of them that the pool still has, `more` the number of the others, `missing` the members that
    the pool has not. `waiting` nodes wait for room.
    """

    limit: int
    reserve: int
    used: int
    missing: int
    users: tuple[BudgetUser, ...]
    more: int
    waiting: int


class PoolView(Struct, frozen=True):
    """A pool and its counts (CAP01–03).

    `reserved` is what its tenant has reserved (the target), `delivered` what serves it, `healthy` what of that is in
    service and known, `unknown` what is in service and of which nobody can say how it is, `dark` whose places spares
    take because they stay dark until a person comes (an incident holds them, or they are powered off to protect them),
    `in_use` where customer work runs (None: schedulers have not told). `budget`: who uses its budget.
    """

    pool: Pool
    reserved: int
    delivered: int
    healthy: int
    unknown: int
    dark: int
    in_use: int | None
    spares: int
    gpus: GpuCounts
    budget: BudgetUse | None = None


class JobPlace(Struct, frozen=True):
    """A job's work on one node. `gpus` None: nobody says how many it uses; without `parts` it is taken to use all.

    `conditions` are the node's, `severity` is the gravest one's (-1: none).
    """

    node: str
    rack: str
    work: str
    parts: tuple[str, ...] | None
    gpus: int | None
    severity: int
    conditions: tuple[str, ...]
    cordoned: bool


class JobWait(Struct, frozen=True):
    """A remedy or step of a node (`what`) that waits for the end of a job there, since when."""

    node: str
    what: str
    since: datetime


class JobRow(Struct, frozen=True):
    """A customer's job that runs on nodes, as its scheduler tells it now.

    `work_class`: how it may be disturbed. `ailing` are its nodes with `conditions`, `waiting` what waits for its end.
    `held_by`: what keeps it from being ended though it may be. `agreed_after_s`: it may be ended when a drain has
    waited so long. `began` None: not every scheduler says it. `owner` is who is asked for consent, "" for the pool's.
    """

    id: str
    name: str
    cluster: str
    tenant: str
    owner: str
    work_class: WorkClass
    pools: tuple[str, ...]
    nodes: tuple[str, ...]
    gpus: int | None
    began: datetime | None
    progress: str
    held_by: str
    agreed_after_s: float | None
    ailing: tuple[str, ...]
    conditions: tuple[str, ...]
    waiting: tuple[JobWait, ...]
    places: tuple[JobPlace, ...]


class UntoldJobs(Struct, frozen=True):
    """A cluster of some of whose nodes it is not known what runs there, and why, "" where that is not known either."""

    cluster: str
    nodes: int
    why: str = ""


class OperationRow(Struct, frozen=True):
    """An operation under way, or given up and still able to land (`settling`)."""

    operation: Operation
    plan_name: str
    pool: str


class ShadowRow(Struct, frozen=True):
    """Effect that a shadow rule would have had on a node: how often, last `at`, and whether it would have waited.

    `works`: how many workloads of customers ran there then, None where unknown.
    """

    id: str
    node: str
    pool: str
    rule: str
    remedy: str
    act_class: ActClass
    times: int
    at: datetime
    waits: str
    works: int | None


class WaitingRow(Struct, frozen=True):
    """A node that waits, since when, and for whom, in the blockers' own words.

    `gpu_hours`: its GPUs times the hours for which it waits, None where nobody knows how many GPUs it has.
    """

    node: str
    what: str
    since: datetime
    phase: Phase
    pool: str
    blockers: tuple[str, ...]
    ends_when: tuple[str, ...]
    gpus: int | None
    gpu_hours: float | None


class CauseRow(Struct, frozen=True):
    """Seconds for which a node was so, and why: `kind`, and the `condition` where one was the reason."""

    state: str
    kind: str
    condition: str
    seconds: int


class WaitedRow(Struct, frozen=True):
    """Seconds in which something (`what`) waited on a node, by the kind of its first reason."""

    what: str
    reason: str
    seconds: int


class StatementRow(Struct, frozen=True):
    """A stay of a node in a tenant's pool within a month, in whole seconds, which sum to `had_s`.

    `degraded_s`: in service with a condition that says so. `away_by`: seconds of `away_s` by repair, maintenance,
    firmware, test, person, handover and unknown. `unknown_s`: nobody could tell, or its records are gone.
    `waited`: what waited meanwhile, for what kind of reason and how long; it is no part of the sum.
    """

    node: str
    tenant: str
    pool: str
    since: datetime
    until: datetime
    had_s: int
    healthy_s: int
    degraded_s: int
    away_s: int
    unknown_s: int
    away_by: dict[str, int]
    causes: tuple[CauseRow, ...]
    waited: tuple[WaitedRow, ...] = ()


class IncidentRow(Struct, frozen=True):
    """An incident in a list. `blames` is the shared part in words, `nodes` how many of its members the caller sees."""

    id: str
    scope: str
    blames: str
    also: tuple[str, ...]
    conditions: tuple[str, ...]
    state: str
    nodes: int
    size: int
    first: tuple[str, ...]
    opened: datetime
    deadline: datetime
    calm_since: datetime | None
    owner: str
    ticket: str


class OutsideRow(Struct, frozen=True):
    """The same ticket in a ticket system: the route to it, its key and address there, and whether it is done there."""

    route: str
    key: str
    url: str
    done: bool


class LightRow(Struct, frozen=True):
    """The locate LED of a ticket's node: its state in words, who had it lit, and until when."""

    state: str
    by: str
    until: datetime


class TicketRow(Struct, frozen=True):
    """An open ticket: `ticket`'s own fields, when it is to be done, and what it is in ticket systems."""

    id: str
    node: str
    kind: str
    summary: str
    opened: datetime
    hardware: str
    component: str
    fault: str
    action: str
    account: str
    handover: datetime | None
    updated: datetime | None
    closed: datetime | None
    owner: str
    resolution: str
    due: str
    due_by: datetime | None
    done_by: str
    done_at: datetime | None
    reopened: datetime | None
    files: tuple[AttachedFile, ...]
    walk: tuple[WalkStop, ...]
    claimed_by: str
    claimed_at: datetime | None
    claimed_until: datetime | None
    outside: tuple[OutsideRow, ...]
    light: LightRow | None


class IntentView(Struct, frozen=True):
    """Result of an intent: granted (200), or not yet (202): it waits for the approval that `detail` names.

    What is refused comes as a problem (409; 404 where its target is not there). `detail` has "brake" while that is on.
    """

    granted: bool
    text: str
    detail: dict[str, str]


class NodeProgress(Struct, frozen=True):
    """Part of one node. `state`: waiting, running, done, failed, or ended (called off, or overtaken by another).

    `failed`: the newest failure since it was asked for, `next` who acts next where something failed.
    """

    node: str
    state: str
    plan: str = ""
    step: str = ""
    detail: str = ""
    blockers: tuple[Blocker, ...] = ()
    failed: str = ""
    next: str = ""


class IntentProgress(Struct, frozen=True):
    """An intent by its id. `state`: refused, waiting_for_approval, denied, under_way, done, failed or ended.

    `act` is what was asked for, as one asks for it; documents are left out.
    `nodes` are those that it concerns, the first of them; `more` counts the others.
    """

    id: str
    verb: str
    act: dict[str, Any]
    target: str
    person: str
    reason: str
    asked: datetime
    state: str
    text: str
    approval: str = ""
    nodes: tuple[NodeProgress, ...] = ()
    more: int = 0

    @property
    def over(self) -> bool:
        """Whether nothing of it is open any more."""
        return self.state not in ("under_way", "waiting_for_approval")


LISTS: dict[type, str] = {
    NodeRow: routes.NODES,
    AgentView: routes.AGENTS,
    NodeAbilities: routes.ABILITIES,
    ConditionRow: routes.CONDITIONS,
    PoolView: routes.POOLS,
    ShadowRow: routes.SHADOWS,
    WaitingRow: routes.WAITING,
    StatementRow: routes.STATEMENT,
    IncidentRow: routes.INCIDENTS,
    TicketRow: routes.TICKETS,
    OperationRow: routes.OPERATIONS,
    JobRow: routes.JOBS,
    Plan: routes.PLANS,
    Hold: routes.HOLDS,
    Part: routes.PARTS,
}
"""Routes that list the rows of each type."""


def read(found: Any, kind: type[T]) -> T:
    """JSON that the server answered, as that type. Raises msgspec.ValidationError for anything else."""
    return msgspec.convert(found, kind, strict=False, dec_hook=scope_hook)
