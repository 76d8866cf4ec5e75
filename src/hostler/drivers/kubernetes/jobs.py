"""Jobs as far as they are needed: whose pods they are, how much is left, and what an idle check's came to. Pure.

A check's verdict is the last message of its container (`drivers.check_message`).
"""

from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from hostler.core.state.model import Verdict
from hostler.drivers.check_message import MAX_DETAIL, MAX_MESSAGE, CheckOutcome, read_verdict
from hostler.drivers.kubernetes.wire import OURS, Owner, Shown, made_by

OPERATION = f"{OURS}operation"
NODE = f"{OURS}node"
OWNER = f"{OURS}owner"
"""Annotations of a check's Job and pod: which operation it is, of which node's id, and whose Hostler's."""


class KubeJob(Struct, frozen=True):
    """A Job. `root` is what made it ("JobSet/train"), else itself; `left` how many of `wanted` completions are missing.

    `ended` is Complete or Failed, "" while it goes on; `why` says more of a failure.
    """

    key: str
    uid: str
    namespace: str
    name: str
    root: str
    wanted: int
    left: int
    suspended: bool
    ended: str
    why: str
    annotations: dict[str, str]


class CheckPod(Struct, frozen=True):
    """A pod of an idle check. `code` is how its container ended, None while it has not; `said` its last message.

    `taken` is why it was ended for somebody else's sake, "" where it was not; `unplaced` why it has no node.
    """

    key: str
    uid: str
    namespace: str
    name: str
    job: str
    node: str
    phase: str
    code: int | None
    said: str
    taken: str
    unplaced: str
    waits: str
    annotations: dict[str, str]


class _JobMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None
    owners: tuple[Owner, ...] = field(default=(), name="ownerReferences")
    deleted: str = field(default="", name="deletionTimestamp")


class _JobSpec(Struct, frozen=True):
    completions: int | None = None
    parallelism: int | None = None
    suspend: bool = False


class _JobStatus(Struct, frozen=True):
    conditions: tuple[Shown, ...] | None = ()
    succeeded: int = 0


class _KubeJob(Struct, frozen=True):
    metadata: _JobMeta
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()


class _Terminated(Struct, frozen=True):
    code: int = field(default=-1, name="exitCode")
    message: str = ""
    reason: str = ""


class _ContainerWaiting(Struct, frozen=True):
    reason: str = ""


class _State(Struct, frozen=True):
    terminated: _Terminated | None = None
    waiting: _ContainerWaiting | None = None


class _ContainerStatus(Struct, frozen=True):
    state: _State = _State()


class _JobPodSpec(Struct, frozen=True):
    node: str = field(default="", name="nodeName")


class _JobPodStatus(Struct, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Shown, ...] | None = ()
    containers: tuple[_ContainerStatus, ...] | None = field(default=(), name="containerStatuses")


class _JobPod(Struct, frozen=True):
    metadata: _JobMeta
    spec: _JobPodSpec = _JobPodSpec()
    status: _JobPodStatus = _JobPodStatus()


class _Allocatable(Struct, frozen=True):
    allocatable: dict[str, str | int] = {}


class _Advertised(Struct, frozen=True):
    status: _Allocatable = _Allocatable()


_JOB = msgspec.json.Decoder(_KubeJob)
_POD = msgspec.json.Decoder(_JobPod)
_ADVERTISED = msgspec.json.Decoder(_Advertised)


def read_job(body: bytes | msgspec.Raw) -> KubeJob:
    """A Job from its JSON. Raises msgspec.DecodeError."""
    seen = _JOB.decode(body)
    meta, spec, status = seen.metadata, seen.spec, seen.status
    ended = next((c for c in status.conditions or () if c.type in ("Complete", "Failed") and c.status == "True"), None)
    wanted = spec.completions if spec.completions is not None else spec.parallelism or 1
    return KubeJob(
        key=f"{meta.namespace}/{meta.name}",
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        root=made_by(meta.owners) or f"Job/{meta.name}",
        wanted=wanted,
        left=max(0, wanted - status.succeeded),
        suspended=spec.suspend,
        ended=ended.type if ended else "",
        why=f"{ended.reason}: {ended.message}"[:MAX_DETAIL] if ended else "",
        annotations=_ours(meta.annotations),
    )


def progress(job: KubeJob) -> str:
    """How far the job is, for whoever waits for it."""
    if job.ended:
        return f"{job.root} has ended ({job.ended}), and this pod of it has not"
    if job.suspended:
        return f"{job.root} is suspended, and this pod of it ends"
    return f"{job.root}, {job.left} of {job.wanted} completions left"


def read_check_pod(body: bytes | msgspec.Raw) -> CheckPod:
    """A pod of the checks' namespace from its JSON. Raises msgspec.DecodeError."""
    seen = _POD.decode(body)
    meta, status, maker = seen.metadata, seen.status, made_by(seen.metadata.owners)
    conditions = {c.type: c for c in status.conditions or () if c.type in ("DisruptionTarget", "PodScheduled")}
    taken, placed = conditions.get("DisruptionTarget"), conditions.get("PodScheduled")
    first = status.containers[0].state if status.containers else _State()
    ended = first.terminated
    by_us = taken is not None and taken.status == "True"
    return CheckPod(
        key=f"{meta.namespace}/{meta.name}",
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        job=maker.removeprefix("Job/") if maker.startswith("Job/") else "",
        node=seen.spec.node,
        phase=status.phase,
        code=ended.code if ended else None,
        said=ended.message[:MAX_MESSAGE] if ended else "",
        taken=f"{taken.reason}: {taken.message}"[:MAX_DETAIL] if taken is not None and by_us else "",
        unplaced=placed.message[:MAX_DETAIL] if placed is not None and placed.status == "False" else "",
        waits=first.waiting.reason[:MAX_DETAIL] if first.waiting else "",
        annotations=_ours(meta.annotations),
    )


def read_gpus(body: bytes, kinds: tuple[str, ...]) -> dict[str, str]:
    """All GPU resources that a Node offers, by name. Raises msgspec.DecodeError."""
    offered = _ADVERTISED.decode(body).status.allocatable
    return {name: str(n) for name, n in offered.items() if name.startswith(kinds) and str(n) not in ("", "0")}


def found(job: KubeJob, pods: Iterable[CheckPod]) -> CheckOutcome:
    """Judge a check by its Job and pods.

    Whoever was taken away, in part or whole, says nothing: not even where another pod of the Job ended well.
    """
    pods = sorted(pods, key=lambda pod: pod.key)
    if taken := next((pod for pod in pods if pod.taken), None):
        return CheckOutcome(Verdict.inconclusive, f"pre-empted: {taken.taken}")
    if len(pods) > 1:
        return CheckOutcome(Verdict.inconclusive, "pre-empted: its pod was ended, and a second one waits")
    ended = [pod for pod in pods if pod.code is not None and pod.phase in ("Succeeded", "Failed")]
    if ended:
        return read_verdict(ended[0].code or 0, ended[0].said)
    if job.ended:
        return CheckOutcome(Verdict.inconclusive, f"its Job is over ({job.why}) and none of its pods has said anything")
    return CheckOutcome(
        None, next((pod.unplaced or pod.waits or pod.phase for pod in pods), "its pod has not been made yet")
    )


def _ours(said: dict[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (said or {}).items() if key.startswith(OURS)}
