"""Modules that documents name by their path."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hostler"
ROOMS = "|".join(sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and not path.name.startswith("__")))
NAMED = re.compile(rf"`((?:{ROOMS})/[a-z0-9_/]+)(?:\.py)?`")


def test_every_module_that_a_page_names_is_there() -> None:
    """Mutant: a file is renamed, and the code map sends its readers to the old name."""
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    decisions = ROOT / "docs" / "adr"  # they tell how it was
    named = {
        (page.relative_to(ROOT).as_posix(), path)
        for page in pages
        if decisions not in page.parents
        for path in NAMED.findall(page.read_text("utf-8"))
    }
    assert len(named) > 50
    assert sorted((page, path) for page, path in named if not _is_there(path)) == []


def _is_there(path: str) -> bool:
    return (SOURCE / path).exists() or (SOURCE / f"{path}.py").exists()
