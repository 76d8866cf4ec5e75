"""The console in Debian's Chromium over a connection that is cut, falls silent and comes back."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures
from tests.end_to_end.test_console_pages import PAGES

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

CHUNK = 65_536
NO_NEWS = "Not live: no news from the server since"


class Cable:
    """A wire to the server, which takes connections at an address of its own: cut, mute or whole."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: set[asyncio.StreamWriter] = set()
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def lay(self) -> None:
        """Take connections, at the same address as before."""
        self._server = await asyncio.start_server(self._through, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for end in self._ends:
            end.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def mute(self, still: bool) -> None:
        """Carry nothing more, and tell nobody; or go on."""
        (self._whole.clear if still else self._whole.set)()

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        both = {writer, far_writer}
        self._ends |= both
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
        self._ends -= both
        self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK):
                await self._whole.wait()
                writer.write(chunk)
                await writer.drain()
        writer.close()


@pytest_asyncio.fixture(loop_scope="module")
async def cable(world: House) -> AsyncIterator[Cable]:  # noqa: F811
    """The browser's way to the house."""
    wire = Cable(urlsplit(world.url).port or 0)
    await wire.lay()
    world.url = f"http://127.0.0.1:{wire.port}"
    yield wire
    wire.mute(still=False)
    await wire.cut()


def forgive(tab: Tab) -> None:  # noqa: F811
    """Leave out what a browser logs of a server that is away."""
    tab.complaints[:] = [one for one in tab.complaints if "net::ERR_" not in one]


async def test_a_cut_is_said_with_the_age_of_what_is_shown_and_ends_by_itself(
    world: House,  # noqa: F811
    cable: Cable,
    tab: Tab,  # noqa: F811
) -> None:
    """Mutants: rows vanish with the server; what happened meanwhile is not told; an alert says it again."""
    await tab.open(world.operator.token, "/nodes")
    rows, said = tab.page.locator("tbody tr"), tab.page.get_by_role("status").filter(has_text=NO_NEWS)
    await expect(rows).to_have_count(4)
    await expect(said).to_have_count(0)
    live = tab.page.locator(".live")
    before = await live.inner_text()
    await world.operator.post("/v1/nodes/n1/hold", {"reason": "so that the list is read again, in vain"})
    await expect(live).not_to_have_text(before)
    await cable.cut()
    await expect(said).to_contain_text(re.compile(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\. What is shown may have"))
    await expect(tab.page.locator("#main")).to_have_class("stale")
    await expect(tab.page.locator(".age")).to_have_text(re.compile(r"Shown: [3-9] s old"))
    await world.adopt(1, start=4)
    await expect(rows).to_have_count(4)
    await expect(tab.page.locator(".banner")).to_have_count(0)
    await cable.lay()
    await expect(tab.page.get_by_role("status").filter(has_text="Live again.")).to_have_count(1)
    await expect(rows).to_have_count(5)
    await expect(tab.page.locator("#main")).not_to_have_class("stale")
    await expect(tab.page.locator(".stale-bar")).to_have_count(0)
    forgive(tab)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
async def test_every_page_says_so(world: House, cable: Cable, tab: Tab, scheme: Any, width: int) -> None:  # noqa: F811
    """Mutants: the fleet's page alone says it; what could not be read meanwhile is not read when the server is back."""
    await tab.page.emulate_media(color_scheme=scheme)
    await tab.page.set_viewport_size({"width": width, "height": 800})
    await tab.open(world.operator.token)
    said = tab.page.get_by_role("status").filter(has_text=NO_NEWS)
    await expect(tab.page.get_by_role("application", name="Fleet: 4 nodes")).to_be_visible()
    await cable.cut()
    for page in PAGES:
        await tab.page.evaluate(f"history.pushState(null, '', '{page}'); dispatchEvent(new PopStateEvent('popstate'))")
        await expect(tab.page.locator("main")).to_be_visible()
        await expect(said).to_be_in_viewport()
        if page in ("/", "/nodes"):
            for seen in (await Axe().run(tab.page)).response["violations"]:
                raise AssertionError(page, seen["id"], seen["nodes"][0]["html"])
    assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await tab.page.evaluate("history.pushState(null, '', '/pools'); dispatchEvent(new PopStateEvent('popstate'))")
    await expect(tab.page.locator(".banner.critical")).to_contain_text("fetch")
    await cable.lay()
    await expect(tab.page.locator("tbody tr")).to_have_count(2)
    forgive(tab)


async def test_a_connection_that_only_falls_silent_is_cut_too(world: House, cable: Cable, tab: Tab) -> None:  # noqa: F811
    """Mutant: only an end that somebody tells of counts; a server behind a dead wire is live for ever."""
    await tab.page.clock.install()
    await tab.open(world.operator.token)
    await expect(tab.page.get_by_role("application", name="Fleet: 4 nodes")).to_be_visible()
    said = tab.page.get_by_role("status").filter(has_text=NO_NEWS)
    cable.mute(still=True)
    await tab.page.clock.run_for(30_000)
    await expect(said).to_have_count(0)
    await tab.page.clock.run_for(20_000)
    await expect(said).to_have_count(1)
    cable.mute(still=False)
    await tab.page.clock.run_for(1_000)
    await expect(tab.page.get_by_role("status").filter(has_text="Live again.")).to_have_count(1)
    forgive(tab)
