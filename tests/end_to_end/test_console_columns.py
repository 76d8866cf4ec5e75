"""Columns of the console's tables, chosen in Debian's Chromium: in the address, in the files, in the command."""

import asyncio
import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.contract.api_world import House
from tests.contract.test_api_audit import cli
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab  # noqa: F401 - fixtures
from tests.end_to_end.test_console_commands import world  # noqa: F401 - fixture

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

LISTS = (
    "/nodes",
    "/waiting",
    "/tickets",
    "/incidents",
    "/jobs",
    "/approvals",
    "/pools",
    "/parts",
    "/trends",
    "/returns",
    "/audit",
)

OWN = {"/tickets": "rack, U"}
"""Columns that a page puts together itself, but for its last one, which the test takes away."""


async def kept(tab: Tab, kind: str, at: Path) -> str:  # noqa: F811
    """The file that the first button of this kind gives."""
    async with tab.page.expect_download() as begun:
        await tab.page.get_by_role("button", name=kind, exact=True).first.click()
    await (await begun.value).save_as(at)
    return await asyncio.to_thread(at.read_text)


async def test_chosen_columns_stand_in_the_address_in_the_files_and_in_the_command(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a link shows all columns again; a file or the command has others than the page."""
    await tab.open(world.operator.token, "/nodes?pool=alpha&sort=id")
    headings = tab.page.locator("thead th")
    await expect(headings).to_have_count(13)
    await tab.page.get_by_text("Columns", exact=True).click()
    for name in ("since", "tenant", "SKU", "U", "serial", "gravest", "conditions", "waits for", "pool"):
        await tab.page.get_by_role("group", name="Columns of nodes").get_by_label(name, exact=True).uncheck()
    await expect(headings).to_have_text(["", "node ↑", "phase", "rack"])
    await expect(tab.page).to_have_url(re.compile(r"columns\.nodes=id%2Cphase%2Crack"))
    await tab.page.reload()
    await expect(headings).to_have_text(["", "node ↑", "phase", "rack"])
    await expect(tab.page.get_by_text("Columns 3 of 12")).to_be_visible()
    rows = list(csv.DictReader((await kept(tab, "CSV", tmp_path / "nodes.csv")).splitlines()))
    assert rows[0] == {"node": "n0", "phase": "production", "rack": "r0"}
    assert json.loads(await kept(tab, "JSON", tmp_path / "nodes.json"))[0] == {
        "id": "n0", "phase": "production", "position.rack": "r0",
    }  # fmt: skip
    command = "hostler node list -l pool=alpha --columns id,phase,position.rack"
    await expect(tab.page.locator(".cli")).to_have_text(command)
    told = list(csv.reader((await cli(world, *shlex.split(command)[1:], "-o", "csv")).splitlines()))
    assert [tuple(row) for row in told[1:]] == [tuple(row.values()) for row in rows]
    await tab.page.get_by_text("Columns 3 of 12").click()
    await tab.page.get_by_role("button", name="All columns").click()
    await expect(headings).to_have_count(13)
    await expect(tab.page).to_have_url(re.compile(r"/nodes\?pool=alpha&sort=id$"))


async def test_each_lists_command_takes_the_columns_that_its_page_shows(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a field that the API does not have is an empty column; a column of the page's own is asked for."""
    wrong = []
    for page in LISTS:
        await tab.open(world.operator.token, page)
        await expect(tab.page.locator(".loading")).to_have_count(0)
        bar = tab.page.locator(".tools").first
        await bar.get_by_role("button", name="Columns").click()
        boxes = bar.locator("input[type=checkbox]")
        await boxes.last.uncheck()
        words = shlex.split(await bar.locator(".cli").inner_text())
        if "--columns" not in words:
            wrong += [f"{page}: no columns"] if await tab.page.locator("tbody tr").count() else []
            continue
        fields = words[words.index("--columns") + 1].split(",")
        items = json.loads(await cli(world, *words[1 : words.index("--columns")], "-o", "json"))["items"]
        wrong += [f"{page}: {field}" for field in fields if not any(has(item, field) for item in items)]
        printed = (await cli(world, *words[1:], "-o", "csv")).splitlines()
        wrong += [f"{page}: {printed[0]}"] if len(next(csv.reader(printed))) != len(fields) else []
        missing = bar.get_by_text("The command does not tell")
        left_out = await missing.inner_text() if await missing.count() else ""
        untold = left_out.removeprefix("The command does not tell: ").removesuffix(".")
        wrong += [f"{page} does not tell {untold!r}"] if untold != OWN.get(page, "") else []
    assert not wrong, "\n".join(wrong)


def has(item: Any, path: str) -> bool:
    """Whether an object has a field of this path."""
    for step in path.split("."):
        if not isinstance(item, dict) or step not in item:
            return False
        item = item[step]
    return True


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
async def test_the_choice_can_be_used_by_everybody(world: House, tab: Tab, scheme: Any, width: int) -> None:  # noqa: F811
    """The last column that is shown cannot be taken away; axe-core finds nothing."""
    await tab.page.emulate_media(color_scheme=scheme)
    await tab.page.set_viewport_size({"width": width, "height": 800})
    await tab.open(world.operator.token, "/nodes?columns.nodes=id,nonsense")
    await expect(tab.page.locator("thead th")).to_have_text(["", "node"])
    await tab.page.get_by_text("Columns 1 of 12").click()
    await expect(
        tab.page.get_by_role("group", name="Columns of nodes").get_by_label("node", exact=True)
    ).to_be_disabled()
    for seen in (await Axe().run(tab.page)).response["violations"]:
        raise AssertionError(seen["id"], seen["nodes"][0]["html"])
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
