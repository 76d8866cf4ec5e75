"""The console's menu by mouse, keys and on a phone, and its page of nodes that are brought up, in Debian's Chromium."""

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, bmc_of
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

PHONE = {"width": 390, "height": 800}


async def focused(page: Page) -> str:
    return str(await page.evaluate("document.activeElement.textContent"))


async def test_groups_open_and_close_by_keys(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: Escape loses the focus; the arrow leaves the group; a group stays open once its page is shown."""
    await tab.open(world.operator.token)
    menu = tab.page.get_by_role("navigation", name="Pages")
    work = menu.get_by_role("button", name="Work")
    await work.focus()
    await tab.page.keyboard.press("ArrowRight")
    assert await focused(tab.page) == "Insight"
    await tab.page.keyboard.press("ArrowLeft")
    await tab.page.keyboard.press("Enter")
    await expect(work).to_have_attribute("aria-expanded", "true")
    await tab.page.keyboard.press("ArrowDown")
    await expect(menu.get_by_role("link", name="waiting")).to_be_focused()
    await tab.page.keyboard.press("ArrowUp")
    await expect(menu.get_by_role("link", name="maintenance")).to_be_focused()
    await tab.page.keyboard.press("Escape")
    await expect(work).to_be_focused()
    await expect(work).to_have_attribute("aria-expanded", "false")
    await expect(menu.get_by_role("link")).to_have_count(0)
    await tab.page.keyboard.press("ArrowDown")
    await expect(menu.get_by_role("link", name="waiting")).to_be_focused()
    await tab.page.keyboard.press("ArrowDown")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page).to_have_url(re.compile(r"/bring-up$"))
    await expect(tab.page.locator("h1")).to_have_text("Bring-up")
    await expect(menu.get_by_role("link")).to_have_count(0)
    await work.click()
    await expect(menu.get_by_role("link", name="bring-up")).to_have_attribute("aria-current", "page")


async def test_going_elsewhere_closes_a_group_and_another_one_takes_its_place(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutant: two groups lie over each other."""
    await tab.open(world.operator.token)
    menu = tab.page.get_by_role("navigation", name="Pages")
    await menu.get_by_role("button", name="Fleet").click()
    await expect(menu.get_by_role("link")).to_have_count(7)
    await menu.get_by_role("button", name="Insight").click()
    await expect(menu.get_by_role("link")).to_have_count(3)
    await tab.page.get_by_role("searchbox").click()
    await expect(menu.get_by_role("link")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_a_phone_has_one_button_for_all_pages(world: House, tab: Tab, scheme: str) -> None:  # noqa: F811
    """Mutants: a page that is on no list; a menu that is wider than the phone, or stays over the page it opened."""
    await tab.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await tab.open(world.operator.token)
    menu = tab.page.get_by_role("navigation", name="Pages")
    await expect(menu.get_by_role("button")).to_have_count(1)
    await menu.get_by_role("button", name="Menu").click()
    await expect(menu.get_by_role("link")).to_have_count(20)
    assert (await Axe().run(tab.page)).response["violations"] == []
    assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await menu.get_by_role("link", name="tickets").click()
    await expect(tab.page.locator("h1")).to_have_text("Tickets")
    await expect(menu.get_by_role("link")).to_have_count(0)


async def test_an_open_group_can_be_used_by_everybody(world: House, tab: Tab) -> None:  # noqa: F811
    await tab.open(world.operator.token, "/nodes/n1")
    for group in ("Fleet", "Work", "Insight", "Admin"):
        await tab.page.get_by_role("button", name=group, exact=True).click()
        assert (await Axe().run(tab.page)).response["violations"] == []


async def test_nodes_on_their_way_are_seen_by_stage_with_what_is_next(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: an arrival that nobody tells; a bar without its words; the page stands still while nodes move."""
    for name in ("m0", "m1"):
        nodes = [{"id": name, "sku": "h100", "serial": f"SN-{name}", "rack": "r9", "u": 7, "bmc": bmc_of(name)}]
        await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
        await world.until(lambda name=name: world.cell.view.nodes[name].phase == "onboard")
        if name == "m0":
            await world.operator.post("/v1/nodes/m0/certify", {"reason": "cabled"})
            await world.until(lambda: world.cell.view.nodes["m0"].phase == "production")
    await tab.open(world.operator.token, "/bring-up")
    stages = tab.page.get_by_role("region", name="stages, a table").locator("tbody tr")
    await expect(stages).to_contain_text(["registered", "initializing", "onboard", "seatrial", "zap", "test"])
    await expect(stages.filter(has_text="onboard")).to_contain_text("1 of 1 went on")
    row = tab.page.get_by_role("region", name="bring-up, a table").locator("tbody tr")
    await expect(row).to_contain_text('hostler node certify m1 --reason "…"')
    await expect(row).to_contain_text("certif")
    await expect(row.get_by_role("img")).to_have_attribute("aria-label", re.compile("half were through after"))
    await expect(row).to_contain_text("nobody tells")
    assert (await Axe().run(tab.page)).response["violations"] == []
    await stages.get_by_role("link", name="test").click()
    await expect(tab.page).to_have_url(re.compile(r"/bring-up\?phase=test$"))
    await expect(tab.page.get_by_text("None.")).to_be_visible()
    await tab.page.goto(f"{world.url}/bring-up")
    await expect(row).to_have_count(1)
    await world.operator.post("/v1/nodes/m1/certify", {"reason": "cabled"})
    await expect(row).to_have_count(0)
    await expect(tab.page.locator(".cli").last).to_have_text("hostler bring-up list")


async def test_a_tenant_is_not_offered_what_concerns_the_whole_cell(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: the page is asked for and refused."""
    await tab.open(world.client(Grant("alice", Role.tenant, tenant="acme")).token, "/bring-up")
    await expect(tab.page.get_by_text("does not reach it")).to_be_visible()
    await tab.page.get_by_role("button", name="Work", exact=True).click()
    menu = tab.page.get_by_role("navigation", name="Pages")
    await expect(menu.get_by_role("link", name="tickets")).to_be_visible()
    await expect(menu.get_by_role("link", name="bring-up")).to_have_count(0)
    await expect(menu.get_by_role("button", name="Admin")).to_have_count(0)
