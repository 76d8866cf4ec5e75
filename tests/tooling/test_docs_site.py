"""The documentation site's configuration: every page stands in it once, and nothing is fetched when it is read."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.nightly("packages and sites are built")

ROOT = Path(__file__).parents[2]
SITE: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def pages(nav: Any) -> Iterator[str]:
    """Pages of a part of the navigation, in its order."""
    if isinstance(nav, str):
        yield nav
    else:
        for one in nav.values() if isinstance(nav, dict) else nav:
            yield from pages(one)


def test_every_page_stands_in_the_navigation_once_and_decisions_by_their_list() -> None:
    """Mutants: a new how-to is found by search alone; a page that has gone is still listed."""
    docs = ROOT / "docs"
    written = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    listed = list(pages(SITE["nav"]))
    assert len(listed) == len(set(listed))
    decisions = {page for page in written if page.startswith("adr/") and page != "adr/README.md"}
    assert set(listed) == written - decisions


def test_nothing_is_fetched_from_elsewhere_when_it_is_read() -> None:
    """Mutant: the theme's fonts come from their maker's host."""
    assert SITE["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript", "repo_url"} & SITE.keys()


def test_no_page_leads_out_of_the_documents() -> None:
    """Links to files beside `docs` lead nowhere on a site: `make docs-site` refuses them, and so does this."""
    out = re.compile(r"\]\((\.\./)+(?:deploy|src|tests|packages|scripts)/")
    found = [str(page) for page in (ROOT / "docs").rglob("*.md") if out.search(page.read_text())]
    assert not found
