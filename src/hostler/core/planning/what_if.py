"""Effects of another configuration or mode, computed and not tried: which nodes would be disturbed by it."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from hostler.core.planning.firmware_waves import behind
from hostler.core.planning.remediation import needed
from hostler.core.policy.blast_radius import blast_radius
from hostler.core.policy.budgets import allowance
from hostler.core.policy.pool_modes import mode_of
from hostler.core.state.cell_record import CellRecord
from hostler.core.state.configuration import Configuration, Pool, Reach
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import ActClass, Node
from hostler.core.state.overlay_table import Table
from hostler.core.state.pool_mode import Mode
from hostler.core.tables.recipes import RECIPES


def supposing(context: DecisionContext, configuration: Configuration | None = None, **cell: Any) -> DecisionContext:
    """The context as it would be under another configuration, or with other fields of the cell. Only to be read."""
    fleet = context.fleet
    view = Fleet()
    vars(view).update(vars(fleet))
    changes = cell if configuration is None else {**cell, "rollout": ""}
    view.singles = Table[CellRecord]({"cell": replace(fleet.cell, **changes)})
    if configuration is not None:
        view.configurations = Table({"active": configuration})
    return DecisionContext(view, context.live, context.now)


def begins(context: DecisionContext, node: Node) -> str:
    """The disruptive remedy that begins by itself on the node once nothing is in its way, "" where none does."""
    need = needed(context, node)
    if need is None or not RECIPES[need.remedy].disruptive:
        return ""
    if need.requested or need.act_class is ActClass.protective:
        return need.remedy
    return need.remedy if mode_of(context, node, need.remedy) is Mode.act else ""


def changed(before: DecisionContext, after: DecisionContext, nodes: Iterable[Node]) -> tuple[str, ...]:
    """Nodes on which a remedy would begin that does not begin now, or another one than now."""
    return tuple(n.id for n in nodes if (fresh := begins(after, n)) and fresh != begins(before, n))


def ailing(fleet: Fleet) -> list[Node]:
    """The nodes with conditions, by id: only on these can rules differ."""
    return [fleet.nodes[i] for i in fleet.index.members("ailing")]


def disturbed(context: DecisionContext, fresh: Configuration) -> tuple[str, ...]:
    """The nodes that the configuration would disturb now and the active one does not."""
    before, after = supposing(context, context.fleet.configuration), supposing(context, fresh)
    found = dict.fromkeys(changed(before, after, ailing(context.fleet)))
    found.update(dict.fromkeys(behind(after, context.fleet.configuration, context.fleet.nodes.values())))
    for name in sorted(fresh.pools):
        found.update(dict.fromkeys(_unblocked(before, after, name)))
    return tuple(sorted(found))


def _unblocked(before: DecisionContext, after: DecisionContext, name: str) -> list[str]:
    """The nodes of a pool that wait for its budget, as many as the larger budget would let begin."""
    had, has = before.fleet.pools.get(name), after.fleet.pools[name]
    growth = _headroom(after.fleet, has) - max(0, _headroom(before.fleet, had) if had else 0)
    return list(waiting_for(after.fleet, "budget", f"pool:{name}"))[: max(0, growth)]


def _headroom(fleet: Fleet, pool: Pool) -> int:
    out = max(0, pool.target - fleet.index.count(f"serving:{pool.name}"))
    return allowance(pool.budget, pool.target, ActClass.immediate) - out


def waiting_for(fleet: Fleet, kind: str, name: str) -> tuple[str, ...]:
    """The nodes that wait for this blocker, by id."""
    nodes = (fleet.nodes[i] for i in fleet.index.members("waiting"))
    return tuple(
        n.id for n in nodes if n.waiting and any(b.kind == kind and b.name == name for b in n.waiting.blockers)
    )


def by_pool(fleet: Fleet, nodes: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """How many of the nodes serve each pool ("" none), by name."""
    counts: dict[str, int] = {}
    for node_id in nodes:
        pool = fleet.nodes[node_id].pool
        counts[pool] = counts.get(pool, 0) + 1
    return tuple(sorted(counts.items()))


def gpus_of(fleet: Fleet, nodes: Iterable[str]) -> int:
    """The GPUs in these nodes."""
    return sum(blast_radius(fleet, node_id).gpus for node_id in nodes)


def decides_otherwise(before: Configuration, after: Configuration) -> bool:
    """Whether anything differs that decides about single nodes: rules, rungs, timings, SKUs, what pools let happen."""
    return _deciding(before) != _deciding(after)


def _deciding(configuration: Configuration) -> tuple[Any, ...]:
    policy = configuration.policy
    pools = {
        name: (p.sku, p.cluster, p.tenant, p.profile, p.modes, p.evict_after_deadline, p.drain_deadline_s)
        for name, p in configuration.pools.items()
    }
    return policy.rules, policy.rungs, policy.probation_s, policy.time_scale, configuration.skus, pools


def loosens(before: Reach, after: Reach) -> bool:
    """Whether one person's word would go further, or a rollout be watched less."""
    grows = ("nodes", "first_nodes", "error_percent", "approval_s", "limit_s")
    shrinks = ("soak_s", "window_s")
    return any(getattr(after, f) > getattr(before, f) for f in grows) or any(
        getattr(after, f) < getattr(before, f) for f in shrinks
    )


def pool_changes(before: Configuration, after: Configuration) -> tuple[str, ...]:
    """Changes of each pool, a line each."""
    lines: list[str] = []
    for name in sorted({*before.pools, *after.pools}):
        had, has = before.pools.get(name), after.pools.get(name)
        if had is None or has is None:
            lines.append(f"pool {name} is {'new' if had is None else 'gone'}")
            continue
        lines.extend(
            f"pool {name}: {field} {_shown(getattr(had, field))} → {_shown(getattr(has, field))}"
            for field in had.__struct_fields__
            if getattr(had, field) != getattr(has, field)
        )
    return tuple(lines)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in sorted(value.items())) or "none"
    fields = getattr(value, "__struct_fields__", None)
    return str(value) if fields is None else ", ".join(f"{f} {getattr(value, f):g}" for f in fields)


def acts_in(fleet: Fleet, pool: str, *configurations: Configuration) -> bool:
    """Whether some remedy of the pool is in mode act, by intent or under one of these configurations."""
    if any(p == pool and mode == Mode.act.value for p, _, mode in fleet.cell.modes):
        return True
    found = (c.pools.get(pool) for c in configurations)
    return any(Mode.act in p.modes.values() for p in found if p is not None)


def acting(fleet: Fleet, *configurations: Configuration) -> int:
    """How many nodes stand in pools where something is at act."""
    names = sorted({name for c in configurations for name in c.pools})
    return sum(fleet.index.count(f"pool:{name}") for name in names if acts_in(fleet, name, *configurations))
