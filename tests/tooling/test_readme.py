"""tests/README.md and the threat model name tests that there are."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
README = (TESTS / "README.md").read_text(encoding="utf-8")
THREATS = (TESTS.parent / "docs/threat-model.md").read_text(encoding="utf-8")
ROWS = [line for line in README.splitlines() if line.startswith("| ") and not line.startswith("| question")]


def defined_in(path: Path) -> set[str]:
    """The tests that the file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {d.name for d in ast.walk(tree) if isinstance(d, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_is_named_stands() -> None:
    """Mutant: a test is renamed, and the page not."""
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", README + THREATS)
    assert len(named) > 120
    missing = [f"{path}::{name}" for path, name in named if name not in defined_in(TESTS / path)]
    assert missing == []


def test_every_question_has_an_answer_and_every_benchmark_is_there() -> None:
    assert len(ROWS) > 40
    assert [row for row in ROWS if "::test_" not in row] == []
    for bench in re.findall(r"`(bench/\w+\.py)`", README):
        assert (TESTS.parent / bench).is_file(), bench
