"""The console's pages of networks, in Debian's Chromium: matrix, findings drawn, links, tests by hand."""

import asyncio
import csv
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from msgspec.structs import replace
from playwright.async_api import expect

from hostler.controller.inputs import FabricSeen, FellowsSeen, LinksSeen
from hostler.core.fabric.design_csv import parse_csv, render_csv
from hostler.core.fabric.rail_rule import RailRule
from hostler.core.fabric.validation_report import report
from hostler.core.intents import fabrics
from hostler.core.state.fabrics import FabricReport
from hostler.core.state.links import LinkCheck, LinkFault, LinkGrade, LinkRound, PortReading
from hostler.core.state.live_state import Fellow, Release
from hostler.polling import link_rounds
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.contract.test_pair_posts import SLOW_LEAF, in_rounds, screened
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures
from tests.end_to_end.test_console_commands import FABRIC, both, compared
from tests.fabrics import Fabric, a_fabric, exchange_hosts, miss, swap_at_host

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

LARGE = RailRule(hosts=4096, rate="4xHDR", host_model="x")
"""4,096 hosts of 8 rails."""

FAULT = LinkFault("leaf-001-1:9", "spine-001:1", LinkCheck.flaps, LinkGrade.act, "5 flaps in 24 h", ("cable:C7",))
SMALL = a_fabric(3)


async def registered(world: House, cables: Fabric, **spec: Any) -> None:  # noqa: F811
    fabrics.prepared.cache_clear()
    world.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
    await world.until(lambda: world.cell.view.cell.format == Release().reads)
    given = spec or {"design": render_csv(cables.design)}
    body = {"fabric": {"name": "ib0", **given}, "reason": "the training network"}
    status, answer = await world.operator.post("/v1/fabrics", body)
    assert status == 200, answer


async def looked_at(world: House, cables: Fabric) -> float:  # noqa: F811
    """A validation by what lies there, as its schedule would tell it: beside the loop. When it was told."""
    fabric = world.cell.view.fabrics["ib0"]

    def seen() -> FabricReport:
        return report(fabric, parse_csv(fabric.design.encode(), "ib0"), cables.discovery(), datetime.now(UTC))

    told = FabricSeen(await asyncio.to_thread(seen))
    world.cell.tell(told)
    return time.monotonic()


@pytest_asyncio.fixture(loop_scope="module")
async def network(world: House) -> House:  # noqa: F811
    """A small network with a swap and a missing cable, a fault in service, and a test by hand."""
    cables = a_fabric(3)
    await registered(world, cables)
    swap_at_host(cables)
    miss(cables)
    await looked_at(world, cables)
    reading = PortReading(link_downed=5, symbol_errors=0, temperature_c=41.0, module="M1", cable="C7", lane_ber=(1e-9,))
    readings = {"leaf-001-1:9": reading, "spine-001:1": PortReading(link_downed=4)}
    world.cell.tell(LinksSeen(LinkRound("ib0", datetime.now(UTC), 2, (FAULT,), readings=readings)))
    await world.until(lambda: bool(world.cell.view.link_cases.base) and len(world.cell.view.cases_of("ib0")) == 2)
    args = {"owner": "tess", "checklist": "ib_write_bw by rail; look at the LEDs"}
    body = {"act": {"verb": "schedule-manual-test", **args}, "target": "ib0", "reason": "weekly"}
    assert (await world.operator.post("/v1/intents", body))[0] == 200
    return world


async def test_a_network_is_read_from_the_list_to_a_findings_drawing(network: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: what lies now is drawn as the design; a finding's page is another's."""
    await tab.open(network.operator.token, "/fabrics")
    row = tab.page.locator("tbody tr")
    await expect(row).to_contain_text("ib0")
    await expect(row).to_contain_text("differs")
    await expect(tab.page.locator(".cli")).to_have_text("hostler fabric list")
    await row.get_by_role("link", name="2 findings of ib0").click()
    await expect(tab.page.locator("tbody tr")).to_have_count(2)
    await expect(tab.page.locator(".cli")).to_have_text("hostler fabric findings ib0")
    (swap,) = (c for c in network.cell.view.cases_of("ib0") if c.finding.kind == "swapped")
    await tab.page.get_by_role("link", name=swap.finding.headline).click()
    await expect(tab.page.locator("h1")).to_have_text(swap.finding.headline)
    await expect(tab.page.locator(".todo li").first).to_have_text(swap.finding.steps[0])
    lies = tab.page.get_by_role("img", name="As it lies: ")
    designed = tab.page.get_by_role("img", name="As designed: ")
    await expect(lies.locator("path.lies")).to_have_count(2)
    await expect(designed.locator("path.designed")).to_have_count(2)
    said = [await one.get_attribute("aria-label") or "" for one in (lies, designed)]
    cables = [{frozenset(pair.split(" to ")) for pair in one.partition(": ")[2].split("; ")} for one in said]
    assert cables[0].isdisjoint(cables[1])
    assert {port for pair in cables[1] for port in pair} == set(swap.finding.ports)
    await tab.page.get_by_text("As a table").click()
    await expect(tab.page.locator("details tbody tr")).to_have_count(4)
    await tab.page.reload()
    await expect(tab.page.locator("h1")).to_have_text(swap.finding.headline)


async def test_the_matrix_is_read_by_keys_and_as_a_table(
    network: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: keys walk past a row's end; the table counts another leaf's ports; a change waits for a reload."""
    await tab.open(network.operator.token, "/fabrics/ib0")
    await expect(tab.page.locator(".standing")).to_contain_text("112 cables, 12 hosts, 12 switches")
    await expect(tab.page.locator(".key")).to_contain_text(["109 as designed", "2 elsewhere", "1 missing"])
    canvas = tab.page.get_by_role("application")
    await canvas.focus()
    readout = tab.page.locator(".readout")
    await expect(readout).to_contain_text("gpu-0001:mlx5_0 · at leaf-001-1")
    await tab.page.keyboard.press("ArrowDown")
    await expect(readout).to_contain_text("gpu-0001:mlx5_1 · at leaf-001-2")
    for _ in range(6):
        await tab.page.keyboard.press("ArrowRight")
    await expect(readout).to_contain_text("leaf-001-2 · 8 cables to other switches")
    await tab.page.keyboard.press("ArrowUp")
    await tab.page.keyboard.press("ArrowLeft")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.locator("h1")).to_contain_text("gpu-0006:mlx5_0 to leaf-001-1:")
    await tab.page.go_back()
    rows = tab.page.locator("tbody tr")
    await expect(rows).to_have_count(8)
    async with tab.page.expect_download() as begun:
        await tab.page.get_by_role("button", name="CSV").click()
    await (await begun.value).save_as(tmp_path / "leaves.csv")
    told = list(csv.DictReader((tmp_path / "leaves.csv").read_text().splitlines()))
    assert sum(int(row["elsewhere"]) for row in told) == 2
    assert sum(int(row["missing"]) for row in told) + sum(int(row["of them not as designed"]) for row in told) >= 1
    await tab.page.get_by_label("leaf or host").fill("leaf-002-3")
    await tab.page.keyboard.press("Enter")
    await expect(rows).to_have_count(1)
    await tab.page.get_by_label("leaf or host").fill("")
    await tab.page.keyboard.press("Enter")
    await looked_at(network, a_fabric(3))
    await expect(tab.page.locator(".key")).to_contain_text(["112 as designed"])


async def test_links_faults_and_counters_lead_to_the_page_of_a_link(network: House, tab: Tab) -> None:  # noqa: F811
    await tab.open(network.operator.token, "/fabrics/ib0?view=links")
    await tab.page.get_by_label("found").select_option("elsewhere")
    rows = tab.page.locator("tbody tr")
    await expect(rows).to_have_count(2)
    await expect(tab.page.locator(".cli")).to_have_text("hostler fabric links ib0 --found elsewhere")
    await tab.page.get_by_role("button", name="counters").click()
    await expect(rows).to_have_count(2)
    await tab.page.get_by_role("button", name="faults").click()
    await expect(rows).to_contain_text("5 flaps in 24 h")
    await rows.get_by_role("link", name="leaf-001-1:9").click()
    ends = tab.page.get_by_role("region", name="Both ends of the link")
    await expect(ends.get_by_role("row", name="link downed")).to_contain_text("54")
    await expect(ends.get_by_role("row", name="cable")).to_contain_text("C7")
    await expect(tab.page.get_by_role("status").filter(has_text="5 flaps in 24 h")).to_have_count(1)
    await expect(tab.page.locator(".timeline li")).to_have_count(1)
    await tab.page.goto(f"{network.url}/fabrics/ib0?link=nobody:1")
    await expect(tab.page.get_by_role("alert")).to_contain_text("nobody:1")
    await tab.page.goto(f"{network.url}/fabrics/ib9")
    await expect(tab.page.get_by_role("alert")).to_contain_text("ib9")
    tab.complaints[:] = [one for one in tab.complaints if "404" not in one]


async def test_slow_pairs_are_one_finding_of_their_switch_on_the_page(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutants: each slow link is a row; the page waits for a reload; the drawing is of another switch."""
    monkeypatch.setattr(link_rounds, "PAIRS_S", 0.05)
    async with in_rounds(world):
        await tab.open(world.operator.token, "/fabrics/ib0?view=findings")
        rows = tab.page.locator("tbody tr")
        await expect(tab.page.get_by_role("button", name="findings 0")).to_have_count(1)
        status, answer = await world.operator.post("/v1/fabrics/ib0/pairs", {"results": screened()})
        assert (status, answer["taken"]) == (200, 144)
        await expect(rows).to_have_count(1, timeout=20_000)
        await expect(rows).to_contain_text(f"switch {SLOW_LEAF}: 28 pairs through it reach 90 Gbit/s")
        await expect(tab.page.get_by_role("button", name="findings 1")).to_have_count(1)
        (row,) = (await world.operator.get("/v1/fabrics/ib0/findings"))["items"]
        assert row["ticket"]
        assert row["incident"]
        await expect(rows).to_contain_text(row["ticket"])
        await expect(rows).to_contain_text(row["incident"])
        await rows.get_by_role("link").first.click()
        await expect(tab.page.locator("h1")).to_contain_text(f"switch {SLOW_LEAF}: 28 pairs")
        drawn = tab.page.get_by_role("img", name="As designed: ")
        told = (await drawn.get_attribute("aria-label") or "").partition(": ")[2]
        ends = [pair.split(" to ") for pair in told.split("; ")]
        assert len(ends) == 6
        assert all(any(end.startswith(f"{SLOW_LEAF}:") for end in pair) for pair in ends)
        await tab.page.go_back()
        await expect(rows).to_have_count(1)


async def test_a_tenant_sees_the_links_of_its_own_nodes_only(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: the console asks for the network, and shows that it may not."""
    await world.adopt(2, "beta", start=8)
    design = render_csv(SMALL.design).replace("gpu-0001", "n0").replace("gpu-0002", "n8")
    await registered(world, SMALL, design=design)
    cables = a_fabric(3)
    for at, name in {port: cables.description(port) for port in cables.guids}.items():
        cables.descriptions[at] = name.replace("gpu-0001", "n0").replace("gpu-0002", "n8")
    await looked_at(world, cables)
    await world.until(lambda: world.cell.view.fabrics["ib0"].look is not None)
    await tab.open(world.client(Grant("alice", Role.tenant, tenant="acme")).token, "/fabrics")
    rows = tab.page.locator("tbody tr")
    await expect(rows).to_have_count(4)
    await rows.first.get_by_role("link", name="n0:mlx5_0").click()
    await expect(tab.page.locator("h1")).to_have_text("n0:mlx5_0 to leaf-001-1:1")
    for page in ("/fabrics", "/fabrics/ib0", "/fabrics/ib0?link=n8:mlx5_0"):
        await tab.page.goto(world.url + page)
        await expect(rows).to_have_count(4)
        assert "n8" not in await tab.page.locator("main").inner_text()


async def test_a_walk_of_a_rack_stands_on_the_board_stop_by_stop(network: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the card shows no stop; a rack's filter hides the walk."""
    rack = next(case for case in network.cell.view.cases_of("ib0") if case.finding.kind == "missing").finding.places[0]
    body = {"act": {"verb": "walk-findings", "rack": rack[0]}, "target": "ib0", "reason": "tonight"}
    status, answer = await network.operator.post("/v1/intents", body)
    assert status == 200, answer
    await tab.open(network.client(Grant("tess", Role.technician)).token, f"/board?rack={rack[0]}")
    card = tab.page.get_by_role("article").filter(has_text="on one walk")
    await expect(card).to_have_count(1)
    await expect(card.locator("ol.todo > li").first).to_contain_text(f"{rack[0]} U")
    walk = next(one for one in network.cell.view.tickets.values() if one.kind == "cabling_walk")
    await expect(card.locator("ol.todo > li")).to_have_count(len(walk.walk))
    await expect(card).to_contain_text(walk.walk[0].steps[0])
    await card.get_by_role("button", name="Tick stop 1", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("the plug sits again")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await dialog.get_by_role("button", name="Do it").click()
    await dialog.get_by_role("button", name="Close").click()
    await expect(card.locator("ol.todo > li").first).to_contain_text("ticked by tess")
    await expect(card.get_by_role("button", name="Tick stop 1", exact=True)).to_have_count(0)


async def test_versions_of_a_design_are_compared_planned_and_gone_back_to(
    network: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a plan is registered; the way back brings the design in force; a bad file's line is not told."""
    design = render_csv(SMALL.design)
    (tmp_path / "rates.csv").write_text(design.replace("4xHDR", ""))
    (tmp_path / "bad.csv").write_text(design + "x,1,x,1" + "," * 9 + "\n")
    await tab.open(network.operator.token, "/fabrics/ib0?view=designs")
    rows = tab.page.get_by_role("region", name="versions, a table").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await tab.page.get_by_text("What would another design change?").click()
    file = tab.page.get_by_label("design as CSV")
    await file.set_input_files(tmp_path / "bad.csv")
    await expect(tab.page.get_by_role("status").filter(has_text="a cable from x:1 to itself")).to_have_count(1)
    await file.set_input_files(tmp_path / "rates.csv")
    await expect(tab.page.get_by_text("rate changes: 112; at 12 hosts and 12 switches in 4 racks")).to_have_count(1)
    await expect(rows).to_have_count(1)
    fabric = {"name": "ib0", "design": design.replace("4xHDR", "")}
    assert (await network.operator.post("/v1/fabrics", {"fabric": fabric, "reason": "rates are unknown"}))[0] == 200
    await expect(rows).to_have_count(2)
    await expect(rows.last).to_contain_text("rates are unknown")
    changes = tab.page.get_by_role("region", name="changes, a table").locator("tbody tr")
    await expect(changes.first).to_contain_text("4xHDR")
    await tab.page.get_by_text("Go back to", exact=False).first.click()
    await tab.page.get_by_label("reason", exact=True).fill("they are known again")
    await tab.page.get_by_role("button", name="Go back to").click()
    await expect(rows).to_have_count(3)
    known = network.cell.view.fabrics["ib0"]
    assert known.versions[2].digest == known.versions[0].digest == known.digest
    await expect(rows.last).to_contain_text("they are known again")
    tab.complaints[:] = [one for one in tab.complaints if "422" not in one]


async def test_a_re_cabling_is_looked_at_and_planned_with_its_window(
    network: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: looking plans it; the window is taken for the browser's own zone; a refusal is not told."""
    (tmp_path / "next.csv").write_text(render_csv(SMALL.design).replace("4xHDR", ""))
    await tab.open(network.operator.token, "/fabrics/ib0?view=designs")
    await tab.page.get_by_text("Have it cabled by another design in a window").click()
    await tab.page.get_by_label("design of the window as CSV").set_input_files(tmp_path / "next.csv")
    day = datetime.now(UTC) + timedelta(days=2)
    await tab.page.get_by_label("begins (UTC)").fill(f"{day:%Y-%m-%d}T22:00")
    await tab.page.get_by_label("ends (UTC)").fill(f"{day:%Y-%m-%d}T21:00")
    await tab.page.get_by_label("why", exact=True).fill("two trays")
    look = tab.page.get_by_role("button", name="Show what it would do")
    said = tab.page.get_by_role("status")
    await look.click()
    await expect(said.filter(has_text="the window ends before it begins")).to_have_count(1)
    await tab.page.get_by_label("ends (UTC)").fill(f"{day + timedelta(days=1):%Y-%m-%d}T06:00")
    await look.click()
    await expect(said.filter(has_text="rate changes: 112")).to_have_count(1)
    assert not [one for one in network.cell.view.fabrics.values() if one.recabling is not None]
    await tab.page.get_by_role("button", name="Plan the re-cabling").click()
    await expect(tab.page.get_by_role("button", name="Call the re-cabling off")).to_have_count(1)
    work = network.cell.view.fabrics["ib0"].recabling
    assert work is not None
    assert (work.starts.hour, work.ends.hour, work.starts.utcoffset()) == (22, 6, timedelta(0))
    assert work.version.reason == "two trays"
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]


async def test_a_test_by_hand_is_ticked_documented_entered_and_signed(
    network: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a run is signed with a step left; a photo is shown and not kept; a bad line is entered all the same."""
    photo = tmp_path / "leaf.jpg"
    photo.write_bytes(b"\xff\xd8\xff\xe0 a photo")
    (tmp_path / "not.jpg").write_bytes(b"MZ\x00\x01")
    tess = network.client(Grant("tess", Role.technician))
    await tab.open(tess.token, "/fabrics/ib0?view=test")
    dialog = tab.page.get_by_role("dialog")

    async def act(button: str) -> None:
        await tab.page.get_by_role("button", name=button, exact=True).click()
        await dialog.get_by_label("Reason").fill("week 47")
        await dialog.get_by_role("button", name="Show what it would do").click()
        await dialog.get_by_role("button", name="Do it").click()
        await dialog.get_by_role("button", name="Close").click()

    await act("Tick step 1")
    steps = tab.page.locator(".todo li")
    await expect(steps.first).to_contain_text("ticked by tess")
    for name in ("not.jpg", "leaf.jpg"):
        await tab.page.get_by_label("photo, PDF or text").set_input_files(tmp_path / name)
        await tab.page.get_by_role("button", name="Add", exact=True).click()
        said = "bytes of a kind that is not taken" if name == "not.jpg" else "leaf.jpg is added"
        await expect(tab.page.get_by_role("status").filter(has_text=said)).to_have_count(1)
    async with tab.page.expect_download() as begun:
        await tab.page.get_by_role("button", name="leaf.jpg").click()
    await (await begun.value).save_as(tmp_path / "again.jpg")
    assert (tmp_path / "again.jpg").read_bytes() == photo.read_bytes()
    await tab.page.get_by_text("Enter results").click()
    results = tab.page.get_by_label("results, one line each")
    await results.fill("gpu-0001 to gpu-0002,fast")
    await tab.page.get_by_label("reason", exact=True).fill("week 47")
    await tab.page.get_by_role("button", name="Enter the results").click()
    await expect(tab.page.get_by_role("status").filter(has_text="value 'fast'")).to_have_count(1)
    await results.fill("gpu-0001 to gpu-0002,392.1\ngpu-0003 to gpu-0004,391.8")
    await tab.page.get_by_role("button", name="Enter the results").click()
    run = tab.page.locator("article")
    await expect(run).to_contain_text("not signed off")
    await expect(run).to_contain_text("2 metrics")
    await act("Tick step 2")
    await act("Sign off")
    await expect(run).to_contain_text("signed off by tess")
    await expect(run.get_by_role("button", name="leaf.jpg")).to_have_count(1)
    await expect(steps.first).not_to_contain_text("ticked")
    tab.complaints[:] = [one for one in tab.complaints if "422" not in one]


PAGES = (
    "/fabrics",
    "/fabrics/ib0",
    "/fabrics/ib0?link=leaf-001-1:9",
    *(f"/fabrics/ib0?view={view}" for view in ("findings", "links", "faults", "counters", "designs", "test")),
)


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_each_page_of_a_network_can_be_used_by_everybody(network: House, tab: Tab, scheme: str) -> None:  # noqa: F811
    """axe-core finds nothing on any page, on a wide screen and on a phone's."""
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    finding = next(iter(network.cell.view.cases_of("ib0"))).finding.key
    found = []
    for width in (1280, 390):
        await tab.page.set_viewport_size({"width": width, "height": 800})
        for page in (*PAGES, f"/fabrics/ib0?finding={finding}"):
            await tab.open(network.operator.token, page)
            await expect(tab.page.locator("main")).to_be_visible()
            await expect(tab.page.locator(".loading")).to_have_count(0)
            judged = (await Axe().run(tab.page)).response["violations"]
            found += [f"{page} at {width}: {v['id']}: {v['nodes'][0]['html'][:120]}" for v in judged]
            wide = await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            found += [f"{page} is wider than {width}: {wide}"] if wide > 0 else []
    assert not found, "\n".join(found)


LISTS = {
    "/fabrics": {"fabrics": 1},
    "/fabrics/ib0?view=findings": {"findings": 2},
    "/fabrics/ib0?view=links": {"links": len(SMALL.design.cables)},
    "/fabrics/ib0?view=links&device=leaf-001-1": {"links": 1},
    "/fabrics/ib0?view=faults": {"faults": 1},
    "/fabrics/ib0?view=counters&device=spine-001": {"counters": 1},
}
"""Views of a network, and how many rows of each list there are at least."""
SWITCHES = ("leaf-", "spine-")


async def test_each_lists_command_has_the_rows_that_its_page_shows(
    network: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a filter that the command drops; a command that lists all of the network's ports."""
    wrong, seen, at = [], set[str](), tmp_path / "rows.json"
    for page, least in LISTS.items():
        await tab.open(network.operator.token, page)
        lists, alone = await compared(network, tab, at, len(least))
        wrong += [f"{page}: {one}" for one in alone]
        wrong += [f"{page} shows {lists}" for name, number in least.items() if lists.get(name, -1) < number]
        seen |= lists.keys()
    await tab.open(network.operator.token, "/fabrics/ib0")
    name, leaves, links = await both(network, tab, tab.page.locator(".tools:has(.cli)"), at)
    hosts = [link for link in links if not (link["a"].startswith(SWITCHES) and link["z"].startswith(SWITCHES))]
    assert (name, sum(len(leaf["port"]) for leaf in leaves)) == ("leaves", len(hosts)), "counted from what it lists"
    fewer = replace(SMALL.design, cables=SMALL.design.cables[:-1])
    body = {"fabric": {"name": "ib0", "design": render_csv(fewer)}, "reason": "one cable fewer"}
    assert (await network.operator.post("/v1/fabrics", body))[0] == 200
    await tab.open(network.operator.token, "/fabrics/ib0?view=designs")
    lists, alone = await compared(network, tab, at, 2)
    assert (lists, alone) == ({"versions": 2, "changes": 1}, [])
    assert not wrong, "\n".join(wrong)
    assert seen | lists.keys() | {"leaves"} == FABRIC


@pytest.mark.timeout(600)
async def test_the_matrix_of_4096_nodes_is_painted_and_follows(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The figures are printed, and stand in docs/performance.md. Mutant: only the first leaves are painted."""
    cables = await asyncio.to_thread(a_fabric, 5, LARGE)
    await registered(world, cables, rule=msgspec.to_builtins(LARGE))
    await looked_at(world, cables)
    await world.until(lambda: world.cell.view.fabrics["ib0"].look is not None)
    began = time.monotonic()
    await tab.open(world.operator.token, "/fabrics/ib0")
    canvas = tab.page.get_by_role("application")
    await expect(canvas).to_have_attribute("aria-label", re.compile("32768 host ports"))
    shown_s = time.monotonic() - began
    cells = int(await canvas.get_attribute("data-cells") or 0)
    assert cells == 32_768 + 1024
    painted = [float(await canvas.get_attribute("data-painted") or 0)]
    exchange_hosts(cables)
    began = await looked_at(world, cables)
    await expect(tab.page.locator(".key", has_text="elsewhere")).to_have_count(1)
    followed_s = time.monotonic() - began
    painted.append(float(await canvas.get_attribute("data-painted") or 0))
    box = await canvas.bounding_box()
    assert box is not None
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what the test is for
            f"\n4,096 nodes x 8 rails: {cells:,} cells; open to painted {shown_s:.1f} s, paint {painted[0]:.0f} ms, "
            f"again {painted[1]:.0f} ms, a validation's change shown {followed_s:.1f} s later, "
            f"canvas {box['width']:.0f} x {box['height']:.0f} px"
        )
