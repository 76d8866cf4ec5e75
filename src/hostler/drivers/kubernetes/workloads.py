"""Workloads of a node, read from its pods and the budgets that protect them.

Pure.

A pod of a customer's namespace is work where it requests GPUs or is not a DaemonSet's. Mirror pods, and the pods of
other DaemonSets, stay with their node; pods of the platform's namespaces are infrastructure, which leaves last.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.drivers.kubernetes.jobs import OPERATION, KubeJob, progress
from hostler.drivers.kubernetes.wire import OURS, Expression, KubeBudget, KubePod

INTERRUPTIBLE = f"{OURS}interruptible"
GRACEFUL = f"{OURS}gracefully-interruptible"
INFRASTRUCTURE = f"{OURS}infrastructure"
GPUS = f"{OURS}gpus"
"""A pod's annotation: which GPUs it uses ("gpu0,gpu3"); who writes it knows, we do not guess."""


CHECKS = "hostler-checks"
"""The namespace of idle checks, where nobody else has anything to run."""


WAIT, EVICT = "wait", "evict"


class DrainMethod(Struct, frozen=True, forbid_unknown_fields=True):
    """How work of a namespace is drained whose pods say nothing themselves.

    `drain`: wait until it ends, or evict it with its own grace. `evict_after_s`: it is waited for so long, and evicted
    then; None: a person is asked at the pool's deadline. `owner` is that person, "" for the pool's.
    """

    drain: str = WAIT
    evict_after_s: float | None = None
    owner: str = ""


class Spaces(Struct, frozen=True):
    """Namespaces by name, or by how they begin ("openshift-"): the platform's, and manners of customers'."""

    platform: tuple[str, ...] = (
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "gpu-operator",
        "network-operator",
        "hostler",
        CHECKS,
        "monitoring",
        "cert-manager",
        "calico-system",
        "tigera-operator",
        "openshift-",
    )

    manners: dict[str, DrainMethod] = {}

    def is_platform(self, namespace: str) -> bool:
        """Whether what runs there is infrastructure."""
        return any(_means(name, namespace) for name in self.platform)

    def manner_of(self, namespace: str) -> DrainMethod:
        """How what runs there is drained: what is said of its name, else of its longest beginning."""
        meant = [name for name in self.manners if _means(name, namespace)]
        return self.manners[max(meant, key=len)] if meant else DrainMethod()


def _means(name: str, namespace: str) -> bool:
    return namespace == name or (name.endswith("-") and namespace.startswith(name))


def id_of(pod: KubePod) -> str:
    """A workload's id: a pod that was made anew under an old name is other work."""
    return f"{pod.key}:{pod.uid[:8]}"


def counts(pod: KubePod, spaces: Spaces) -> bool:
    """Whether the pod is told of at all: what stays with its node is not."""
    if pod.mirror:
        return False
    stays = pod.owner.startswith(("DaemonSet/", "Node/"))
    return not stays or (pod.gpus > 0 and not spaces.is_platform(pod.namespace))


def workload(pod: KubePod, budgets: Iterable[KubeBudget], spaces: Spaces, job: KubeJob | None = None) -> Workload:
    """The pod as the engine knows work; `job` is the Job that made it, where that is known."""
    kind, manner = class_of(pod, spaces), spaces.manner_of(pod.namespace)
    parts = tuple(part.strip() for part in pod.annotations[GPUS].split(",")) if pod.annotations.get(GPUS) else None
    return Workload(
        id=id_of(pod),
        tenant=pod.namespace,
        work_class=kind,
        parts=parts,
        job=f"{pod.namespace}/{_job_name(pod, job)}" if pod.job or job else "",
        image=pod.image,
        held_by=held_by(pod, budgets) if kind is not WorkClass.infrastructure else "",
        check=pod.annotations.get(OPERATION, pod.key) if pod.namespace == CHECKS else "",
        progress=progress(job) if job is not None else "",
        owner=manner.owner,
        uid=pod.uid,
        began=pod.began,
        agreed_after_s=manner.evict_after_s if INTERRUPTIBLE not in pod.annotations else None,
    )


def _job_name(pod: KubePod, job: KubeJob | None) -> str:
    """Name that the Job's users know: a Job made by another object (a JobSet, a training job) is known by that."""
    return job.root.partition("/")[2] if job is not None and job.root != f"Job/{job.name}" else pod.job


def class_of(pod: KubePod, spaces: Spaces) -> WorkClass:
    """How the pod may be disturbed: as it says itself, else as its namespace does; what nobody has allowed may not."""
    said = pod.annotations
    if spaces.is_platform(pod.namespace) or said.get(INFRASTRUCTURE) == "true":
        return WorkClass.infrastructure
    if said.get(INTERRUPTIBLE) == "true":
        return WorkClass.interruptible
    if said.get(GRACEFUL) == "true":
        return WorkClass.graceful
    evicted = spaces.manner_of(pod.namespace).drain == EVICT and INTERRUPTIBLE not in said and GRACEFUL not in said
    return WorkClass.graceful if evicted else WorkClass.uninterruptible


def held_by(pod: KubePod, budgets: Iterable[KubeBudget]) -> str:
    """Name what keeps the pod from being evicted now; "" for nothing."""
    if pod.ends:
        return f"it is ending, and has until {pod.ends}"
    if pod.pending:
        return ""  # the Eviction API asks no budget of a pod that has not begun
    found = [budget for budget in budgets if protects(budget, pod)]
    if len(found) > 1:
        names = ", ".join(sorted(budget.key for budget in found))
        return f"{len(found)} PodDisruptionBudgets match it ({names}), which the Eviction API refuses: leave it one"
    if not found or found[0].allowed > 0:
        return ""
    budget = found[0]
    if not pod.ready and (budget.always or budget.healthy >= budget.desired):
        return ""
    return f"PodDisruptionBudget {budget.key} allows no disruption ({budget.healthy} healthy, {budget.desired} needed)"


def protects(budget: KubeBudget, pod: KubePod) -> bool:
    """Whether the budget selects the pod; an empty selector selects all of its namespace, none selects nobody."""
    return (
        budget.selects
        and budget.namespace == pod.namespace
        and all(pod.labels.get(key) == value for key, value in budget.match.items())
        and all(_holds(one, pod.labels) for one in budget.expressions)
    )


def _holds(one: Expression, labels: Mapping[str, str]) -> bool:
    match one.operator:
        case "In":
            return labels.get(one.key) in one.values
        case "NotIn":
            return labels.get(one.key) not in one.values
        case "Exists":
            return one.key in labels
        case "DoesNotExist":
            return one.key not in labels
        case _:
            return True  # unknown: rather protected than not
