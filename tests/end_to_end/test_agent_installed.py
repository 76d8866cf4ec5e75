"""The distribution `hostler-agent` in an environment of its own: what it brings, that it runs, what memory it takes."""

import asyncio
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from shutil import copyfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.agent import as_the_unit, children, memory_mb
from hostler.agent.main import VERSION, settings_from
from tests.end_to_end.processes import end, run
from tests.end_to_end.served import NODE, served_without_agent

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages/agent"
PATIENCE_S = 60.0
MOST_MB = 64.0
"""gpud 85, node-problem-detector 48."""
SETTLES_S = 12.0
"""Within it the agent has taken its first inventory and looked at the host."""
BROUGHT = {"hostler-agent", "msgspec", "aiohttp", "nvidia-ml-py"}
"""Packages that are installed for their own sake; beside them are those that aiohttp needs."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution, built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PACKAGE, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with it and what it requires, compiled as the install page says; no registry is asked."""
    place = tmp_path_factory.mktemp("node") / "hostler"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", f"{place}/bin/python", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    (site,) = place.glob("lib/python3*/site-packages")
    for name in needed(requires(wheel)):
        for file in importlib.metadata.files(name) or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                copyfile(file.locate(), site / file)
    subprocess.run([*pip, "check"], check=True)
    subprocess.run([f"{place}/bin/python", "-OO", "-m", "compileall", "-q", str(place / "lib")], check=True)
    return place


def requires(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        lines = archive.read(name).decode().splitlines()
    return [Requirement(line.partition(": ")[2]) for line in lines if line.startswith("Requires-Dist: ")]


def needed(of: list[Requirement], extra: str = "") -> set[str]:
    """The distributions that these bring along, by this environment's own metadata."""
    found: set[str] = set()
    for one in of:
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            found.add(one.name)
            found |= needed([Requirement(line) for line in importlib.metadata.requires(one.name) or ()])
    return found


@pytest.mark.nightly("builds wheels")
def test_it_requires_three_distributions_and_holds_nothing_of_the_controller(wheel: Path, installed: Path) -> None:
    """Mutants: the whole tree is packed; a dependency of the controller slips in."""
    assert {one.name for one in requires(wheel)} == BROUGHT - {"hostler-agent"}
    (site,) = installed.glob("lib/python3*/site-packages")
    there = {canonicalize_name(entry.name.split("-")[0]) for entry in site.glob("*.dist-info")}
    assert there == BROUGHT | {canonicalize_name(name) for name in needed([Requirement("aiohttp")])}
    assert {file.name for file in (site / "hostler").iterdir()} <= {
        "__init__.py", "__pycache__", "agent", "core", "logs",
    }  # fmt: skip
    assert not list(site.glob("hostler/core/p*/**/guards.py"))
    assert (site / "hostler/agent/hostler-agent.service").is_file()
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    assert size < 20e6


def test_each_of_its_modules_is_there_without_the_others(installed: Path) -> None:
    """Mutant: a module that the agent imports only when it is asked for something is not packed."""
    code = """
import importlib, pkgutil, hostler
for found in pkgutil.walk_packages(hostler.__path__, "hostler."):
    importlib.import_module(found.name)
"""
    done = subprocess.run([f"{installed}/bin/python", "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_both_distributions_are_of_one_version() -> None:
    whole, agent = (tomllib.loads((place / "pyproject.toml").read_text())["project"] for place in (ROOT, PACKAGE))
    assert {whole["version"], agent["version"]} == {VERSION}
    assert set(agent["dependencies"]) < set(whole["dependencies"])


async def test_the_commands_option_by_option_are_those_of_the_whole(installed: Path) -> None:
    """`hostler agent` is written twice: for the whole house's command line, and for the standard library's."""
    code, whole = await run(f"{Path(sys.executable).parent}/hostler", "agent", "--help")
    assert code == 0
    code, alone = await run(f"{installed}/bin/hostler", "agent", "--help")
    assert code == 0
    listed = [set(re.findall(r"(?m)^\s+(?:-h, )?(--[a-z-]+)", text)) - {"--help"} for text in (whole, alone)]
    assert listed[0] == listed[1]
    assert len(listed[0]) > 12
    code, said = await run(f"{installed}/bin/hostler", "serve", "--data", "x")
    assert code == 1
    assert "pip install hostler" in said
    assert await run(f"{installed}/bin/hostler", "--version") == (0, f"{VERSION}\n")
    assert settings_from(["--node", "n1"]) is not None


async def test_it_is_heard_by_a_controller_and_takes_at_most_64_mb(installed: Path, tmp_path: Path) -> None:
    """The installed command as the unit starts it, against `serve`; pages that processes share count in each."""
    async with served_without_agent(tmp_path, '""', {}, (), PATIENCE_S) as (world, words):
        twin = ROOT / "tests/nvml_states/healthy_h100x8.json"
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        with (tmp_path / "agent.log").open("wb") as log:
            agent = await asyncio.create_subprocess_exec(
                f"{installed}/bin/hostler", *words, "--kernel-log", "", "--nvml-twin", str(twin),
                env={**own, **as_the_unit("/etc/ssl/certs/ca-certificates.crt")}, stderr=log,
            )  # fmt: skip
        try:
            await world.until('"phase":"production"')
            await asyncio.sleep(SETTLES_S)
            taken = {name: memory_mb(pid) for name, pid in {"agent": agent.pid, **children(agent.pid)}.items()}
            told = json.loads(await world.read(f"/v1/nodes/{NODE}"))["agent"]
        finally:
            await end(agent)
    assert (told["heard"], told["version"]) == (True, VERSION)
    assert "nvml_state_reader" in taken
    assert sum(one.rss for one in taken.values()) <= MOST_MB, taken
    assert agent.returncode == 0, (tmp_path / "agent.log").read_text()
