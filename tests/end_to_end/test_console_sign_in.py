"""Sign-in as a person does it, in Debian's Chromium: a link from a chat, a real provider, the page, and out again.

Hostler is opened as localhost and the provider as 127.0.0.1, so that each is another site to the browser.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from aiohttp import web
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, Request, Route, expect

from hostler.server.session_cookie import SESSION
from tests.contract.api_world import House, house
from tests.contract.test_sign_in import PEOPLE, provider, signs_in
from tests.end_to_end.test_console import CONSOLE, PATIENCE_MS, browser  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

LINK = "/nodes?phase=production&sort=id&order=down&q=n"
SCREENS = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 800}}


class Person:
    """A person's browser, with what the console's pages complained about; the provider's pages are not judged."""

    def __init__(self, page: Page, world: House, issuer: str) -> None:
        self.page = page
        self.world = world
        self.issuer = issuer
        self.home = world.url.replace("127.0.0.1", "localhost")
        self.complaints: list[str] = []
        self._expected: tuple[str, ...] = ()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning") and not message.location["url"].startswith(self.issuer):
            self.complaints.append(f"{message.text} {message.location['url']}")

    async def follow(self, link: str) -> None:
        """Opens a link that somebody sent."""
        await self.page.goto(self.home + link)

    async def ask_to_sign_in(self) -> None:
        await self.page.get_by_role("link", name="Sign in").click()
        await self.page.wait_for_url(f"{self.issuer}/**")

    async def sign_in(self, name: str, link: str = LINK) -> None:
        """From the link to the very page that it names."""
        await self.follow(link)
        await self.ask_to_sign_in()
        await self.page.get_by_role("button", name=name, exact=True).click()
        await self.page.wait_for_url(self.home + link)
        await expect(self.page.locator(".live")).to_contain_text("live")

    def expects(self, *words: str) -> None:
        """The browser's own lines with these words are no complaints, also later: the server was to answer so."""
        self._expected += words

    def unexpected(self) -> list[str]:
        return [one for one in self.complaints if not any(word in one for word in self._expected)]


async def unstyled(route: Route) -> None:
    """The style that the provider's pages fetch from elsewhere: none."""
    await route.fulfill(content_type="text/css", body="")


@pytest_asyncio.fixture(loop_scope="module")
async def person(browser: Browser, tmp_path: Path) -> AsyncIterator[Person]:  # noqa: F811
    async with house(tmp_path) as world, provider(tmp_path) as issuer, await browser.new_context() as context:
        await world.adopt(4)
        await context.route("https://cdn.jsdelivr.net/**", unstyled)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        found = Person(page, world, issuer)
        signs_in(world, issuer, found.home)
        yield found
        assert found.unexpected() == []


SEEN = {"ada": ("/audit?verb=adopt", "ada"), "tina": ("/board?view=mine", "Board"), "pat": ("/nodes?q=n2", "n2")}


@pytest.mark.parametrize("name", SEEN)
async def test_a_link_leads_through_the_provider_to_the_page_of_ones_role_and_out_again(
    person: Person, name: str
) -> None:
    """Mutants: the console takes the link for a page of its own; filters are lost on the way; sign-out keeps it."""
    link, seen = SEEN[name]
    await person.sign_in(name, link)
    role = {"ada": "operator", "tina": "technician", "pat": "tenant"}[name]
    await expect(person.page.locator(".bar")).to_contain_text(f"{name}@example.org, {role}")
    await expect(person.page.locator("main")).to_contain_text(seen)
    await person.page.reload()
    await expect(person.page.locator(".bar")).to_contain_text(f"{name}@example.org, {role}")
    assert person.page.url == person.home + link
    await person.page.get_by_role("button", name="Sign out").click()
    await expect(person.page.get_by_role("alert")).to_have_text("You are signed out.")
    await person.page.reload()
    await expect(person.page.get_by_role("link", name="Sign in")).to_be_visible()
    cookies = await person.page.context.cookies(person.home)
    assert SESSION not in [one["name"] for one in cookies]
    assert not [one for one in person.world.tokens.list() if one.grant.name == f"{name}@example.org"]


async def test_a_provider_that_refuses_leads_back_to_the_link_which_says_so_once(person: Person) -> None:
    """Mutants: the person is left before an API's JSON; the text stays for ever; the link's filters are gone."""
    await person.follow(LINK)
    await person.ask_to_sign_in()
    await person.page.get_by_role("button", name="Deny").click()
    await person.page.wait_for_url(person.home + LINK)
    said = person.page.get_by_role("alert")
    await expect(said).to_contain_text("the sign-in provider refuses: access_denied")
    await expect(said).to_contain_text("ask the provider's administrator")
    (entry,) = [one for one in await refusals(person.world) if one["route"] == "/sign-in/callback"]
    assert (entry["status"], entry["outcome"]) == (403, "refused")
    await person.page.reload()
    await expect(person.page.get_by_role("link", name="Sign in")).to_be_visible()
    await expect(said).to_have_count(0)


async def refusals(world: House) -> list[dict[str, Any]]:
    """Refusals in the audit trail, all of which are written when the trail ends."""
    trail = asyncio.create_task(world.app_state.outside.audit.run())
    await asyncio.sleep(0)
    trail.cancel()
    await asyncio.wait([trail])
    return list((await world.operator.get("/v1/audit", params={"chain": "refusals"}))["items"])


async def test_who_is_in_no_group_is_told_so_at_the_link(person: Person) -> None:
    await person.follow(LINK)
    await person.ask_to_sign_in()
    await person.page.get_by_role("button", name="eve", exact=True).click()
    await person.page.wait_for_url(person.home + LINK)
    await expect(person.page.get_by_role("alert")).to_contain_text("eve@example.org is in no group")


async def test_a_provider_that_is_away_is_said_and_a_token_still_opens_the_console(person: Person) -> None:
    signs_in(person.world, "http://127.0.0.1:9", person.home)
    await person.follow(LINK)
    await person.page.get_by_role("link", name="Sign in").click()
    await expect(person.page.get_by_role("alert")).to_contain_text("the provider cannot be reached")
    assert person.page.url == person.home + LINK
    await person.page.get_by_label("Token").fill(person.world.operator.token)
    await person.page.get_by_role("button", name="Open").click()
    await expect(person.page.locator("tbody tr")).to_have_count(4)


async def test_a_session_that_ends_under_an_open_page_is_said_and_goes_on_where_it_was(person: Person) -> None:
    """Mutants: the page goes on with what it has read; the next sign-in leads to the front page."""
    signs_in(person.world, person.issuer, person.home, session_s=8.0)
    await person.sign_in("ada")
    await person.page.get_by_label("id, name or serial").fill("n2")
    await person.page.keyboard.press("Enter")
    await expect(person.page.locator("tbody tr")).to_have_count(1)
    here = person.page.url
    assert here.endswith("q=n2")
    await expect(person.page.get_by_role("alert")).to_have_text("Your session has ended.")
    await expect(person.page.locator("tbody")).to_have_count(0)
    assert person.page.url == here
    person.expects("status of 401", "v1/events")  # the stream is cut where its session ends
    signs_in(person.world, person.issuer, person.home)
    await person.ask_to_sign_in()
    await person.page.get_by_role("button", name="ada", exact=True).click()
    await person.page.wait_for_url(here)
    await expect(person.page.locator("tbody tr")).to_have_count(1)


@pytest.mark.parametrize(("host", "carries"), [("127.0.0.1", False), ("localhost", True)])
async def test_another_page_changes_nothing_with_a_persons_session(person: Person, host: str, carries: bool) -> None:
    """Another site's page is without the cookie; another port's of this host has it; both are refused by their origin.

    Mutants: SameSite=None; neither the server nor `demand_own_page` compares origins.
    """
    await person.sign_in("ada")
    sent: list[Request] = []
    answered: list[int] = []
    person.page.on("request", lambda one: sent.append(one) if one.url.endswith("/v1/intents") else None)
    person.page.on("response", lambda one: answered.append(one.status) if one.url.endswith("/v1/intents") else None)
    async with evil(person.home, host) as address:
        await person.page.goto(address)
        await person.page.get_by_role("button", name="Win").click()
        await person.page.wait_for_url(person.home + "/v1/intents")
        assert answered == [403]
        assert (SESSION in (await sent[0].all_headers()).get("cookie", "")) is carries
        await person.page.goto(address)
        silent = await person.page.evaluate(
            """(to) => fetch(to, { method: "POST", credentials: "include", mode: "no-cors",
                 body: '{"act": {"verb": "pause"}, "target": "fleet", "reason": "x"}' }).catch((why) => String(why))""",
            person.home + "/v1/intents",
        )
        assert "Failed to fetch" in silent, "the answer is of this site alone"
    assert person.world.cell.view.cell.paused == ()
    person.expects("status of 403", "NotSameOrigin")


class evil:  # noqa: N801 - read as a context
    """A page on another server, by this host name, with a form that posts an intent in a person's name."""

    def __init__(self, target: str, host: str) -> None:
        self._host = host
        app = web.Application()
        form = (
            f'<form method="post" enctype="text/plain" action="{target}/v1/intents">'
            """<input name='{"act": {"verb": "pause"}, "target": "fleet", "reason": "' value='"}'>"""
            "<button>Win</button></form>"
        )

        async def page(_: web.Request) -> web.Response:
            return web.Response(text=f"<!doctype html><link rel=icon href=data:,>{form}", content_type="text/html")

        app.router.add_get("/", page)
        self._runner = web.AppRunner(app)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://{self._host}:{self._runner.addresses[0][1]}/"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_the_sign_in_page_can_be_used_by_everybody(person: Person, scheme: Any, screen: str) -> None:
    """axe-core finds nothing, neither as it is opened nor with what failed; it fits; Enter and Tab do it all."""
    await person.page.emulate_media(color_scheme=scheme)
    await person.page.set_viewport_size(SCREENS[screen])  # type: ignore[arg-type]
    await person.follow(LINK)
    link = person.page.get_by_role("link", name="Sign in")
    await expect(link).to_be_visible()
    await judged(person.page)
    await person.page.get_by_label("Token").fill("hst_wrong")
    await person.page.get_by_role("button", name="Open").click()
    await expect(person.page.get_by_role("alert")).to_contain_text("does not take this token")
    person.expects("status of 401")
    await judged(person.page)
    await link.focus()
    await person.page.keyboard.press("Enter")
    await person.page.wait_for_url(f"{person.issuer}/**")


async def judged(page: Page) -> None:
    """Demand that axe-core finds nothing, and nothing is beyond the screen's edge."""
    found = (await Axe().run(page)).response["violations"]
    assert not [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_no_page_is_shown_before_it_is_known_how_people_sign_in(person: Person) -> None:
    """Mutant: the form for a token stands there for a moment, and takes what is typed."""
    go_on = asyncio.Event()

    async def late(route: Route) -> None:
        await go_on.wait()
        await route.continue_()

    await person.sign_in("ada")
    await person.page.route("**/sign-in/ways", late)
    await person.page.reload(wait_until="domcontentloaded")
    await expect(person.page.get_by_text("Reading …")).to_be_visible()
    assert await person.page.get_by_label("Token").count() == 0
    go_on.set()
    await expect(person.page.locator(".live")).to_contain_text("live")
    assert urlsplit(person.page.url).query == urlsplit(LINK).query
    assert set(PEOPLE) >= set(SEEN)
