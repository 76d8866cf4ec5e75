"""The fleet's grid in Debian's Chromium: coloured by what a person chose, and the same in words."""

import json
import re
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

PIXEL = """
([left, top]) => {
  const canvas = document.querySelector("canvas");
  return [...canvas.getContext("2d").getImageData(left, top, 1, 1).data].join(",");
}
"""

FOOT = "(e) => [e.offsetLeft + e.offsetWidth / 2, e.offsetTop + e.offsetHeight - 5]"
PIXELS = """
(places) => {
  const { width, height } = document.querySelector("canvas");
  const { data } = document.querySelector("canvas").getContext("2d").getImageData(0, 0, width, height);
  const starts = places.map(([left, top]) => 4 * (Math.round(top) * width + Math.round(left)));
  return starts.map((at) => data.slice(at, at + 4).join(","));
}
"""


async def pure(page: Page, module: str, call: str) -> Any:
    """Call a function of a console's module in the page."""
    return await page.evaluate(f"import('/console/{module}').then((m) => {call})")


async def test_the_colour_stands_in_the_address_with_its_legend_and_its_table(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a link shows another colour than its sender saw; the table keeps to phases."""
    await world.adopt(2, pool="beta", start=4)
    await tab.open(world.operator.token)
    await tab.page.get_by_label("colour by").select_option("tenant")
    await expect(tab.page).to_have_url(re.compile(r"/\?colour=tenant$"))
    legend = tab.page.get_by_role("group", name="Colours: tenant")
    await expect(legend).to_have_text(re.compile(r"acme\s*4\s*globex\s*2\s*unknown\s*0"))
    await tab.page.reload()
    await expect(legend).to_contain_text("globex")
    await tab.page.get_by_text("As a table").click()
    row = tab.page.get_by_role("row").filter(has_text="n5")
    await expect(row).to_contain_text("globex")
    await tab.page.locator("canvas").focus()
    await expect(tab.page.locator(".readout")).to_contain_text("tenant: acme")
    await tab.page.get_by_label("colour by").select_option("phase")
    await expect(tab.page).to_have_url(re.compile(r"/$"))
    await expect(legend).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_is_unknown_has_an_empty_cell_and_a_word(world: House, tab: Tab, scheme: Any) -> None:  # noqa: F811
    """Mutants: a node that was never checked is green; its cell is filled as others are."""
    await tab.page.emulate_media(color_scheme=scheme)
    await tab.open(world.operator.token, "/?colour=check")
    legend = tab.page.get_by_role("group", name="Colours: last check")
    await expect(legend).to_have_text(re.compile(r"passed\s*0.*failed\s*0.*unknown\s*4"))
    await tab.page.locator("canvas").focus()
    await expect(tab.page.locator(".readout")).to_contain_text("last check: unknown")
    pick = tab.page.locator(".pick")
    box = await pick.evaluate("(e) => [e.offsetLeft + e.offsetWidth / 2, e.offsetTop + e.offsetHeight / 2]")
    assert (await tab.page.evaluate(PIXEL, box)).endswith(",0")
    for seen in (await Axe().run(tab.page)).response["violations"]:
        raise AssertionError(seen["id"], seen["nodes"][0]["html"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_drift_score_is_a_scale_and_who_was_not_judged_is_said_apart(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    scheme: Any,
) -> None:
    """Mutants: a node that nobody judged looks like the healthiest; the table tells a step in place of the number."""
    assert world.trends is not None
    world.scored("gemm_perf.bf16_tflops", n0=0, n1=37, n2=100)
    world.trends.read_scores()
    await tab.page.emulate_media(color_scheme=scheme)
    await tab.open(world.operator.token)
    await tab.page.get_by_label("colour by").select_option("drift")
    legend = tab.page.get_by_role("group", name="Colours: drift score")
    await expect(legend).to_have_text(
        re.compile(r"under ¼ .*1\s*¼ of the way\s*1\s*half .*0\s*¾ .*0\s*at its alarm\s*1\s*not judged\s*1")
    )
    await tab.page.locator("canvas").focus()
    places = []
    for word in ("0.00", "0.37", "1.00", "not judged"):
        await expect(tab.page.locator(".readout")).to_contain_text(f"drift score: {word}")
        places.append(await tab.page.locator(".pick").evaluate(FOOT))
        await tab.page.keyboard.press("ArrowRight")
    painted = await tab.page.evaluate(PIXELS, places)
    assert len(set(painted)) == 4, painted
    assert painted[-1].endswith(",0"), "an empty cell"
    await tab.page.get_by_text("As a table").click()
    rows = tab.page.locator(".grid-table tbody tr")
    await expect(rows).to_have_text(
        ["n0r0production0.00", "n1r0production0.37", "n2r0production1.00", re.compile("judged$")]
    )
    await expect(tab.page.locator(".grid-table .cli")).to_have_text("hostler node map --colour drift")
    for seen in (await Axe().run(tab.page)).response["violations"]:
        raise AssertionError(seen["id"], seen["nodes"][0]["html"])


async def test_a_tenant_is_not_offered_whose_nodes_are(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: the address asks for what the choice does not offer, and the page fails."""
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    await tab.open(acme.token, "/?colour=tenant")
    await expect(tab.page.get_by_role("application", name="Fleet: 4 nodes")).to_be_visible()
    choice = tab.page.get_by_label("colour by")
    await expect(choice).to_have_value("phase")
    offered = await choice.inner_text()
    assert "tenant" not in offered
    assert "drift" not in offered


async def test_colours_have_the_meaning_that_their_words_have(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a word from a newer server is taken for good; the eighth tenant takes the colour of the first."""
    await tab.open(world.operator.token)
    found = await pure(
        tab.page,
        "grid_colours.js",
        "m.marksOf({ colour: 'check', words: ['passed', 'failed', 'blessed', 'never_verified'], word: [] })",
    )
    assert [mark["tone"] for mark in found] == ["good", "bad", "unknown", "unknown"]
    many = {"colour": "tenant", "words": ["", *(f"t{n}" for n in range(2, 11))], "word": [*range(10), 9, 9]}
    found = await pure(tab.page, "grid_colours.js", f"m.legend({json.dumps(many)})")
    assert [(one["mark"]["title"], one["mark"]["tone"], one["nodes"]) for one in found] == [
        *((f"t{n}", f"c{at}", 3 if n == 10 else 1) for at, n in enumerate((2, 3, 4, 5, 6, 7, 10))),
        ("other tenants", "c7", 2),
        ("no tenant", "none", 1),
        ("unknown", "unknown", 0),
    ]
    assert await pure(tab.page, "grid_colours.js", "m.colouring('gold', false)") == "phase"


async def test_the_grid_is_grouped_by_what_the_address_says(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the choice is forgotten with the page; the keys go by racks still; a group has no name in the table."""
    await world.adopt(3, pool="beta", start=4)
    await tab.open(world.operator.token)
    await tab.page.get_by_label("group by").select_option("pool")
    await expect(tab.page).to_have_url(re.compile(r"/\?by=pool$"))
    grid = tab.page.get_by_role("application", name="Fleet: 7 nodes by pool")
    await expect(grid).to_be_visible()
    await tab.page.reload()
    await expect(grid).to_be_visible()
    await grid.focus()
    await expect(tab.page.locator(".readout")).to_contain_text("n0 · pool alpha · rack r0")
    for _ in range(4):
        await tab.page.keyboard.press("ArrowRight")
    await expect(tab.page.locator(".readout")).to_contain_text("n4 · pool beta")
    await tab.page.get_by_text("As a table").click()
    await expect(tab.page.get_by_role("row").filter(has_text="n6")).to_contain_text("beta")


async def test_groups_are_in_natural_order_and_large_ones_below_each_other(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: r10 before r2; who is in no group first; a point between two groups is the next one's first node."""
    await tab.open(world.operator.token)
    ids = ["n10", "n3", "n4", "n9", "n5"]
    racks = json.dumps({"by": "rack", "ids": ids, "rack": ["r10", "", "r2", "r10", "r1"], "groups": [], "group": []})
    assert await pure(tab.page, "grid_groups.js", f"[...m.grouped({racks})]") == [
        ["r1", [4]], ["r2", [2]], ["r10", [3, 0]], ["", [1]],
    ]  # fmt: skip
    assert await pure(tab.page, "grid_groups.js", "m.grouping('planet')") == "rack"
    ids = [f"n{n}" for n in range(400)]
    wide = {"by": "site", "ids": ids, "rack": [""] * 400, "groups": ["s10", "s2"], "group": [n % 2 for n in range(400)]}
    call = f"""(() => {{
      const shape = m.layout({json.dumps(wide)}, 400, 600, 500);
      const back = shape.order.every((place) => shape.at(shape.x[place] + 1, shape.y[place] + 1) === place);
      const lowest = Math.max(...shape.order.slice(0, 200).map((place) => shape.y[place]));
      const between = shape.at(1, lowest + shape.pitch + 3);
      const first = [shape.order[0], shape.order[200]];
      return [shape.labels.map((label) => label.text), ...first, back, between, shape.height <= 500];
    }})()"""
    assert await pure(tab.page, "grid_layout.js", call) == [["s2", "s10"], 1, 0, True, -1, True]


async def test_nodes_of_a_rack_are_in_natural_order(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: n10 and n11 stand before n8, as the map lists ids by their letters."""
    await world.adopt(8, start=4)
    await tab.open(world.operator.token)
    await tab.page.get_by_role("application", name="Fleet: 12 nodes").focus()
    for number in range(12):
        await expect(tab.page.locator(".readout")).to_contain_text(f"n{number} · rack r{number // 8}")
        await tab.page.keyboard.press("ArrowRight")
