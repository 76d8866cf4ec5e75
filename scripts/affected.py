"""Names the test files that a change may break, by who imports what: `make affected` runs them.

    python scripts/affected.py                       what differs from origin/main, committed or not
    python scripts/affected.py --base HEAD~3         from another commit
    python scripts/affected.py src/hostler/agent/kubelet.py

A module affects every test that imports it, however far away. A test that starts Hostler as a process imports all that
the command line does. A file that is not Python affects the modules of its folder, a document the tests of documents.
Where nobody can tell, all tests are named: the gate (`make test`) runs all of them in any case.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath

import grimp

HOUSE = Path(__file__).parents[1]
ROOTS = {"src": "hostler", "packages/checks": "hostler_checks", "": ""}
"""Folder of the tree → the package that begins in it; "" for the folders that are packages themselves."""
PACKAGES = ("hostler", "hostler_checks", "tests", "bench", "scripts")
STARTED = ("hostler.cli.", "hostler.app.", "hostler.agent.main")
"""Modules that a process of Hostler's may import: commands are found by their names, so no import shows them."""
STARTS = re.compile(r"\bHOSTLER\b|bin/hostler|\"-m\", \"hostler")
"""In a test's source: it starts Hostler, and may so run any command."""
NAMES_IT = "tests.end_to_end.processes"
"""Says where the installed command is, and starts nothing by itself: many import it for a free port alone."""
BENCHES = re.compile(r"\"-m\", \"(bench|tests|scripts)[\w.]*\"(?:, \"(\w+)\")?")
FOR_ALL = ("tests/conftest.py", "pyproject.toml", "Makefile", "requirements/", "scripts/environment")
DOCUMENTS = ("docs/", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/", ".ci/")


def main() -> int:
    """Print the files, one a line; nothing where nothing is affected. 2 where git cannot tell what has changed."""
    parser = argparse.ArgumentParser(description="Names the test files that a change may break.")
    parser.add_argument("paths", nargs="*", help="changed files; without any, what differs from --base")
    parser.add_argument("--base", default="origin/main", help="the commit to compare with")
    asked = parser.parse_args()
    try:
        paths = asked.paths or changed(asked.base)
    except subprocess.CalledProcessError as error:
        print(f"git cannot compare with {asked.base}: {error.stderr.strip()}; name another commit", file=sys.stderr)
        return 2
    print("\n".join(affected(paths)))
    return 0


def changed(base: str) -> list[str]:
    """Files that differ from the commit, new ones too. Raises CalledProcessError where it is none."""
    asked = (["git", "diff", "--name-only", base], ["git", "ls-files", "--others", "--exclude-standard"])
    ran = [subprocess.run(words, cwd=HOUSE, capture_output=True, text=True, check=True) for words in asked]
    return sorted({line for one in ran for line in one.stdout.splitlines()})


def affected(paths: Iterable[str]) -> list[str]:
    """The test files that these changed files may break, sorted."""
    paths, graph = list(paths), imports()
    tests = {
        name for name in graph.modules if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    }
    found: set[str] = set()
    for path in paths:
        modules = modules_of(path, graph.modules)
        if modules is None:
            return sorted(file_of(name) for name in tests)
        found |= modules
        for name in modules:
            found |= graph.find_downstream_modules(name)
    return sorted(file_of(name) for name in tests & found)


@cache
def imports() -> grimp.ImportGraph:
    """Read who imports what, in all packages; one that starts a process imports the command line, or its bench."""
    sys.path[:0] = [str(HOUSE / root) for root in ROOTS if str(HOUSE / root) not in sys.path]
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    command = [name for name in graph.modules if name.startswith(STARTED)]
    for name in [name for name in graph.modules if name.startswith("tests.")]:
        path = HOUSE / file_of(name)
        text = path.read_text("utf-8") if path.is_file() else ""
        for one in command if STARTS.search(text) and name != NAMES_IT else ():
            graph.add_import(importer=name, imported=one)
        for package, module in BENCHES.findall(text):
            started = f"{package}.{module}" if f"{package}.{module}" in graph.modules else package
            for one in [one for one in graph.modules if one == started or one.startswith(f"{started}.")]:
                graph.add_import(importer=name, imported=one)
    return graph


def modules_of(path: str, known: set[str]) -> set[str] | None:
    """The modules that a changed file belongs to; None where it may concern every test."""
    if path.startswith(FOR_ALL):
        return None
    if path.startswith(DOCUMENTS):
        return {name for name in known if name.startswith("tests.tooling.")} | {"hostler.cli.commands.docs"} & known
    name = module_of(path)
    if path.endswith(".py"):
        return {name} if name in known else None  # it is gone, so whoever imports it is broken
    folder = name.rpartition(".")[0]
    while folder.count("."):
        if beside := {one for one in known if one.startswith(f"{folder}.")}:
            return beside
        folder = folder.rpartition(".")[0]
    return None


def module_of(path: str) -> str:
    """The dotted name of a file of the tree."""
    root = next(root for root in ROOTS if root == "" or path.startswith(f"{root}/"))
    inside = PurePosixPath(path).relative_to(root) if root else PurePosixPath(path)
    return ".".join(inside.with_suffix("").parts).removesuffix(".__init__")


def file_of(module: str) -> str:
    """The file of a module of the tests."""
    return f"{module.replace('.', '/')}.py"


if __name__ == "__main__":
    sys.exit(main())
