"""The console's pages of pools and of trends, in Debian's Chromium: each one's main task, done as a person would."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import expect

from hostler.core.state.trends import DriftFinding, MetricLooked, RuleScore, ShiftFinding, TrendReport
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures
from tests.end_to_end.test_console_parts import usable

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

METRIC = "gemm_perf.bf16_tflops"


async def test_a_planner_sees_what_a_pool_lacks_and_an_operator_holds_a_remedy_there(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: counts that stand still; the way to the pool's nodes is lost; the mode is of every remedy."""
    await world.adopt(2, "beta", start=8)
    await tab.open(world.operator.token, "/pools?sort=healthy")
    rows = tab.page.get_by_role("region", name="pools, a table").locator("tbody tr")
    await expect(rows).to_contain_text(["betaglobexk-globex322", "alphaacmek-acme344"])
    await usable(tab)
    await world.operator.post("/v1/nodes/n8/return-for-maintenance", {"reason": "a fan"})
    await world.until(lambda: world.cell.view.nodes["n8"].assignment is None)
    await expect(rows.first).to_contain_text("betaglobexk-globex311")
    await rows.first.get_by_role("button", name="Change mode").click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("their launch week")
    await dialog.get_by_label("remedy").fill("reboot")
    await dialog.get_by_label("mode").select_option("propose")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: world.cell.view.cell.modes)
    assert world.cell.view.cell.modes == (("beta", "reboot", "propose"),)
    await dialog.get_by_role("button", name="Close").click()
    await rows.first.get_by_role("link", name="beta").click()
    await expect(tab.page).to_have_url(re.compile(r"/nodes\?pool=beta$"))
    await expect(tab.page.locator("tbody tr")).to_have_count(1)


async def test_an_engineer_goes_from_a_drift_to_its_node_and_weighs_it_by_what_became_of_earlier_ones(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutants: a drift without its node; shares as 0.75; a tenant is shown another's, or the scorecard."""
    await world.adopt(2, "beta", start=8)
    now = datetime.now(UTC) + timedelta(seconds=1)
    drifts = tuple(DriftFinding(node, METRIC, "cuda:0", -0.02, now, now, 1e-6, 0.012) for node in ("n1", "n8"))
    shift = ShiftFinding(METRIC, "h100 driver=560", "h100 driver=550", -0.06, now, 900)
    scores = (RuleScore(METRIC, 3, 1, 2, 1, 6.5),)
    assert world.trends is not None
    world.trends.report = TrendReport(now, 60, drifts, (shift,), (MetricLooked(METRIC, 40),), scores)
    await tab.open(world.operator.token, "/trends")
    found = tab.page.get_by_role("region", name="trends, a table").locator("tbody tr")
    await expect(found).to_have_count(2)
    await expect(found.first).to_contain_text("has changed by -2.0% beside peers")
    await expect(found.first).to_contain_text("1.2 %")
    await expect(found.first).to_contain_text("in shadow")
    await expect(tab.page.get_by_role("region", name="shifts, a table")).to_contain_text("driver=560")
    await expect(tab.page.get_by_role("region", name="scorecard, a table")).to_contain_text("75.0 %75.0 %6.5")
    await usable(tab)
    await found.first.get_by_role("link", name="n1").click()
    await expect(tab.page.locator("h1")).to_have_text("n1")
    await tab.open(world.client(Grant("alice", Role.tenant, tenant="acme")).token, "/trends")
    await expect(found).to_have_count(1)
    await expect(found).to_contain_text("n1")
    await expect(tab.page.get_by_role("region", name="scorecard, a table")).to_have_count(0)
