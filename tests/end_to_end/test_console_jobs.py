"""The page of jobs in Debian's Chromium: a customer finds its own, what ails them, and what waits for their end."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from hostler.controller.inputs import WorkSeen
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

SICK = "NVRM: Xid (PCI:0000:1b:00): 63, pid=1234, name=python3, Row Remapper: New row marked for remapping"


@pytest_asyncio.fixture(loop_scope="module")
async def world(tmp_path: Path) -> AsyncIterator[House]:
    """Two customers' pools, a job in each; one of the first's nodes is ailing, and a reboot waits for its job."""
    async with house(tmp_path) as inside:
        await inside.adopt(3)
        await inside.adopt(2, "beta", start=8)
        for name, customer in (("n1", "acme"), ("n8", "globex")):
            inside.work(name, customer)
        await inside.report("n1", kind="kernel_log", text=SICK, facility=0)
        await inside.until(lambda: inside.cell.view.nodes["n1"].conditions)
        body = {"act": {"verb": "reboot"}, "target": "n1", "reason": "a test's story"}
        assert (await inside.operator.post("/v1/intents", body))[0] == 200
        await inside.until(lambda: inside.cell.view.nodes["n1"].waiting)
        yield inside


async def test_a_customer_opens_its_job_and_reads_what_waits_for_it(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: another's job is listed; what waits is left out; a job that has ended is an empty page."""
    await tab.open(world.client(Grant("amy", Role.tenant, tenant="acme")).token, "/jobs")
    rows = tab.page.locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("k-acme/acme/train-0")
    await expect(rows.first).to_contain_text("n1")
    await expect(tab.page.get_by_text("What runs on")).to_have_count(0)
    await tab.page.get_by_role("link", name="k-acme/acme/train-0").click()
    await expect(tab.page).to_have_url(re.compile(r"/jobs\?job=k-acme"))
    await expect(tab.page.locator("h1")).to_have_text("k-acme/acme/train-0")
    await expect(tab.page.get_by_text("waits for its end")).to_contain_text("reboot of n1")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("gpu.")
    await tab.open(world.operator.token, "/jobs?job=k-acme/acme/train-9")
    await expect(tab.page.get_by_text("No job of this name runs")).to_be_visible()


async def test_an_operator_sees_everybodys_and_whose_are_not_told(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: a cluster that is not heard looks like one where nothing runs."""
    await tab.open(world.operator.token, "/jobs")
    await expect(tab.page.locator("tbody tr")).to_have_count(2)
    world.cell.tell(WorkSeen((), cluster="k-globex", lost="the API server does not answer"))
    await world.until(lambda: world.cell.live.clusters.get("k-globex"))
    await tab.page.reload()
    await expect(tab.page.get_by_text("What runs on 2 nodes of cluster k-globex is unknown: the API")).to_be_visible()
    await expect(tab.page.locator("tbody tr")).to_have_count(1)
