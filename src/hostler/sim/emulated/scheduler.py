"""An emulated scheduler: it lists nodes, runs training jobs and inference on them, and obeys cordons and evictions."""

import asyncio
import itertools
from collections.abc import Callable, Iterable

from msgspec import Struct

from hostler.core.model import Node, Operation, Outcome, WorkClass, Workload
from hostler.engine.intake import NodeSeen, WorkSeen
from hostler.engine.ports import RefusedError, WorkloadView


class JobSpec(Struct, frozen=True):
    """A kind of job that is submitted again whenever it ends: on how many nodes of a pool, for how long."""

    name: str
    pool: str
    tenant: str
    nodes: int
    work_class: WorkClass
    runs_s: float


class _Job(Struct):
    id: str
    spec: JobSpec
    nodes: tuple[str, ...] = ()
    ends_s: float = 0.0
    restarts: int = 0


class _Member(Struct):
    pool: str
    cordoned: bool = False


class EmulatedScheduler:
    """The Hand for cordon, uncordon, evict, join_cluster and leave_cluster, and the source of who runs what where.

    `alive` tells whether a node's machine is up (nobody's is until it is set), `gpus` which GPUs it has: a job takes
    all of a node's. A job that loses a node starts again on others.
    """

    kinds = frozenset({"cordon", "uncordon", "evict", "join_cluster", "leave_cluster"})

    def __init__(self, jobs: Iterable[JobSpec]) -> None:
        self.alive: Callable[[str], bool] = lambda _node: False
        self.gpus: Callable[[str], tuple[str, ...]] = lambda _node: ()
        self._members: dict[str, _Member] = {}
        self._numbers = itertools.count(1)
        self._jobs = [self._submit(spec) for spec in jobs]

    def restore(self, node: Node) -> None:
        """List a node that was in the cluster before Hostler was started again."""
        if node.assignment is not None:
            self._members[node.id] = _Member(node.pool, cordoned=bool(node.cordons))

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        await asyncio.sleep(0)
        member = self._members.get(node.id)
        match operation.kind:
            case "join_cluster":
                self._members[node.id] = _Member(node.pool, cordoned=True)
            case "leave_cluster":
                self._lose(node.id)
                self._members.pop(node.id, None)
            case "cordon" | "uncordon" if member is not None:
                member.cordoned = operation.kind == "cordon"
            case "evict":
                self._lose(node.id)
            case "uncordon":
                pass
            case _:
                raise RefusedError(f"the scheduler does not list {node.id}")
        return Outcome(operation.id, node.id, "done", attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        await asyncio.sleep(0)
        member = self._members.get(node.id)
        seen = {
            "join_cluster": member is not None,
            "leave_cluster": member is None,
            "cordon": member is not None and member.cordoned,
            "uncordon": member is None or not member.cordoned,
            "evict": not self._work_on(node.id),
        }[operation.kind]
        return Outcome(operation.id, node.id, "done" if seen else "not_done", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Its acts are over at once: nothing to call off."""

    def turn(self, now_s: float) -> list[WorkSeen | NodeSeen]:
        """Let jobs begin, end and be restarted; what a scheduler's watch would now tell."""
        for index, job in enumerate(self._jobs):
            if job.nodes and not all(self.alive(n) for n in job.nodes):
                job.nodes, job.restarts = (), job.restarts + 1
            elif job.nodes and job.ends_s <= now_s:
                self._jobs[index] = self._submit(job.spec)
        for job in self._jobs:
            if not job.nodes:
                self._place(job, now_s)
        views = tuple(WorkloadView(n, self._work_on(n), cordoned=m.cordoned) for n, m in self._members.items())
        ready = [NodeSeen(n, ready=self.alive(n)) for n in self._members]
        return [WorkSeen(views, whole=True), *ready]

    def _submit(self, spec: JobSpec) -> _Job:
        return _Job(f"{spec.name}-{next(self._numbers)}", spec)

    def _place(self, job: _Job, now_s: float) -> None:
        busy = {n for other in self._jobs for n in other.nodes}
        free = [
            n
            for n, m in self._members.items()
            if m.pool == job.spec.pool and not m.cordoned and n not in busy and self.alive(n)
        ]
        if len(free) >= job.spec.nodes:
            job.nodes = tuple(sorted(free)[: job.spec.nodes])
            job.ends_s = now_s + job.spec.runs_s

    def _lose(self, node_id: str) -> None:
        for job in self._jobs:
            if node_id in job.nodes:
                job.nodes, job.restarts = (), job.restarts + 1

    def _work_on(self, node_id: str) -> tuple[Workload, ...]:
        return tuple(
            Workload(f"{job.id}/{node_id}", job.spec.tenant, job.spec.work_class, self.gpus(node_id), job.id)
            for job in self._jobs
            if node_id in job.nodes
        )
