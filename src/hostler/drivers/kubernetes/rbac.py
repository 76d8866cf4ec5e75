"""Hostler's rights in a cluster, each with its purpose: deploy/kubernetes/rbac.yaml grants these alone."""

from typing import Any

from msgspec import Struct


class Right(Struct, frozen=True):
    """One verb on one resource ("nodes/status"); `space` "" is the whole cluster, `name` "" any object."""

    what_for: str
    verb: str
    resource: str
    group: str = ""
    space: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in {self.space}" if self.space else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{where}"

    def review(self) -> dict[str, Any]:
        """The body of a SelfSubjectAccessReview that asks for it."""
        resource, _, sub = self.resource.partition("/")
        asked = {"verb": self.verb, "group": self.group, "resource": resource, "subresource": sub}
        asked |= {"namespace": self.space, "name": self.name}
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
        }


def _rights(what_for: str, resource: str, verbs: str, **where: str) -> list[Right]:
    return [Right(what_for, verb, resource, **where) for verb in verbs.split()]


CERTIFICATES = "certificates.k8s.io"
KUBELETS = "kubernetes.io/kube-apiserver-client-kubelet"

RIGHTS: tuple[Right, ...] = (
    *_rights("see nodes", "nodes", "get list watch"),
    *_rights("cordon, label and annotate nodes, let operands go for a GPU reset", "nodes", "patch"),
    *_rights("list nodes before their kubelet comes, and take them off the list", "nodes", "create delete"),
    *_rights("show conditions", "nodes/status", "patch"),
    *_rights("see whose work runs where", "pods", "list watch"),
    *_rights("drain", "pods/eviction", "create"),
    *_rights("name the budget that blocks", "poddisruptionbudgets", "list watch", group="policy"),
    *_rights("tell Events of nodes", "events", "create", space="default"),
    *_rights("name work by its Job", "jobs", "list watch", group="batch"),
    *_rights("check idle nodes", "jobs", "get create delete", group="batch", space="hostler-checks"),
    *_rights("end checks of idle nodes", "pods", "delete", space="hostler-checks"),
    *_rights("show that Hostler is up", "leases", "create patch", group="coordination.k8s.io", space="hostler-checks"),
)
"""Rights that every cluster needs."""

JOINING: tuple[Right, ...] = (
    *_rights("issue and delete join tokens", "secrets", "create delete", space="kube-system"),
    *_rights("know where nodes reach the API", "configmaps", "get", space="kube-public", name="cluster-info"),
    *_rights("see what joining kubelets ask for", "certificatesigningrequests", "list", group=CERTIFICATES),
    *_rights(
        "approve what a token's node asks for", "certificatesigningrequests/approval", "update", group=CERTIFICATES
    ),
    *_rights("approve for kubelets", "signers", "approve", group=CERTIFICATES, name=KUBELETS),
)
"""Further rights for admitting nodes by tokens; without them the node image has to let its kubelet in."""
