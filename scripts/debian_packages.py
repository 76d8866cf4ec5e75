"""Builds Debian packages into dist: `hostler` for controllers, `hostler-agent` for nodes.

Each carries an environment of its own in /opt/hostler, of the wheels that the lock names by hash, so that it needs the
distribution's Python and nothing else. Both contain the agent: one of the two is installed on a machine.

    scripts/debian_packages.py [hostler|hostler-agent …]
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from msgspec import Struct
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements/runtime.txt"
_GIT = shutil.which("git") or "git"
HOME = "opt/hostler"
PYTHON = "/usr/bin/python3"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CONFFILES = {"hostler": ("etc/hostler/serve.env", ROOT / "deploy/systemd/serve.env")}
AFTER_INSTALL = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
"""


class DebianPackage(Struct, frozen=True):
    """One package: its name, the folder of its distribution, its unit, what it conflicts with as `other`.

    `optimised`: levels of optimisation that its unit runs with; bytecode is made for each.
    """

    name: str
    source: Path
    unit: Path
    summary: str
    other: str
    optimised: tuple[str, ...] = ("0",)


PACKAGES = {
    "hostler": DebianPackage(
        "hostler", ROOT, ROOT / "deploy/systemd/hostler.service", "controller of GPU servers' lives", "hostler-agent"
    ),
    "hostler-agent": DebianPackage(
        "hostler-agent",
        ROOT / "packages/agent",
        ROOT / "src/hostler/agent/hostler-agent.service",
        "node agent of Hostler",
        "hostler",
        ("0", "2"),
    ),
}


def main(names: list[str]) -> int:
    """Build the packages of these names, or all. Returns the exit status."""
    if unknown := [name for name in names if name not in PACKAGES]:
        print(f"no package {', '.join(unknown)}; write {' or '.join(PACKAGES)}", file=sys.stderr)
        return 2
    if not Path(PYTHON).exists() or not shutil.which("dpkg-deb"):
        print(f"{PYTHON} and dpkg-deb are needed: build on Debian or Ubuntu with python3-venv", file=sys.stderr)
        return 1
    for name in names or PACKAGES:
        with tempfile.TemporaryDirectory(prefix="hostler-deb-") as staging:
            print(build(PACKAGES[name], Path(staging)))
    return 0


def build(package: DebianPackage, staging: Path, out: Path = ROOT / "dist") -> Path:
    """Build one package in the folder `staging`. Returns its file in `out`. Raises CalledProcessError."""
    tree = staging / "tree"
    version = tomllib.loads((package.source / "pyproject.toml").read_text())["project"]["version"]
    _install(package, staging, tree / HOME, version)
    _put(package.unit, tree / "lib/systemd/system" / package.unit.name)
    for name, source in filter(None, (CONFFILES.get(package.name),)):
        _put(source, tree / name)
    for page in ("LICENSE", "docs/quick-start.md"):
        _put(ROOT / page, tree / "usr/share/doc" / package.name / Path(page).name)
    (tree / "usr/bin").mkdir()
    (tree / "usr/bin/hostler").symlink_to(f"/{HOME}/bin/hostler")
    _control(package, tree, version)
    made = out / f"{package.name}_{version}_{_architecture()}.deb"
    made.parent.mkdir(parents=True, exist_ok=True)
    moment = subprocess.check_output([_GIT, "log", "-1", "--format=%ct"], cwd=ROOT, text=True).strip()
    environment = os.environ | {"SOURCE_DATE_EPOCH": moment}
    _run("dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", str(tree), str(made), environment=environment)
    return made


def _install(package: DebianPackage, staging: Path, home: Path, version: str) -> None:
    """Put the package's environment together, as it will be at its place."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(staging), folder=package.source)
    wheel = staging / f"{package.name.replace('-', '_')}-{version}-py3-none-any.whl"
    _run(PYTHON, "-m", "venv", "--without-pip", str(home))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(home / "bin/python"))
    lock = staging / "lock.txt"
    lock.write_text("\n".join(locked(closure(package))))
    _run(*pip, "install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-compile", "-r", str(lock))
    _run(*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
    for script in (home / "bin").iterdir():
        if script.name.lower().startswith("activate"):
            script.unlink()
        elif not script.is_symlink() and (text := script.read_text()).startswith(f"#!{home}"):
            script.write_text(text.replace(str(home), f"/{HOME}"))
    settings = home / "pyvenv.cfg"
    settings.write_text("".join(f"{line}\n" for line in settings.read_text().splitlines() if str(home) not in line))
    library = str(home / "lib")
    compiled = (PYTHON, "-m", "compileall", "-q", "-s", str(home), "-p", f"/{HOME}", "--invalidation-mode")
    levels = [word for level in package.optimised for word in ("-o", level)]
    _run(*compiled, "unchecked-hash", *levels, library)


def closure(package: DebianPackage) -> set[str]:
    """Names of the distributions that the package's own needs on this Python, its extras left out.

    What the lock names for no Python is left out too: pyproject.toml overrides who asks for it.
    """
    never = {name for name, _ in _entries()} - {name for name, text in _entries() if _is_for_us(text)}
    declared = tomllib.loads((package.source / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [one for one in map(Requirement, declared) if one.marker is None or one.marker.evaluate({"extra": ""})]
    found: set[tuple[str, str]] = set()
    while wanted:
        one = wanted.pop()
        name = one.name.lower().replace("_", "-")
        fresh = {(name, extra) for extra in ("", *one.extras)} - found
        if name in never:
            continue
        found |= fresh
        listed = [Requirement(text) for text in requires(name) or ()]
        wanted += [r for r in listed if any(r.marker is None or r.marker.evaluate({"extra": e}) for _, e in fresh)]
    return {name for name, _ in found}


def locked(names: set[str]) -> Iterator[str]:
    """The lock's entries of these names for this Python, with hashes. Raises KeyError for a name that is not there."""
    entries = {name: text for name, text in _entries() if _is_for_us(text)}
    for name in sorted(names):
        yield entries[name]


def _is_for_us(entry: str) -> bool:
    """Whether the marker of a lock's entry holds here; of a name there may be one for each range of Pythons."""
    marker = Requirement(entry.partition(" --hash=")[0].strip()).marker
    return marker is None or marker.evaluate()


def _entries() -> Iterator[tuple[str, str]]:
    for text in LOCK.read_text().replace("\\\n", " ").splitlines():
        if text and not text[0].isspace() and not text.startswith(("#", "-")):
            yield text.split("==")[0].partition("[")[0].strip().lower(), text


def _control(package: DebianPackage, tree: Path, version: str) -> None:
    minor = _minor()
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink()) // 1024
    control = tree / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(
        f"Package: {package.name}\nVersion: {version}\nArchitecture: {_architecture()}\n"
        f"Maintainer: Hostler <hostler@localhost>\nInstalled-Size: {size}\nSection: admin\nPriority: optional\n"
        f"Depends: python3 (>= 3.{minor}), python3 (<< 3.{minor + 1}), libc6\n"
        f"Conflicts: {package.other}\nDescription: {package.summary}\n"
        f" Its environment is in /{HOME}, its unit is {package.unit.name}; neither is started by itself.\n"
    )
    for name in ("postinst", "postrm"):
        (control / name).write_text(AFTER_INSTALL)
        (control / name).chmod(0o755)
    if conffile := CONFFILES.get(package.name):
        (control / "conffiles").write_text(f"/{conffile[0]}\n")


def _minor() -> int:
    return int(subprocess.check_output([PYTHON, "-c", "import sys; print(sys.version_info.minor)"], text=True))


def _architecture() -> str:
    return ARCHITECTURES.get(platform.machine(), sysconfig.get_platform().rpartition("-")[2])


def _put(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)


def _run(*words: str, folder: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    subprocess.run(words, check=True, cwd=folder, env=environment, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
