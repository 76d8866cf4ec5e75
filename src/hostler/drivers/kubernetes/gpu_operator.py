"""The GPU Operator's operands on a node, which hold its GPUs: paused for a reset by its own means, and resumed.

Each operand's DaemonSet runs where its label on the node is "true"; the operator leaves any other value as it stands.
The value that is written here says whose it is, an annotation for which operation, and every change is a JSON patch
that tests what it was decided on: nobody else's value is overwritten, also not one that is written at that moment.
"""

from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from hostler.core.state.input_problems import UNREADABLE
from hostler.drivers.kubernetes.cordon import Patch
from hostler.drivers.kubernetes.external_controllers import ACTORS, Actor, claiming
from hostler.drivers.kubernetes.kube_api import CONFLICT, JSON_PATCH, NOT_FOUND, UNPROCESSABLE, Api, checked
from hostler.drivers.kubernetes.wire import API_SERVER, OURS, PAUSED, KubeNode, Owner, going_on, made_by, read_node
from hostler.drivers.unreadable_answers import unreadable

PAUSED_FOR = f"{OURS}operands-paused-for"
"""The operation for which they are let go."""

DEPLOY = "nvidia.com/gpu.deploy."
ALWAYS = "*"


class Operand(Struct, frozen=True, forbid_unknown_fields=True):
    """Operand that runs on a node while `label` is "true" there.

    `serves`: customers' work may live on it, always ("*") or where that label of the node is "true"; then it is let go
    only where all GPUs are reset, for which no such work is left.
    """

    label: str
    serves: str = ""


OPERANDS: tuple[Operand, ...] = (
    Operand(f"{DEPLOY}operator-validator"),
    Operand(f"{DEPLOY}device-plugin", "nvidia.com/mps.capable"),
    Operand(f"{DEPLOY}gpu-feature-discovery"),
    Operand(f"{DEPLOY}dcgm-exporter"),
    Operand(f"{DEPLOY}dcgm-exporter-dra"),
    Operand(f"{DEPLOY}dcgm"),
    Operand(f"{DEPLOY}dcgm-dra"),
    Operand(f"{DEPLOY}mig-manager"),
    Operand(f"{DEPLOY}node-status-exporter"),
    Operand(f"{DEPLOY}nvsm"),
    Operand(f"{DEPLOY}client", ALWAYS),
)
"""As NVIDIA's k8s-driver-manager lets them go for a driver upgrade, without those that hold no GPU (container-toolkit)
and without the driver. The MPS daemon hangs on device-plugin's label, whatever a site will on client's. A DRA driver
stays: it must outlive the pods whose claims it takes back."""


class OperandProgress(Struct, frozen=True):
    """How far they are gone: who else has the node (then nothing was changed), else which pods are left.

    `changed`: something was written just now, so that what is seen may be older than that.
    """

    taken: str = ""
    left: tuple[str, ...] = ()
    changed: bool = False

    @property
    def clear(self) -> bool:
        """Whether nothing on the node uses the GPUs any more."""
        return not self.taken and not self.left and not self.changed


class _OperandMeta(Struct):
    labels: dict[str, str] = {}
    annotations: dict[str, str] | None = None


class _OperandNode(Struct):
    metadata: _OperandMeta


class _PodMeta(Struct):
    name: str = ""
    namespace: str = ""
    owners: tuple[Owner, ...] = field(default=(), name="ownerReferences")


class _OperandPodSpec(Struct):
    selector: dict[str, str] = field(default={}, name="nodeSelector")


class _OperandPod(Struct):
    metadata: _PodMeta
    spec: _OperandPodSpec = field(default_factory=_OperandPodSpec)


class _Pods(Struct):
    items: tuple[_OperandPod, ...] | None = ()


class LabelledNode(Struct, frozen=True):
    """A Node with all its labels, as it is decided on."""

    node: KubeNode
    labels: dict[str, str]


class Operands:
    """One cluster's. `owner` is whose pauses are ours; `operands` and `actors` as the cluster's settings say."""

    def __init__(self, api: Api, owner: str, operands: tuple[Operand, ...], actors: tuple[Actor, ...] = ACTORS) -> None:
        self._api = api
        self._operands = operands
        self._actors = actors
        self.mark = f"{PAUSED}{owner}-reset"

    @property
    def any(self) -> bool:
        """Whether any are to be let go at all."""
        return bool(self._operands)

    async def let_go(self, name: str, operation: str, *, whole: bool) -> OperandProgress:
        """See to it that they are let go for the operation, and look once. Raises PortError.

        `whole`: all GPUs of the node are reset. A node that is not listed runs none.
        """
        answer = await self._api.get(_path(name))
        if answer.status == NOT_FOUND:
            return OperandProgress()
        seen = read_seen(checked(answer, f"node {name}"))
        if other := taken(seen, self._operands, self._actors, self.mark):
            return OperandProgress(other)
        patch = pausing(seen, self._operands, self.mark, operation, whole=whole)
        if patch and not await self._write(name, patch):
            return OperandProgress(changed=True)
        labels = {one.label for one in self._operands if not stays(one, seen.labels, whole=whole)}
        left = await self._pods(name, labels, resourceVersion="0")
        if not left and not patch:
            left = await self._pods(name, labels)
        return OperandProgress(left=left, changed=bool(patch))

    async def let_back(self, node: KubeNode) -> bool:
        """Undo what is ours, if it still is as this copy of the node has it; whether it was. Raises PortError."""
        return await self._write(node.key, resuming(node, self.mark))

    def is_left(self, node: KubeNode) -> bool:
        """Whether anything of ours stands on the node."""
        return (bool(node.paused) or PAUSED_FOR in node.annotations) and bool(resuming(node, self.mark))

    async def _write(self, name: str, patch: Patch) -> bool:
        """Whether nothing had changed in between, and so it was written."""
        answer = await self._api.change("PATCH", _path(name), patch, JSON_PATCH)
        if answer.status in (NOT_FOUND, CONFLICT, UNPROCESSABLE):
            return False
        checked(answer, f"node {name}")
        return True

    async def _pods(self, name: str, labels: set[str], **query: str) -> tuple[str, ...]:
        """The DaemonSets' pods on the node that one of these labels brought there, by name.

        Read from the store itself, which may cost the API server a look at all pods; version "0" is from its memory.
        """
        body = checked(await self._api.get("/api/v1/pods", fieldSelector=going_on(name), **query), f"pods of {name}")
        try:
            pods = msgspec.json.decode(body, type=_Pods).items or ()
        except UNREADABLE as wrong:
            raise unreadable("the API server's list of pods", wrong, API_SERVER) from wrong
        found = (pod for pod in pods if made_by(pod.metadata.owners).startswith("DaemonSet/"))
        ours = (pod for pod in found if not labels.isdisjoint(pod.spec.selector))
        return tuple(sorted(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in ours))


def read_seen(body: bytes) -> LabelledNode:
    """A Node from its JSON. Raises UnreachableError."""
    try:
        return LabelledNode(read_node(body), msgspec.json.decode(body, type=_OperandNode).metadata.labels)
    except UNREADABLE as wrong:
        raise unreadable("the API server's Node", wrong, API_SERVER) from wrong


def taken(seen: LabelledNode, operands: tuple[Operand, ...], actors: tuple[Actor, ...], mark: str) -> str:
    """Name another program at work on the node's driver or operands, "" for none."""
    about_gpus = tuple(actor for actor in actors if any(one.startswith("nvidia.com/gpu-") for one in actor.node_keys))
    if (actor := claiming(seen.node.node_keys, about_gpus)) is not None:
        return actor.name
    values = sorted({seen.labels.get(one.label, "") for one in operands})
    other = next((value for value in values if value.startswith(PAUSED) and value != mark), "")
    return f"whoever has set {other}" if other else ""


def stays(operand: Operand, labels: dict[str, str], *, whole: bool) -> bool:
    """Whether customers' work may live on it that stays through this reset."""
    return not whole and bool(operand.serves) and (operand.serves == ALWAYS or labels.get(operand.serves) == "true")


def pausing(seen: LabelledNode, operands: tuple[Operand, ...], mark: str, operation: str, *, whole: bool) -> Patch:
    """Make the patch that pauses the running operands for this operation; nothing where they are paused for it."""
    going = [one.label for one in operands if not stays(one, seen.labels, whole=whole)]
    running = [label for label in going if seen.labels.get(label) == "true"]
    paused = any(seen.labels.get(label) == mark for label in going)
    said = seen.node.annotations.get(PAUSED_FOR)
    if not running and (said == operation or not paused):
        return []
    changes = [change for label in running for change in _changed(label, "true", mark)]
    return [*_guarded(seen.node, said), *changes, *_annotated(seen.node, operation)]


def resuming(node: KubeNode, mark: str) -> Patch:
    """Make the patch that resumes what we paused; nothing where we paused nothing."""
    said = node.annotations.get(PAUSED_FOR)
    ours = [label for label, value in node.paused if value == mark]
    mixed = any(value != mark and mark in value for _, value in node.paused)  # another's pause on ours: it ends first
    if not ours and (said is None or mixed):
        return []
    changes = [change for label in ours for change in _changed(label, mark, "true")]
    unsaid = [{"op": "remove", "path": _annotation()}] if said is not None and not mixed else []
    return [*_guarded(node, said), *changes, *unsaid]


def _guarded(node: KubeNode, said: str | None) -> Patch:
    """Guard a patch: it applies to the node as read, and as paused for the operation; for none, to an unchanged one."""
    same = {"op": "test", "path": "/metadata/uid", "value": node.uid}
    if said is not None:
        return [same, {"op": "test", "path": _annotation(), "value": said}]
    return [same, {"op": "test", "path": "/metadata/resourceVersion", "value": node.version}]


def _changed(label: str, before: str, after: str) -> Patch:
    path = f"/metadata/labels/{_escaped(label)}"
    return [{"op": "test", "path": path, "value": before}, {"op": "replace", "path": path, "value": after}]


def _annotated(node: KubeNode, operation: str) -> list[dict[str, Any]]:
    if not node.has_annotations:
        return [{"op": "add", "path": "/metadata/annotations", "value": {PAUSED_FOR: operation}}]
    return [{"op": "add", "path": _annotation(), "value": operation}]


def _annotation() -> str:
    return f"/metadata/annotations/{_escaped(PAUSED_FOR)}"


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"
