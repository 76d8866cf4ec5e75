"""Pictures of the console: each page has one, each picture stands on the page of the documents, none is left over."""

import re
from pathlib import Path

import pytest

from hostler.server.routes.console_files import PAGES
from scripts.console_pictures import OUT, TAKEN

pytestmark = pytest.mark.nightly("a browser works through the page")

ROOT = Path(__file__).parents[2]
ALL_MOST = 4_000_000
"""Bytes of all pictures together: a checkout carries each version of them."""
SHOWN = re.compile(r"images/(console-[\w-]+\.png)")


def test_each_page_has_its_picture_and_the_sign_in_too() -> None:
    """Mutant: a new page is shown to nobody."""
    shown = {picture.page.partition("?")[0].split("/")[1] for picture in TAKEN.values()}
    assert {"", *PAGES} == shown
    assert {picture.who for picture in TAKEN.values()} == {"", "olga", "tess", "amy"}
    assert {picture.scheme for picture in TAKEN.values()} == {"light", "dark"}


def test_each_picture_is_there_and_is_shown_once_with_what_it_is_for() -> None:
    """Mutants: a picture that nothing takes any more stays; one is taken and stands nowhere."""
    named = {f"console-{name}.png" for name in TAKEN}
    assert {file.name for file in OUT.iterdir()} == named
    page = (ROOT / "docs/console.md").read_text()
    assert sorted(SHOWN.findall(page)) == sorted(named)
    assert set(SHOWN.findall((ROOT / "README.md").read_text())) <= named
    sections = page.split("\n## ")[1:]
    assert all(re.search(r"\n\n[A-Z][^\n]+\.\n\n!\[", section) for section in sections)


def test_pictures_are_small_and_whole() -> None:
    """Mutants: pictures that a repository cannot carry; one that was cut off."""
    files = list(OUT.iterdir())
    assert all(file.read_bytes().startswith(b"\x89PNG\r\n") for file in files)
    assert all(file.read_bytes().endswith(b"IEND\xaeB`\x82") for file in files)
    assert sum(file.stat().st_size for file in files) < ALL_MOST
