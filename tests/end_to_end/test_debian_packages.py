"""The agent's Debian package, installed by dpkg into a copy of this machine's file system that is thrown away."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = """
import sys
import tomllib
from pathlib import Path
sys.path.insert(0, "scripts")
from debian_packages import PACKAGES, build
print(build(PACKAGES["hostler-agent"], Path(sys.argv[1]), Path(sys.argv[2])))
"""
INSIDE = """
set -eu
mount -t tmpfs none "$1" && mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc" && mount --bind /dev "$1/root/dev"
cp "$2" "$1/root/package.deb"
chroot "$1/root" sh -euc '
  export PYTHONDONTWRITEBYTECODE=
  dpkg --install /package.deb >&2
  hostler agent --rss
  /opt/hostler/bin/python -c "import hostler, msgspec, aiohttp; print(hostler.__file__)"
  find /opt/hostler/lib -name "main.cpython-*.opt-2.pyc" | grep hostler/agent
  grep -rl hostler-deb- /opt/hostler && echo "names its build folder"
  cp /package.deb /twin.deb && dpkg --install /twin.deb >&2
  dpkg --purge hostler-agent >&2
  test ! -e /usr/bin/hostler && test -z "$(find /opt/hostler -type f 2>/dev/null)" && echo purged
'
"""


def test_dpkg_installs_the_agent_and_takes_it_away_again(tmp_path: Path) -> None:
    """Mutants: scripts name the folder they were built in; bytecode for another level; files that stay behind."""
    if os.geteuid() or not all(map(shutil.which, ("dpkg-deb", "unshare"))) or not Path("/usr/bin/python3").exists():
        pytest.skip("needs root, dpkg and the distribution's Python")
    staging, mount = tmp_path / "staging", tmp_path / "mount"
    staging.mkdir()
    mount.mkdir()
    words = (sys.executable, "-c", BUILD, str(staging), str(tmp_path / "out"))
    built = subprocess.run(words, check=True, cwd=ROOT, capture_output=True, text=True, timeout=120)
    package = built.stdout.strip()
    inside = ("unshare", "--mount", "sh", "-c", INSIDE, "sh", str(mount), package)
    done = subprocess.run(inside, check=False, capture_output=True, text=True, timeout=120)
    if "overlay" in done.stderr and "mount:" in done.stderr:
        pytest.skip(f"no overlay of the file system can be mounted here: {done.stderr[:200]}")
    assert done.returncode == 0, done.stderr[-2000:]
    rss, module, bytecode, purged = done.stdout.split("\n", 3)
    assert rss.endswith(" KiB")
    assert module.startswith("/opt/hostler/lib/python3")
    assert bytecode
    assert purged.strip() == "purged", done.stdout
    assert not (Path("/opt/hostler") / "bin/hostler-agent").exists(), "the machine itself is as it was"


def test_a_package_that_is_none_is_refused_by_name() -> None:
    words = (sys.executable, "scripts/debian_packages.py", "hostler-agents")
    done = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "write hostler or hostler-agent" in done.stderr) == (2, True)


def test_the_image_is_made_of_the_package_of_this_version_and_is_not_root() -> None:
    """Mutants: another version than pyproject.toml's; a user before what needs root; a base by a tag."""
    recipe = (ROOT / "deploy/Dockerfile").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert set(re.findall(r"hostler_([\d.]+)_amd64\.deb", recipe)) == {version}
    assert "FROM ${BASE}" in recipe
    assert 0 < recipe.index("RUN apt-get") < recipe.index("USER 65532:65532")
