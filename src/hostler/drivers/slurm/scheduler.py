"""A Slurm cluster as a `ports.Scheduler`: drains and resumes its nodes, ends jobs, and sees whose work runs where."""

import asyncio
import re
from collections.abc import Callable, Iterable
from datetime import datetime

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.tables.operations import IDLE_CHECK
from hostler.drivers.slurm.check_jobs import CheckPlace, SlurmChecks
from hostler.drivers.slurm.cluster_view import (
    LEFT,
    MARK,
    OURS,
    REBOOTING,
    UNSEEN,
    ClusterReading,
    Lens,
    has_left,
    is_drained,
    is_fallen,
    is_ours,
    is_ready,
    is_shut,
    other_who_shuts,
    workload_id,
)
from hostler.drivers.slurm.doctor import second_remediators
from hostler.drivers.slurm.hostlist import checked_name
from hostler.drivers.slurm.shared_reads import SharedReads
from hostler.drivers.slurm.transport import Change, Transport
from hostler.drivers.slurm.wire import SlurmJob, SlurmNode
from hostler.ports import (
    SCHEDULED,
    ClusterView,
    ConflictError,
    PortError,
    RefusedError,
    WorkloadView,
    name_there,
    workloads_of,
)

MAX_REASON = 200
_ODD = re.compile(r"[^A-Za-z0-9 _.,:/()@+-]+")


class SlurmMethod(Struct, frozen=True):
    """How the cluster is looked at and its jobs are ended.

    A graceful job gets SIGTERM and `grace_s` before it is ended. `requeue`: what Slurm may start again is requeued,
    where it allows that; else it is cancelled. `period_s` lies between two looks, and after `stale_s` without one
    nothing is known of the cluster any more. `reboots`: its nodes are rebooted by Slurm, not by their agents. `checks`:
    where idle checks run, None for nowhere.
    """

    lens: Lens = Lens()
    grace_s: float = 60.0
    requeue: bool = True
    period_s: float = 2.0
    stale_s: float = 20.0
    reboots: bool = False
    checks: CheckPlace | None = None


class SlurmScheduler:
    """A `ports.Scheduler`: the driver of SCHEDULED and of reboots that Slurm does, and the reader of a cluster's jobs.

    Each act reads the cluster first and changes only what is ours: a drain, a failing or a DOWN of somebody else's
    stands, counts as keeping work away, and is named. `fence` raises where nothing may be sent any more.
    """

    kind = "slurm"

    def __init__(
        self,
        cluster: str,
        transport: Transport,
        fence: Callable[[], None],
        clock: Callable[[], datetime],
        manner: SlurmMethod = SlurmMethod(),  # noqa: B008 - frozen
    ) -> None:
        self.cluster = cluster
        self._transport = transport
        self._fence = fence
        self._clock = clock
        self._manner = manner
        self._checks = SlurmChecks(transport, manner.checks) if manner.checks is not None else None
        self.kinds = SCHEDULED | {IDLE_CHECK} if self._checks is not None else SCHEDULED
        self._reader = SharedReads(transport)
        self._read: ClusterReading | None = None
        self._views: dict[str, WorkloadView] = {}
        self._ready: dict[str, bool] = {}
        self._read_at: datetime | None = None
        self._why = "not listed yet"

    @property
    def reboots(self) -> bool:
        """Whether Slurm is to reboot this cluster's nodes."""
        return self._manner.reboots

    # --- the eye

    def views(self) -> ClusterView:
        """Views of the last look; `lost` where there was none lately."""
        at = self._read_at
        if at is None:
            return ClusterView({}, {}, self._why)
        stale = (self._clock() - at).total_seconds() > self._manner.stale_s
        lost = f"silent since {at:%H:%M:%S} UTC: {self._why or 'no look since'}" if stale else ""
        return ClusterView(self._views, self._ready, lost)

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._manner.period_s)

    async def look(self) -> None:
        """Read the cluster once; what cannot be read leaves what was known, to grow stale."""
        try:
            self._take(await self._reader.read())
        except PortError as away:
            self._why = str(away)

    def _take(self, read: ClusterReading) -> None:
        if read is self._read:
            return
        before, self._read = self._read, read
        views = ((name, self._view(before, read, node)) for name, node in read.nodes.items())
        self._views = {name: view for name, view in views if view is not None}
        opinions = ((name, is_ready(node)) for name, node in read.nodes.items())
        self._ready = {name: opinion for name, opinion in opinions if opinion is not None}
        self._read_at, self._why = self._clock(), ""

    def _view(self, before: ClusterReading | None, read: ClusterReading, node: SlurmNode) -> WorkloadView | None:
        """The node's view: the same as before where Slurm says the same of it, or means the same."""
        old = self._views.get(node.name)
        if old is not None and before is not None and read.says_as(before, node):
            return old
        new = self._manner.lens.view(read, node)
        return old if old is not None and old == new else new

    # --- the hand

    async def remediators(self) -> tuple[str, ...]:
        """Slurm's own programs that treat the cluster's nodes. Raises PortError where that cannot be told."""
        return await second_remediators(self._transport)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Done where its effect is seen afterwards, unknown where it is not yet. Raises PortError."""
        name = checked_name(name_there(node, self))
        read = await self._reader.read()
        here = read.nodes.get(name)
        if operation.kind == IDLE_CHECK and here is not None:
            return await self._check(operation, name)
        if here is None:
            return self._outcome(operation, *self._of_stranger(operation, name))
        match operation.kind:
            case "cordon" | "join_cluster":
                await self._shut(operation, here, _reason(operation, node))
            case "uncordon":
                await self._open(here)
            case "leave_cluster":
                await self._leave(read, here, operation)
            case "evict":
                await self._evict(operation, self._meant(operation, read, here))
            case "reboot":
                await self._reboot(operation, node, read, here)
            case _:
                raise RefusedError(
                    f"the Slurm driver does not perform {operation.kind}; run the same version of Hostler everywhere"
                )
        return await self._seen(operation, name)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Look in Slurm whether the operation has happened."""
        if operation.kind == IDLE_CHECK:
            return await self._checker().observe(operation)
        return await self._seen(operation, checked_name(name_there(node, self)), sent=False)

    async def revoke(self, operation: Operation, node: Node) -> None:  # noqa: ARG002 - the port's
        """Call an idle check off; other acts are over at once."""
        if operation.kind == IDLE_CHECK:
            self._fence()
            await self._checker().revoke(operation)

    async def _check(self, operation: Operation, name: str) -> Outcome:
        self._fence()
        return await self._checker().begin(operation, name)

    def _checker(self) -> SlurmChecks:
        if self._checks is None:
            raise RefusedError(f"no partition for idle checks in Slurm cluster {self.cluster}: name one (checks: …)")
        return self._checks

    async def _seen(self, operation: Operation, name: str, *, sent: bool = True) -> Outcome:
        """Whether the effect is there, by a fresh reading: unknown instead of not done right after it was sent.

        What it shows is seen before the outcome is told: a view from before a cordon would speak of a lifted one.
        """
        read = await self._reader.read()
        self._take(read)
        here = read.nodes.get(name)
        result, detail = self._of_stranger(operation, name) if here is None else self._effect(operation, read, here)
        if sent and result == "not_done":
            result = "unknown"
        return self._outcome(operation, result, detail)

    def _outcome(self, operation: Operation, result: str, detail: str) -> Outcome:
        return Outcome(operation.id, operation.node, result, detail, attempt=operation.attempt)

    def _of_stranger(self, operation: Operation, name: str) -> tuple[str, str]:
        """Outcome on a node that Slurm does not list: nothing of ours is or can be there. Raises RefusedError."""
        if operation.kind in ("uncordon", "leave_cluster"):
            return "done", f"Slurm cluster {self.cluster} lists no node {name}"
        raise RefusedError(
            f"Slurm cluster {self.cluster} lists no node {name}: add NodeName={name} to its slurm.conf and "
            "`scontrol reconfigure`, or bind the node's name there (hostler node rebind --kind slurm)"
        )

    def _effect(self, operation: Operation, read: ClusterReading, here: SlurmNode) -> tuple[str, str]:
        other = other_who_shuts(here)
        by_other = f"new work is kept away by {other}" if other else ""
        match operation.kind:
            case "cordon":
                shut = (is_ours(here) and not has_left(here)) or (other and is_shut(here))
                return ("done" if shut else "not_done"), by_other
            case "uncordon":
                return ("not_done" if is_ours(here) or here.comment.startswith(MARK) else "done"), by_other
            case "join_cluster" if not is_shut(here) or has_left(here):
                return "not_done", by_other
            case "join_cluster" if here.base == "UNKNOWN" or "NOT_RESPONDING" in here.flags:
                return "unknown", f"slurmd of {here.name} does not answer slurmctld yet"
            case "leave_cluster":
                works = tuple(read.on(here))
                left = has_left(here) or (other and is_shut(here))
                return ("done" if left and not works else "not_done"), by_other
            case "evict":
                return self._evicted(operation, read, here)
            case "reboot":
                return _rebooted(operation, here)
        return "done", by_other

    async def _update(self, here: SlurmNode, change: Change) -> None:
        self._fence()
        await self._transport.update(here.name, change)

    async def _shut(self, operation: Operation, here: SlurmNode, reason: str) -> None:
        """Drain it under our reason, unless somebody keeps work away already; what has fallen by itself is drained."""
        returns = has_left(here)
        if returns and operation.kind == "cordon":
            raise RefusedError(f"{here.name} has left cluster {self.cluster}: let it join first")
        if is_shut(here) and not is_fallen(here) and not returns:
            return
        if here.base == "FUTURE":
            raise RefusedError(
                f"{here.name} is a FUTURE node of cluster {self.cluster}: start its slurmd, or define it"
            )
        free = not here.comment or here.comment.startswith(MARK)
        await self._update(here, Change("DRAIN", reason, MARK if free else None))

    async def _open(self, here: SlurmNode) -> None:
        """Take back what is ours; a drain of somebody else's stays."""
        if has_left(here):
            raise RefusedError(f"{here.name} has left cluster {self.cluster}: let it join first")
        if here.flags & REBOOTING:
            raise ConflictError(f"Slurm is rebooting {here.name}: it is resumed when that is over")
        unmarked = "" if here.comment.startswith(MARK) else None
        if is_ours(here):
            await self._update(here, Change("RESUME", None, unmarked))
        elif unmarked is not None:
            await self._update(here, Change(comment=unmarked))

    async def _leave(self, read: ClusterReading, here: SlurmNode, operation: Operation) -> None:
        if works := [f"job {job.id}" for job, _ in read.on(here)]:
            raise ConflictError(f"{here.name} still has {', '.join(works[:4])}: drain it first")
        if other_who_shuts(here) and is_shut(here):
            return
        if not has_left(here):
            free = not here.comment or here.comment.startswith(MARK)
            await self._update(here, Change("DRAIN", f"{LEFT} ({operation.id})", MARK if free else None))

    # --- jobs

    def _meant(self, operation: Operation, read: ClusterReading, here: SlurmNode) -> list[SlurmJob]:
        """The jobs on the node that the operation names, run by run. What it does not name is not touched."""
        named = workloads_of(operation)
        if UNSEEN in named:
            raise RefusedError(
                f"Slurm shows no job for what occupies {here.name}; nothing there can be ended by name"
                f"; see squeue -w {here.name}"
            )
        return [job for job, _ in read.on(here) if workload_id(job) in named]

    def _evicted(self, operation: Operation, read: ClusterReading, here: SlurmNode) -> tuple[str, str]:
        """Done when none of the named runs holds the node, nor is one still ending there under its next number."""
        named = workloads_of(operation)
        numbers = frozenset(one.rpartition(".")[0] for one in named)
        left = [
            job
            for job, _ in read.on(here)
            if workload_id(job) in named or (job.ending and workload_id(job).rpartition(".")[0] in numbers)
        ]
        if not left:
            return "done", ""
        detail = "still there: " + ", ".join(f"job {job.id}" for job in left[:4])
        waiting = all(job.ending or self._in_grace(operation, job) for job in left)
        return ("busy" if waiting else "not_done"), detail

    def _in_grace(self, operation: Operation, job: SlurmJob) -> bool:
        """Whether the job has been told and still has time: in the first attempt only."""
        graceful = self._manner.lens.classes.of(job) is WorkClass.graceful
        passed_s = (self._clock() - operation.started).total_seconds()
        return graceful and operation.attempt == 1 and passed_s < self._manner.grace_s

    async def _evict(self, operation: Operation, jobs: Iterable[SlurmJob]) -> None:
        for job in jobs:
            if job.ending:
                continue
            self._fence()
            if self._manner.lens.classes.of(job) is WorkClass.graceful and operation.attempt == 1:
                await self._transport.signal(job.id)
            elif self._manner.requeue and job.requeue:
                await self._transport.requeue(job.id)
            else:
                await self._transport.cancel(job.id)

    # --- reboots that Slurm does

    async def _reboot(self, operation: Operation, node: Node, read: ClusterReading, here: SlurmNode) -> None:
        """Ask for a reboot of a node that is drained for us; of no other."""
        if here.flags & REBOOTING or _rebooted(operation, here)[0] == "done":
            return
        if not is_drained(here, read.on(here)):
            who = other_who_shuts(here)
            raise RefusedError(
                f"{here.name} is {_state(here)}"
                + (f" ({who})" if who else "")
                + f", not idle and drained by us; see squeue -w {here.name}"
            )
        self._fence()
        await self._transport.reboot(here.name, _reason(operation, node))


def _rebooted(operation: Operation, here: SlurmNode) -> tuple[str, str]:
    """Done when slurmd has been told, or has registered from a boot after the operation began.

    Whether the node comes back, and from which boot, its agent shows (`wait_boot`).
    """
    if "REBOOT_ISSUED" in here.flags:
        return "done", f"Slurm has told {here.name} to reboot"
    if here.flags & REBOOTING:
        return "busy", f"Slurm will reboot {here.name}"
    since = here.boot - operation.started.timestamp()
    return ("done" if since > 0 else "not_done"), ""


def _state(here: SlurmNode) -> str:
    return "+".join([here.base.lower(), *sorted(here.flags)])


def _reason(operation: Operation, node: Node) -> str:
    """Reason that administrators read in `sinfo -R`: ours, why, and which operation."""
    why = node.plan.name if node.plan is not None and node.plan.name else operation.kind
    return _ODD.sub("_", f"{OURS} {why} ({operation.id})")[:MAX_REASON]
