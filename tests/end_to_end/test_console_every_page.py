"""Every page that the console's router knows, in Debian's Chromium, with rows on it: for everybody, desk and phone.

A page that is added is walked without a word here, as the walk follows the addresses that the server gives the console.
"""

from collections import Counter

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab  # noqa: F401 - fixtures
from tests.end_to_end.test_console_commands import world  # noqa: F401 - fixture
from tests.end_to_end.test_console_pages import PAGES

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

OPENED = "for (const one of document.querySelectorAll('details')) one.open = true"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_each_page_can_be_used_by_everybody(world: House, tab: Tab, scheme: str) -> None:  # noqa: F811
    """axe-core finds nothing on any page, on a wide screen and on a phone's; each has a title of its own.

    That nothing is logged as an error is asked at the tab's end.
    """
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found, titles = [], Counter[str]()
    for width in (1280, 390):
        await tab.page.set_viewport_size({"width": width, "height": 800})
        for page in PAGES:
            await tab.open(world.operator.token, page)
            await expect(tab.page.locator("main")).to_be_visible()
            await expect(tab.page.locator(".loading")).to_have_count(0)
            await tab.page.evaluate(OPENED)
            titles[await tab.page.title()] += "?" not in page
            judged = (await Axe().run(tab.page)).response["violations"]
            found += [f"{page} at {width}: {v['id']}: {v['nodes'][0]['html'][:120]}" for v in judged]
            wide = await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            found += [f"{page} is wider than {width}: {wide}"] if wide > 0 else []
    assert not found, "\n".join(found)
    assert {title for title, times in titles.items() if times > 2} == set(), "pages of one title"
