"""Address of an API server for its nodes, and its certificate authority: from a kubeconfig, or from the cluster."""

from base64 import b64decode

import msgspec
from msgspec import Struct

from hostler.core.policy import yaml_tree
from hostler.drivers.kubernetes.bootstrap_token_secret import ca_hash
from hostler.drivers.kubernetes.kubeconfig import KubernetesAccess, server_url

CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
"""ConfigMap in which kubeadm writes the endpoint for joining nodes."""


class ApiEndpoint(Struct, frozen=True):
    """The API server's address, and its authority (PEM)."""

    server: str
    ca: str


class _Info(Struct):
    data: dict[str, str] = {}


def door_of(access: KubernetesAccess) -> ApiEndpoint | None:
    """The door that a kubeconfig names; None for one that is no way for nodes (a pod's own) or names no authority."""
    try:
        ca_hash(access.ca)
    except ValueError:
        return None
    return ApiEndpoint(access.server, access.ca) if access.for_nodes else None


def read_cluster_info(body: bytes) -> ApiEndpoint | None:
    """Read the ConfigMap; None where it is not as kubeadm writes it."""
    try:
        document = yaml_tree.read("cluster-info", msgspec.json.decode(body, type=_Info).data["kubeconfig"]).value
        cluster = document["clusters"][0]["cluster"]
        endpoint = ApiEndpoint(server_url(cluster["server"]), b64decode(cluster["certificate-authority-data"]).decode())
        ca_hash(endpoint.ca)
    except (msgspec.MsgspecError, KeyError, IndexError, TypeError, ValueError, RecursionError):
        return None
    return endpoint
