"""Nodes that are selected on the fleet's grid, in Debian's Chromium: by mouse, finger and keys; compared."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, Request, Route, expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import XID79, House
from tests.end_to_end.test_console import CONSOLE, PATIENCE_MS, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

MANY = 3_500
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def cells(page: Page, *names: str) -> list[tuple[float, float]]:
    """Places of the cells of these nodes on the screen: found by pointing at one place after the other."""
    canvas = page.locator("canvas").first
    await canvas.focus()
    found: dict[str, tuple[float, float]] = {}
    for _ in range(16):
        await page.evaluate(DRAWN)
        said = await page.locator(".readout").inner_text()
        box = await page.locator(".pick").bounding_box()
        assert box is not None
        found.setdefault(said.split(" ", 1)[0], (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
        if all(name in found for name in names):
            break
        await page.keyboard.press("ArrowRight")
    return [found[name] for name in names]


async def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    await page.mouse.move(*start)
    await page.mouse.down()
    await page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    await page.mouse.move(*end)
    await page.mouse.up()


@pytest_asyncio.fixture(loop_scope="module")
async def phone(browser: Browser, world: House) -> AsyncIterator[Tab]:  # noqa: F811
    """A page on a screen of a phone's size that is touched."""
    async with await browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True) as context:
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        found = Tab(page, world)
        yield found
        assert found.complaints == []


async def test_a_drag_selects_nodes_which_are_compared_and_acted_upon_as_one(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a drag ends with a click that opens a node; the acts are asked for on the whole rack."""
    await world.adopt(2, pool="beta", start=4)
    await world.report("n2", kind="kernel_log", text="mce: CPU1: Package temperature above threshold", facility=0)
    await tab.open(world.operator.token)
    first, last = await cells(tab.page, "n1", "n2")
    await drag(tab.page, (first[0] - 4, first[1]), last)
    panel = tab.page.get_by_role("region", name="Selected nodes")
    await expect(panel.get_by_role("heading")).to_contain_text("2 selected")
    await expect(panel.get_by_role("row").filter(has_text="pool")).to_have_text("poolalpha2 of 2")
    await expect(panel.get_by_role("row").filter(has_text="rack")).to_have_text("rackr02 of 2")
    await expect(tab.page).to_have_url(f"{world.url}/")
    (beta,) = await cells(tab.page, "n4")
    await tab.page.keyboard.down("Shift")
    await drag(tab.page, beta, (beta[0] + 5, beta[1] + 5))
    await tab.page.keyboard.up("Shift")
    await expect(panel.get_by_role("row").filter(has_text="pool")).to_have_text("poolalpha2 of 3")
    await panel.get_by_role("button", name="cordon", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("a new switch")
    await dialog.get_by_role("button", name="Show what it would do").click()
    if await (again := dialog.get_by_label("Type 3 nodes")).count():
        await again.fill("3 nodes")
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: all(world.cell.view.nodes[n].cordons for n in ("n1", "n2", "n4")))
    assert not world.cell.view.nodes["n0"].cordons


async def test_keys_and_the_table_select_too(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: what Shift went over stays when it goes back; Escape opens a node; the table selects for itself."""
    await tab.open(world.operator.token)
    grid = tab.page.get_by_role("application", name="Fleet: 4 nodes")
    await grid.focus()
    for key in ("Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowLeft"):
        await tab.page.keyboard.press(key)
    heading = tab.page.get_by_role("region", name="Selected nodes").get_by_role("heading")
    await expect(heading).to_contain_text("2 selected")
    await expect(tab.page.locator(".readout")).to_contain_text("n1 · rack r0 · production · delivered · selected")
    for key in ("ArrowRight", "ArrowRight", "Space"):
        await tab.page.keyboard.press(key)
    await expect(heading).to_contain_text("3 selected")
    await tab.page.get_by_text("As a table").click()
    await expect(tab.page.get_by_label("Choose n3")).to_be_checked()
    await expect(tab.page.get_by_label("Choose n2")).not_to_be_checked()
    await tab.page.get_by_label("Choose n2").check()
    await expect(heading).to_contain_text("4 selected")
    await grid.focus()
    await tab.page.keyboard.press("Escape")
    await expect(heading).to_have_count(0)
    await tab.page.keyboard.press("Control+a")
    await expect(heading).to_contain_text("4 selected")
    await expect(tab.page).to_have_url(f"{world.url}/")


async def test_a_finger_selects_once_it_is_asked_to_and_scrolls_before(world: House, phone: Tab) -> None:  # noqa: F811
    """Mutants: a finger that selects scrolls the page too; a tap opens the node that it selects."""
    await phone.open(world.operator.token)
    first, last = await cells(phone.page, "n0", "n3")
    touch = await phone.page.context.new_cdp_session(phone.page)

    async def swipe() -> None:
        steps = [(first[0] + (last[0] - first[0]) * n / 4, first[1] + (last[1] - first[1]) * n / 4) for n in range(5)]
        for number, (x, y) in enumerate(steps):
            kind = "touchStart" if number == 0 else "touchMove"
            await touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        await touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    heading = phone.page.get_by_role("region", name="Selected nodes").get_by_role("heading")
    await swipe()
    await phone.page.get_by_role("button", name="Select cells").click()
    await expect(phone.page.get_by_role("button", name="Select cells")).to_have_attribute("aria-pressed", "true")
    await expect(heading).to_have_count(0)
    await swipe()
    await expect(heading).to_contain_text("4 selected")
    await phone.page.touchscreen.tap(*first)
    await expect(heading).to_contain_text("3 selected")
    await expect(phone.page).to_have_url(f"{world.url}/")
    await phone.page.get_by_role("button", name="Select none").click()
    await expect(heading).to_have_count(0)


def a_large_map(route: Route) -> dict[str, Any]:
    """The answer of a fleet's map: 3,500 nodes in racks of 50, every other one degraded."""
    colour = parse_qs(urlsplit(route.request.url).query).get("colour", ["phase"])[0]
    told = {"words": ["passed", "failed"], "word": [int(n < 10) for n in range(MANY)]} if colour == "check" else {}
    return {
        "seq": 1, "phases": ["registered", "production"], "cursor": "",
        "ids": [f"n{n:04}" for n in range(MANY)], "rack": [f"r{n // 50}" for n in range(MANY)],
        "phase": [1] * MANY, "severity": [2 * (n % 2) - 1 + n % 2 for n in range(MANY)],
        "flags": [8 + (n % 4 == 0) for n in range(MANY)],
        "words": [], "word": [], "groups": [], "group": [], **told,
    }  # fmt: skip


async def test_a_selection_of_thousands_is_counted_in_the_browser(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the server is asked by a selector that it refuses; an act is offered that takes no so many nodes."""

    async def large(route: Route) -> None:
        await route.fulfill(body=json.dumps(a_large_map(route)), content_type="application/json")

    asked: list[Request] = []
    await tab.page.route("**/v1/map?*", large)
    tab.page.on("request", lambda one: asked.append(one) if "/v1/nodes" in one.url else None)
    await tab.open(world.operator.token, "/?colour=check")
    grid = tab.page.get_by_role("application", name="Fleet: 3500 nodes")
    await expect(grid).to_be_visible()
    box = await grid.bounding_box()
    assert box is not None
    await drag(tab.page, (box["x"], box["y"]), (box["x"] + box["width"], box["y"] + box["height"] - 1))
    panel = tab.page.get_by_role("region", name="Selected nodes")
    await expect(panel.get_by_role("heading")).to_contain_text("3,500 selected")
    await expect(panel).to_contain_text("An act takes at most 1,000 nodes")
    await expect(panel.get_by_role("button", name="cordon", exact=True)).to_have_count(0)
    row = panel.get_by_role("row")
    await expect(row.filter(has_text="phase")).to_have_text("phaseproduction3,500 of 3,500")
    await expect(row.filter(has_text="degraded")).to_have_text("gravest conditiondegraded1,750 of 3,500")
    await expect(row.filter(has_text="waits")).to_have_text("stands aswaits875 of 3,500")
    await expect(row.filter(has_text="failed")).to_have_text("last checkfailed10 of 3,500")
    await drag(tab.page, (box["x"], box["y"]), (box["x"] + box["width"], box["y"] + 30))
    await expect(panel.get_by_role("button", name="cordon", exact=True)).to_be_visible()
    await expect(panel).to_contain_text("Counted from the map")
    assert asked == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
async def test_a_selection_can_be_used_by_everybody(world: House, tab: Tab, scheme: Any, width: int) -> None:  # noqa: F811
    await tab.page.emulate_media(color_scheme=scheme)
    await tab.page.set_viewport_size({"width": width, "height": 800})
    await world.report("n2", kind="kernel_log", text=XID79, facility=0)
    await tab.open(world.operator.token)
    await tab.page.get_by_role("application", name="Fleet: 4 nodes").focus()
    await tab.page.keyboard.press("Control+a")
    await expect(tab.page.get_by_role("region", name="Selected nodes")).to_contain_text("alpha")
    for seen in (await Axe().run(tab.page)).response["violations"]:
        raise AssertionError(seen["id"], seen["nodes"][0]["html"])
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_who_is_signed_in_next_finds_nothing_selected(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a selection outlives its person; who may act on nothing is offered acts."""
    await tab.open(world.operator.token)
    await tab.page.get_by_role("application", name="Fleet: 4 nodes").focus()
    await tab.page.keyboard.press("Control+a")
    panel = tab.page.get_by_role("region", name="Selected nodes")
    await expect(panel).to_be_visible()
    await tab.page.get_by_role("button", name="Sign out").click()
    await tab.page.get_by_label("Token").fill(world.client(Grant("vic", Role.viewer)).token)
    await tab.page.get_by_role("button", name="Open the console").click()
    grid = tab.page.get_by_role("application", name="Fleet: 4 nodes")
    await grid.focus()
    await expect(panel).to_have_count(0)
    await tab.page.keyboard.press("Control+a")
    await expect(panel.get_by_role("button")).to_have_text(["Select none"])
    await panel.get_by_role("link", name="As a list").click()
    await expect(tab.page.locator(".cli")).to_have_text("hostler node list -l 'node in (n0, n1, n2, n3)'")
    await expect(tab.page.locator("tbody tr")).to_have_count(4)
