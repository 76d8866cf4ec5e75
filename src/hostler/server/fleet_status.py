"""One screen of state: what is braked, paused or stuck, which faults have one cause, and what stands ready."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from hostler.client.answers import GpuCounts, IncidentRow, PoolView, WaitingRow
from hostler.core.planning.rollouts import waits_for
from hostler.core.policy import pool_places
from hostler.core.report.sentences import asked_for
from hostler.core.state.boot import Stranger
from hostler.core.state.configuration import Pool
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Condition, Node, Phase, Remediator
from hostler.core.state.scopes import CLUSTER, POOL, WHOLE_CELL, Scope
from hostler.server.api_resources import incident_row, waiting_row
from hostler.server.budget_use import budget_use
from hostler.server.cell_view import CellView
from hostler.server.recent_changes import Changes
from hostler.server.token_scope import incident_within, sees, shown
from hostler.server.tokens import Identity, Role

STUCK_SHOWN = 20
STOPPED_SHOWN = timedelta(days=1)
FIRST_SHOWN = 3
INCIDENTS_SHOWN = 50


class ModeRow(Struct, frozen=True):
    """Mode of a remedy in a pool; `set_by` is config or intent."""

    pool: str
    remedy: str
    mode: str
    set_by: str


class WaitGroup(Struct, frozen=True):
    """Nodes that wait for the same: how many, the first few, and since when the first of them does.

    `gpu_hours` is the sum of theirs, `unknown` counts those of which nobody knows how many GPUs they have.
    """

    what: str
    text: str
    ends_when: str
    nodes: int
    first: tuple[str, ...]
    since: datetime
    gpu_hours: float
    unknown: int


class SpareRow(Struct, frozen=True):
    """Spares of a SKU: how many, which pools they may go to, and how many those miss."""

    sku: str
    spares: int
    pools: tuple[str, ...]
    missing: int


class FleetStatus(Struct, frozen=True):
    """The fleet on one screen, cut to what the caller reaches."""

    cell: str
    seq: int
    now: datetime
    controller: str
    ok: bool
    why: str
    brake: str
    brake_since: datetime | None
    restored: str
    doubt: str
    paused: tuple[str, ...]
    modes: tuple[ModeRow, ...]
    phases: dict[str, int]
    nodes: int
    ailing: int
    waiting: int
    operating: int
    conditions: dict[str, int]
    unknown: dict[str, int]
    incidents: tuple[IncidentRow, ...]
    stuck: tuple[WaitingRow, ...]
    waits: tuple[WaitGroup, ...]
    pools: tuple[PoolView, ...]
    spares: tuple[SpareRow, ...]
    changes: Changes
    approvals: tuple[str, ...] = ()
    rollout: str = ""
    rollout_stopped: str = ""
    remediators: tuple[Remediator, ...] = ()
    strangers: tuple[Stranger, ...] = ()
    snapshot: str = ""
    disk: str = ""


def status(cell: CellView, who: Identity, now: datetime, changes: Changes) -> FleetStatus:
    """The screen as this caller sees it."""
    fleet, health = cell.view, cell.health()
    ailing = _members(fleet, who, "ailing")
    waiting = [waiting_row(fleet, shown(who, fleet, node), now) for node in _members(fleet, who, "waiting")]
    phases = _phases(fleet, who)
    dark = pool_places.dark(DecisionContext(fleet, cell.live, now))
    pools = tuple(pool_view(cell, pool, dark) for pool in own_pools(fleet, who))
    return FleetStatus(
        cell=cell.name,
        seq=health.seq,
        now=now,
        controller=health.role,
        ok=health.ok,
        why=health.why if who.whole else "",
        snapshot=health.snapshot if who.whole else "",
        disk=health.disk if who.whole else "",
        brake=fleet.cell.brake,
        brake_since=fleet.cell.brake_since,
        restored=_restored(fleet) if who.whole else "",
        doubt=fleet.cell.doubt.text if fleet.cell.doubt and who.whole else "",
        remediators=fleet.cell.remediators if who.whole else (),
        strangers=fleet.cell.strangers if who.whole else (),
        paused=tuple(map(str, fleet.cell.paused if who.whole else _paused(fleet, who))),
        modes=_modes(fleet, who),
        phases=phases,
        nodes=sum(phases.values()),
        ailing=len(ailing),
        waiting=len(waiting),
        operating=len(_members(fleet, who, "operating")),
        conditions=_by_type(c for node in ailing for c in node.conditions),
        unknown=_by_type(c for node in ailing for c in node.conditions if c.unknown_since is not None),
        incidents=_incidents(fleet, who),
        stuck=_stuck(waiting),
        waits=_waits(waiting),
        pools=pools,
        spares=_spares(fleet, pools) if who.whole else (),
        changes=changes,
        approvals=tuple(asked_for(a) for a in fleet.approvals.values()) if who.whole else (),
        rollout=_rollout(cell, now) if who.whole else "",
        rollout_stopped=_stopped(fleet, now) if who.whole else "",
    )


def _rollout(cell: CellView, now: datetime) -> str:
    """Progress of the running rollout, "" without one."""
    running = cell.view.rollout
    return f"{running.id}: {waits_for(DecisionContext(cell.view, cell.live, now), running)}" if running else ""


def _stopped(fleet: Fleet, now: datetime) -> str:
    """The last rollout, where it stopped within a day: what its configuration was to change is not in force."""
    last = max(fleet.rollouts.values(), key=lambda r: r.started, default=None)
    if last is None or last.state != "stopped" or last.ended is None or now - last.ended > STOPPED_SHOWN:
        return ""
    return f"rollout {last.id} was stopped by {last.ended_by} at {last.ended:%Y-%m-%d %H:%M} UTC: {last.why}"


def _restored(fleet: Fleet) -> str:
    """Why nothing is disturbed, "" where the journal is no copy or was released."""
    since = fleet.cell.restored
    if since is None:
        return ""
    compared, differing = fleet.index.count("compared"), fleet.index.count("differing")
    heard = f"{compared} of {len(fleet.nodes)} nodes heard, {differing} differ"
    return f"nothing is disturbed since {since:%Y-%m-%d %H:%M} UTC, the journal is a copy; {heard}"


def own_pools(fleet: Fleet, who: Identity) -> list[Pool]:
    """The pools that the caller reaches, by name: of a site those that have a node there."""
    grant = who.grant
    return [
        pool
        for name, pool in sorted(fleet.configuration.pools.items())
        if grant.pool in ("", name)
        and (who.role is not Role.tenant or pool.tenant == grant.tenant)
        and (not grant.site or _is_at(fleet, name, grant.site))
    ]


def _is_at(fleet: Fleet, pool: str, site: str) -> bool:
    return any(fleet.nodes[i].position.site == site for i in fleet.index.committed(f"pool:{pool}"))


def pool_view(cell: CellView, pool: Pool, dark: dict[str, pool_places.Dark], *, reasons: bool = False) -> PoolView:
    """A pool with its counts; `dark` is of all pools. `reasons`: with what those wait for that use its budget."""
    index = cell.view.index
    delivered, healthy = index.count(f"pool:{pool.name}"), index.count(f"healthy:{pool.name}")
    sku = cell.view.configuration.skus.get(pool.sku)
    each, used = sku.gpus if sku is not None else 0, _in_use(cell, pool)
    return PoolView(
        pool=pool,
        reserved=pool.target,
        delivered=delivered,
        healthy=healthy,
        unknown=index.count(f"doubted:{pool.name}"),
        dark=len(dark.get(pool.name, {})),
        in_use=None if used is None else len(used),
        spares=index.count(f"spare:{pool.sku}"),
        gpus=GpuCounts(
            reserved=pool.target * each,
            delivered=delivered * each,
            healthy=healthy * each,
            in_use=None if used is None else sum(min(each, _gpus_of(work, each)) for work in used),
        ),
        budget=budget_use(cell.view, pool, reasons=reasons),
    )


def _in_use(cell: CellView, pool: Pool) -> list[list[Workload]] | None:
    """Customers' work by node, where there is any; None where schedulers have not told."""
    if not cell.live.synced(pool.cluster):
        return None
    if not pool.cluster:
        return []  # nobody places work there
    nodes, found = cell.live.nodes, list[list[Workload]]()
    for node_id in cell.view.index.committed(f"pool:{pool.name}"):
        here = nodes.get(node_id)
        if here is None or not (work := here.workloads.get(pool.cluster)):
            continue
        if own := [w for w in work if w.work_class is not WorkClass.infrastructure]:
            found.append(own)
    return found


def _gpus_of(work: list[Workload], each: int) -> int:
    """GPUs that the work names; all of the node's where one of them does not say."""
    if any(one.parts is None for one in work):
        return each
    return len({part for one in work for part in one.parts or ()})


def _members(fleet: Fleet, who: Identity, key: str) -> list[Node]:
    nodes = [fleet.nodes[i] for i in fleet.index.members(key)]
    return nodes if who.whole else [node for node in nodes if sees(who, node)]


def _phases(fleet: Fleet, who: Identity) -> dict[str, int]:
    if who.whole:
        return {phase.value: n for phase in Phase if (n := fleet.index.count(f"phase:{phase}"))}
    counts: dict[str, int] = {}
    for node in reachable(fleet, who):
        counts[node.phase.value] = counts.get(node.phase.value, 0) + 1
    return counts


def reachable(fleet: Fleet, who: Identity) -> Iterable[Node]:
    """The nodes of a narrowed token: by its pools where it has any, else by looking at each."""
    if who.role is Role.tenant or who.grant.pool:
        ids = [i for pool in own_pools(fleet, who) for i in fleet.index.members(f"pool:{pool.name}")]
    else:
        ids = list(fleet.nodes)
    return (node for i in ids if sees(who, node := fleet.nodes[i]))


def _paused(fleet: Fleet, who: Identity) -> tuple[Scope, ...]:
    own = own_pools(fleet, who)
    seen = {WHOLE_CELL, *(Scope(POOL, p.name) for p in own), *(Scope(CLUSTER, p.cluster) for p in own)}
    return tuple(scope for scope in fleet.cell.paused if scope in seen)


def _modes(fleet: Fleet, who: Identity) -> tuple[ModeRow, ...]:
    own = own_pools(fleet, who)
    found = {(p.name, remedy): ModeRow(p.name, remedy, mode, "config") for p in own for remedy, mode in p.modes.items()}
    names = {pool.name for pool in own}
    for pool, remedy, mode in fleet.cell.modes:
        if pool in names:
            found[pool, remedy] = ModeRow(pool, remedy, mode, "intent")
    return tuple(found[key] for key in sorted(found))


def _by_type(conditions: Iterable[Condition]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for condition in conditions:
        counts[condition.type] = counts.get(condition.type, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _incidents(fleet: Fleet, who: Identity) -> tuple[IncidentRow, ...]:
    """Open incidents, the largest first."""
    within = (incident_within(who, fleet, incident) for incident in fleet.incidents.values())
    rows = [incident_row(shown(who, fleet, incident)) for incident in within if incident is not None]
    return tuple(sorted(rows, key=lambda row: (-row.nodes, row.opened, row.id))[:INCIDENTS_SHOWN])


def _stuck(waiting: Iterable[WaitingRow]) -> tuple[WaitingRow, ...]:
    """Nodes by the GPU-hours for which they wait, the most first; those of an unknown number of GPUs at the end."""
    rows = sorted(waiting, key=lambda row: (row.gpu_hours is None, -(row.gpu_hours or 0), row.since, row.node))
    return tuple(rows[:STUCK_SHOWN])


def _waits(waiting: Iterable[WaitingRow]) -> tuple[WaitGroup, ...]:
    """All waiting nodes, by what they wait for, the most GPU-hours first."""
    groups: defaultdict[tuple[str, str, str], list[WaitingRow]] = defaultdict(list)
    for row in waiting:
        groups[row.what, *next(zip(row.blockers, row.ends_when, strict=True), ("", ""))].append(row)
    rows = [_wait_group(*key, members) for key, members in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.gpu_hours, row.since, row.first))[:STUCK_SHOWN])


def _wait_group(what: str, text: str, ends_when: str, members: list[WaitingRow]) -> WaitGroup:
    ordered = sorted((row.since, row.node) for row in members)
    return WaitGroup(
        what,
        text,
        ends_when,
        len(ordered),
        tuple(name for _, name in ordered[:FIRST_SHOWN]),
        ordered[0][0],
        round(sum(row.gpu_hours or 0 for row in members), 2),
        sum(row.gpu_hours is None for row in members),
    )


def _spares(fleet: Fleet, pools: Iterable[PoolView]) -> tuple[SpareRow, ...]:
    by_sku: defaultdict[str, list[PoolView]] = defaultdict(list)
    for view in pools:
        by_sku[view.pool.sku].append(view)
    skus = sorted({*by_sku, *fleet.configuration.skus})
    return tuple(
        SpareRow(
            sku,
            fleet.index.count(f"spare:{sku}"),
            tuple(view.pool.name for view in by_sku[sku]),
            sum(max(0, view.reserved - view.delivered + view.dark) for view in by_sku[sku]),
        )
        for sku in skus
    )
