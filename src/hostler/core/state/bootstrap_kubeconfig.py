"""Files by which a kubelet enters a cluster: a kubeconfig for its first certificate, and the taint of its Node."""

import base64
import json

BOOTSTRAP_FILE = "/etc/kubernetes/bootstrap-kubelet.conf"
"""Path at which a kubelet of kubeadm looks for it (`--bootstrap-kubeconfig`); only root reads it."""

REGISTRATION_FILE = "/etc/kubernetes/kubelet.conf.d/90-hostler.conf"
"""In the folder of a kubelet's `--config-dir` (Kubernetes 1.28 and later), which reads files whose names end so."""


def registering_cordoned(taint: str) -> str:
    """Kubelet's configuration by which a Node that it registers has this taint ("KEY=VALUE:EFFECT") from the first."""
    key, _, rest = taint.partition("=")
    value, _, effect = rest.partition(":")
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "registerWithTaints": [{"key": key, "value": value, "effect": effect}],
    }
    return json.dumps(document, indent=2) + "\n"


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
