"""Answers of the Kubernetes API, as far as Hostler needs them: objects, pages and watch events from JSON. Pure.

Only needed fields are decoded and fewer are kept: a Node weighs 12 KB on the wire and under 1 KB here.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from hostler.core.state.input_problems import UNREADABLE

OURS = "hostler.dev/"
MIRROR = "kubernetes.io/config.mirror"
JOB_LABELS = (
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
)
"""Labels that name the job a pod belongs to, the plainest first."""

GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-", "amd.com/gpu", "gpu.intel.com/")
"""How the names of resources begin that are GPUs or slices of them."""

PAUSED = "paused-for-"
"""How the value of a label begins by which somebody keeps what it deploys from its node."""

REQUEST = f"{OURS}request"
REASON_GIVEN = f"{OURS}request-reason"
ANSWER = f"{OURS}request-answer"

MAX_SAID = 300
MAX_DIGITS = 9
"""Of a number of GPUs that a container asks for; what is longer or no plain number counts as none."""
Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
"""As the API declares it. What is beyond is not the API's."""


API_SERVER = "check that the kubeconfig's address leads to an API server, and not to a proxy or a login page"
"""Advice where an answer is none of Kubernetes."""


class Malformed(Exception):  # noqa: N818 - it is what came, not what we did
    """Data from the API that breaks its promises; the message says what and where."""


class CachedObject(Protocol):
    """An object as it is kept: `key` is "namespace/name" or the name, unique within its kind."""

    @property
    def key(self) -> str:
        """Name within its kind: "namespace/name", or the name alone."""

    @property
    def uid(self) -> str:
        """The object's UID."""


K = TypeVar("K", bound=CachedObject)


class Taint(Struct, frozen=True):
    """A node's taint, whole: the list is written back as it was read."""

    key: str
    effect: str = ""
    value: str = ""
    timeAdded: str | None = None  # noqa: N815 - the API's name


class Shown(Struct, frozen=True):
    """A condition as a node shows it; `status` is True, False or Unknown, since `lastTransitionTime` (RFC 3339)."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    lastTransitionTime: str | None = None  # noqa: N815 - the API's name


class AnnotationRequest(Struct, frozen=True):
    """Annotation by which somebody asks Hostler for something: `by` is the program that wrote it, `at` when."""

    what: str
    reason: str = ""
    by: str = ""
    at: str = ""


OUR_CONDITIONS = (
    "HostlerHealthy",
    "HostlerActive",
    "MaintenancePlanned",
    "DrainInProgress",
    "Drained",
    "MaintenanceInProgress",
)


class KubeNode(Struct, frozen=True):
    """A Node as far as it is needed. `ready` None: no kubelet has said yet.

    `labels` and `annotations` are our own, `shown` our conditions; `node_status` the keys of everybody's labels (with
    "=value"), annotations and taints by which other actors are recognised. `shut_by` is the field manager that made it
    unschedulable; `paused` are labels, with their values, by which somebody keeps away what they deploy.
    """

    key: str
    uid: str
    version: str
    unschedulable: bool
    taints: tuple[Taint, ...]
    ready: bool | None
    boot_id: str
    labels: dict[str, str]
    annotations: dict[str, str]
    node_keys: tuple[str, ...]
    shut_by: str
    leaving: bool
    has_annotations: bool
    shown: tuple[Shown, ...]
    asked: AnnotationRequest | None = None
    paused: tuple[tuple[str, str], ...] = ()


class KubePod(Struct, frozen=True):
    """A Pod that is bound to a node and has not ended. `owner` is its controller as "Kind/name".

    `gpus` is how many it requests; `ends` is until when it has its grace, "" where it is not ending. `pending`: its
    containers have not been started. `began` is when its kubelet took it on, None before that.
    """

    key: str
    uid: str
    namespace: str
    name: str
    node: str
    owner: str
    job: str
    mirror: bool
    pending: bool
    ready: bool
    gpus: int
    image: str
    ends: str
    labels: dict[str, str]
    annotations: dict[str, str]
    began: datetime | None = None


class Expression(Struct, frozen=True):
    """One requirement of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class KubeBudget(Struct, frozen=True):
    """A PodDisruptionBudget: whom it protects, and what it allows now. `always`: pods that are not ready may go."""

    key: str
    uid: str
    namespace: str
    name: str
    match: dict[str, str]
    expressions: tuple[Expression, ...]
    selects: bool
    allowed: int
    healthy: int
    desired: int
    always: bool


class ListPage(Struct, Generic[K], frozen=True):
    """One page of a list: objects, the version at which it was read, and how to ask for the next ("" at the end)."""

    items: tuple[K, ...]
    version: str
    token: str


class Event(Struct, Generic[K], frozen=True):
    """One event of a watch.

    `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR. `item` is None for the last two; `code` and `said` are an
    error's.
    """

    type: str
    item: K | None = None
    version: str = ""
    code: Int32 = 0
    said: str = ""


class RefusalCause(Struct, frozen=True):
    """Why a request was refused, in detail."""

    reason: str = ""
    message: str = ""


class Details(Struct, frozen=True):
    """The particulars of a Status."""

    causes: tuple[RefusalCause, ...] = ()


class ApiStatus(Struct, frozen=True):
    """How the API answers what it does not do."""

    message: str = ""
    reason: str = ""
    code: Int32 = 0
    details: Details | None = None


class Owner(Struct, frozen=True):
    """Entry of an object's `ownerReferences`."""

    kind: str = ""
    name: str = ""
    controller: bool = False


def made_by(owners: Iterable[Owner]) -> str:
    """Name the controller that keeps the object going, as "KIND/NAME"; "" without one."""
    return next((f"{owner.kind}/{owner.name}" for owner in owners if owner.controller), "")


def going_on(node: str) -> str:
    """The field selector of the pods on a node that have not come to their end."""
    return f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"


class _Managed(Struct, frozen=True):
    manager: str = ""
    time: str = ""
    fields: msgspec.Raw = field(default=msgspec.Raw(), name="fieldsV1")


class _ObjectMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = field(default="", name="resourceVersion")
    token: str = field(default="", name="continue")
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owners: tuple[Owner, ...] = field(default=(), name="ownerReferences")
    managed: tuple[_Managed, ...] = field(default=(), name="managedFields")
    deleted: str = field(default="", name="deletionTimestamp")


class _NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class _NodeInfo(Struct, frozen=True):
    boot_id: str = field(default="", name="bootID")


class _NodeStatus(Struct, frozen=True):
    conditions: tuple[Shown, ...] = ()
    info: _NodeInfo | None = field(default=None, name="nodeInfo")


class _KubeNode(Struct, frozen=True):
    metadata: _ObjectMeta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class _Resources(Struct, frozen=True):
    limits: dict[str, str | int] = {}
    requests: dict[str, str | int] = {}


class _Container(Struct, frozen=True):
    image: str = ""
    resources: _Resources = _Resources()


class _KubePodSpec(Struct, frozen=True):
    node: str = field(default="", name="nodeName")
    containers: tuple[_Container, ...] = ()


class _KubePodStatus(Struct, frozen=True):
    phase: str = ""
    began: Annotated[datetime, Meta(tz=True)] | None = field(default=None, name="startTime")
    conditions: tuple[Shown, ...] = ()


class _KubePod(Struct, frozen=True):
    metadata: _ObjectMeta
    spec: _KubePodSpec = _KubePodSpec()
    status: _KubePodStatus = _KubePodStatus()


class _Selector(Struct, frozen=True):
    labels: dict[str, str] | None = field(default=None, name="matchLabels")
    expressions: tuple[Expression, ...] | None = field(default=None, name="matchExpressions")


class _BudgetSpec(Struct, frozen=True):
    selector: _Selector | None = None
    unhealthy: str = field(default="", name="unhealthyPodEvictionPolicy")


class _BudgetStatus(Struct, frozen=True):
    allowed: Int32 = field(default=0, name="disruptionsAllowed")
    healthy: Int32 = field(default=0, name="currentHealthy")
    desired: Int32 = field(default=0, name="desiredHealthy")


class _Budget(Struct, frozen=True):
    metadata: _ObjectMeta
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()


class _List(Struct, frozen=True):
    metadata: _ObjectMeta
    items: tuple[msgspec.Raw, ...] | None = ()


class _WatchEvent(Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Marked(Struct, frozen=True):
    metadata: _ObjectMeta


_LIST = msgspec.json.Decoder(_List)
_WATCHED = msgspec.json.Decoder(_WatchEvent)
_STATUS = msgspec.json.Decoder(ApiStatus)
_MARKED = msgspec.json.Decoder(_Marked)
_NODE = msgspec.json.Decoder(_KubeNode)
_POD = msgspec.json.Decoder(_KubePod)
_BUDGET = msgspec.json.Decoder(_Budget)


def read_node(body: bytes | msgspec.Raw) -> KubeNode:
    """A Node from its JSON. Raises msgspec.DecodeError."""
    seen = _NODE.decode(body)
    meta = seen.metadata
    conditions = {c.type: c.status for c in seen.status.conditions}
    return KubeNode(
        key=meta.name,
        uid=meta.uid,
        version=meta.version,
        unschedulable=seen.spec.unschedulable,
        taints=seen.spec.taints,
        ready=conditions["Ready"] == "True" if "Ready" in conditions else None,
        boot_id=seen.status.info.boot_id if seen.status.info else "",
        labels=_ours(meta.labels),
        annotations=_ours(meta.annotations),
        node_keys=_node_keys(meta, seen.spec.taints),
        shut_by=_shut_by(meta.managed),
        leaving=bool(meta.deleted),
        has_annotations=bool(meta.annotations),
        shown=tuple(c for c in seen.status.conditions if c.type in OUR_CONDITIONS),
        asked=_asked(meta),
        paused=tuple(one for one in (meta.labels or {}).items() if one[1].startswith(PAUSED)),
    )


def read_pod(body: bytes | msgspec.Raw) -> KubePod:
    """A Pod from its JSON. Raises msgspec.DecodeError."""
    seen = _POD.decode(body)
    meta, labels = seen.metadata, seen.metadata.labels or {}
    owner = made_by(meta.owners)
    named = next((labels[label] for label in JOB_LABELS if label in labels), "")
    return KubePod(
        key=f"{meta.namespace}/{meta.name}",
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        node=seen.spec.node,
        owner=owner,
        job=named or owner.removeprefix("Job/") if named or owner.startswith("Job/") else "",
        mirror=MIRROR in (meta.annotations or {}),
        pending=seen.status.phase == "Pending",
        ready=any(c.type == "Ready" and c.status == "True" for c in seen.status.conditions),
        gpus=sum(_gpus(container) for container in seen.spec.containers),
        image=seen.spec.containers[0].image if seen.spec.containers else "",
        ends=meta.deleted,
        labels=labels,
        annotations=_ours(meta.annotations),
        began=seen.status.began,
    )


def read_budget(body: bytes | msgspec.Raw) -> KubeBudget:
    """A PodDisruptionBudget from its JSON. Raises msgspec.DecodeError."""
    seen = _BUDGET.decode(body)
    selector = seen.spec.selector
    return KubeBudget(
        key=f"{seen.metadata.namespace}/{seen.metadata.name}",
        uid=seen.metadata.uid,
        namespace=seen.metadata.namespace,
        name=seen.metadata.name,
        match=(selector.labels or {}) if selector else {},
        expressions=(selector.expressions or ()) if selector else (),
        selects=selector is not None,
        allowed=seen.status.allowed,
        healthy=seen.status.healthy,
        desired=seen.status.desired,
        always=seen.spec.unhealthy == "AlwaysAllow",
    )


def read_page(body: bytes, read: Callable[[msgspec.Raw], K]) -> ListPage[K]:
    """A page of a list. Raises Malformed."""
    try:
        page = _LIST.decode(body)
        items = tuple(read(item) for item in page.items or ())
    except UNREADABLE as wrong:
        raise Malformed(f"a list of {len(body)} bytes: {wrong}") from wrong
    return ListPage(items, page.metadata.version, page.metadata.token)


def read_event(line: bytes, read: Callable[[msgspec.Raw], K]) -> Event[K]:
    """One line of a watch. Raises Malformed: the line was cut off, or is not the API's."""
    try:
        watched = _WATCHED.decode(line)
        if watched.type == "ERROR":
            status = _STATUS.decode(watched.object)
            return Event("ERROR", code=status.code, said=status.message[:MAX_SAID])
        version = _MARKED.decode(watched.object).metadata.version
        item = None if watched.type == "BOOKMARK" else read(watched.object)
    except UNREADABLE as wrong:
        raise Malformed(f"a watch event of {len(line)} bytes: {wrong}") from wrong
    return Event(watched.type, item, version)


def read_status(body: bytes) -> ApiStatus:
    """Read the API's explanation of a refused request; an empty Status where another program answers."""
    try:
        return _STATUS.decode(body)
    except UNREADABLE:
        return ApiStatus(body[:MAX_SAID].decode(errors="replace"))


def _ours(said: dict[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (said or {}).items() if key.startswith(OURS)}


def _node_keys(meta: _ObjectMeta, taints: tuple[Taint, ...]) -> tuple[str, ...]:
    """Marks that other actors may have written: labels as "key=value", annotations and taints by key."""
    labels = (f"{key}={value}" for key, value in (meta.labels or {}).items() if "state" in key or "upgrade" in key)
    keys = (*(meta.annotations or {}), *(taint.key for taint in taints))
    platform = (OURS, "node.kubernetes.io/", "kubectl.kubernetes.io/", "volumes.kubernetes.io/")
    return (*labels, *(key for key in keys if not key.startswith(platform)))


def _shut_by(managed: tuple[_Managed, ...]) -> str:
    """Name who set `unschedulable`; clearing it leaves no trace."""
    return next((one.manager for one in managed if b'"f:unschedulable"' in bytes(one.fields)), "")


def _asked(meta: _ObjectMeta) -> AnnotationRequest | None:
    said = meta.annotations or {}
    if not said.get(REQUEST):
        return None
    wrote = next((one for one in meta.managed if f'"f:{REQUEST}"'.encode() in bytes(one.fields)), _Managed())
    return AnnotationRequest(said[REQUEST].strip(), said.get(REASON_GIVEN, ""), wrote.manager, wrote.time)


def _gpus(container: _Container) -> int:
    asked = container.resources.limits or container.resources.requests
    return sum(_count(str(n)) for name, n in asked.items() if name.startswith(GPU_RESOURCES))


def _count(quantity: str) -> int:
    return int(quantity) if quantity.isascii() and quantity.isdigit() and len(quantity) <= MAX_DIGITS else 0
