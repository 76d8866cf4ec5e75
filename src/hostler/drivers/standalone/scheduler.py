"""The scheduler port where there is no scheduler: for pools that name no cluster, and for spares."""

from hostler.controller.inputs import WorkSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.tables.operations import IDLE_CHECK
from hostler.ports import SCHEDULED, RefusedError, WorkloadView


class StandaloneScheduler:
    """The Hand for cordon, uncordon, evict, join_cluster and leave_cluster of nodes that are in no cluster.

    Every one of them is done at once: what they would change is Hostler's own record. A node that serves a cluster is
    refused, because this driver does not know what runs there.
    """

    kinds = SCHEDULED | {IDLE_CHECK}

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Done, or RefusedError for a node of a cluster."""
        cluster = node.assignment.cluster if node.assignment else ""
        if operation.kind == IDLE_CHECK:
            of = f"cluster {cluster}" if cluster else "nodes without a cluster"
            raise RefusedError(f"no scheduler of {of} can check idle nodes: set the pool's mode for it to observe")
        if cluster:
            raise RefusedError(
                f"{node.id} serves cluster {cluster}, and no scheduler driver is set up for it"
                "; name the cluster with --kubernetes or --slurm"
            )
        return Outcome(operation.id, node.id, "done", attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """As performed: there is nothing outside that could differ."""
        return await self.perform(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Nothing is ever under way."""


def work_of(fleet: Fleet) -> WorkSeen:
    """Workloads of nodes in pools without a cluster: none."""
    idle = [
        WorkloadView(node_id, ())
        for pool in fleet.configuration.pools.values()
        if not pool.cluster
        for node_id in fleet.index.members(f"pool:{pool.name}")
    ]
    return WorkSeen(tuple(idle), whole=True)
