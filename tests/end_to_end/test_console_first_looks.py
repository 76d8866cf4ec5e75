"""Stumbling blocks of people who first looked at the console, in Debian's Chromium: each of them stays mended.

Unknown names that were "read" for ever are in the tests of their pages: of a node in `test_console_pages`, of a rack in
`test_console_racks`, of a serial number in `test_console_parts`. Racks in the grid's order are in `test_console_grid`.
"""

import pytest
from playwright.async_api import expect

from tests.contract.api_world import XID79, House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

PHONE = {"width": 390, "height": 800}
BEYOND = """selector => [...document.querySelectorAll(selector)].filter((one) => one.offsetParent).flatMap((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < 0 || right > innerWidth + 0.5 ? [`${one.textContent.trim()}: ${left} to ${right}`] : [];
})"""
"""Elements of a selector that are not wholly on the screen."""
OVERLAPPING = """selector => {
    const seen = [...document.querySelectorAll(selector)].filter((one) => one.offsetParent);
    const boxes = seen.map((one) => [one.textContent.trim() || one.tagName, one.getBoundingClientRect()]);
    return boxes.flatMap(([name, a], at) => boxes.slice(at + 1).flatMap(([other, b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5 ? [`${name} and ${other}`] : []));
}"""
"""Pairs of what a selector names that lie over each other."""
GAPS = """() => [...document.querySelectorAll("table.acts tr")].map((row) => {
    const [time, what] = [...row.cells].map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect();
    });
    return what.left - time.right;
})"""
"""Room between the time and the text of each operation."""


async def test_enter_keeps_the_focus_in_a_filter_and_a_search_leads_to_the_page(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the field is drawn anew and the focus is nowhere; a page that was opened by keys begins at the bar."""
    await tab.open(world.operator.token, "/nodes")
    field = tab.page.get_by_label("id, name or serial")
    await field.fill("n2")
    await field.press("Enter")
    await expect(tab.page.locator("tbody tr")).to_have_count(1)
    await expect(field).to_be_focused()
    await world.operator.post("/v1/nodes/n2/hold", {"reason": "the page hears of it"})
    await expect(tab.page.locator(".live")).to_contain_text(f"{world.cell.view.cell.seq:,}")
    await expect(field).to_be_focused()
    search = tab.page.get_by_label("Open a node by id, serial or host name")
    await search.fill("n1")
    await search.press("Enter")
    await expect(tab.page.locator("h1")).to_have_text("n1")
    await expect(tab.page.locator("#main")).to_be_focused()


async def test_no_placeholder_band_stands_above_a_page(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: the title that was shown while the console loaded stays above the bar."""
    for page in ("/", "/nodes/n1", "/parts"):
        await tab.open(world.operator.token, page)
        top = await tab.page.locator("header.bar").evaluate("bar => bar.getBoundingClientRect().top")
        assert top == 0, page
        await expect(tab.page.get_by_text("Hostler", exact=True)).to_have_count(1)
        assert await tab.page.evaluate("[...document.body.children].map((one) => one.id || one.tagName)") == [
            "app",
            "NOSCRIPT",
        ]


async def test_an_operations_time_and_text_stand_apart(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: cells without room between them, so that 12:00:01power off is read as one word."""
    await tab.open(world.operator.token, "/nodes/n1")
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await expect(tab.page.locator(".chain .steps li.done").first).to_be_visible()
    await expect(tab.page.locator("table.acts tr").first).to_be_visible()
    for width in (1280, PHONE["width"]):
        await tab.page.set_viewport_size({"width": width, "height": 800})
        gaps = await tab.page.evaluate(GAPS)
        assert gaps
        assert min(gaps) >= 6, (width, gaps)


@pytest.mark.parametrize("page", ["/", "/nodes/n1"])
async def test_the_bar_and_the_phases_fit_a_phone(world: House, tab: Tab, page: str) -> None:  # noqa: F811
    """Mutants: a bar that is wider than the screen and cut off; phases that lie over each other."""
    await tab.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await tab.open(world.operator.token, page)
    phases = ".phases .phase" if page == "/" else ".track li:not(.gap)"
    await expect(tab.page.locator(phases).first).to_be_visible()
    for selector in (".bar > *", phases):
        assert await tab.page.evaluate(BEYOND, selector) == [], selector
        assert await tab.page.evaluate(OVERLAPPING, selector) == [], selector
    assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_racks_are_sorted_as_people_count(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: r10, r100, r2."""
    nodes = [{"id": f"m{n}", "sku": "h100", "serial": f"SN-m{n}", "rack": f"r{n}"} for n in (100, 2, 10)]
    assert (await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"}))[0] == 200
    await tab.open(world.operator.token, "/nodes?q=m&sort=rack")
    await expect(tab.page.locator("tbody tr")).to_contain_text(["m2", "m10", "m100"])
