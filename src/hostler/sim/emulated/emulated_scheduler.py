"""An emulated scheduler: it lists nodes, runs training jobs and inference on them, and obeys cordons and evictions."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.model import Node, Operation, Outcome, Verdict
from hostler.core.tables.operations import IDLE_CHECK
from hostler.ports import SCHEDULED, ClusterView, RefusedError, WorkloadView, name_there, workloads_of

TURN_S = 0.5


class JobSpec(Struct, frozen=True):
    """A kind of job that is submitted again whenever it ends: on how many nodes of a pool, for how long."""

    name: str
    pool: str
    tenant: str
    nodes: int
    work_class: WorkClass
    runs_s: float


class _EmulatedJob(Struct):
    id: str
    spec: JobSpec
    nodes: tuple[str, ...] = ()
    began: datetime | None = None
    ends_s: float = 0.0
    restarts: int = 0


class _Check(Struct):
    """An idle check; `verdict` "" while it goes on."""

    operation: str
    ends_s: float
    verdict: str = ""
    detail: str = ""


class _Member(Struct):
    pool: str
    check: _Check | None = None
    cordoned: bool = False
    overridden: str = ""
    cordoned_by: str = ""

    @property
    def barred(self) -> bool:
        """Whether anybody keeps new work away; a cordon of ours that was lifted does not."""
        return bool(self.cordoned_by) or (self.cordoned and not self.overridden)


class EmulatedScheduler:
    """A `ports.Scheduler` whose cluster, with its jobs, is in memory.

    `alive` tells whether a node's machine is up (nobody's is until it is set), `gpus` which GPUs it has: a job takes
    all of a node's. A job that loses a node starts again on others, and takes one that is being checked as if free.
    `verdict` tells what an idle check finds there, `checks_s` how long it takes. `clock` dates what begins.
    """

    kinds = SCHEDULED | {IDLE_CHECK}
    kind = "emulated"
    cluster = "lab"

    def __init__(self, jobs: Iterable[JobSpec]) -> None:
        self.alive: Callable[[str], bool] = lambda _node: False
        self.gpus: Callable[[str], tuple[str, ...]] = lambda _node: ()
        self.verdict: Callable[[str], tuple[Verdict, str]] = lambda _node: (Verdict.passed, "all GPUs")
        self.checks_s = 5.0
        self.clock: Callable[[], datetime] = partial(datetime.now, UTC)
        self._now_s = 0.0
        self._members: dict[str, _Member] = {}
        self._on: dict[str, _EmulatedJob] = {}
        self._shown: dict[str, tuple[tuple[object, ...], WorkloadView]] = {}
        self._numbers = itertools.count(1)
        self._jobs = [self._submit(spec) for spec in jobs]

    def restore(self, node: Node) -> None:
        """List a node that was in the cluster before Hostler was started again."""
        if node.assignment is not None:
            self._members[name_there(node, self)] = _Member(node.pool, cordoned=bool(node.cordons))

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Done, or RefusedError for a cordon of a node that it does not list."""
        await asyncio.sleep(0)
        name = name_there(node, self)
        member = self._members.get(name)
        match operation.kind:
            case "join_cluster":
                joined = self._members.setdefault(name, _Member(node.pool))
                joined.cordoned, joined.overridden = True, ""
            case "leave_cluster":
                self._lose(name, None)
                self._members.pop(name, None)
                self._shown.pop(name, None)
            case "cordon" if member is None:
                raise RefusedError(f"cluster {self.cluster} lists no node {name}: bind its name there or let it join")
            case "cordon" if member is not None:
                member.cordoned, member.overridden = True, ""
            case "uncordon" if member is not None:
                member.cordoned, member.overridden = False, ""
            case "idle_check" if member is None:
                raise RefusedError(f"cluster {self.cluster} lists no node {name}")
            case "idle_check" if member is not None:
                return self._begin_check(operation, member, name)
            case "evict":
                self._lose(name, frozenset(workloads_of(operation)))
            case _:
                pass  # an uncordon of a node that it does not list
        return Outcome(operation.id, node.id, "done", attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Done where it shows."""
        await asyncio.sleep(0)
        name = name_there(node, self)
        member = self._members.get(name)
        if operation.kind == IDLE_CHECK:
            return _checked(operation, member.check if member is not None else None)
        named = workloads_of(operation)
        seen = {
            "join_cluster": member is not None,
            "leave_cluster": member is None,
            "cordon": member is not None and member.cordoned and not member.overridden,
            "uncordon": member is None or not member.cordoned,
            "evict": not any(work.id in named for work in self._work_on(name)),
        }[operation.kind]
        return Outcome(operation.id, node.id, "done" if seen else "not_done", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """A check ends; other acts are over at once."""
        member = self._members.get(name_there(node, self))
        if member is not None and member.check is not None and member.check.operation == operation.id:
            member.check = None

    def submit(self, spec: JobSpec) -> None:
        """One more job, which begins at the next turn where there is room."""
        self._jobs.append(self._submit(spec))

    def cordon(self, name: str, person: str) -> None:
        """A person keeps new work away by the scheduler's own means."""
        self._members[name].cordoned_by = person

    def open(self, name: str, person: str) -> None:
        """A person lets new work in by the scheduler's own means, whoever keeps it away."""
        member = self._members[name]
        member.cordoned_by, member.overridden = "", person if member.cordoned else ""

    def views(self) -> ClusterView:
        """Views of its members and what runs on them now; what has not changed is the same object as before."""
        nodes = {name: self._view(name, member) for name, member in self._members.items()}
        return ClusterView(nodes, {name: self.alive(name) for name in self._members})

    def _view(self, name: str, m: _Member) -> WorkloadView:
        job, check = self._on.get(name), m.check
        checked = check.operation if check is not None and not check.verdict else ""
        work = (job.id, job.began) if job is not None else ()
        now = (work, checked, m.cordoned_by, m.cordoned, m.overridden)
        was, view = self._shown.get(name, (None, None))
        if was != now or view is None:
            works = self._work_on(name)
            cordoned = m.cordoned and not m.overridden
            view = WorkloadView(name, works, m.cordoned_by, cordoned, overridden=m.overridden)
            self._shown[name] = now, view
        return view

    async def watch(self) -> None:
        """Let jobs begin, end and be restarted, until it is cancelled."""
        started = time.monotonic()
        while True:
            self.turn(time.monotonic() - started)
            await asyncio.sleep(TURN_S)

    def turn(self, now_s: float) -> None:
        """Let jobs and checks begin, end and be restarted, as it is due at this moment."""
        self._now_s = now_s
        for index, job in enumerate(self._jobs):
            if job.nodes and not all(self.alive(n) for n in job.nodes):
                self._stop(job)
            elif job.nodes and job.ends_s <= now_s:
                self._leave(job)
                self._jobs[index] = self._submit(job.spec)
        free = dict[str, list[str]]()
        for job in self._jobs:
            if not job.nodes:
                self._place(job, now_s, free)
        for name, member in self._members.items():
            if member.check is not None:
                self._check(name, member.check)

    def _begin_check(self, operation: Operation, member: _Member, name: str) -> Outcome:
        """Begin a check on a node without work; asked for twice, it is one check."""
        if member.check is None or member.check.operation != operation.id:
            member.check = _Check(operation.id, self._now_s + self.checks_s)
            if name in self._on:
                member.check.verdict, member.check.detail = Verdict.inconclusive.value, "there is no room"
        return _checked(operation, member.check)

    def _check(self, name: str, check: _Check) -> None:
        """A job that has come has taken the check's place; a machine that is gone takes it along."""
        if check.verdict:
            return
        if job := self._on.get(name):
            check.verdict, check.detail = Verdict.inconclusive.value, f"pre-empted: {job.id} has come"
        elif not self.alive(name):
            check.verdict, check.detail = Verdict.inconclusive.value, "the machine is gone"
        elif check.ends_s <= self._now_s:
            verdict, check.detail = self.verdict(name)
            check.verdict = verdict.value

    def _submit(self, spec: JobSpec) -> _EmulatedJob:
        return _EmulatedJob(f"{spec.name}-{next(self._numbers)}", spec)

    def _place(self, job: _EmulatedJob, now_s: float, free: dict[str, list[str]]) -> None:
        """Let the job begin where its pool has room; `free` is what this turn has found so far, by pool."""
        pool = job.spec.pool
        if pool not in free:
            found = [n for n, m in self._members.items() if m.pool == pool and self._takes_work(n, m)]
            free[pool] = sorted(found, key=lambda n: (self._members[n].check is not None, n))
        if len(free[pool]) >= job.spec.nodes:
            job.nodes, free[pool] = tuple(free[pool][: job.spec.nodes]), free[pool][job.spec.nodes :]
            job.began, job.ends_s = self.clock(), now_s + job.spec.runs_s
            self._on.update(dict.fromkeys(job.nodes, job))

    def _takes_work(self, name: str, member: _Member) -> bool:
        return not member.barred and name not in self._on and self.alive(name)

    def _stop(self, job: _EmulatedJob) -> None:
        """End the job where it runs: it has lost a node, and starts again on others."""
        self._leave(job)
        job.nodes, job.restarts = (), job.restarts + 1

    def _leave(self, job: _EmulatedJob) -> None:
        for name in job.nodes:
            self._on.pop(name, None)

    def _lose(self, name: str, works: frozenset[str] | None) -> None:
        """The node's work ends: these workloads, or all of it."""
        job = self._on.get(name)
        if job is not None and (works is None or f"{job.id}/{name}" in works):
            self._stop(job)

    def _work_on(self, node_id: str) -> tuple[Workload, ...]:
        job = self._on.get(node_id)
        if job is not None:
            name, spec = f"{job.id}/{node_id}", job.spec
            return (Workload(name, spec.tenant, spec.work_class, self.gpus(node_id), job.id, began=job.began),)
        member = self._members.get(node_id)
        if member is None or member.check is None or member.check.verdict:
            return ()
        check = member.check.operation
        return (Workload(check, "", WorkClass.infrastructure, self.gpus(node_id), check=check),)


def _checked(operation: Operation, check: _Check | None) -> Outcome:
    """Result of the check: done with a verdict, unknown while it goes on, not_done where there is none."""
    if check is None or check.operation != operation.id:
        return Outcome(operation.id, operation.node, "not_done", "no such check", attempt=operation.attempt)
    if not check.verdict:
        return Outcome(operation.id, operation.node, "unknown", "it goes on", attempt=operation.attempt)
    facts: dict[str, str | int | float | bool | None] = {"verdict": check.verdict}
    return Outcome(operation.id, operation.node, "done", check.detail, facts, attempt=operation.attempt)
