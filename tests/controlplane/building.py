"""Builds the control plane's programs, and Helm, with Go into a cache outside the tree, once for each pinned module.

Where `KUBEBUILDER_ASSETS` names a folder, programs that lie there are taken from it. From an empty module cache the
control plane takes some six minutes on two cores and 2 GB of memory, Helm two more; from Go's own cache half a minute.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
BUILD_S = 2_400.0
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
"""Stages of kwok's kubelets, as kwok itself ships them."""

DEFINITIONS = {
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd",
        ("monitoring.coreos.com", ("podmonitors", "servicemonitors", "prometheusrules")),
    ),
    "sigs.k8s.io/gateway-api": (
        "config/crd/standard",
        ("gateway.networking.k8s.io", ("httproutes", "backendtlspolicies")),
    ),
}
"""Custom resource definitions, as these modules ship them: the folder, the group and the kinds."""

PACKAGES = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kube", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kube", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kube", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    "kubelet": ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
}
"""Each program's module and package."""

KUBERNETES = ("kube", "kubelet")
"""Modules whose programs are Kubernetes's own: they bear its release."""

PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""Programs of a control plane."""


class NoControlPlaneError(Exception):
    """The programs are not there and cannot be built; says what is missing and how to get it."""


def programs() -> dict[str, Path]:
    """Path of each program of a control plane, and "stages"; builds what is missing. Raises NoControlPlaneError."""
    return {name: program(name) for name in PLANE} | {"stages": _made("kwok", "stages.yaml", _collect_stages)}


def program(name: str) -> Path:
    """Path of the program; builds it where it is missing. Raises NoControlPlaneError."""
    given = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent") / name
    module, package = PACKAGES[name]
    return given if given.exists() else _made(module, name, lambda at: _build(at, module, package))


def definitions() -> Path:
    """The custom resource definitions, one YAML document each. Raises NoControlPlaneError."""
    return _made("crds", "definitions.yaml", _collect_definitions)


def _made(module: str, name: str, make: Callable[[Path], None]) -> Path:
    """The file in the cache; made by one process where it is missing.

    One folder for each state of a module's pins: another version never runs in the place of what is asked for.
    """
    pins = b"".join((HERE / module / pin).read_bytes() for pin in ("go.mod", "go.sum"))
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostler-controlplane"
    folder = home / f"{module}-{hashlib.sha256(pins).hexdigest()[:16]}"
    if (folder / name).exists():
        return folder / name
    if shutil.which("go") is None:
        raise NoControlPlaneError(f"no {name}: install Go 1.26 (go.dev/dl), which builds it")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            make(folder / f"{name}.part")
            (folder / f"{name}.part").rename(folder / name)
    return folder / name


def _build(at: Path, module: str, package: str) -> None:
    tags = ["-tags", "selinux,notest,grpcnotrace"] if module in KUBERNETES else []
    _go(module, "build", "-p", "2", *tags, "-ldflags", _stamp(module), "-o", str(at), package)


def _stamp(module: str) -> str:
    """Kubernetes refuses to start without a version; the others carry theirs."""
    if module not in KUBERNETES:
        return "-s -w"
    version = _go(module, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").strip()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    facts = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    places = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return "-s -w -buildid= " + " ".join(f"-X {p}.{fact}={said}" for p in places for fact, said in facts.items())


def _collect_stages(at: Path) -> None:
    folder = Path(_go("kwok", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").strip()) / "kustomize" / "stage"
    at.write_text("\n---\n".join((folder / stage).read_text() for stage in STAGES))


def _collect_definitions(at: Path) -> None:
    found = []
    for module, (folder, (group, kinds)) in DEFINITIONS.items():
        shown = json.loads(_go("crds", "mod", "download", "-json", module))
        found += [(Path(shown["Dir"]) / folder / f"{group}_{kind}.yaml").read_text() for kind in kinds]
    at.write_text("\n---\n".join(found))


def _go(module: str, *arguments: str) -> str:
    settings = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-trimpath -buildvcs=false"}
    done = subprocess.run(
        ["go", *arguments],
        cwd=HERE / module,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    if done.returncode:
        told = done.stderr.strip()[-2_000:]
        raise NoControlPlaneError(f"nothing of {module} could be built: go {arguments[0]} fails: {told}")
    return done.stdout


if __name__ == "__main__":
    for each, place in (programs() | {"helm": program("helm")}).items():
        sys.stdout.write(f"{each}\t{place}\n")
