"""Cordons by owner: ours is a taint with our name.

What a node needs to be cordoned, or freed, as a JSON patch. Pure.

`spec.unschedulable` belongs to everybody, so it is set only where it was not, and then an annotation says so; it is
cleared only where that annotation stands and nobody else claims the node. `spec.taints` is one atomic list, so every
patch tests the version that it was made from.
"""

from typing import Any

from hostler.drivers.kubernetes.external_controllers import ACTORS, Actor, by_manager, claiming
from hostler.drivers.kubernetes.wire import OURS, KubeNode, Taint

CORDON = f"{OURS}cordon"
"""The key of our taint; its value is the owner, which tells several Hostlers of one cluster apart."""

REASON = f"{OURS}cordon-reason"
SHUT_BY = f"{OURS}unschedulable-by"
"""Says that `unschedulable` was set by this owner."""

EFFECT = "NoSchedule"
SOMEBODY = "somebody with access to Kubernetes (its audit log says who)"

Patch = list[dict[str, Any]]


def is_cordoned(node: KubeNode, owner: str, *, claimed: bool = False) -> bool:
    """Whether Hostler's taint stands: it keeps new work away, also where a tool has cleared `unschedulable`."""
    return any(_is_ours(taint, owner) for taint in node.taints) and not overridden_by(node, owner, claimed=claimed)


def overridden_by(node: KubeNode, owner: str, *, claimed: bool = False) -> str:
    """Name who lifted our cordon by Kubernetes' own means, "" where it holds or was never ours.

    `claimed`: a listed tool has had the node in its hands since it was cordoned. The API keeps no trace of who cleared
    a field: the cluster's audit log has the name.
    """
    if node.annotations.get(SHUT_BY) != owner:
        return ""
    tainted = any(_is_ours(taint, owner) for taint in node.taints)
    if tainted and (node.unschedulable or claimed):
        return ""
    return SOMEBODY


def cordoned_by_other(node: KubeNode, owner: str, actors: tuple[Actor, ...] = ACTORS) -> str:
    """Name the other owner of a cordon, "" without one."""
    if (actor := claiming(node.node_keys, actors)) is not None:
        return actor.name
    if node.unschedulable and node.annotations.get(SHUT_BY) != owner:
        tool = by_manager(node.shut_by, actors)
        return tool.name if tool is not None else f"somebody with {node.shut_by or 'access to Kubernetes'}"
    other = next((t.value for t in node.taints if t.key == CORDON and t.value != owner), "")
    return f"another Hostler ({other})" if other else ""


def cordoning(node: KubeNode, owner: str, reason: str) -> Patch:
    """Make the patch that cordons the node for us; nothing where it is cordoned by us."""
    changes: Patch = []
    annotations = {REASON: reason}
    if not any(_is_ours(taint, owner) for taint in node.taints):
        ours = {"key": CORDON, "value": owner, "effect": EFFECT}
        changes.append(_put("/spec/taints/-", ours) if node.taints else _put("/spec/taints", [ours]))
    if not node.unschedulable:
        changes.append(_put("/spec/unschedulable", value=True))
        annotations[SHUT_BY] = owner
    if not changes:
        return []
    return [*_guarded(node), *changes, *_annotated(node, annotations)]


def freeing(node: KubeNode, owner: str, actors: tuple[Actor, ...] = ACTORS) -> Patch:
    """Make the patch that removes our cordon and keeps every other; nothing where none is ours."""
    changes: Patch = []
    left = [taint for taint in node.taints if not _is_ours(taint, owner)]
    if len(left) < len(node.taints):
        changes.append(_put("/spec/taints", [_written(taint) for taint in left]))
    if node.annotations.get(SHUT_BY) == owner:
        others = claiming(node.node_keys, actors) is not None or any(taint.key == CORDON for taint in left)
        if node.unschedulable and not others:
            changes.append({"op": "remove", "path": "/spec/unschedulable"})
        changes.append(_removed(SHUT_BY))
    if REASON in node.annotations and changes:
        changes.append(_removed(REASON))
    return [*_guarded(node), *changes] if changes else []


def _guarded(node: KubeNode) -> Patch:
    """Guard a patch: it applies only to the node as it was read."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": node.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": node.version},
    ]


def _annotated(node: KubeNode, said: dict[str, str]) -> Patch:
    if not node.has_annotations:
        return [_put("/metadata/annotations", said)]
    return [_put(f"/metadata/annotations/{_escaped(key)}", value) for key, value in said.items()]


def _put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _removed(key: str) -> dict[str, Any]:
    return {"op": "remove", "path": f"/metadata/annotations/{_escaped(key)}"}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _is_ours(taint: Taint, owner: str) -> bool:
    return taint.key == CORDON and taint.value == owner


def _written(taint: Taint) -> dict[str, str]:
    said = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    if taint.timeAdded is not None:
        said["timeAdded"] = taint.timeAdded
    return {key: value for key, value in said.items() if value}
