"""The threat model names the test of each thing that stops somebody, and has a row for each thing that must stand."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hostler.core.state.source_budgets import SourceLimits, SourcePolicy

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs/threat-model.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
HEAD = "| can try | is stopped by |"

STRANGER, TOKEN, AGENT = "A stranger with a TCP connection", "A stolen token", "Root on a node, or an agent that lies"
BOOT, TENANT, NARROWED = "Somebody on the boot network", "A tenant", "An operator narrowed to a site or pool"
BMC, TARGET = "A hostile or broken BMC", "A target of notifications, or somebody on the way to one"
DISK = "Who can write the disk or the database"
BUDGETS = "scenario/test_source_budgets.py"
PROTECTED = {
    "every listener has one guard": (STRANGER, "adversary/test_listeners.py", "tooling/test_listeners.py"),
    "who reads nothing is ended": (STRANGER, "component/test_guarded_listener.py"),
    "audit lines of a flood are its sender's": (TOKEN, "contract/test_api_audit.py", "unit/test_audit_folding.py"),
    "a budget for each person": (TOKEN, BUDGETS),
    "a budget for each agent": (AGENT, BUDGETS, "adversary/test_one_token.py"),
    "what A says about B": (AGENT, "adversary/test_one_token.py", "scenario/test_part_claims.py"),
    "readers do not count records": (AGENT, "contract/test_crowded_histories.py", "contract/test_subject_histories.py"),
    "the disk keeps a reserve": (AGENT, "adversary/test_full_disk.py", "contract/test_disk_reserve.py"),
    "a budget for unproven machines": (BOOT, BUDGETS),
    "boot listeners are a process": (BOOT, "component/test_boot_process.py", "adversary/test_listeners.py"),
    "a boot's secret leaves no line": (BOOT, "component/test_boot_secret_log.py"),
    "a budget for each tenant": (TENANT, BUDGETS),
    "tenants read no operator's name": (TENANT, "unit/test_names_in_refusals.py"),
    "a person is a person": (NARROWED, "unit/test_people.py", "contract/test_sign_in.py", "unit/test_approvals.py"),
    "a budget for each BMC": (BMC, BUDGETS),
    "one redactor": (TARGET, "unit/test_secret_exits.py", "unit/test_secret_patterns.py"),
    "the connected address is judged": (TARGET, "contract/test_connected_peers.py", "unit/test_reachable_addresses.py"),
    "every outgoing driver is judged": (TARGET, "tooling/test_outgoing_connections.py"),
    "exports are private": (DISK, "component/test_private_exports.py"),
}
"""The section with the row of each thing that has to stand, and the files of the tests that it names."""


def sections() -> dict[str, list[str]]:
    """Rows of the tables of attacks, by the heading above them."""
    found: dict[str, list[str]] = {}
    for part in PAGE.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        if HEAD in text:
            rows = text.partition(HEAD)[2].splitlines()[2:]
            found[title] = [line for line in rows if line.startswith("| ")]
    return found


ROWS = [(title, row) for title, rows in sections().items() for row in rows]


@cache
def found_in(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Tests that pytest finds in the file: those that stand at its outermost level."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_tables_are_read() -> None:
    assert len(sections()) >= 10
    assert len(ROWS) > 80


def test_each_row_names_a_test_that_runs() -> None:
    """Mutants: a row by somebody's word alone; a test that is a helper's or skipped for good by now."""
    assert [problem for title, row in ROWS for problem in problems(title, row)] == []


def problems(title: str, row: str) -> Iterator[str]:
    named = NAMED.findall(row)
    if not named or row.count("::test_") != len(named):
        yield f"{title}: {row}: name the test that plays it, as `path/test_file.py::test_name`"
    for path, name in named:
        found = found_in(path).get(name)
        decorators = [ast.unparse(one) for one in found.decorator_list] if found is not None else []
        if found is None:
            yield f"{title}: {path}::{name} is not there"
        elif any(re.search(r"mark\.(skip\b|xfail)", one) for one in decorators):
            yield f"{title}: {path}::{name} does not run"


@pytest.mark.parametrize("what", PROTECTED)
def test_what_must_stand_has_its_row(what: str) -> None:
    """Mutant: a row is taken away, or rewritten without its test."""
    title, *files = PROTECTED[what]
    named = {path for row in sections()[title] for path, _ in NAMED.findall(row)}
    assert set(files) <= named, f"{title} has no row for: {what}"


def test_each_source_that_has_a_budget_has_a_row() -> None:
    """Mutant: a sixth source in `SourcePolicy` that nobody thinks of here."""
    sources = {name for name, kind in SourcePolicy.__annotations__.items() if kind in (SourceLimits, "SourceLimits")}
    assert sources == {"agent", "bmc", "boot", "person", "tenant"}, "give the new source a row, and name it here"


def test_each_attack_is_on_a_page() -> None:
    """Mutant: an attack is written that no page names. Tests that are no attack stand on the page of tests."""
    pages = {path for path, _ in NAMED.findall(PAGE + (TESTS / "README.md").read_text(encoding="utf-8"))}
    found = {f"adversary/{one.name}" for one in (TESTS / "adversary").glob("test_*.py")}
    assert len(found) > 8
    assert sorted(found - pages) == []
