"""The console's statement of node-hours, in Debian's Chromium: a month is chosen, rows leave, each reads its own."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures
from tests.end_to_end.test_console_parts import usable

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

HOUR = timedelta(hours=1)


async def kept(tab: Tab, form: str, at: Path) -> str:  # noqa: F811
    """The statement's rows as the page's button gives them."""
    bar = tab.page.locator(".tools", has_text="hostler statement")
    async with tab.page.expect_download() as begun:
        await bar.get_by_role("button", name=form).click()
    await (await begun.value).save_as(at)
    return at.read_text()  # noqa: ASYNC240 - a file of a few lines


def an_hour_later(world: House) -> str:  # noqa: F811
    """Has the server's clock go an hour on; returns the month that it then is."""
    later = datetime.now(UTC) + HOUR
    world.app_state.now = lambda: later
    return f"{later:%Y-%m}"


async def test_an_operator_chooses_a_month_and_takes_its_rows_along(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a month is read before it is chosen; the choice stays in the page; the file has the hours rounded."""
    await world.adopt(2, "beta", start=8)
    month = an_hour_later(world)
    await tab.open(world.operator.token, "/maintenance")
    rows = tab.page.get_by_role("region", name=re.compile("^statement-.*, a table")).locator("tbody tr")
    await expect(tab.page.get_by_role("heading", name="Node-hours of a month")).to_be_visible()
    await expect(rows).to_have_count(0)
    await tab.page.get_by_label("month").fill(month)
    await expect(tab.page).to_have_url(re.compile(rf"/maintenance\?month={month}$"))
    await expect(rows).to_have_count(6)
    await expect(tab.page.locator("main")).to_contain_text(re.compile(r"\d\.\d\d node-hours: \d\.\d\d healthy"))
    await expect(rows.filter(has_text="n8")).to_contain_text("globex")
    await usable(tab)
    table = list(csv.DictReader((await kept(tab, "CSV", tmp_path / "rows.csv")).splitlines()))
    assert [row["node"] for row in table] == ["n0", "n1", "n2", "n3", "n8", "n9"]
    whole = json.loads(await kept(tab, "JSON", tmp_path / "rows.json"))
    assert all(float(row["had h"]) == round(exact["had_s"] / 3600, 4) for row, exact in zip(table, whole, strict=True))
    assert all(3600 <= row["had_s"] < 5400 for row in whole)
    told = (await world.operator.get(f"/v1/statement?month={month}"))["items"]
    assert [row["node"] for row in told] == [row["node"] for row in whole]
    await tab.page.reload()
    await expect(rows).to_have_count(6)
    await tab.page.get_by_label("month").fill("2001-01")
    await expect(tab.page.get_by_role("heading", name="Node-hours of 2001-01")).to_be_visible()
    await expect(tab.page.get_by_role("region", name=re.compile("^statement-2001-01"))).to_contain_text("None.")


async def test_a_tenant_reads_the_present_month_of_its_own_nodes_at_once(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: another's rows are shown, or stay as the token changes; a tenant has to choose the month first."""
    await world.adopt(2, "beta", start=8)
    month = an_hour_later(world)
    rows = tab.page.get_by_role("region", name=re.compile("^statement-.*, a table")).locator("tbody tr")
    for name, tenant, own, others in (
        ("alice", "acme", ["n0", "n1", "n2", "n3"], ("globex", "beta", "n8")),
        ("gia", "globex", ["n8", "n9"], ("acme", "alpha", "n1")),
        ("nora", "initech", [], ("acme", "alpha", "n1", "globex", "beta", "n8")),
    ):
        await tab.open(world.client(Grant(name, Role.tenant, tenant=tenant)).token, "/maintenance")
        await expect(tab.page.get_by_role("heading", name=f"Node-hours of {month}")).to_be_visible()
        await expect(rows).to_have_count(len(own))
        await expect(tab.page.get_by_label("month")).to_have_value(month)
        told = json.loads(await kept(tab, "JSON", tmp_path / "rows.json"))
        assert [row["node"] for row in told] == own
        shown = await tab.page.locator("main").inner_text()
        assert not any(re.search(rf"\b{other}\b", shown) for other in others), name
        await usable(tab)
