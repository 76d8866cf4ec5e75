"""The code map, the recipes for contributors and the list of rooms name what is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/hostler"
ROOMS = "core|ports|controller|journal|runtime|polling|drivers|agent|server|sim|app|client|cli"
_PLACE = re.compile(rf"`(?:src/hostler/)?((?:{ROOMS})(?:/[a-z0-9_./]+)?)`")


def places(page: str) -> Iterator[str]:
    yield from (found[1] for found in _PLACE.finditer((ROOT / page).read_text("utf-8")))


def stands(place: str) -> bool:
    whole = SOURCE / place
    return whole.exists() or whole.with_name(f"{whole.name}.py").exists()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "README.md"])
def test_every_file_and_room_that_a_page_names_stands(page: str) -> None:
    named = set(places(page))
    assert len(named) > 3
    assert [place for place in sorted(named) if not stands(place)] == []


def test_a_file_that_is_gone_is_noticed() -> None:
    assert stands("core/planning/next_step")
    assert not stands("core/planning/standstill")


def test_each_file_of_planning_has_tests_of_its_own() -> None:
    """A failure points at the rule, not at the world in which it showed."""
    files = {path.stem for path in (SOURCE / "core/planning").glob("*.py")} - {"__init__"}
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests/unit/planning").glob("test_*.py")}
    assert files - tested == set()
