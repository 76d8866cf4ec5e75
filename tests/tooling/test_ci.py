"""CI's entries: each is there to be run, and calls only what the Makefile has."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):", (HOUSE / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("entry", "targets"), [("run", {"test"}), ("nightly", {"nightly"})])
def test_an_entry_of_ci_calls_targets_that_the_makefile_has(entry: str, targets: set[str]) -> None:
    """Mutant: a target is renamed in one of both places."""
    path = HOUSE / ".ci" / entry
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    (called,) = re.findall(r"^exec timeout \S+ \S+ make (.+)$", path.read_text(), re.MULTILINE)
    assert set(called.split()) == targets <= TARGETS


TOOLS = ("ruff", "mypy", "lint-imports", "deptry", "python", "pytest")


@pytest.mark.parametrize("failing", ["", "mypy", "pytest"])
def test_lint_runs_beside_all_tests_and_each_fails_the_whole(tmp_path: Path, failing: str) -> None:
    """Mutants: lint comes before the tests or after them; its failure is forgotten; it talks between the tests."""
    wait = "until [ -e {} ]; do sleep 0.02; done"
    acts = {"pytest": f"echo a test; touch begun; {wait.format('checked')}", "mypy": "touch checked"}
    for name in TOOLS:
        act = acts.get(name, wait.format("begun"))
        tool = write(tmp_path / "bin" / name, f"#!/bin/sh\n{act}\necho {name} ends\nexit {int(name == failing)}\n")
        tool.chmod(0o755)
    write(tmp_path / "scripts/system-packages", "#!/bin/sh\n").chmod(0o755)
    for made in ("scripts/environment", "requirements/runtime.txt", "requirements/test.txt", "pyproject.toml"):
        write(tmp_path / made, "")
    for stamp in (".made", ".runtime", ".test"):
        write(tmp_path / stamp, "")
    shutil.copy(HOUSE / "Makefile", tmp_path)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    asked = ["make", "test", "VENV=."]
    ran = subprocess.run(asked, cwd=tmp_path, env=plain, capture_output=True, text=True, check=False, timeout=20)
    assert (ran.returncode != 0) == bool(failing), ran.stderr
    told = [line for line in ran.stdout.splitlines() if line and not line.startswith(("./bin", "scripts", "make["))]
    headed = told.index(f"make lint{' failed' if failing == 'mypy' else ''}:")
    linted = ["ruff ends", "ruff ends", "mypy ends"]
    if failing != "mypy":
        linted += ["lint-imports ends", "deptry ends", *["python ends"] * 3]
    assert told[headed + 1 : headed + 1 + len(linted)] == linted
    rest = told[:headed] + told[headed + 1 + len(linted) :]
    assert rest == ["a test", "pytest ends"]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


SCRIPTS = sorted(
    path for folder in ("scripts", ".ci") for path in (HOUSE / folder).iterdir() if path.is_file() and not path.suffix
)
PACKAGES = HOUSE / "scripts" / "system-packages"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_of_the_set_up_has_no_mistake_of_its_shell(script: Path) -> None:
    """Mutant: an apostrophe in a list between apostrophes, after which the shell runs the list's words."""
    if not shutil.which("shellcheck"):
        pytest.skip("needs shellcheck: apt-get install shellcheck")
    read = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stdout) == (0, "")


def test_a_bare_machine_is_asked_for_every_package_of_the_list(tmp_path: Path) -> None:
    """Mutant: the list ends early, at a reason with an apostrophe in it, and the words after it are run."""
    for name, does in {"id": "echo 0", "env": 'echo "$@"', "apt-get": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{does}\n")
        (tmp_path / name).chmod(0o755)
    bare = {"PATH": str(tmp_path)}
    ran = subprocess.run(["/bin/bash", str(PACKAGES)], env=bare, capture_output=True, text=True, check=False)
    rows = re.findall(r"^([a-z0-9.+-]+) *\| *(\S+) *\|", PACKAGES.read_text(), re.MULTILINE)
    missing = [package for package, evidence in rows if not (evidence.startswith("/") and Path(evidence).exists())]
    assert len(rows) > 40
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0] == f"installing: {' '.join(missing)}"


ESSENTIAL = {"util-linux"}
"""Packages that no Debian lacks."""


def test_what_a_skip_asks_to_install_is_on_the_list_of_system_packages() -> None:
    """Mutant: a package that the tests came to need is not on it, so that a fresh machine skips them."""
    listed = set(re.findall(r"^([a-z0-9.+-]+)\s*\|", (HOUSE / "scripts/system-packages").read_text(), re.MULTILINE))
    commands = re.compile(r"apt-get install((?: (?:--[a-z-]+|[a-z0-9][a-z0-9+.-]*))+)")
    sources = [path.read_text() for path in (HOUSE / "tests").rglob("*.py")]
    asked = {name for text in sources for words in commands.findall(text) for name in words.split()}
    asked = {name for name in asked if not name.startswith("--")}
    assert len(asked) > 15
    assert asked - listed - ESSENTIAL == set()
