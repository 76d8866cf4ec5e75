"""A machine with a real kubelet and Debian's containerd: a pid, a mount and a network namespace.

What it writes lies in its folder and in its cgroups; `close` takes both away. Of this host's network it reaches the
API server alone, through `relay`. Power loss is the death of its pid namespace. There is no systemd: a `systemctl` in
its mount namespace starts, stops and restarts the real kubelet, and nothing else.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from hostler.core.state.bootstrap_kubeconfig import REGISTRATION_FILE
from tests.controlplane.building import NoControlPlaneError, program
from tests.controlplane.plane import ControlPlane
from tests.tied_processes import tied

CGROUPS = Path("/sys/fs/cgroup")
NEEDED = ("containerd", "runc", "ctr", "unshare", "nsenter", "busybox", "ip")
CNI = Path("/usr/lib/cni")
IMAGE = "hostler.test/box:1"
RELAY = Path(__file__).with_name("relay.py")
PATIENCE_S = 60.0
ADDRESS = "10.88.0.1"
"""Of every node, in its own network: a kubelet takes no loopback address."""
SHADOWED = ("/var/lib/kubelet", "/var/lib/cni", "/etc/kubernetes", "/var/log", "/etc/cni")
"""Places that the kubelet, CNI and our agent know by fixed names: each node has its own, mounted over the host's."""

SYSCTLS = {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}
"""Settings that a kubelet would make for the whole machine: it finds them made."""

START = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
for place in {places}; do mkdir -p $place {at}/own$place; mount --bind {at}/own$place $place; done
for name in {sysctls}; do mount --bind {at}/proc/$(basename $name) /proc/sys/$name; done
ip link set lo up; ip link add box0 type bridge; ip addr add {address}/24 dev box0; ip link set box0 up
mkdir -p /run/box; mount --make-rshared /var/lib/kubelet
if [ -s /etc/kubernetes/kubelet.conf ]; then touch /run/box/kubelet.wanted; fi
mount --bind {at}/systemctl {systemctl}
containerd --config {at}/containerd.toml >>{at}/containerd.log 2>&1 &
until ctr -a {at}/containerd.sock version >/dev/null 2>&1; do sleep 0.05; done
ctr -a {at}/containerd.sock -n k8s.io images import {at}/image.tar >/dev/null
echo ready > {at}/ready
while :; do
  if [ -e /run/box/kubelet.wanted ] && cat /etc/kubernetes/*kubelet.conf 2>/dev/null | grep -q .
  then {kubelet} >>{at}/kubelet.log 2>&1 & echo $! > /run/box/kubelet.pid; wait $! || true; rm -f /run/box/kubelet.pid
  fi
  sleep 0.2
done
"""

SYSTEMCTL = """#!/bin/sh
# In the place of systemd's: of one service, the kubelet of this machine.
[ "$2" = kubelet ] || {{ echo "no unit $2 here" >&2; exit 5; }}
end() {{ if [ -s /run/box/kubelet.pid ]; then kill "$(cat /run/box/kubelet.pid)" 2>/dev/null; fi
        while [ -s /run/box/kubelet.pid ]; do sleep 0.05; done; }}
echo "$1 $2" >> {at}/systemctl.log
case "$1" in
  stop) rm -f /run/box/kubelet.wanted; end ;;
  start) touch /run/box/kubelet.wanted ;;
  restart) touch /run/box/kubelet.wanted; end ;;
  *) echo "unknown verb $1" >&2; exit 1 ;;
esac
"""


def why_none() -> str:
    """Why no real node can be had here, "" where one can."""
    if os.geteuid() != 0:
        return "a real kubelet needs root, for namespaces and cgroups"
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"no {', '.join(missing)}: apt-get install containerd runc util-linux busybox-static iproute2"
    if not (CNI / "loopback").exists():
        return "no CNI plugins: apt-get install containernetworking-plugins"
    if shutil.which("systemctl") is None:
        return "no systemctl, over which the node's own is mounted: apt-get install systemd"
    if not (CGROUPS / "cpuset").is_dir() or not os.access(CGROUPS / "memory", os.W_OK):
        return "no writable cgroups of version 1 under /sys/fs/cgroup"
    return ""


class RealNode:
    """`name` is the node's in the cluster."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self._plane = plane
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-node-", dir="/tmp"))
        self._group = self.folder.name
        self._kubelet = program("kubelet")
        self._running: subprocess.Popen[bytes] | None = None
        self._relay: subprocess.Popen[bytes] | None = None
        self._made = [Path(place) for place in SHADOWED if not Path(place).exists()]
        try:
            self._prepare()
            self.power_on()
        except BaseException:
            self.close()
            raise

    @property
    def etc(self) -> Path:
        """The node's own /etc/kubernetes."""
        return self.folder / "own/etc/kubernetes"

    def power_on(self) -> None:
        """Start its containerd, which runs when this returns; its kubelet where it was a member before."""
        assert self._running is None, "it is on"
        (self.folder / "ready").unlink(missing_ok=True)
        for file in ("containerd.sock", "containerd.sock.ttrpc"):
            (self.folder / file).unlink(missing_ok=True)
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "bash"]
        with (self.folder / "init.log").open("ab") as log:
            self._running = subprocess.Popen(tied(*command, str(self.folder / "start.sh")), stdout=log, stderr=log)
        self._until((self.folder / "ready").exists, "containerd to answer")
        self._connect()

    def power_off(self) -> None:
        """Kill all on it at once: kubelet, containerd and every container."""
        if self._running is None:
            return
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(self._init, signal.SIGKILL)
        self._running.wait(20)
        self._running = None
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait(20)
            self._relay = None

    def run(self, *command: str) -> str:
        """Returns the command's output on the node. Raises CalledProcessError."""
        enter = ["nsenter", "--target", str(self._init), "--mount", "--net", "--pid", "--"]
        return subprocess.run([*enter, *command], check=True, capture_output=True, text=True, timeout=120).stdout

    def python(self, program: str) -> str:
        """The same of a Python program."""
        return self.run("env", f"PYTHONPATH={os.pathsep.join(filter(None, sys.path))}", sys.executable, "-c", program)

    def kubelet_pid(self) -> str:
        """Process of its kubelet, in its own pid namespace; "" where none runs."""
        return self.run("sh", "-c", "cat /run/box/kubelet.pid 2>/dev/null || true").strip()

    def processes(self) -> list[str]:
        """Processes of this host that name its folder: containerd, its shims, the kubelet, their pods' sandboxes."""
        found = subprocess.run(["pgrep", "-f", str(self.folder)], capture_output=True, text=True, check=False)
        return found.stdout.split()

    def log(self, lines: int = 15) -> str:
        """The last lines of its kubelet and of its start."""
        files = [self.folder / name for name in ("init.log", "containerd.log", "kubelet.log")]
        return "\n".join("\n".join(f.read_text(errors="replace").splitlines()[-lines:]) for f in files if f.exists())

    def close(self) -> None:
        """Leave nothing of it."""
        self.power_off()
        for hierarchy in CGROUPS.iterdir():
            groups = hierarchy / self._group
            for group in sorted(groups.rglob("*"), key=lambda path: -len(path.parts)) if groups.is_dir() else ():
                if group.is_dir():
                    _remove(group)
            _remove(groups)
        shutil.rmtree(self.folder, ignore_errors=True)
        for place in self._made:
            with contextlib.suppress(OSError):
                place.rmdir()

    # --- helpers

    @property
    def _init(self) -> int:
        """The first process of its pid namespace, as this host numbers it."""
        assert self._running is not None, "it is off"
        until = time.monotonic() + 10
        while time.monotonic() < until:
            children = Path(f"/proc/{self._running.pid}/task/{self._running.pid}/children").read_text().split()
            if children:
                return int(children[0])
            time.sleep(0.02)
        raise AssertionError(f"{self.name} has no first process:\n{self.log()}")

    def _connect(self) -> None:
        """Let it reach the API server."""
        port = str(urlsplit(self._plane.url).port)
        command = tied(sys.executable, str(RELAY), str(self._init), port)
        with (self.folder / "relay.log").open("ab") as log:
            self._relay = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert self._relay.stdout is not None
        with self._relay.stdout as told:
            assert told.readline() == b"listening\n", (self.folder / "relay.log").read_text()

    def _prepare(self) -> None:
        at = self.folder
        for hierarchy in CGROUPS.iterdir():
            (hierarchy / self._group).mkdir(exist_ok=True)
        for file in ("cpus", "mems"):
            whole = (CGROUPS / "cpuset" / f"cpuset.{file}").read_text()
            (CGROUPS / "cpuset" / self._group / f"cpuset.{file}").write_text(whole)
        (at / "proc").mkdir()
        for name, value in SYSCTLS.items():
            (at / "proc" / Path(name).name).write_text(f"{value}\n")
        network = {"cniVersion": "0.4.0", "name": "box", "plugins": [{"type": "loopback"}]}
        (at / "own/etc/cni/net.d").mkdir(parents=True)
        (at / "own" / REGISTRATION_FILE.lstrip("/")).parent.mkdir(parents=True)
        (at / "own/etc/cni/net.d/10-box.conflist").write_text(json.dumps(network))
        (at / "containerd.toml").write_text(_containerd(at))
        (at / "kubelet.yaml").write_text(yaml.safe_dump(self._settings()))
        _image(at / "image.tar")
        (at / "systemctl").write_text(SYSTEMCTL.format(at=at))
        (at / "systemctl").chmod(0o755)
        systemctl = shutil.which("systemctl")
        kubelet = (
            f"{self._kubelet} --config={at}/kubelet.yaml --root-dir=/var/lib/kubelet --cert-dir=/var/lib/kubelet/pki "
            "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf "
            f"--hostname-override={self.name} --node-ip={ADDRESS} --config-dir={Path(REGISTRATION_FILE).parent} -v=2"
        )
        places, sysctls = " ".join(SHADOWED), " ".join(SYSCTLS)
        script = START.format(
            at=at, places=places, sysctls=sysctls, kubelet=kubelet, systemctl=systemctl, address=ADDRESS
        )
        (at / "start.sh").write_text(script)

    def _settings(self) -> dict[str, object]:
        """As kubeadm writes them, but for what a machine without systemd and with little memory needs otherwise."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": ADDRESS,
            "healthzPort": 0,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "enforceNodeAllocatable": ["pods"],
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "makeIPTablesUtilChains": False,
            "containerRuntimeEndpoint": f"unix://{self.folder}/containerd.sock",
            "rotateCertificates": True,
            "volumePluginDir": str(self.folder / "plugins"),
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 20,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        }

    def _until(self, holds: object, what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if holds():  # type: ignore[operator]
                return
            if self._running is not None and self._running.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"{self.name}: in vain for {what}:\n{self.log()}")


def _remove(group: Path) -> None:
    """The cgroup, as soon as the last of its processes is gone."""
    for _ in range(100):
        with contextlib.suppress(FileNotFoundError):
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.05)
                continue
        return


def _containerd(at: Path) -> str:
    return f"""version = 2
root = "{at}/containerd"
state = "/run/containerd"
[grpc]
  address = "{at}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI}"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def _image(at: Path) -> None:
    """One image, for pods and their sandboxes: busybox alone, which waits until it is told to end."""
    busybox = Path(str(shutil.which("busybox"))).read_bytes()
    names = ("bin", "tmp", "etc", "proc", "sys", "dev", "root")
    layer = _tar([*((name, None) for name in names), ("bin/busybox", busybox)])
    waits = ["/bin/busybox", "sh", "-c", "trap 'exit 0' TERM; while :; do /bin/busybox sleep 1 & wait; done"]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": waits, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    files = [("layer.tar", layer), ("config.json", json.dumps(config).encode())]
    at.write_bytes(_tar([*files, ("manifest.json", json.dumps(manifest).encode())]))


def _tar(files: list[tuple[str, bytes | None]]) -> bytes:
    """The files in one archive; a folder has no content."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if content is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content) if content is not None else None)
    return whole.getvalue()


def a_node(plane: ControlPlane, name: str) -> RealNode:
    """A node for a fixture; skips where it cannot be had."""
    if why := why_none():
        pytest.skip(why)
    try:
        return RealNode(plane, name)
    except NoControlPlaneError as missing:
        pytest.skip(str(missing))
