"""The console's page of returns and stock, in Debian's Chromium."""

import pytest
from playwright.async_api import expect

from hostler.controller.inputs import FellowsSeen
from hostler.core.state.live_state import Fellow, Release
from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]


async def test_cases_are_moved_on_and_stock_that_is_low_is_told(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a closed case stays on the page; an act is of another case; a low line looks like any other."""
    world.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
    await world.until(lambda: world.cell.view.cell.format == Release().reads)
    name = next(iter(world.cell.view.nodes))
    for body in (
        {"act": {"verb": "open-rma"}, "target": name, "reason": "its chassis is bent"},
        {
            "act": {"verb": "count-stock", "site": "lab", "part_number": "H100", "count": 1, "least": 2},
            "target": "fleet",
            "reason": "counted",
        },
    ):
        status, answer = await world.operator.post("/v1/intents", body)
        assert status == 200, answer
    (case,) = world.cell.view.rma_cases.values()
    await tab.open(world.operator.token, "/returns")
    row = tab.page.locator("tbody tr").filter(has_text=case.id)
    await expect(row).to_contain_text("requested")
    await expect(tab.page.locator("tbody tr").filter(has_text="H100")).to_contain_text("too few")
    await row.get_by_role("button", name="Close").click()
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog).to_contain_text(f"close rma {case.id}")
    await dialog.get_by_label("Reason").fill("withdrawn")
    await dialog.get_by_label("result").select_option("withdrawn")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await dialog.get_by_role("button", name="Do it").click()
    await dialog.get_by_role("button", name="Close").click()
    await expect(tab.page.locator("tbody tr").filter(has_text=case.id)).to_have_count(0)
