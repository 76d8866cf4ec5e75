"""Other programs that treat the nodes of a cluster: beside one of them nothing is disturbed until a person accepts it.

Two that both reboot, cordon and replace undo and repeat each other. Which programs count is the table of the cluster's
driver; here stands which were found, since when, and who has accepted which.
"""

from datetime import datetime

from msgspec.structs import replace

from hostler.core.state.cell_record import CellRecord
from hostler.core.state.configuration import Configuration
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Blocker, Remediator
from hostler.core.state.pool_mode import Mode
from hostler.core.state.scopes import CLUSTER
from hostler.core.state.verbs.remediators import AcceptRemediator
from hostler.core.state.ways_out import by_act, observed


def unaccepted(fleet: Fleet, cluster: str) -> tuple[Remediator, ...]:
    """Remediators of the cluster that nobody has accepted."""
    return tuple(one for one in fleet.cell.remediators if one.cluster == cluster and not one.accepted_by)


def found(cell: CellRecord, cluster: str, names: tuple[str, ...], at: datetime) -> CellRecord:
    """Note the remediators of a cluster: a new one begins unaccepted, one that is gone loses its acceptance."""
    others = tuple(one for one in cell.remediators if one.cluster != cluster)
    known = {one.name: one for one in cell.remediators if one.cluster == cluster}
    here = tuple(known.get(name) or Remediator(cluster, name, at) for name in names)
    return replace(cell, remediators=(*others, *here))


def accepted(cell: CellRecord, cluster: str, name: str, person: str) -> CellRecord:
    """Accepted by this person; by "" no longer."""
    return replace(
        cell,
        remediators=tuple(
            replace(one, accepted_by=person) if (one.cluster, one.name) == (cluster, name) else one
            for one in cell.remediators
        ),
    )


def blockers(fleet: Fleet, pools: set[str]) -> list[Blocker]:
    """Blockers that keep these pools from being disturbed."""
    configured = fleet.configuration.pools
    clusters = sorted({configured[name].cluster for name in pools if name in configured})
    return [
        Blocker(
            "remediator",
            f"{one.cluster}/{one.name}",
            f"{one.name} remediates nodes of cluster {one.cluster} too, since {one.since:%Y-%m-%d %H:%M} UTC or before",
            (
                observed("it is removed", "scheduler"),
                by_act(AcceptRemediator(one.name), f"{CLUSTER}:{one.cluster}", "a person accepts it"),
            ),
        )
        for cluster in clusters
        for one in unaccepted(fleet, cluster)
    ]


def begins_to_act(before: Configuration, after: Configuration) -> set[str]:
    """The pools with a mode of act under `after` and none under `before`."""
    acting = {name for name, pool in after.pools.items() if Mode.act in pool.modes.values()}
    return {name for name in acting if name not in before.pools or Mode.act not in before.pools[name].modes.values()}
