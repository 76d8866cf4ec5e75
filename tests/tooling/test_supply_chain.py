"""Packages beside our own code: declared, locked with their hashes, under licences that somebody has looked at."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.supply_chain import RUNTIME, invalid, judged, licences, pinned, rows, sbom

ROOT = Path(__file__).parents[2]
TEST = ROOT / "requirements/test.txt"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PERMISSIVE = {
    "Apache-2.0", "Apache2", "Apache-2.0 AND BSD-2-Clause", "Apache-2.0 AND MIT", "Apache-2.0 OR BSD-2-Clause",
    "Apache-2.0 OR BSD-3-Clause", "BSD", "BSD-2-Clause", "BSD-3-Clause",
    "BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", "MIT", "MIT OR Apache-2.0", "MIT-0", "PSF-2.0",
}  # fmt: skip
WITH_A_REASON = {
    ("psycopg", "LGPL-3.0-only"),
    ("psycopg-binary", "LGPL-3.0-only"),
    ("certifi", "MPL-2.0"),
    ("pathspec", "MPL-2.0"),
}
"""The reasons stand in docs/supply-chain.md."""


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[><=~! ]", line)[0].lower() for line in requirements}


def test_every_licence_is_one_that_somebody_has_looked_at() -> None:
    """Mutant: a package under the GPL is locked."""
    found = licences()
    assert {(n, words) for n, words in found.items() if words not in PERMISSIVE} == WITH_A_REASON
    page = (ROOT / "docs/supply-chain.md").read_text()
    table = "\n".join(rows(found))
    assert table in page, (
        f"the table of docs/supply-chain.md is not this one (scripts/supply_chain.py licences):\n{table}"
    )
    assert all(name in page for name, _ in WITH_A_REASON)


@pytest.mark.parametrize("lock", [RUNTIME, TEST])
def test_each_locked_package_has_its_hashes(lock: Path) -> None:
    entries = re.split(r"\n(?=[A-Za-z0-9])", lock.read_text())
    bare = [entry.partition("\n")[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
    assert not bare
    assert len(pinned(lock)) > 50


def test_tests_run_on_what_is_released() -> None:
    """The same versions in both locks, and no test's tool in the one that runs."""
    runtime, test = pinned(RUNTIME), pinned(TEST)
    assert {name: test.get(name) for name in runtime} == runtime
    assert not names(PROJECT["dependency-groups"]["test"]) & set(runtime)
    assert not {"faker", "polyfactory", "pytest", "hypothesis"} & set(runtime)


def imported(folder: Path) -> dict[str, str]:
    """First name of every module that the code imports → a file that does."""
    found: dict[str, str] = {}
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            found |= {module.partition(".")[0]: str(file) for module in modules}
    return found


OPTIONAL = {
    "apprise": ("apprise", "drivers/notify/apprise_target.py"),
    "keystoneauth1": ("keystone", "drivers/ironic/keystone_tokens.py"),
}
"""Modules of extras: which extra, and the one file that imports it and does without where it is not installed."""


@pytest.mark.nightly("reads all imports")
def test_our_code_imports_what_it_declares_and_nothing_else() -> None:
    """Mutant: import a package that only some dependency brings along today."""
    declared, owners = names(PROJECT["project"]["dependencies"]), importlib.metadata.packages_distributions()
    for module, file in imported(ROOT / "src").items():
        if module in sys.stdlib_module_names or module == "hostler":
            continue
        of = {canonical(name) for name in owners.get(module, ())}
        if module in OPTIONAL:
            extra, only = OPTIONAL[module]
            assert file.endswith(only)
            assert of & names(PROJECT["project"]["optional-dependencies"][extra])
            continue
        assert of & declared, f"{file} imports {module}, which is of {of or 'nobody'} and not among the dependencies"


OF_EXTRAS = ("hostler.app.trace_export",)
"""Modules that need an extra, and say which where it is not installed."""

RUNS_WITHOUT = """
import sys, pkgutil, importlib
sys.modules.update(dict.fromkeys({blocked}))  # as if they were not installed, also to who only looks
import hostler
for found in pkgutil.walk_packages(hostler.__path__, "hostler."):
    if not found.name.endswith("__main__") and ".migrations." not in found.name:
        try:
            importlib.import_module(found.name)
        except importlib.import_module("hostler.core.state.input_problems").InvalidInputError as why:
            assert found.name in {extras} and "hostler[" in str(why), (found.name, str(why))
import pathlib, tempfile
from hostler.journal.memory import MemoryJournal
from hostler.runtime.runner import Cell
from hostler.server.app import create_app
from hostler.server.agent_mailbox import AgentMailboxes
from hostler.server.server_settings import Settings
from hostler.server.tokens import TokenStore
tokens = TokenStore(pathlib.Path(tempfile.mkdtemp()) / "tokens")
app = create_app(Cell(MemoryJournal(), dict()), tokens, AgentMailboxes(lambda: 0), Settings())
print(len(app.openapi_schema.to_schema()["paths"]))
"""


@pytest.mark.nightly("imports the house in a process of its own")
def test_all_of_it_is_there_without_the_tools_of_tests() -> None:
    """Mutant: a module of ours, or the API's description, that needs what only tests install."""
    runtime = set(pinned(RUNTIME))
    owners = importlib.metadata.packages_distributions()
    of_tests = {module for module, of in owners.items() if not {canonical(n) for n in of} & (runtime | {"hostler"})}
    blocked = {"faker", "polyfactory"} | of_tests - set(sys.stdlib_module_names)
    assert {"pytest", "hypothesis", "sushy"} <= blocked
    code = RUNS_WITHOUT.format(blocked=repr(blocked), extras=repr(OF_EXTRAS))
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40


def test_the_list_of_what_runs_is_valid_and_whole() -> None:
    """Of this environment, which has the tests' tools too; its schema is asked about a few rows, as that takes long."""
    document = sbom(sys.executable)
    listed = {canonical(row["name"]): row["version"] for row in document["components"]}
    runtime = pinned(RUNTIME)
    assert {name: listed.get(name) for name in runtime} == runtime
    assert {"preact", "htm", "@preact/signals", "@preact/signals-core"} <= set(listed)
    few = {k: v for k, v in document.items() if k != "dependencies"} | {"components": document["components"][-6:]}
    assert not invalid(few)
    assert invalid({**few, "components": [{"name": "without a type"}]})


ASKED = {"name": "a", "version": "1", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "nobody knows it"}
KNOWN = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1"}]}


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        ([ASKED, ASKED], 0, "2 of 2 locked packages could be asked about; none of those has a known vulnerability"),
        ([ASKED, SKIPPED], 0, "1 of 2 locked packages could be asked about; none"),
        ([SKIPPED, SKIPPED], 0, "skipped: 0 of 2"),
        ([SKIPPED, KNOWN], 1, "known vulnerabilities: c 2: PYSEC-1"),
    ],
)
def test_nobody_asked_is_not_nothing_known(found: list[dict[str, Any]], status: int, said: str) -> None:
    """Mutant: a package that nobody could be asked about counts as sound."""
    ended, told = judged({"dependencies": found})
    assert (ended, said in told) == (status, True), told
