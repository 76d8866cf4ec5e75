"""Who else changes nodes of a cluster, how each is recognised, and what Hostler's duty towards it is. One table.

Only who is not listed counts as a person: what a person does to our cordon is an override, what a listed tool does is
its trade.
"""

from msgspec import Struct

OBSERVE, YIELD, REFUSE = "observe", "yield", "refuse"


class Actor(Struct, frozen=True):
    """A known tool. `managers` and `marks` are beginnings of field managers, and of the keys that it writes on a node.

    `duty`: observe (its marks are no concern of ours), yield (while its mark stands the node is its own: our cordon's
    end leaves `unschedulable` to it), refuse (a second remediator: no act beside it).
    """

    name: str
    duty: str
    managers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


ACTORS: tuple[Actor, ...] = (
    Actor("kubelet", OBSERVE, ("kubelet",)),
    Actor("Kubernetes controllers", OBSERVE, ("kube-controller-manager", "kube-scheduler", "cloud-controller-manager")),
    Actor("kwok", OBSERVE, ("kwok",), ("kwok.x-k8s.io/",)),
    Actor(
        "GPU Operator's driver upgrade",
        YIELD,
        ("gpu-operator", "nvidia-driver", "k8s-driver-manager"),
        tuple(
            f"nvidia.com/gpu-driver-upgrade-state={state}"
            for state in (
                "cordon-required",
                "wait-for-jobs-required",
                "pod-deletion-required",
                "drain-required",
                "pod-restart-required",
                "validation-required",
                "uncordon-required",
                "upgrade-failed",
            )
        ),
    ),
    Actor("Cluster Autoscaler", YIELD, ("cluster-autoscaler",), ("ToBeDeletedByClusterAutoscaler",)),
    Actor("Karpenter", YIELD, ("karpenter",), ("karpenter.sh/disrupted", "karpenter.sh/disruption")),
    Actor("kured", YIELD, ("kured",), ("weave.works/kured-",)),
    Actor("System Upgrade Controller", YIELD, ("system-upgrade-controller",), ("upgrade.cattle.io/",)),
    Actor("Machine Config Operator", YIELD, ("machine-config",), ("machineconfiguration.openshift.io/",)),
    Actor("NVSentinel", REFUSE, ("nvsentinel", "fault-quarantine"), ("quarantineHealthEvent", "nvsentinel")),
    Actor("draino", REFUSE, ("draino",), ("draino/",)),
    Actor("Medik8s", REFUSE, ("self-node-remediation", "node-healthcheck"), ("medik8s.io/", "remediation.medik8s.io/")),
)
"""Listed from what these projects document and write."""


def by_manager(manager: str) -> Actor | None:
    """The listed tool whose field manager this is; None for anybody else, who counts as a person."""
    return next((a for a in ACTORS if a.managers and manager.startswith(a.managers)), None)


def claiming(marks: tuple[str, ...]) -> Actor | None:
    """The listed tool that has the node in its hands now, by what it wrote there."""
    working = (a for a in ACTORS if a.duty != OBSERVE and a.marks)
    return next((a for a in working if any(mark.startswith(a.marks) for mark in marks)), None)


def remediators(marks: tuple[str, ...]) -> tuple[str, ...]:
    """Second remediators that have written on the node: nobody may act beside them."""
    return tuple(a.name for a in ACTORS if a.duty == REFUSE and any(mark.startswith(a.marks) for mark in marks))
