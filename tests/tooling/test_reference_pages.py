"""The committed reference is what the code says today (`make docs` renews it), and holds every row of every table."""

import re
from pathlib import Path
from typing import get_args

import pytest

from hostler.cli import reference
from hostler.cli.exit_codes import ExitCode
from hostler.cli.reference import GENERATED, commands, pages
from hostler.core.state.events import Event
from hostler.core.state.model import Phase
from hostler.core.tables.conditions import CONDITIONS
from hostler.core.tables.operations import OPERATIONS
from hostler.core.tables.phases import TRANSITIONS
from hostler.core.tables.recipes import RECIPES
from tests.cli_api import hostler, words

REFERENCE = Path(__file__).parents[2] / "docs/reference"
pytestmark = [pytest.mark.xdist_group("reference"), pytest.mark.usefixtures("docstrings_read_once")]


@pytest.fixture(scope="module")
def made(docstrings_read_once: None) -> dict[str, str]:
    return pages()


def test_the_committed_reference_is_what_the_code_says(made: dict[str, str]) -> None:
    """Mutant: a page is written from a set, in another order in each process."""
    written = {page.name: page.read_text() for page in REFERENCE.iterdir()}
    assert written.keys() == made.keys()
    assert [name for name in made if made[name] != written[name]] == [], "run `make docs` and commit what it writes"


def test_the_command_writes_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "pages", lambda: {"a.md": "one\n", "b.md": "two\n"})
    assert hostler("docs", "generate", "--out", str(tmp_path / "new" / "reference")) == ExitCode.ok
    assert {page.name: page.read_text() for page in (tmp_path / "new/reference").iterdir()} == reference.pages()


def test_the_reference_holds_every_row(made: dict[str, str]) -> None:
    """Mutant: leave one table out of a page; a phase, event or condition then has no documentation."""
    for text in made.values():
        assert "0x" not in re.sub(r"PCI\S*", "", text), "an object's address would differ each time"
    lifecycle = made["lifecycle.md"]
    for row in (*Phase, *RECIPES, *OPERATIONS):
        assert f"| `{row}` |" in lifecycle
    for edge in TRANSITIONS:
        assert f"| `{edge.before}` | `{edge.after}` |" in lifecycle
    for kind in CONDITIONS:
        assert f"| `{kind}` |" in made["conditions.md"]
    for event in get_args(Event):
        assert f"| `{event.__struct_config__.tag}` |" in made["events.md"]
    for command in words():
        assert f"### hostler {' '.join(command)}\n" in made["cli.md"]


@pytest.mark.nightly("writes the page of commands again, which takes ten seconds")
def test_the_reference_does_not_depend_on_the_window(monkeypatch: pytest.MonkeyPatch, made: dict[str, str]) -> None:
    monkeypatch.setenv("COLUMNS", "47")
    assert GENERATED + commands.page() == made["cli.md"]


def test_no_help_shows_a_default_that_means_none(made: dict[str, str]) -> None:
    """Mutant: an option without a default is printed as `[default: Nothing()]`, an argument as `NOTHING`."""
    assert "[default: " in made["cli.md"]
    assert [
        line for line in made["cli.md"].splitlines() if re.search(r"\bNOTHING\b|Nothing\(\)|default: None", line)
    ] == []
