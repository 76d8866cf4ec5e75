"""Nodes and jobs as Slurm has them → what Hostler sees: whose work runs, who keeps new work away, what is idle.

Slurm keeps one reason a node. A drain is ours where its reason begins with OURS; any other's is named, never touched.
Whether a person has lifted ours shows by the mark that was set on the node's comment together with it.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.drivers.slurm.wire import SlurmJob, SlurmNode
from hostler.ports import WorkloadView

OURS = "hostler:"
LEFT = "hostler: left the cluster"
CHECK = "hostler-idle-"
"""The beginning of the names of idle checks' jobs."""
MARK = "hostler:cordon"
"""The comment of a node that we keep new work away from. Where the comment is somebody's own, there is no mark."""

PERSON = "somebody, by scontrol"
UNSEEN = "unseen"
"""The id of work that a node's state tells of and no list of jobs."""

REBOOTING = frozenset({"REBOOT_ISSUED", "REBOOT_REQUESTED", "REBOOT"})
_ABSENT = frozenset({"NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"})
_SHUT = frozenset({"DRAIN", "FAIL"})
_SLURMS_OWN = ("Not responding", "Node unexpectedly rebooted", "reboot timed out", "ResumeTimeout reached")
"""Reasons that slurmctld writes where a node has fallen down by itself: nobody's request."""


class Classes(Struct, frozen=True, forbid_unknown_fields=True):
    """How jobs may be disturbed: by their QoS, else by their partition, else not at all.

    Before both counts what the owner has written into the job's comment: `hostler:interruptible`, `hostler:graceful`
    or `hostler:uninterruptible`.
    """

    qos: dict[str, WorkClass] = {}
    partition: dict[str, WorkClass] = {}

    def of(self, job: SlurmJob) -> WorkClass:
        """The job's class."""
        for word in job.comment.replace(",", " ").split():
            if word in _OWNERS:
                return _OWNERS[word]
        return self.qos.get(job.qos) or self.partition.get(job.partition) or WorkClass.uninterruptible


_OWNERS = {
    f"hostler:{one.value}": one for one in (WorkClass.interruptible, WorkClass.graceful, WorkClass.uninterruptible)
}


class ClusterReading(Struct, frozen=True):
    """One whole reading of a cluster: its nodes, and the jobs on each. `places` are a node's places in its jobs."""

    nodes: Mapping[str, SlurmNode]
    jobs: Mapping[str, tuple[tuple[SlurmJob, int], ...]]

    def says_as(self, before: "ClusterReading", node: SlurmNode) -> bool:
        """Whether nothing has changed about the node and its jobs."""
        same = before.nodes.get(node.name) is node
        return same and self.jobs.get(node.name) == before.jobs.get(node.name)

    def on(self, node: SlurmNode) -> Iterator[tuple[SlurmJob, int]]:
        """The jobs that hold the node, each with the node's place in it.

        A job that is ending has let go of a node that answers and completes nothing any more.
        """
        gone = answers(node) and "COMPLETING" not in node.flags
        return ((job, place) for job, place in self.jobs.get(node.name, ()) if not (job.ending and gone))


def seen(nodes: Mapping[str, SlurmNode], jobs: Iterable[SlurmJob]) -> ClusterReading:
    """The reading of a cluster. Its jobs were listed before its nodes: one that begins in between shows as unseen."""
    placed: dict[str, list[tuple[SlurmJob, int]]] = {}
    for job in jobs:
        for place, name in enumerate(job.nodes):
            placed.setdefault(name, []).append((job, place))
    return ClusterReading(nodes, {name: tuple(found) for name, found in placed.items()})


def answers(node: SlurmNode) -> bool:
    """Whether slurmd is there by Slurm's own word."""
    return node.base in ("IDLE", "MIXED", "ALLOCATED") and not node.flags & (_ABSENT | REBOOTING | {"INVALID_REG"})


def is_ready(node: SlurmNode) -> bool | None:
    """Slurm's opinion of the node; None where it has none: it has just started, reboots the node, or has resumed it.

    A node that is resumed counts as silent, with no boot, until its slurmd has registered anew.
    """
    resumed = "NOT_RESPONDING" in node.flags and node.base != "DOWN" and not node.boot
    if node.base in ("UNKNOWN", "FUTURE") or node.flags & REBOOTING or resumed:
        return None
    return answers(node)


def is_drained(node: SlurmNode, works: Iterable[object]) -> bool:
    """Whether it may be acted upon: idle and draining, for us, with no job. Nothing else is, DOWN least of all."""
    return (
        node.base == "IDLE"
        and "DRAIN" in node.flags
        and is_ours(node)
        and answers(node)
        and "COMPLETING" not in node.flags
        and not any(True for _ in works)
    )


def is_shut(node: SlurmNode) -> bool:
    """Whether Slurm places no new work there, because somebody said so or because it has given the node up."""
    return bool(node.flags & _SHUT) or node.base in ("DOWN", "ERROR", "FUTURE")


def is_ours(node: SlurmNode) -> bool:
    """Whether what keeps new work away is ours: our reason on a drain, or on the DOWN in which our reboot ended."""
    return is_shut(node) and node.reason.startswith(OURS)


def has_left(node: SlurmNode) -> bool:
    """Whether it has left the cluster: a Slurm node stays configured, drained under this reason."""
    return is_ours(node) and node.reason.startswith(LEFT)


def is_fallen(node: SlurmNode) -> bool:
    """Whether it is down by itself: nobody wished it so, and it may come back by itself."""
    by_slurm = not node.reason or node.reason.startswith(_SLURMS_OWN)
    return node.base in ("DOWN", "ERROR") and not node.flags & _SHUT and by_slurm


def other_who_shuts(node: SlurmNode) -> str:
    """Name another program that keeps new work away, and why; "" without one."""
    if is_shut(node) and not is_ours(node) and not is_fallen(node):
        how = "drained" if "DRAIN" in node.flags else "failing" if "FAIL" in node.flags else node.base.lower()
        return f"{node.user or 'Slurm'}: {node.reason or how}"
    if "MAINTENANCE" in node.flags:
        return "a maintenance reservation"
    return ""


def workload_id(job: SlurmJob) -> str:
    """The run of a job: consent to one run is none to the next."""
    return f"job-{job.id}.{job.restarts}"


class Lens(Struct, frozen=True):
    """How a reading becomes views. `gpus_named`: index n of Slurm's is the slot gpun that NVML and the agent name.

    `checks` is the partition of idle checks: a job of ours there is nobody's work.
    """

    classes: Classes = Classes()
    gpus_named: bool = True
    checks: str = ""

    def view(self, read: ClusterReading, node: SlurmNode) -> WorkloadView | None:
        """One node's view; None for one that has left the cluster and has no work there."""
        works = tuple(self.workloads(read, node))
        if has_left(node) and not works:
            return None
        other = other_who_shuts(node)
        lifted = node.comment.startswith(MARK) and not is_shut(node)
        return WorkloadView(
            node.name,
            works,
            other,
            None if other and is_shut(node) else is_ours(node),
            overridden=PERSON if lifted else "",
        )

    def workloads(self, read: ClusterReading, node: SlurmNode) -> Iterator[Workload]:
        """Workloads on the node.

        Work that its state tells of, or may hide, is there though no job shows it.

        A node that Slurm has given up (DOWN) has no jobs: Slurm has ended them.
        """
        found = False
        for job, place in read.on(node):
            found = True
            yield self.workload(job, place, node)
        if found or node.base in ("DOWN", "ERROR", "FUTURE"):
            return
        if node.base in ("MIXED", "ALLOCATED"):
            yield _unseen("a job that Slurm does not show to us")
        elif node.base == "UNKNOWN":
            yield _unseen("what Slurm has not told of since it started")
        elif "NOT_RESPONDING" in node.flags:
            yield _unseen("what may run while the node does not answer Slurm")
        elif "COMPLETING" in node.flags:
            yield _unseen("the end of a job")

    def workload(self, job: SlurmJob, place: int, node: SlurmNode) -> Workload:
        """One job's work on one of its nodes."""
        gpus = job.gpus[place] if place < len(job.gpus) else None
        if self.checks and job.partition == self.checks and job.name.startswith(CHECK):
            return Workload(
                workload_id(job),
                "",
                WorkClass.infrastructure,
                None,
                f"idle check {job.id}",
                began=job.began,
                check=job.name,
            )
        known = self.gpus_named and gpus is not None and (not node.gpus or max(gpus) < node.gpus)
        return Workload(
            workload_id(job),
            job.account or job.user,
            self.classes.of(job),
            tuple(f"gpu{index}" for index in gpus) if known and gpus is not None else None,
            f"job {job.id}",
            held_by="Slurm is ending it" if job.ending else "",
            began=job.began,
        )


def _unseen(what: str) -> Workload:
    """Workload of unknown name: it cannot be ended, only waited for."""
    return Workload(UNSEEN, "", WorkClass.uninterruptible, None, what, held_by="Slurm shows no job that could be ended")
