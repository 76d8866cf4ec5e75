"""The console's page of parts, in Debian's Chromium: a serial number finds the part, its nodes, its returns."""

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.contract.api_world import House
from tests.contract.test_api_parts import MOVED, moved
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

SIZES = ({"width": 1280, "height": 800}, {"width": 390, "height": 800})


async def usable(tab: Tab) -> None:  # noqa: F811
    """Assert that axe-core finds nothing and nothing is wider than the screen, at a desk and on a phone."""
    for size in SIZES:
        await tab.page.set_viewport_size({"width": size["width"], "height": size["height"]})
        assert (await Axe().run(tab.page)).response["violations"] == []
        assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_a_serial_finds_the_part_its_nodes_over_time_and_its_returns(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the part on a shelf is not found; the returns are missing; the page stands still as a case is closed."""
    await world.reads_all()
    paused = {"act": {"verb": "pause"}, "target": "fleet", "reason": "a remedy would show all parts again"}
    assert (await world.operator.post("/v1/intents", paused))[0] == 200
    case = await moved(world)
    await tab.open(world.operator.token, "/parts")
    await tab.page.get_by_label("serial number, or node").fill(MOVED.lower())
    await tab.page.keyboard.press("Enter")
    await expect(tab.page).to_have_url(re.compile(rf"/parts\?q={MOVED.lower()}$"))
    found = tab.page.get_by_role("region", name="parts, a table").locator("tbody tr")
    await expect(found).to_have_count(1)
    places = tab.page.get_by_role("region", name="places, a table").locator("tbody tr")
    await expect(places).to_contain_text(["n1", "in no node", "n0"])
    await expect(places.first).to_contain_text("now")
    cases = tab.page.get_by_role("region", name="cases, a table").locator("tbody tr")
    await expect(cases).to_contain_text([f"{case}is returnedn0requested"])
    await usable(tab)
    await found.get_by_role("link", name=MOVED).click()
    await expect(tab.page).to_have_title(f"{MOVED} · Hostler")
    await expect(tab.page.locator("dl.standing")).to_contain_text("in n1, slot gpu0")
    history = tab.page.get_by_role("region", name="history, a table")
    await expect(history).to_contain_text(f"part {MOVED} removed from n0")
    await usable(tab)
    asked = {"act": {"verb": "close-rma", "result": "withdrawn"}, "target": case, "reason": "it works"}
    assert (await world.operator.post("/v1/intents", asked))[0] == 200
    await expect(cases).to_contain_text(["closed: withdrawn"])
    await places.first.get_by_role("link", name="n1").click()
    await expect(tab.page.locator("h1")).to_have_text("n1")
    await tab.page.get_by_role("link", name=MOVED).click()
    await expect(tab.page.locator("h1")).to_have_text(MOVED)


async def test_a_serial_that_finds_nothing_is_answered_with_what_to_try(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: "Reading … for ever"; an empty search is a search for nothing; a machine's own number is unknown."""
    await tab.open(world.operator.token, "/parts?q=nope&kind=gpu")
    await expect(tab.page.locator("main")).to_contain_text("No part has “nope” in its serial number")
    await usable(tab)
    await tab.page.get_by_role("link", name="Search among all parts").click()
    await expect(tab.page).to_have_url(re.compile(r"/parts\?q=nope$"))
    await tab.page.get_by_role("link", name="look up nope").click()
    await expect(tab.page.get_by_role("alert")).to_contain_text("hostler part list --search")
    await usable(tab)
    assert tab.complaints == [one for one in tab.complaints if "404" in one]
    tab.complaints.clear()
    await tab.page.get_by_role("link", name="Search for it").click()
    await tab.page.get_by_label("serial number, or node").fill("   ")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page).to_have_url(re.compile(r"/parts$"))
    await expect(tab.page.locator("tbody tr")).to_have_count(8)
    await tab.page.goto(f"{world.url}/parts/SN-n2")
    await expect(tab.page.locator("dl.standing")).to_contain_text("node n2: of the machine, not of a part in it")
    await usable(tab)
