"""A node's readings beside its timeline, in Debian's Chromium: on its axis of time, with gaps where nobody looked."""

import re
from datetime import timedelta

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from hostler.journal.readings import Reading
from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

PAINTED = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const [from, to] = [Math.round(canvas.width * 0.078), canvas.width];
    let found = [];
    for (let x = from; x < to; x++) {
        let coloured = false;
        for (let y = 0; y < canvas.height * 0.8 && !coloured; y++) {
            const at = 4 * (y * canvas.width + x);
            const [r, g, b, a] = data.slice(at, at + 4);
            coloured = a > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 60;
        }
        if (coloured) found.push((x - from) / (to - from));
    }
    return [found.length, Math.min(...found), Math.max(...found)];
}"""
"""How many columns of a drawing's field have a colour, and the first and the last of them as shares of the field."""


def heat(world: House, hours: list[float]) -> str:  # noqa: F811
    """Two GPUs' heat so many hours from now, and the hour's end as the address has it."""
    assert world.trends is not None
    now = world.app_state.now()
    world.trends.store.add(
        [
            Reading(now + timedelta(hours=hour), "n1", f"w/{hour}", "gpu.over_ambient_c", f"gpu{gpu}", 30 + gpu, "h100")
            for hour in hours
            for gpu in range(2)
        ]
    )
    return str((now + timedelta(hours=1)).isoformat().replace("+00:00", "Z"))


async def test_readings_stand_on_the_timelines_axis_and_where_nobody_looked_there_is_none(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutants: the drawing has an axis of its own; a gap is bridged; panels without readings are left out silently."""
    end = heat(world, [0.1, 0.15, 0.2, 0.25, 0.8, 0.85, 0.9, 0.95])
    await tab.open(world.operator.token, f"/nodes/n1?span=1h&at={end}")
    readings = tab.page.get_by_role("region", name="Readings", exact=True)
    plot = readings.get_by_role("img", name=re.compile("^Heat, °C: 2 series, 30 to 31"))
    await expect(plot).to_be_visible()
    await expect(readings).to_contain_text("nobody looked: corrected errors and link errors; fans; check scores")
    await expect(plot.locator("canvas")).to_have_count(1)
    columns, first, last = await plot.locator("canvas").evaluate(PAINTED)
    width = await plot.locator("canvas").evaluate("canvas => canvas.width * 0.922")
    assert first == pytest.approx(0.1, abs=0.03), "54 minutes before the hour's end"
    assert last == pytest.approx(0.95, abs=0.03)
    assert columns / width < 0.5, "half an hour in which nobody looked"
    field, lanes = await plot.bounding_box(), await tab.page.locator(".lanes svg").bounding_box()
    assert field is not None
    assert lanes is not None
    assert (field["x"], field["width"]) == pytest.approx((lanes["x"], lanes["width"]), abs=2.5)
    await readings.get_by_text("Readings as a table").click()
    await expect(readings.locator("tbody tr")).to_have_count(2)
    await expect(readings.locator(".cli")).to_contain_text("hostler trend series n1 --since ")


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 390)])
async def test_the_drawings_can_be_used_by_everybody(world: House, tab: Tab, scheme: str, width: int) -> None:  # noqa: F811
    end = heat(world, [0.1, 0.5, 0.9])
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await tab.page.set_viewport_size({"width": width, "height": 800})
    await tab.open(world.operator.token, f"/nodes/n1?span=24h&at={end}")
    await expect(tab.page.locator(".plot canvas")).to_have_count(1)
    await tab.page.get_by_text("Readings as a table").click()
    assert (await Axe().run(tab.page)).response["violations"] == []
    assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await tab.page.get_by_role("button", name="1h").click()
    await expect(tab.page.locator(".plot canvas")).to_have_count(1)


async def test_a_node_that_nobody_has_looked_at_says_so(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: an empty place that looks like a healthy node."""
    await tab.open(world.operator.token, "/nodes/n1")
    readings = tab.page.get_by_role("region", name="Readings", exact=True)
    await expect(readings).to_contain_text("nobody looked: heat; corrected errors")
    await expect(tab.page.locator(".plot")).to_have_count(0)
