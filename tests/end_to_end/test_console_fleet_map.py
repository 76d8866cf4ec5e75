"""The fleet's map in Debian's Chromium: read in pages, kept true by the stream, drawn once for what comes at once."""

import asyncio
import re
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Route, expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import XID79, House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

FILLS = """
window.fills = 0;
const fill = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (...rect) {
  fills += 1;
  fill.apply(this, rect);
};
"""


async def chosen(tab: Tab, number: int) -> None:  # noqa: F811
    """The cell of the node of this number, by keys."""
    await tab.page.locator("canvas").focus()
    for _ in range(number):
        await tab.page.keyboard.press("ArrowRight")
    await expect(tab.page.locator(".readout")).to_contain_text(f"n{number} ")


async def standing_fault(world: House, node: str) -> None:  # noqa: F811
    """A GPU has fallen off the bus, and a hold keeps the node from being healed: its driver obliges at once."""
    await world.operator.post(f"/v1/nodes/{node}/hold", {"reason": "its fault is to be seen"})
    await world.report(node, kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: bool(world.cell.view.nodes[node].conditions))


async def test_the_map_is_put_together_from_its_pages(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: only the first page is shown; a page's columns stand beside another page's nodes."""
    await world.adopt(5, start=4)
    await standing_fault(world, "n5")

    async def short(route: Route) -> None:
        await route.continue_(url=f"{route.request.url}&limit=2")

    await tab.page.route("**/v1/map?*", short)
    await tab.open(world.operator.token)
    await expect(tab.page.get_by_role("application", name="Fleet: 9 nodes")).to_be_visible()
    await chosen(tab, 5)
    await expect(tab.page.locator(".readout")).to_contain_text("critical condition")
    for _ in range(3):
        await tab.page.keyboard.press("ArrowRight")
    await expect(tab.page.locator(".readout")).to_contain_text("n8 · rack r1 · production")


async def test_what_comes_while_the_map_is_read_again_is_kept(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: what was read replaces what the stream told meanwhile, until the map is read once more."""
    read, go_on = asyncio.Event(), asyncio.Event()
    asked: list[str] = []

    async def late(route: Route) -> None:
        asked.append(urlsplit(route.request.url).query)
        if len(asked) == 1:
            await route.continue_()
            return
        if len(asked) > 2:
            return  # never answered: nothing later mends what this reading left
        answer = await route.fetch()
        read.set()
        await go_on.wait()
        await route.fulfill(response=answer)

    await tab.page.route("**/v1/map?*", late)
    await tab.open(world.operator.token)
    await chosen(tab, 2)
    await world.operator.post("/v1/nodes/n0/hold", {"reason": "so that the map is read again"})
    await read.wait()
    await world.report("n2", kind="kernel_log", text=XID79, facility=0)
    readout = tab.page.locator(".readout")
    await expect(readout).to_contain_text("condition")
    async with tab.page.expect_response("**/v1/map?*"):
        go_on.set()
    await tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await expect(readout).to_contain_text("condition")
    await tab.page.unroute_all(behavior="ignoreErrors")


async def test_a_change_repaints_the_cells_that_changed_alone(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: every record repaints every cell."""
    await world.adopt(200, start=4)
    await tab.page.add_init_script(FILLS)
    await tab.open(world.operator.token)
    await chosen(tab, 1)
    await tab.page.wait_for_function("fills >= 204")
    before = await tab.page.evaluate("fills")
    await standing_fault(world, "n1")
    await expect(tab.page.locator(".readout")).to_contain_text("critical condition")
    await tab.page.wait_for_function("before => fills > before", arg=before)
    await tab.page.evaluate("new Promise((done) => setTimeout(done, 3000))")
    assert await tab.page.evaluate("fills") - before < 100


async def test_a_link_with_a_colour_reads_the_map_once(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: it is read without the colour first, and of 100,000 nodes everything is asked for twice."""
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url) if "/v1/map" in request.url else None)
    await tab.open(world.operator.token, "/?colour=firmware&by=pool")
    await expect(tab.page.get_by_role("group", name="Colours: firmware")).to_be_visible()
    assert [url.partition("?")[2] for url in asked] == ["cursor=&colour=firmware&by=pool"]
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    await tab.open(tenant.token, "/?colour=tenant")
    await expect(tab.page.get_by_role("application", name="Fleet: 4 nodes")).to_be_visible()


async def test_the_pages_of_another_token_begin_with_its_own_nodes(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: the map of who was signed in before stays until another has been read."""
    await tab.open(world.operator.token)
    await expect(tab.page.get_by_role("application", name="Fleet: 4 nodes")).to_be_visible()
    held = asyncio.Event()

    async def late(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await tab.page.get_by_role("button", name="Sign out").click()
    await tab.page.route("**/v1/map?*", late)
    await tab.page.get_by_label("Token").fill(world.operator.token)
    await tab.page.get_by_role("button", name="Open the console").click()
    await expect(tab.page.locator("canvas")).to_have_attribute("aria-label", re.compile("^Fleet: 0 nodes"))
    held.set()
    await expect(tab.page.get_by_role("application", name="Fleet: 4 nodes")).to_be_visible()
