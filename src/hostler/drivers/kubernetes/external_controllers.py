"""Other programs that change nodes of a cluster: how each is recognised, and Hostler's duty towards it.

One table.

Only who is not listed counts as a person: what a person does to our cordon is an override, what a listed tool does is
its trade.
"""

from collections.abc import Iterable

from msgspec import Struct

OBSERVE, YIELD, REFUSE = "observe", "yield", "refuse"

DUTIES = {
    OBSERVE: "what it does is its own trade; nothing is done about it",
    YIELD: "while its mark is on a node, the node stays shut for it and is not taken from it",
    REFUSE: "a second remediator: no pool of the cluster acts beside it until a person has accepted it",
}
"""Meaning of each duty."""


class Actor(Struct, frozen=True, rename={"node_keys": "marks"}):
    """A known tool, and its signs.

    `managers` are beginnings of field managers, `node_keys` ("marks" in documents) of the keys that it writes on a
    node; `images` are parts of its images' names, `apis` resources ("machinehealthchecks.cluster.x-k8s.io") whose
    objects make it act.

    `duty`: observe (its marks are no concern of ours), yield (while its mark stands the node is its own: our cordon's
    end leaves `unschedulable` to it), refuse (a second remediator: no act beside it).
    """

    name: str
    duty: str
    managers: tuple[str, ...] = ()
    node_keys: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()


_UPGRADING = (
    "cordon-required",
    "wait-for-jobs-required",
    "pod-deletion-required",
    "drain-required",
    "pod-restart-required",
    "validation-required",
    "uncordon-required",
    "upgrade-failed",
)

ACTORS: tuple[Actor, ...] = (
    Actor("kubelet", OBSERVE, ("kubelet",)),
    Actor("Kubernetes controllers", OBSERVE, ("kube-controller-manager", "kube-scheduler", "cloud-controller-manager")),
    Actor("kwok", OBSERVE, ("kwok",), ("kwok.x-k8s.io/",)),
    Actor("node-problem-detector", OBSERVE, ("node-problem-detector",), images=("node-problem-detector",)),
    Actor("Descheduler", OBSERVE, images=("descheduler",)),
    Actor(
        "GPU Operator's driver upgrade",
        YIELD,
        ("gpu-operator", "nvidia-driver", "k8s-driver-manager"),
        tuple(f"nvidia.com/gpu-driver-upgrade-state={state}" for state in _UPGRADING),
        ("gpu-operator", "k8s-driver-manager"),
    ),
    Actor(
        "Network Operator's driver upgrade",
        YIELD,
        ("network-operator",),
        tuple(f"nvidia.com/ofed-driver-upgrade-state={state}" for state in _UPGRADING),
        ("network-operator",),
    ),
    Actor(
        "Cluster Autoscaler",
        YIELD,
        ("cluster-autoscaler",),
        ("ToBeDeletedByClusterAutoscaler",),
        ("cluster-autoscaler",),
    ),
    Actor(
        "Karpenter",
        YIELD,
        ("karpenter",),
        ("karpenter.sh/disrupted", "karpenter.sh/disruption"),
        ("karpenter",),
        ("nodepools.karpenter.sh",),
    ),
    Actor("kured", YIELD, ("kured",), ("weave.works/kured-",), ("kured",)),
    Actor(
        "System Upgrade Controller",
        YIELD,
        ("system-upgrade-controller",),
        ("upgrade.cattle.io/",),
        ("system-upgrade-controller",),
        ("plans.upgrade.cattle.io",),
    ),
    Actor(
        "Machine Config Operator",
        YIELD,
        ("machine-config",),
        ("machineconfiguration.openshift.io/",),
        ("machine-config-operator",),
    ),
    Actor(
        "AWS Node Termination Handler",
        YIELD,
        ("aws-node-termination-handler",),
        ("aws-node-termination-handler/",),
        ("aws-node-termination-handler",),
    ),
    Actor(
        "NVSentinel",
        REFUSE,
        ("nvsentinel", "fault-quarantine"),
        ("quarantineHealthEvent", "nvsentinel"),
        ("nvsentinel",),
    ),
    Actor("draino", REFUSE, ("draino",), ("draino/",), ("draino",)),
    Actor(
        "Medik8s",
        REFUSE,
        ("self-node-remediation", "node-healthcheck"),
        ("medik8s.io/", "remediation.medik8s.io/"),
        ("self-node-remediation", "node-healthcheck", "fence-agents-remediation", "machine-deletion-remediation"),
        ("nodehealthchecks.remediation.medik8s.io",),
    ),
    Actor(
        "MachineHealthCheck",
        REFUSE,
        apis=("machinehealthchecks.cluster.x-k8s.io", "machinehealthchecks.machine.openshift.io"),
    ),
    Actor("Machine Controller Manager", REFUSE, images=("machine-controller-manager",)),
)
"""Listed from what these projects document and write."""


class Signs(Struct, frozen=True):
    """Signs of programs at work in a cluster: field managers, marks on nodes, images of pods, objects."""

    managers: frozenset[str] = frozenset()
    node_keys: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    apis: frozenset[str] = frozenset()


def by_manager(manager: str, actors: Iterable[Actor] = ACTORS) -> Actor | None:
    """The listed tool whose field manager this is; None for anybody else, who counts as a person."""
    return next((a for a in actors if a.managers and manager.startswith(a.managers)), None)


def claiming(node_keys: tuple[str, ...], actors: Iterable[Actor] = ACTORS) -> Actor | None:
    """The listed tool that has the node in its hands now, by what it wrote there."""
    working = (a for a in actors if a.duty != OBSERVE and a.node_keys)
    return next((a for a in working if any(key.startswith(a.node_keys) for key in node_keys)), None)


def remediators(node_keys: tuple[str, ...], actors: Iterable[Actor] = ACTORS) -> tuple[str, ...]:
    """Second remediators that have written on the node: nobody may act beside them."""
    return tuple(
        a.name
        for a in actors
        if a.duty == REFUSE and a.node_keys and any(key.startswith(a.node_keys) for key in node_keys)
    )


def at_work(signs: Signs, actors: Iterable[Actor] = ACTORS) -> list[tuple[Actor, str]]:
    """The listed tools that the signs show, each with the plainest of its signs."""
    return [(actor, sign) for actor in actors if (sign := _sign_of(actor, signs))]


def _sign_of(actor: Actor, signs: Signs) -> str:
    image = next((i for i in sorted(signs.images) if any(part in i for part in actor.images)), "")
    if image:
        return f"a pod runs {image}"
    api = next((a for a in sorted(signs.apis) if a.startswith(actor.apis)), "") if actor.apis else ""
    if api:
        return f"there are {api}"
    mark = next((m for m in sorted(signs.node_keys) if m.startswith(actor.node_keys)), "") if actor.node_keys else ""
    if mark:
        return f"a node is marked {mark}"
    manager = next((m for m in sorted(signs.managers) if m.startswith(actor.managers)), "") if actor.managers else ""
    return f"{manager} has written on a node" if manager else ""
