"""The kubeconfig with which a kubelet asks for its first certificate; a boot's cloud-init or the agent lays it down."""

import base64
import json

BOOTSTRAP_FILE = "/etc/kubernetes/bootstrap-kubelet.conf"
"""Where a kubelet of kubeadm looks for it (`--bootstrap-kubeconfig`); only root reads it."""


def bootstrap_kubeconfig(cluster: str, server: str, ca: str, token: str) -> str:
    """The kubeconfig as JSON, which is YAML. `ca` is PEM, `token` the bootstrap token."""
    authority = base64.b64encode(ca.encode()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "kubelet-bootstrap", "user": {"token": token}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": cluster, "user": "kubelet-bootstrap"}}],
        "current-context": "bootstrap",
    }
    return json.dumps(document, indent=2) + "\n"
