"""Links to the second, in Debian's Chromium: a moment of a node's history, and what happened between two moments."""

import re
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Route, expect

from tests.contract.api_world import XID79, House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]


async def records(world: House, node: str) -> list[Any]:  # noqa: F811
    """The node's records, oldest first."""
    items = (await world.operator.get(f"/v1/records?node={node}&order=oldest&limit=1000"))["items"]
    assert isinstance(items, list)
    return items


def second(record: Any) -> str:
    return f"{record['at'][:19]}Z"


async def test_a_moment_of_a_node_is_linked_and_found_again(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the link shows the latest; what is marked lies outside of what is seen; a click loses the span."""
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: "n1" in world.cell.view.nodes and not world.cell.view.nodes["n1"].conditions)
    first = (await records(world, "n1"))[0]
    await tab.open(world.operator.token, "/nodes/n1?span=24h")
    row = tab.page.locator(".timeline li").filter(has_text=first["text"]).last
    await row.get_by_role("link").click()
    at = second(first).replace(":", "%3A")
    await expect(tab.page).to_have_url(f"{world.url}/nodes/n1?span=24h&moment={at}")
    for _ in range(2):
        here = tab.page.locator(".timeline [aria-current]")
        await expect(here.first).to_be_in_viewport()
        await expect(here.filter(has_text=first["text"])).to_have_count(1)
        await expect(tab.page.locator(".lanes .moment")).to_have_count(1)
        await tab.page.reload()
    await tab.page.get_by_role("button", name="Up to now").click()
    await expect(tab.page.locator(".timeline [aria-current]")).to_have_count(0)
    drawn = tab.page.locator(".lanes svg")
    box = await drawn.bounding_box()
    assert box is not None
    await drawn.click(position={"x": box["width"] - 6, "y": box["height"] - 4})
    await expect(tab.page).to_have_url(re.compile(r"moment=\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\dZ$"))


async def test_a_moment_before_what_is_read_is_shown_with_what_is_around_it(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: of an old moment the latest records are shown; a moment without a record marks none."""
    for number in range(4):
        await world.operator.post("/v1/nodes/n1/hold", {"reason": f"reason {number}"})
    first = (await records(world, "n1"))[0]

    async def short(route: Route) -> None:
        await route.continue_(url=route.request.url.replace("limit=200", "limit=2"))

    await tab.page.route("**/history?*", short)
    await tab.open(world.operator.token, f"/nodes/n1?moment={second(first)}")
    await expect(tab.page.locator(".history")).to_contain_text("Around")
    here = tab.page.locator(".timeline [aria-current]")
    await expect(here.first).to_be_in_viewport()
    await expect(here.filter(has_text=first["text"])).to_have_count(1)
    await tab.page.goto(f"{world.url}/nodes/n1?moment=2099-01-01T00:00:00Z")
    await expect(tab.page.locator(".timeline [aria-current]").filter(has_text="reason 3").last).to_be_visible()
    await tab.page.goto(f"{world.url}/nodes/n1?moment=yesterday")
    await expect(tab.page.locator(".timeline li").first).to_be_visible()
    await expect(tab.page.locator(".timeline [aria-current]")).to_have_count(0)


async def test_events_between_two_moments_are_listed_and_lead_to_their_nodes(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the moments are dropped by the page or by its command; an event leads to its node of now."""
    await world.operator.post("/v1/nodes/n2/hold", {"reason": "leave it"})
    held = next(one for one in await records(world, "n2") if "leave it" in one["text"])
    await tab.open(world.operator.token, "/events")
    row = tab.page.locator("tbody tr").filter(has_text="leave it").first
    await row.get_by_role("link").first.click()
    await expect(tab.page).to_have_url(re.compile(r"/events\?since=.*Z&until=.*Z$"))
    await expect(tab.page.get_by_label("since (2026-01-31T08:00:00Z)")).to_have_value(second(held))
    times = tab.page.locator("tbody td:first-child")
    await expect(times.first).to_be_visible()
    moments = {f"{one[:10]}T{one[11:19]}Z" for one in await times.all_inner_texts()}
    assert moments == {second(held)}
    await expect(tab.page.locator(".cli")).to_contain_text(
        f"hostler events --limit 200 --since '{second(held)}'".replace("'", "")
    )
    await (
        tab.page.locator("tbody tr")
        .filter(has_text="leave it")
        .get_by_role("link", name="n2", exact=True)
        .first.click()
    )
    await expect(tab.page).to_have_url(re.compile(r"/nodes/n2\?moment="))
    await expect(tab.page.locator(".timeline [aria-current]").filter(has_text="leave it").first).to_be_in_viewport()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
async def test_a_marked_moment_can_be_used_by_everybody(world: House, tab: Tab, scheme: Any, width: int) -> None:  # noqa: F811
    await tab.page.emulate_media(color_scheme=scheme)
    await tab.page.set_viewport_size({"width": width, "height": 800})
    first = (await records(world, "n1"))[0]
    for page, mark in ((f"/nodes/n1?moment={second(first)}", ".timeline [aria-current]"), ("/events", "tbody tr")):
        await tab.open(world.operator.token, page)
        await expect(tab.page.locator(mark).first).to_be_visible()
        for seen in (await Axe().run(tab.page)).response["violations"]:
            raise AssertionError(page, seen["id"], seen["nodes"][0]["html"])
        assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
