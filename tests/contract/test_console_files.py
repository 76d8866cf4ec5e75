"""The console's files as a server sends them: every module named ahead, kept by browsers, never of another edition."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.server.routes import console_files
from tests.contract.api_world import House, house

FOLDER = Path(console_files.__file__).parents[1] / "console"
ROUTED = re.compile(r"^const PAGES = \{(.*)\};$", re.MULTILINE)
KEY = re.compile(r'(?:"([\w-]*)"|\b(\w+)): [A-Z]')
GROUPED = re.compile(r"^const GROUPS = \[\n(.*?)^\];$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"""\bfrom ?["'](\.[^"']+)["']""")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


def imported(module: Path) -> set[Path]:
    """The module and all that it imports, by their text."""
    found: set[Path] = set()
    left = [module]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += [(one.parent / name).resolve() for name in IMPORT.findall(one.read_text())]
    return found


async def test_the_front_page_names_every_module_ahead(world: House) -> None:
    """Mutants: a module is left out and waits for its importer; one is named at an address that nothing imports."""
    async with world.operator.session.get(f"{world.url}/") as answer:
        page = await answer.text()
        assert answer.headers["Cache-Control"] == "no-cache"
    begun = re.findall(r'<script type="module" src="([^"]+)/main.js">', page)
    named = re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)
    needed = {f"{begun[0]}/{module.relative_to(FOLDER)}" for module in imported(FOLDER / "main.js")}
    assert set(named) == needed
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        async with world.operator.session.get(world.url + address) as answer:
            assert answer.status == 200, address
            assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("name", ["main.js", "0123456789abcdef/main.js", "0123456789abcdef/vendor/preact.js"])
async def test_a_file_under_any_other_name_is_asked_for_each_time(world: House, name: str) -> None:
    """Mutant: a page of another controller's edition has this one's modules kept for a year as its own."""
    async with world.operator.session.get(f"{world.url}/console/{name}") as answer:
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-cache"
        tag = answer.headers["ETag"]
    async with world.operator.session.get(f"{world.url}/console/{name}", headers={"If-None-Match": tag}) as answer:
        assert answer.status == 304


def test_another_byte_is_another_edition() -> None:
    """Mutant: the edition is of the modules' names."""
    before = console_files.edition_of(console_files.FILES)
    changed = {**console_files.FILES, "grid.js": console_files.ConsoleFile(b"//", "text/javascript", '"other"')}
    assert console_files.edition_of(changed) != before


def test_the_router_the_menu_and_the_server_know_the_same_pages() -> None:
    """The walk over every page goes by the server's. Mutants: a page that no address opens; one that no menu offers."""
    main = (FOLDER / "main.js").read_text()
    (routed,), (grouped,) = ROUTED.findall(main), GROUPED.findall(main)
    known = {"", *console_files.PAGES}
    assert {quoted or plain for quoted, plain in KEY.findall(routed)} == known
    assert {name for row in grouped.splitlines() for name in re.findall(r'"([\w-]*)"', row)[1:]} == known


async def test_each_file_names_its_character_set_once(world: House) -> None:
    """Mutant: the framework adds its own, and `text/html; charset=utf-8; charset=utf-8` is no media type."""
    answered = ("/v1/status", "/v1/nodes/nope", "/schema/openapi.json", "/metrics", "/livez", "/sign-in/ways")
    console = ("/", "/nodes/n1", *(f"/console/{name}" for name in ("main.js", "style.css", "icon.svg")))
    for path in (*console, *answered):
        async with world.operator.session.get(world.url + path) as answer:
            kind = answer.headers["Content-Type"]
            assert kind.lower().count("charset") <= 1, (path, kind)
            assert path in answered or path.endswith(".svg") or kind.endswith("; charset=utf-8"), (path, kind)
