"""The list of decisions: every page once, in order, by its own number."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "adr"
ROW = re.compile(r"^\| \[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\) \| \S.* \|$")


def rows() -> list[tuple[str, str]]:
    lines = (FOLDER / "README.md").read_text("utf-8").splitlines()
    return [found.groups() for line in lines if (found := ROW.match(line))]  # type: ignore[misc]


def test_the_list_has_every_decision_once_in_order() -> None:
    """Mutants: a page that is not listed (five were); a row at the end, behind a higher number; a row of no page."""
    assert [page for _, page in rows()] == sorted(path.name for path in FOLDER.glob("0*.md"))
    assert [number for number, _ in rows()] == [page[:4] for _, page in rows()]


def test_no_two_decisions_have_one_number_and_each_is_headed_by_its_own() -> None:
    """Mutant: two branches take the next free number at once."""
    numbers = [path.name[:4] for path in FOLDER.glob("0*.md")]
    assert sorted(set(numbers)) == sorted(numbers)
    for path in FOLDER.glob("0*.md"):
        assert path.read_text("utf-8").startswith(f"# {int(path.name[:4])}. "), path.name
