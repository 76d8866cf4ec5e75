"""The console in Debian's Chromium, over a real cell: pages load clean, follow what happens, work by keys."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, async_playwright, expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, POLICY, XID79, House, bmc_of, house

CHROMIUM = shutil.which("chromium")
PATIENCE_MS = 60_000
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]

expect.set_options(timeout=PATIENCE_MS)

CONSOLE = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
    pytest.mark.xdist_group("console"),
    pytest.mark.asyncio(loop_scope="module"),  # a browser lives on from test to test, in the loop that started it
]
pytestmark = CONSOLE


class Tab:
    """A page of the console with everything it complained about or fetched from elsewhere."""

    def __init__(self, page: Page, house: House) -> None:
        self.page = page
        self.house = house
        self.complaints: list[str] = []
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._looks_elsewhere(request.url))

    def _looks_elsewhere(self, url: str) -> None:
        if not url.removeprefix("blob:").startswith(self.house.url):
            self.complaints.append(url)

    async def open(self, token: str, path: str = "") -> None:
        await self.page.goto(f"{self.house.url}{path or '/'}#token={token}")
        await expect(self.page.locator(".live")).to_contain_text("live")


@pytest_asyncio.fixture(loop_scope="module")
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.adopt(4)
        yield inside


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS, timeout=PATIENCE_MS)
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def tab(browser: Browser, world: House) -> AsyncIterator[Tab]:
    """A page in a context of its own: storage, cookies and cache are new to each test."""
    async with await browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        found = Tab(page, world)
        yield found
        assert found.complaints == []


async def test_the_fleet_is_shown_and_follows_what_happens(world: House, tab: Tab) -> None:
    await tab.open(world.operator.token)
    await expect(tab.page.locator(".phase")).to_contain_text(["4production"])
    await expect(tab.page.locator("table", has_text="alpha")).to_contain_text("alpha40430")
    world.work("n2", "acme")
    await world.operator.post("/v1/nodes/n2/reboot", {"reason": "kernel update"})
    await expect(tab.page.locator(".waits").first).to_contain_text("acme/train-0 of acme runs here")
    await world.operator.post("/v1/intents", {"act": {"verb": "pause"}, "target": "fleet", "reason": "calm"})
    await expect(tab.page.get_by_role("alert")).to_contain_text("paused for fleet")
    overflow = await tab.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not overflow


async def test_changes_begin_with_moves_and_faults_and_fold_what_was_asked_again_and_again(
    world: House, tab: Tab
) -> None:
    """Mutants: what people asked for comes first; each of their requests is a line; a move has no node."""
    for node in ("n0", "n1", "n2"):
        status, _ = await world.operator.post(f"/v1/nodes/{node}/cordon", {"reason": "a fan is loud"})
        assert status == 200
    await world.report("n3", kind="kernel_log", text=XID79, facility=0)
    await tab.open(world.operator.token)
    lines = tab.page.locator("ol.changes li")
    await expect(lines.first).to_contain_text("n3")
    said = await lines.all_inner_texts()
    moves = [place for place, text in enumerate(said) if "cordon" not in text]
    asked = [place for place, text in enumerate(said) if "cordon" in text]
    assert asked, said
    assert "3 times" in said[asked[0]], said
    assert len(asked) == 1, said
    assert max(moves[:1]) < asked[0], said


async def test_each_change_is_linked_to_its_second(world: House, tab: Tab) -> None:
    """Mutants: a request has no link; one to the latest events; a move's leads to all of the node's life."""
    await world.operator.post("/v1/nodes/n0/cordon", {"reason": "a fan is loud"})
    await world.report("n3", kind="kernel_log", text=XID79, facility=0)
    await tab.open(world.operator.token)
    lines = tab.page.locator("ol.changes li")
    asked = lines.filter(has_text="cordon").first
    await expect(asked).to_be_visible()
    await expect(lines.locator("time a")).to_have_count(await lines.count())
    await asked.locator("time a").click()
    second = r"\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\dZ"
    await expect(tab.page).to_have_url(re.compile(rf"/events\?since={second}&until={second}$"))
    rows = tab.page.get_by_role("region", name="events, a table").locator("tbody tr")
    await expect(rows.filter(has_text="a fan is loud").first).to_be_visible()
    await tab.page.go_back()
    await lines.filter(has_text="n3").first.locator("time a").click()
    await expect(tab.page).to_have_url(re.compile(rf"/nodes/n3\?moment={second}$"))


async def test_a_phase_that_is_chosen_stands_in_the_address(world: House, tab: Tab) -> None:
    """Mutants: the choice is lost with the page; a phase that there is none of leaves every cell pale."""
    nodes = [{"id": "m0", "sku": "h100", "serial": "SN-m0", "bmc": bmc_of("m0")}]
    await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    await world.until(lambda: world.cell.view.nodes["m0"].phase == "onboard")
    await tab.open(world.operator.token, "/?by=pool")
    chosen = tab.page.get_by_role("button", name=re.compile("onboard$"))
    await chosen.click()
    await expect(tab.page).to_have_url(re.compile(r"/\?by=pool&phase=onboard$"))
    for _ in range(2):
        await expect(chosen).to_have_attribute("aria-pressed", "true")
        if await (table := tab.page.get_by_text("As a table")).count():
            await table.click()
        await expect(tab.page.locator(".grid-table tbody tr")).to_have_count(1)
        await tab.page.reload()
    await chosen.click()
    await expect(tab.page).to_have_url(re.compile(r"/\?by=pool$"))
    await tab.open(world.operator.token, "/?phase=gone")
    await expect(tab.page.locator(".phase[aria-pressed=true]")).to_have_count(0)


async def test_a_brake_that_has_latched_stands_above_all_and_who_waits_for_it_is_told_with_its_cost(
    world: House, tab: Tab
) -> None:
    """Mutants: a latched brake is nowhere on the front page; a wait without its GPU-hours, or without what ends it."""
    tight = POLICY.replace("brake: {disruptions: 20, percent: 2,", "brake: {disruptions: 0, percent: 0,")
    assert tight != POLICY
    body = {"documents": {**DOCUMENTS, "policy.yaml": tight}, "reason": "a nervous one"}
    assert (await world.operator.post("/v1/config", body))[0] == 200
    await tab.open(world.operator.token)
    await expect(tab.page.get_by_role("alert")).to_have_count(0)
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    await expect(tab.page.get_by_role("alert")).to_contain_text(re.compile("Storm brake latched since .*1 disruptions"))
    wait = tab.page.locator("ol.waits li").filter(has_text="n0")
    await expect(wait).to_contain_text("brake")
    await expect(wait).to_contain_text("GPU-hours")
    await expect(wait).to_contain_text("ends when")


async def test_a_node_tells_its_story_live(world: House, tab: Tab) -> None:
    await tab.open(world.operator.token, "/nodes/n1")
    await expect(tab.page.locator("h1")).to_have_text("n1")
    await expect(tab.page.locator(".timeline")).to_contain_text("adopted as h100")
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await expect(tab.page.locator(".timeline")).to_contain_text("power_cycle planned for gpu.fallen_off_bus")
    chain = tab.page.locator(".chain").first
    await expect(chain).to_contain_text("gpu.fallen_off_bus cleared")
    await expect(chain.locator("code").first).to_contain_text("Xid 79")
    await expect(chain.locator(".steps li.done")).to_have_count(8)


async def test_a_node_says_whose_turn_it_is(world: House, tab: Tab) -> None:
    """Mutant: the page reads it once, and not again when a hold is placed."""
    await tab.open(world.operator.token, "/nodes/n2")
    turn = tab.page.locator(".acts-next")
    await expect(turn).to_have_text("Next nobody: nothing is to be done")
    status, _ = await world.operator.post("/v1/nodes/n2/cordon", {"reason": "a fan is loud"})
    assert status == 200
    await expect(turn).to_have_text("Next an operator releases the cordon")


async def test_what_happens_before_the_stream_begins_is_shown_too(world: House, tab: Tab) -> None:
    """Mutant: follow from now on; the hold is then not in the timeline until something else happens to the node."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        asked.set()
        await go_on.wait()
        await route.continue_()

    await tab.page.route("**/v1/events", late)
    await tab.page.goto(f"{world.url}/#token={world.operator.token}")
    await asked.wait()
    await tab.page.evaluate("history.pushState(null, '', '/nodes/n1'); dispatchEvent(new PopStateEvent('popstate'))")
    await expect(tab.page.locator(".timeline")).to_contain_text("adopted as h100")
    await world.operator.post("/v1/nodes/n1/hold", {"reason": "nobody streams yet"})
    go_on.set()
    await expect(tab.page.locator(".timeline")).to_contain_text("nobody streams yet")


async def test_a_stream_whose_records_have_gone_begins_with_all_read_anew(world: House, tab: Tab) -> None:
    """Mutant: begin from now on while reading anew; what happens in between is in neither."""
    answers: list[str] = []

    async def gone_once(route: Route) -> None:
        answers.append(route.request.headers["last-event-id"])
        if len(answers) > 1:
            await route.continue_()
            return
        await world.operator.post("/v1/nodes/n1/hold", {"reason": "while it was away"})
        await route.fulfill(status=410, json={"error": "gone", "detail": "left", "instead": "list"})

    await tab.page.route("**/v1/events", gone_once)
    await tab.open(world.operator.token, "/nodes/n1")
    await expect(tab.page.locator(".timeline")).to_contain_text("while it was away")
    assert int(answers[1]) > int(answers[0])
    assert all("410" in complaint for complaint in tab.complaints)
    tab.complaints.clear()


async def test_an_incident_stands_on_every_page_until_it_is_closed(world: House, tab: Tab) -> None:
    await tab.open(world.operator.token)
    await expect(tab.page.locator(".phase")).to_contain_text(["4production"])
    for n in range(4):
        await world.report(f"n{n}", kind="power", facts={"power": "off"})
    await expect(tab.page.get_by_role("alert")).to_contain_text("rack r0 is suspected, 4 of 4 nodes held")
    listed = tab.page.locator(".incidents li")
    await expect(listed).to_contain_text("power.off_unexpected on 4 of 4 nodes")
    await listed.get_by_role("link", name="n2").click()
    await expect(tab.page.locator("h1")).to_have_text("n2")
    await expect(tab.page.get_by_role("alert")).to_contain_text("rack r0 is suspected")
    await expect(tab.page.locator(".waiting")).to_contain_text("rack r0 is suspected of power.off_unexpected")
    (row,) = (await world.operator.get("/v1/incidents"))["items"]
    request = {"act": {"verb": "close-incident"}, "target": row["id"], "reason": "the feed is back"}
    await world.operator.post("/v1/intents", request)
    await expect(tab.page.get_by_role("alert")).to_have_count(0)


async def test_the_grid_works_by_keyboard(world: House, tab: Tab) -> None:
    await tab.open(world.operator.token)
    await tab.page.locator("canvas").focus()
    await expect(tab.page.locator(".readout")).to_contain_text("n0 · rack r0 · production")
    await tab.page.keyboard.press("ArrowRight")
    await expect(tab.page.locator(".readout")).to_contain_text("n1")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page).to_have_url(re.compile(r"/nodes/n1$"))
    await expect(tab.page.locator("h1")).to_have_text("n1")


async def test_a_pasted_token_opens_it_and_the_fragment_is_forgotten(world: House, tab: Tab) -> None:
    await tab.page.goto(world.url)
    await tab.page.get_by_label("Token").fill(world.operator.token)
    await tab.page.get_by_role("button", name="Open").click()
    await expect(tab.page.locator(".live")).to_contain_text("live")
    await tab.page.get_by_role("button", name="Sign out").click()
    await expect(tab.page.get_by_label("Token")).to_be_visible()
    await tab.open(world.operator.token)
    assert "hst_" not in tab.page.url


async def test_a_tenants_console_shows_its_own(world: House, tab: Tab) -> None:
    await world.adopt(2, "beta", start=8)
    token = world.client(Grant("alice", Role.tenant, tenant="acme")).token
    await tab.open(token)
    await expect(tab.page.locator(".phase")).to_contain_text(["4production"])
    assert "globex" not in await tab.page.content()
    assert "beta" not in await tab.page.content()


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_text_stands_out_in_both_colour_schemes(world: House, tab: Tab, scheme: str) -> None:
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await tab.open(world.operator.token)
    colours = await tab.page.evaluate(
        """() => ["--text", "--muted", "--accent"].map((name) => {
            const lum = (hex) => {
                const part = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
                const [r, g, b] = part.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const style = getComputedStyle(document.documentElement);
            const [a, b] = [name, "--panel"].map((n) => lum(style.getPropertyValue(n).trim())).sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05);
        })"""
    )
    assert all(ratio >= 4.5 for ratio in colours), colours
