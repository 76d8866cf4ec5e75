"""Builds the control plane's programs with Go into a cache outside the tree, once for each set of pinned modules.

Where `KUBEBUILDER_ASSETS` names a folder, programs that lie there are taken from it. From an empty module cache a build
takes some six minutes on two cores and 2 GB of memory, from Go's own cache half a minute.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
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
"""What kwok's kubelets do, as kwok itself ships it."""

PACKAGES = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kube", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kube", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kube", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
}
"""Each program's module and package."""


class NoControlPlaneError(Exception):
    """The programs are not there and cannot be built; says what is missing and how to get it."""


def programs() -> dict[str, Path]:
    """Where each program lies, and "stages"; builds what is missing. Raises NoControlPlaneError."""
    given = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
    cache = _cache()
    missing = [name for name in PACKAGES if not (given / name).exists() and not (cache / name).exists()]
    if missing or not (cache / "stages.yaml").exists():
        _build(cache, missing)
    found = {name: given / name if (given / name).exists() else cache / name for name in PACKAGES}
    return found | {"stages": cache / "stages.yaml"}


def _cache() -> Path:
    """One folder for each state of the pins: another version never runs in the place of what is asked for."""
    pins = b"".join((HERE / module / name).read_bytes() for module in ("etcd", "kube", "kwok") for name in _PINS)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "hostler-controlplane" / hashlib.sha256(pins).hexdigest()[:16]


_PINS = ("go.mod", "go.sum")


def _build(cache: Path, missing: list[str]) -> None:
    if shutil.which("go") is None:
        raise NoControlPlaneError("no Kubernetes control plane: install Go 1.26 (go.dev/dl), which builds one")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in missing:
            if not (cache / name).exists():
                _build_one(cache, name)
        if not (cache / "stages.yaml").exists():
            _collect_stages(cache)


def _build_one(cache: Path, name: str) -> None:
    module, package = PACKAGES[name]
    unfinished = cache / f"{name}.part"
    tags = ["-tags", "selinux,notest,grpcnotrace"] if module == "kube" else []
    _go(module, "build", "-p", "2", *tags, "-ldflags", _stamp(module), "-o", str(unfinished), package)
    unfinished.rename(cache / name)


def _stamp(module: str) -> str:
    """Kubernetes refuses to start without a version; the other two carry theirs."""
    if module != "kube":
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


def _collect_stages(cache: Path) -> None:
    folder = Path(_go("kwok", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").strip()) / "kustomize" / "stage"
    unfinished = cache / "stages.part"
    unfinished.write_text("\n---\n".join((folder / stage).read_text() for stage in STAGES))
    unfinished.rename(cache / "stages.yaml")


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
        raise NoControlPlaneError(f"no Kubernetes control plane: go {arguments[0]} fails: {told}")
    return done.stdout


if __name__ == "__main__":
    for program, place in programs().items():
        sys.stdout.write(f"{program}\t{place}\n")
