"""The scheduler port where there is no scheduler: for pools that name no cluster, and for spares."""

from collections.abc import Callable

from msgspec.structs import replace

from hostler.controller.inputs import WorkSeen
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import IdleCheck, RunChecks
from hostler.core.tables.operations import IDLE_CHECK
from hostler.ports import SCHEDULED, OperationDriver, RefusedError, UnreachableError, WorkloadView

NO_CLUSTER = ""


class StandaloneScheduler:
    """The Hand for cordon, uncordon, evict, join_cluster and leave_cluster of nodes that are in no cluster.

    Every one of them is done at once: what they would change is Hostler's own record. An idle check is the agent's, who
    yields to whoever uses the node; `agents` gives the agents' hand, which comes to be when the house does. A node that
    serves a cluster is refused, because this driver does not know what runs there.
    """

    kinds = SCHEDULED | {IDLE_CHECK}

    def __init__(self, agents: Callable[[], OperationDriver | None]) -> None:
        self._agents = agents

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Done, an agent's answer to an idle check, or RefusedError for a node of a cluster."""
        cluster = node.assignment.cluster if node.assignment else ""
        if operation.kind == IDLE_CHECK:
            return await self._agent(node).perform(for_agent(operation), node)
        if cluster:
            raise RefusedError(
                f"{node.id} serves cluster {cluster}, and no scheduler driver is set up for it"
                "; name the cluster with --kubernetes or --slurm"
            )
        return Outcome(operation.id, node.id, "done", attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """As performed: there is nothing outside that could differ. Of an idle check the agent is asked."""
        if operation.kind == IDLE_CHECK:
            return await self._agent(node).observe(for_agent(operation), node)
        return await self.perform(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the agent end an idle check; of all else nothing is ever under way."""
        if operation.kind == IDLE_CHECK:
            await self._agent(node).revoke(for_agent(operation), node)

    def _agent(self, node: Node) -> OperationDriver:
        if node.assignment is not None and node.assignment.cluster:
            raise RefusedError(
                f"no scheduler of cluster {node.assignment.cluster} can check idle nodes"
                ": set the pool's mode for it to observe"
            )
        if (agents := self._agents()) is None:
            raise UnreachableError("the controller has not started; nothing was sent; it is asked again")
        return agents


def for_agent(operation: Operation) -> Operation:
    """The idle check as its agent knows it: the same operation, whose act is a profile of checks."""
    profile = operation.act.profile if isinstance(operation.act, IdleCheck) else IdleCheck().profile
    return replace(operation, act=RunChecks(profile))


class StandaloneWork:
    """Tells of nodes in pools without a cluster that nothing runs there, once each.

    It remembers of whom the present knows it: looking at each node of a large fleet anew would hold up the loop.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()

    def news(self, fleet: Fleet, live: LiveState) -> list[WorkSeen]:
        """Workloads of those nodes: none. Told of whom the present does not know it yet.

        After a start, a gap or a change of office the present knows nothing, and all are told, as a whole.
        """
        pools = [fleet.index.committed(f"pool:{p.name}") for p in fleet.configuration.pools.values() if not p.cluster]
        if not live.synced(NO_CLUSTER):
            self._known = set()
            every = tuple(WorkloadView(node_id, ()) for node_id in sorted(i for pool in pools for i in pool))
            return [WorkSeen(every, whole=True, cluster=NO_CLUSTER)]
        fresh = [i for pool in pools if not self._known.issuperset(pool) for i in set(pool) - self._known]
        here = live.nodes
        seen = {i for i in fresh if i in here and NO_CLUSTER in here[i].workloads}
        self._known |= seen
        idle = tuple(WorkloadView(node_id, ()) for node_id in sorted(fresh) if node_id not in seen)
        return [WorkSeen(idle, cluster=NO_CLUSTER)] if idle else []
