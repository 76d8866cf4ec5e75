"""The whole Hostler as `pip install` from a file leaves it: an empty environment, no index; `hostler up` answers."""

import asyncio
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

import pytest
from packaging.requirements import Requirement

from hostler.agent.main import VERSION
from tests.end_to_end.processes import free_port, process, run
from tests.end_to_end.test_agent_installed import requires

pytestmark = pytest.mark.nightly("packages and sites are built")

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
ABSENT = {"polyfactory", "faker"}
"""Required by Litestar for its users' tests; what is released is locked without them."""


def closure(of: list[Requirement]) -> set[str]:
    """The distributions that these bring along, by this environment's own metadata."""
    found: set[str] = set()
    waiting = [one for one in of if one.marker is None or one.marker.evaluate({"extra": ""})]
    while waiting:
        name = waiting.pop().name
        if name in found | ABSENT:
            continue
        found.add(name)
        brought = map(Requirement, importlib.metadata.requires(name) or ())
        waiting += [one for one in brought if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with our wheel, and with what it requires as this environment has it; no registry is asked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("hostler-*.whl")
    place = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=120)
    pip = [sys.executable, "-m", "pip", "--python", f"{place}/bin/python", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--no-compile", str(wheel)], check=True, timeout=120)
    (site,) = place.glob("lib/python3*/site-packages")
    for name in closure(requires(wheel)):
        for file in importlib.metadata.files(name) or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                copyfile(file.locate(), site / file)
    return place


async def test_a_wheel_from_a_file_runs_the_first_command_of_the_readme(environment: Path, tmp_path: Path) -> None:
    """Mutants: a file of data (the policy, the console, a migration) that the wheel leaves out; a requirement that is
    not declared; a program that is not installed.
    """
    own, log = environment / "bin/hostler", tmp_path / "log"
    newcomer = ("env", "-C", str(tmp_path), "-u", "PYTHONPATH", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}")
    code, said = await run(*newcomer, str(own), "version")
    assert (code, VERSION in said) == (0, True), said
    where = await run(*newcomer, str(environment / "bin/python"), "-c", "import hostler; print(hostler.__file__)")
    assert where[1].startswith(str(environment)), where
    start = ("up", "--port", str(free_port()), "--nodes", "6", "--adopted", "--faults-per-hour", "0")
    async with process(*newcomer, str(own), *start, log=log) as up:
        async with asyncio.timeout(PATIENCE_S):
            while "Stop with Ctrl-C." not in log.read_text():
                assert up.returncode is None, log.read_text()[-2000:]
                await asyncio.sleep(0.2)
        code, said = await run(*newcomer, str(own), "status")
        assert code == 0, said
        assert "production" in said
        address = next(word for word in log.read_text().split() if word.startswith("http")).partition("#")[0]
        fetch = f"import urllib.request as u; print(u.urlopen('{address}').read()[:4000].decode())"
        code, page = await run(*newcomer, str(environment / "bin/python"), "-c", fetch)
        assert (code, "<!doctype html>" in page.lower()) == (0, True), page
