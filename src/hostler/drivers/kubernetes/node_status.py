"""Labels and conditions by which a cluster's own users see Hostler on a node: a stable API to automate on.

Pure.

Conditions of KEP-5683 (`DrainInProgress`, `Drained`, `MaintenancePlanned`, `MaintenanceInProgress`) and two of ours:
`HostlerHealthy` (nothing ails it, False with the gravest fault as the reason) and `HostlerActive` (a customer's work
runs there). How to read them: docs/how-to/connect-a-kubernetes-cluster.md.
"""

import re
from typing import Any

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.health import bars, is_healthy
from hostler.core.state.model import Node, Plan
from hostler.drivers.kubernetes.wire import OURS, KubeNode, Shown

HEALTH, MAINTENANCE, LABELS = "hostler-health", "hostler-maintenance", "hostler-labels"
"""Field managers, one for each duty."""

DUTIES = {
    "HostlerHealthy": HEALTH,
    "HostlerActive": HEALTH,
    "MaintenancePlanned": MAINTENANCE,
    "DrainInProgress": MAINTENANCE,
    "Drained": MAINTENANCE,
    "MaintenanceInProgress": MAINTENANCE,
}
"""Writer of each condition."""

NAMING = ("MaintenancePlanned", "DrainInProgress")
"""Reasons whose messages name who is waited for, and are written again when those are others."""

MAX_MESSAGE = 500
MAX_LABEL = 63
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_DOMAINS = {"nvlink": "nvlink-domain", "rail": "rail"}


class NodeStatus(Struct, frozen=True):
    """Labels and conditions for a node: all of our labels, and all conditions of `DUTIES`, in their order."""

    labels: dict[str, str]
    conditions: tuple[Shown, ...]


def node_status(node: Node, works: tuple[Workload, ...] | None) -> NodeStatus:
    """Compute what the node shows; `works` run there, None where that is not known."""
    return NodeStatus(_labels(node), (_healthy(node), _active(works), *_maintenance(node, works)))


def has_changed(one: Shown, stands: Shown | None) -> bool:
    """Whether it is another status or reason than stands there, which is told as an Event too."""
    return stands is None or (one.status, one.reason) != (stands.status, stands.reason)


def is_stale(one: Shown, stands: Shown | None) -> bool:
    """Whether it is to be written: a change, or others who are waited for. What ails is told once by its evidence."""
    return has_changed(one, stands) or (
        one.type in NAMING and stands is not None and one.status == "True" and one.message != stands.message
    )


def applied(name: str, listed: KubeNode, shown: tuple[Shown, ...], at: str) -> dict[str, Any]:
    """The body of a server-side apply of these conditions at this moment (RFC 3339).

    One whose status stands there already keeps the moment since when it does.
    """
    since = {(one.type, one.status): one.lastTransitionTime for one in listed.shown}
    conditions = [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": since.get((one.type, one.status)) or at,
            "lastHeartbeatTime": at,
        }
        for one in shown
    ]
    return {**_named(name, listed.uid), "status": {"conditions": conditions}}


def labelled(name: str, uid: str, labels: dict[str, str]) -> dict[str, Any]:
    """The body of a server-side apply of these labels; those of ours that are not among them go."""
    found = _named(name, uid)
    found["metadata"]["labels"] = labels
    return found


def _named(name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": uid}}


def _labels(node: Node) -> dict[str, str]:
    said = {"node": node.id, "phase": node.phase.value, "pool": node.pool, "rack": node.position.rack}
    for domain in node.domains:
        if domain.kind in _DOMAINS:
            said.setdefault(_DOMAINS[domain.kind], domain.name)
    return {f"{OURS}{key}": value for key, name in said.items() if (value := label(name))}


def label(value: str) -> str:
    """The value as a label may have it."""
    return _ODD.sub("-", value)[:MAX_LABEL].strip("-_.")


def _healthy(node: Node) -> Shown:
    grave = [condition for condition in node.conditions if bars(condition)]
    if not grave and is_healthy(node):
        return Shown("HostlerHealthy", "True", "NothingAils", "")
    if not grave:
        return Shown("HostlerHealthy", "Unknown", "NotInService", "it is being treated, or kept as it is")
    known = [condition for condition in grave if condition.unknown_since is None]
    worst = max(known or grave, key=lambda c: (c.severity, c.id))
    text = f"{worst.type}: {worst.evidence[-1].text}" if worst.evidence else worst.type
    if not known:
        return Shown("HostlerHealthy", "Unknown", "NobodyCanSay", f"not heard any more: {text}"[:MAX_MESSAGE])
    return Shown("HostlerHealthy", "False", _reason(worst.type), text[:MAX_MESSAGE])


def _active(works: tuple[Workload, ...] | None) -> Shown:
    if works is None:
        return Shown("HostlerActive", "Unknown", "WorkUnknown", "what runs here is not known")
    customers = [work for work in works if work.work_class is not WorkClass.infrastructure]
    if not customers:
        return Shown("HostlerActive", "False", "Idle", "no customer's work runs here")
    return Shown("HostlerActive", "True", "CustomerWork", "")


def _maintenance(node: Node, works: tuple[Workload, ...] | None) -> tuple[Shown, ...]:
    plan = node.plan if node.plan is not None and node.plan.disruptive else None
    running = plan is not None and plan.state == "running"
    drains = running and plan is not None and _stands_at(plan, "drain")
    passed = running and plan is not None and _has_passed(plan, "drain")
    why = f"{plan.name} for {plan.rule}" if plan is not None and plan.rule else (plan.name if plan is not None else "")
    waiting = "; ".join(blocker.text for blocker in node.waiting.blockers) if node.waiting is not None else ""
    planned = (plan is not None and plan.state == "proposed") or (running and not passed)
    drained = passed or (bool(node.cordons) and works == ())
    told = (
        ("MaintenancePlanned", planned, "RemedyRecorded", f"{why}: {waiting}" if waiting else why),
        ("DrainInProgress", drains, "WaitsForWork" if waiting else "Draining", waiting or why),
        ("Drained", drained, "NoWorkLeft", why),
        ("MaintenanceInProgress", passed, _reason(plan.name) if plan is not None else "", why),
    )
    return tuple(
        Shown(kind, "True", reason, text[:MAX_MESSAGE]) if holds else Shown(kind, "False", "None", "")
        for kind, holds, reason, text in told
    )


def _stands_at(plan: Plan, operation: str) -> bool:
    return plan.index < len(plan.steps) and plan.steps[plan.index].operation == operation


def _has_passed(plan: Plan, operation: str) -> bool:
    return any(step.operation == operation for step in plan.steps[: plan.index])


def _reason(name: str) -> str:
    """A name of ours as Kubernetes writes reasons: "gpu.fallen_off_bus" is GpuFallenOffBus."""
    return "".join(word.capitalize() for word in re.split(r"[._ -]+", name)) or "None"
