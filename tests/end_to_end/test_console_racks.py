"""The pages of racks, in Debian's Chromium: what blocks a bring-up, what ends it, acts, the certificate, a leak."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from hostler.controller.inputs import RackSeen
from hostler.core.state.racks import AssetLook
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.contract.test_api_racks import begun
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures
from tests.end_to_end.test_console_commands import compared
from tests.end_to_end.test_console_parts import usable

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]


def looked(world: House, *leaks: tuple[str, str]) -> None:  # noqa: F811
    """The rack's shelf is read: well, but for what its leak detectors say."""
    supplies = (("psu1", "ok"), ("psu2", "ok"))
    look = AssetLook(world.cell.now(), serial="SH-1", health="ok", supplies=supplies, leaks=leaks)
    world.cell.tell(RackSeen("ps1", look))


async def act(page: Page, button: str, command: str) -> None:
    """Ask for an act by its button: why, the dry run, and then the deed."""
    await page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("handed over")
    await expect(dialog.locator(".cli")).to_have_text(command)
    await dialog.get_by_role("button", name="Show what it would do").click()
    do_it = dialog.get_by_role("button", name="Do it")
    await expect(do_it).to_be_visible()
    if await (again := dialog.get_by_label("Type r0")).count():
        await again.fill("r0")
    await do_it.click()
    await dialog.get_by_role("button", name="Close").click()


async def test_a_rack_is_followed_from_its_first_step_to_its_certificate(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a wait without its end; steps that stand still as they pass; the first click certifies."""
    await begun(world)
    await tab.open(world.operator.token, "/racks")
    row = tab.page.get_by_role("region", name="racks, a table").locator("tbody tr")
    await expect(row).to_contain_text(["bringing up0 of 12 done, at power shelves seen"])
    await expect(row).to_contain_text(["ps1 was not looked at yet"])
    await usable(tab)
    await row.get_by_role("link", name="r0").click()
    await expect(tab.page).to_have_title("r0 · Hostler")
    waiting = tab.page.locator(".waiting")
    await expect(waiting).to_contain_text("power shelves seen waits, 0 of 12 steps done")
    await expect(waiting).to_contain_text("ends when each shelf is read and its supplies are well")
    steps = tab.page.get_by_role("region", name="steps, a table").locator("tbody tr")
    await expect(steps).to_have_count(12)
    await expect(steps.first).to_contain_text("is at it")
    await expect(steps.last).to_contain_text("compute traysto come")
    await expect(tab.page.locator("dl.standing")).to_contain_text("b7")
    await usable(tab)
    looked(world)
    await world.until(lambda: world.cell.view.racks["r0"].run is None)
    await expect(waiting).to_have_count(0)
    await expect(steps.filter(has_text="done")).to_have_count(12)
    await act(tab.page, "Certify it", "hostler rack certify rack:r0 --reason 'handed over'")
    await expect(tab.page.get_by_role("heading", name="Certificate")).to_be_visible()
    evidence = tab.page.get_by_role("region", name="evidence, a table")
    await expect(evidence).to_contain_text("SH-1")
    paper = world.cell.view.racks["r0"].certificate
    assert paper is not None
    await expect(tab.page.locator("code.cli", has_text=paper.digest)).to_be_visible()
    await expect(tab.page.locator("main")).to_contain_text("rack r0: power shelves seen done")
    lists, wrong = await compared(world, tab, tmp_path / "rows.json", 7)
    assert (lists["steps"], lists["evidence"] > 0, wrong) == (12, True, [])
    await usable(tab)


async def test_a_leak_and_a_bring_up_that_is_called_off_are_told(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a wet detector looks like any other; nobody can say that it is sound; a bring-up ends without a word."""
    await begun(world)
    await tab.open(world.operator.token, "/racks/r0")
    await act(tab.page, "Call the bring-up off", "hostler rack call-off rack:r0 --reason 'handed over'")
    await expect(tab.page.locator(".waiting")).to_contain_text("was called off at power shelves seen")
    steps = tab.page.get_by_role("region", name="steps, a table").locator("tbody tr")
    await expect(steps.first).to_contain_text("called off")
    looked(world, ("floor", "critical"))
    assets = tab.page.get_by_role("region", name="assets, a table").locator("tbody tr")
    await expect(assets.locator("b.bad")).to_contain_text(["leaked", "floor critical"])
    await usable(tab)
    await expect(tab.page.get_by_role("button", name="Bring it up")).to_be_visible()
    looked(world, ("floor", "ok"))
    await expect(assets).to_contain_text(["floor ok"])
    await act(tab.page, "It is sound", "hostler asset sound ps1 --reason 'handed over'")
    await expect(assets).to_contain_text(["in service"])
    await expect(tab.page.get_by_role("button", name="It is sound")).to_have_count(0)


async def test_an_unknown_rack_says_so_and_a_tenant_is_not_offered_the_page(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: "Reading r05 …" for ever; the page is asked for and refused."""
    await tab.open(world.operator.token, "/racks/r05")
    await expect(tab.page.get_by_role("alert")).to_contain_text("no rack 'r05'")
    await usable(tab)
    assert all("404" in one for one in tab.complaints)
    tab.complaints.clear()
    await tab.page.get_by_role("link", name="All racks").click()
    await expect(tab.page).to_have_url(re.compile("/racks$"))
    await tab.open(world.client(Grant("alice", Role.tenant, tenant="acme")).token, "/racks/r0")
    await expect(tab.page.get_by_text("does not reach it")).to_be_visible()
