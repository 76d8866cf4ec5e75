"""The distribution `hostler-checks`: installs without the rest, holds what it needs, and imports nothing of Hostler."""

import ast
import importlib.metadata
import json
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from hostler_checks import VERSION
from hostler_checks.catalogue import CHECKS
from tests.checks.suite_runs import PACKAGE

SOURCE = PACKAGE / "hostler_checks"
NEEDS = ("numpy", "array-api-compat", "pyyaml")


def test_it_imports_nothing_of_hostler() -> None:
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.partition(".")[0] == "hostler"], file


def test_its_version_and_requirements_are_what_it_says() -> None:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    assert [line.partition(">=")[0] for line in project["dependencies"]] == list(NEEDS)


def test_the_wheel_runs_beside_its_requirements_alone(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PACKAGE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    for top in {file.parts[0] for name in NEEDS for file in importlib.metadata.files(name) or ()} - {".."}:
        (site / top).symlink_to(Path(sysconfig.get_path("purelib")) / top)
    text = f"import sys; sys.path.insert(0, {str(site)!r}); from hostler_checks.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text, "list", "-o", "json"], capture_output=True, text=True, check=False
    )
    rows = json.loads(done.stdout or "[]")
    assert [row["name"] for row in rows] == list(CHECKS), done.stderr
    assert all(row["detects"] and row["cost"] and row["memory"] and row["version"] for row in rows)


@pytest.mark.parametrize(
    "wrong",
    [["run"], ["run", "--state", "x", "--profile", "dusk"], ["run", "--state", "x", "--for", "long"], ["no"], []],
)
def test_what_cannot_be_asked_is_no_verdict(wrong: list[str], tmp_path: Path) -> None:
    """Exit 3, as a plug-in that cannot say; argparse's own 2 would read as failed."""
    done = subprocess.run(
        [sys.executable, "-m", "hostler_checks.main", *wrong],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(PACKAGE)},
    )
    assert (done.returncode, bool(done.stderr)) == (3, True)
