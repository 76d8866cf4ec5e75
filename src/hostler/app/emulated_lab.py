"""Cluster of the emulated fleet of `hostler up`: one in memory, or a real one with kwok's kubelets."""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from msgspec import Struct

from hostler.app.cluster_connections import Kubelets, kubernetes_access, kubernetes_clusters, offered_by, resetter
from hostler.app.cluster_examiner import examiners
from hostler.app.controller_process import Gate
from hostler.core.state.model import Node
from hostler.drivers.standalone.scheduler import StandaloneScheduler
from hostler.ports import Scheduler
from hostler.runtime.merged_schedulers import Clusters, SchedulerDriver, by_cluster
from hostler.runtime.performers import Wiring
from hostler.runtime.runner import Cell
from hostler.sim.emulated.emulated_fleet import GPUS_OF_POOLS, EmulatedFleet, jobs_of
from hostler.sim.emulated.emulated_scheduler import EmulatedScheduler
from hostler.sim.emulated.job_submitter import Customers, let_checks_in
from hostler.sim.emulated.kwok_nodes import KwokNodes

NAME = "lab"

Work = Sequence[Coroutine[Any, Any, None]]


class EmulatedLab(Struct, frozen=True):
    """The cluster's schedulers and the drivers to them; what runs there once fleet and cell are; who comes back.

    `gate` is the one that its drivers ask.
    """

    gate: Gate
    clusters: Clusters
    wiring: Wiring
    begin: Callable[[EmulatedFleet, Cell], Work]
    restore: Callable[[Node], None]


def in_memory(nodes: int, gate: Gate) -> EmulatedLab:
    """A cluster that is a model, with its jobs."""
    scheduler = EmulatedScheduler(jobs_of(nodes))
    clusters = by_cluster([scheduler])

    def begin(fleet: EmulatedFleet, _cell: Cell) -> Work:
        scheduler.gpus = fleet.gpus
        scheduler.alive = lambda node: node in fleet.hosts and fleet.hosts[node].up
        scheduler.verdict = fleet.idle_verdict
        return [scheduler.watch()]

    return EmulatedLab(
        gate,
        clusters,
        Wiring(
            (SchedulerDriver(clusters, StandaloneScheduler(lambda: gate.agents), gate.show_node),),
            (Kubelets([], lambda: gate.agents),),
        ),
        begin,
        scheduler.restore,
    )


async def in_kubernetes(kubeconfig: str, nodes: int, gate: Gate, stack: AsyncExitStack) -> EmulatedLab:
    """A real cluster, whose admin the kubeconfig is; what is held of it is let go with `stack`.

    Raises InvalidInputError.
    """
    (cluster,) = await kubernetes_clusters((f"{NAME}={kubeconfig}",), gate, stack)
    outside = (await kubernetes_access((f"{NAME}={kubeconfig}",), lambda: None, stack))[NAME]
    schedulers: list[Scheduler] = [cluster.scheduler]
    clusters = by_cluster(schedulers)
    gate.offered = offered_by([cluster])
    await let_checks_in(outside)

    def begin(fleet: EmulatedFleet, cell: Cell) -> Work:
        return [
            cluster.scheduler.watch(),
            cluster.marker(lambda: cell.view).run(),
            cluster.requester(lambda: cell.view, cell.ask).run(),
            cluster.admitter.run(),
            cluster.tidier(lambda: cell.view).run(),
            cluster.restorer(lambda: cell.view).run(),
            cluster.presence(cell.name).run(),
            *(one.run() for one in examiners([cluster.scheduler], cell)),
            KwokNodes(outside, cluster.cache, fleet.hosts).run(),
            Customers(outside, jobs_of(nodes), GPUS_OF_POOLS).run(),
        ]

    driver = SchedulerDriver(clusters, StandaloneScheduler(lambda: gate.agents), gate.show_node)
    around = (Kubelets([NAME], lambda: gate.agents), resetter([cluster], gate))
    return EmulatedLab(gate, clusters, Wiring((driver,), around), begin, lambda _node: None)
