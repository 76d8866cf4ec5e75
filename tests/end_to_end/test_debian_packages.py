"""Debian packages of agent and controller, installed by dpkg into a copy of this machine that is thrown away."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly("processes are started and ended for minutes")

ROOT = Path(__file__).parents[2]
BUILD = """
import sys
from pathlib import Path
sys.path.insert(0, "scripts")
from debian_packages import PACKAGES, build
print(build(PACKAGES[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3])))
"""
BUILD_S, INSTALL_S = 480, 240
MACHINE = """
set -eu
ip link set lo up
mount -t tmpfs none "$1" && mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc" && mount --bind /dev "$1/root/dev"
cp "$2" "$1/root/package.deb"
cp "$3" "$1/root/inside.sh"
unset PYTHONPATH VIRTUAL_ENV
export PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=
exec chroot "$1/root" sh -eu /inside.sh
"""
AGENT = """
dpkg --install /package.deb >&2
hostler agent --rss
/opt/hostler/bin/python -c "import hostler, msgspec, aiohttp; print(hostler.__file__)"
find /opt/hostler/lib -name "main.cpython-*.opt-2.pyc" | grep hostler/agent
grep -rl hostler-deb- /opt/hostler && echo "names its build folder"
cp /package.deb /twin.deb && dpkg --install /twin.deb >&2
dpkg --purge hostler-agent >&2
test ! -e /usr/bin/hostler && test -z "$(find /opt/hostler -type f 2>/dev/null)" && echo purged
"""
CONTROLLER = """
dpkg --install /package.deb >&2
unit=/lib/systemd/system/hostler.service
if command -v systemd-analyze >/dev/null; then systemd-analyze verify $unit 2>&1 | grep hostler && exit 3; fi
grep -rl hostler-deb- /opt/hostler && exit 4
install -d -o 65534 -m 0700 /var/lib/hostler
. /etc/hostler/serve.env
command=$(sed -n 's/^ExecStart=//p' $unit)
export HOSTLER_SERVE_OPTIONS
setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs sh -c "umask 077; exec $command" >/serve.log 2>&1 &
serve=$!
export HOME=/ HOSTLER_SERVER=http://127.0.0.1:8440
for _ in $(seq 120); do
    HOSTLER_TOKEN=$(cat /var/lib/hostler/operator.token || true) hostler status >/said 2>&1 && break
    kill -0 $serve || { cat /serve.log >&2; exit 5; }
    sleep 0.5
done
export HOSTLER_TOKEN=$(cat /var/lib/hostler/operator.token)
hostler version
/opt/hostler/bin/python -c "import psycopg; print('libpq of', psycopg.pq.__impl__)"
hostler node list -o json
/opt/hostler/bin/python -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8440/').read()[:15].decode())"
stat -c '%u %a' /var/lib/hostler/operator.token
kill $serve
wait $serve && echo "ended well"
find /opt/hostler -newer /said -type f | grep . && exit 6
echo "# an operator's own line" >> /etc/hostler/serve.env
dpkg --remove hostler >&2
grep -q "own line" /etc/hostler/serve.env && echo "kept its settings"
dpkg --purge hostler >&2
test ! -e /usr/bin/hostler && test ! -e /etc/hostler/serve.env
test -z "$(find /opt/hostler -type f 2>/dev/null)" && echo purged
test -e /var/lib/hostler/operator.token && echo "kept its state"
"""


def on_a_machine(name: str, script: str, folder: Path) -> str:
    """Return what the script says, run beside the built package, on a copy of this machine with its own network."""
    tools = ("dpkg-deb", "unshare", "ip", "setpriv")
    if os.geteuid() or not all(map(shutil.which, tools)) or not Path("/usr/bin/python3").exists():
        pytest.skip("needs root, dpkg, iproute2 and the distribution's Python")
    staging, mount, inside = folder / "staging", folder / "mount", folder / "inside.sh"
    staging.mkdir()
    mount.mkdir()
    inside.write_text(script)
    words = (sys.executable, "-c", BUILD, name, str(staging), str(folder / "out"))
    built = subprocess.run(words, check=True, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S)
    shutil.rmtree(staging)
    package = built.stdout.strip().splitlines()[-1]
    argv = ("unshare", "--mount", "--net", "sh", "-c", MACHINE, "sh", str(mount), package, str(inside))
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=INSTALL_S)
    if "overlay" in done.stderr and "mount:" in done.stderr:
        pytest.skip(f"no overlay of the file system can be mounted here: {done.stderr[:200]}")
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-500:]} {done.stderr[-2000:]}"
    return done.stdout


def test_dpkg_installs_the_agent_and_takes_it_away_again(tmp_path: Path) -> None:
    """Mutants: scripts name the folder they were built in; bytecode for another level; files that stay behind."""
    rss, module, bytecode, purged = on_a_machine("hostler-agent", AGENT, tmp_path).split("\n", 3)
    assert rss.endswith(" KiB")
    assert module.startswith("/opt/hostler/lib/python3")
    assert bytecode
    assert purged.strip() == "purged", purged
    assert not (Path("/opt/hostler") / "bin/hostler-agent").exists(), "the machine itself is as it was"


def test_dpkg_installs_a_controller_whose_unit_serves_as_nobody_and_takes_it_away_again(tmp_path: Path) -> None:
    """As systemd would start it: the unit's command with the settings file's options, without any right.

    Mutants: a file of data that the package leaves out; a library that the lock has in a version for each Python, or by
    an extra, is not in it; a unit whose program is elsewhere; code that is written when it runs; state that goes too.
    """
    said = on_a_machine("hostler", CONTROLLER, tmp_path).splitlines()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version in said[0], said
    assert said[1] == "libpq of binary", said
    assert '"items"' in "".join(said), said
    assert "<!doctype html>" in "".join(said).lower(), said
    assert "65534 600" in said, said
    assert said[-4:] == ["ended well", "kept its settings", "purged", "kept its state"], said


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
