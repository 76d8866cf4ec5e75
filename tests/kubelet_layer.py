"""A further initial file system for a guest: a real kubelet with this machine's containerd, started by its kubeconfig.

The kubelet waits for the bootstrap kubeconfig that cloud-init or the agent lays down; nothing here knows a cluster.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from hostler.core.state.bootstrap_kubeconfig import BOOTSTRAP_FILE, REGISTRATION_FILE
from tests.controlplane.building import program
from tests.controlplane.real_node import CNI

PROGRAMS = ("containerd", "containerd-shim-runc-v2", "runc")
"""Taken from this machine, whose Debian is that of the image; runc's library comes with systemd there."""
SOCKET = "unix:///run/containerd/containerd.sock"
SETTINGS = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "systemd",
    "containerRuntimeEndpoint": SOCKET,
    "makeIPTablesUtilChains": False,
    "resolvConf": "",
    "rotateCertificates": True,
    "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    "imageGCHighThresholdPercent": 100,
    "imageGCLowThresholdPercent": 99,
}
"""As kubeadm writes them, but for what a machine without DNS, iptables and a disk needs otherwise."""
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
"""
NETWORK = {"cniVersion": "0.4.0", "name": "box", "plugins": [{"type": "loopback"}]}
MOUNT = "[Mount]\nWhat=tmpfs\nWhere=/var/lib/{name}\nType=tmpfs\nOptions=size=512m\n"
"""The kubelet reads how full the file system of its folder is, and a root in memory does not tell."""
RUNTIME = """[Unit]
RequiresMountsFor=/var/lib/containerd
[Service]
Type=notify
ExecStart=/usr/bin/containerd
Delegate=yes
KillMode=process
Restart=always
"""
KUBELET = f"""[Unit]
Wants=containerd.service
# cloud-init names the machine after it has written files, and the certificate is for that name.
After=containerd.service cloud-init.service
RequiresMountsFor=/var/lib/kubelet
[Service]
ExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --bootstrap-kubeconfig={BOOTSTRAP_FILE} \\
  --kubeconfig=/etc/kubernetes/kubelet.conf --config-dir={Path(REGISTRATION_FILE).parent}
Restart=always
RestartSec=5
"""
KUBELET_MB = 600
"""Memory that the layer and what runs of it take."""
INVITED = f"[Path]\nPathExists={BOOTSTRAP_FILE}\n[Install]\nWantedBy=multi-user.target\n"


def why_no_kubelet() -> str:
    """Why no guest can have a kubelet, "" where one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    absent += [] if (CNI / "loopback").exists() else ["containernetworking-plugins"]
    return f"{', '.join(absent)} missing: run scripts/system-packages" if absent else ""


def build_kubelet_layer(place: Path) -> Path:
    """The layer as a file that a kernel takes behind another. Raises NoControlPlaneError without a kubelet."""
    with tempfile.TemporaryDirectory() as work:
        root = Path(work)
        (root / "usr/bin").mkdir(parents=True)
        found = {name: Path(str(shutil.which(name))) for name in PROGRAMS} | {"kubelet": program("kubelet")}
        for name, at in found.items():
            shutil.copy(at, root / "usr/bin" / name)
        for path, text in _files().items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        (root / "usr/lib/cni").mkdir(parents=True)
        (root / REGISTRATION_FILE.lstrip("/")).parent.mkdir(parents=True)
        shutil.copy(CNI / "loopback", root / "usr/lib/cni/loopback")
        wanted = root / "etc/systemd/system/multi-user.target.wants/kubelet.path"
        wanted.parent.mkdir()
        wanted.symlink_to("../kubelet.path")
        packing = "find etc usr -print | cpio -o -H newc --quiet -R 0:0"
        with place.open("wb") as packed:
            subprocess.run(["sh", "-c", packing], cwd=work, stdout=packed, check=True)
    return place


def _files() -> dict[str, str]:
    units = {f"var-lib-{name}.mount": MOUNT.format(name=name) for name in ("kubelet", "containerd")}
    units |= {"containerd.service": RUNTIME, "kubelet.service": KUBELET, "kubelet.path": INVITED}
    return {
        "etc/kubernetes/kubelet.yaml": yaml.safe_dump(SETTINGS),
        "etc/containerd/config.toml": CONTAINERD,
        "etc/cni/net.d/10-box.conflist": json.dumps(NETWORK),
        **{f"etc/systemd/system/{name}": text for name, text in units.items()},
    }
