"""Customers' jobs as their schedulers tell them: which nodes each has, what ails those, and what waits for its end."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from hostler.client.answers import JobPlace, JobRow, JobWait, UntoldJobs
from hostler.core.report.lanes import LaneSpan
from hostler.core.state.configuration import Sku
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Node

WAITS_FOR_WORK = ("workload", "scheduler")
"""Kinds of blockers whose name is a workload's id: it runs on, or its scheduler does not end it."""


class WorkOnNode(NamedTuple):
    """A job's work on one of its nodes."""

    node: Node
    work: Workload


class RunningJobs:
    """Jobs of the nodes that were taken in, by id, and the clusters that have not told of theirs."""

    def __init__(self, live: LiveState, tenant: str = "") -> None:
        """`tenant`: only this one's jobs, "" for everybody's."""
        self._live = live
        self._tenant = tenant
        self._untold: dict[str, int] = {}
        self.jobs: dict[str, list[WorkOnNode]] = {}

    def take(self, node: Node) -> tuple[str, ...]:
        """Add what runs on the node; ids of its jobs. Of a pool without a cluster nobody tells, and nothing runs."""
        works = self._live.workloads(node)
        if works is None and node.assignment is not None and (cluster := node.assignment.cluster):
            self._untold[cluster] = self._untold.get(cluster, 0) + 1
        theirs = [w for w in works or () if w.work_class is not WorkClass.infrastructure and self._is_theirs(w)]
        names = tuple(job_id(node, work) for work in theirs)
        for name, work in zip(names, theirs, strict=True):
            self.jobs.setdefault(name, []).append(WorkOnNode(node, work))
        return names

    def _is_theirs(self, work: Workload) -> bool:
        return not self._tenant or work.tenant in ("", self._tenant)

    def untold(self, *, with_reasons: bool) -> tuple[UntoldJobs, ...]:
        """The clusters of whose nodes it is not known what runs there; the reasons may name what lies elsewhere."""
        why = self._live.clusters if with_reasons else {}
        return tuple(UntoldJobs(name, count, why.get(name, "")) for name, count in sorted(self._untold.items()))


def job_id(node: Node, work: Workload) -> str:
    """Name of the job in its cluster, without spaces; work that its scheduler does not name is its node's own."""
    cluster = node.assignment.cluster if node.assignment else ""
    name = (work.job or work.id) if work.tenant else f"{work.job or work.id}@{node.id}"
    return "-".join(f"{cluster}/{name}".split())


def job_row(name: str, places: list[WorkOnNode], skus: Mapping[str, Sku]) -> JobRow:
    """The job as a list shows it; `places` in the order of their nodes."""
    node, work = places[0]
    rows = tuple(_place(one, skus) for one in places)
    gpus = [row.gpus for row in rows]
    return JobRow(
        id=name,
        name=work.job or work.id,
        cluster=node.assignment.cluster if node.assignment else "",
        tenant=work.tenant,
        owner=work.owner,
        work_class=_strictest(one.work.work_class for one in places),
        pools=tuple(dict.fromkeys(one.node.pool for one in places)),
        nodes=tuple(dict.fromkeys(row.node for row in rows)),
        gpus=None if None in gpus else sum(count for count in gpus if count is not None),
        began=_first(one.work.began for one in places),
        progress=work.progress,
        held_by=next((one.work.held_by for one in places if one.work.held_by), ""),
        agreed_after_s=work.agreed_after_s,
        ailing=tuple(dict.fromkeys(row.node for row in rows if row.conditions)),
        conditions=tuple(dict.fromkeys(kind for row in rows for kind in row.conditions)),
        waiting=tuple(wait for one in places for wait in _waits(one)),
        places=rows,
    )


def job_spans(node: Node, live: LiveState, tenant: str, now: datetime, seq: int) -> Iterator[LaneSpan]:
    """The jobs that run on the node as spans of its life that last; `seq` is the last record.

    One whose scheduler does not say since when it runs is shown from now on, as `partial`.
    """
    running = RunningJobs(live, tenant)
    running.take(node)
    for name, places in sorted(running.jobs.items()):
        began = _first(one.work.began for one in places)
        classes = ", ".join(dict.fromkeys(one.work.work_class.value for one in places))
        since = min(began or now, now)
        yield LaneSpan("job", name, since, None, seq, text=classes, partial=began is None)


_STRICTNESS = (WorkClass.uninterruptible, WorkClass.graceful, WorkClass.interruptible)


def _strictest(found: Iterable[WorkClass]) -> WorkClass:
    """A job is disturbed as its least disturbable work may be."""
    return min(found, key=_STRICTNESS.index)


def _first(moments: Iterable[datetime | None]) -> datetime | None:
    """The earliest; None where one is not said, as that may be earlier."""
    found = list(moments)
    return None if None in found else min(one for one in found if one is not None)


def _place(one: WorkOnNode, skus: Mapping[str, Sku]) -> JobPlace:
    node, work = one
    sku = skus.get(node.sku)
    return JobPlace(
        node=node.id,
        rack=node.position.rack,
        work=work.id,
        parts=work.parts,
        gpus=len(work.parts) if work.parts is not None else sku.gpus if sku is not None else None,
        severity=max((int(c.severity) for c in node.conditions), default=-1),
        conditions=tuple(dict.fromkeys(c.type for c in node.conditions)),
        cordoned=bool(node.cordons),
    )


def _waits(one: WorkOnNode) -> Iterable[JobWait]:
    """Wait of the node for the end of this work, where it waits for that."""
    waiting = one.node.waiting
    if waiting is not None and any(b.kind in WAITS_FOR_WORK and b.name == one.work.id for b in waiting.blockers):
        yield JobWait(one.node.id, waiting.what, waiting.since)
