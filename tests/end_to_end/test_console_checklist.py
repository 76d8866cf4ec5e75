"""A node's inspection on its page, in Debian's Chromium: items ticked, a photo added, certified when all are."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from hostler.controller.inputs import FellowsSeen
from hostler.core.state.events import NodeCertified
from hostler.core.state.live_state import Fellow, Release
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, House
from tests.contract.test_api_bring_up import enrolled
from tests.contract.test_checklists import WITH_ITEMS, two_people
from tests.contract.test_evidence_files import JPEG
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]


async def done(tab: Tab, reason: str) -> None:  # noqa: F811
    """The dialog filled in, read and agreed to."""
    await tab.page.get_by_label("Reason").fill(reason)
    await tab.page.get_by_role("button", name="Show what it would do").click()
    await tab.page.get_by_role("button", name="Do it").click()
    await tab.page.get_by_role("button", name="Close").click()


async def test_a_technician_ticks_adds_a_photo_and_certifies(world: House, tab: Tab, tmp_path: Path) -> None:  # noqa: F811
    """Mutants: a tick is of another item; a photo goes to no item; the list is not read again."""
    world.cell.tell(FellowsSeen((Fellow("this", Release().reads),)))
    await world.until(lambda: world.cell.view.cell.format == Release().reads)
    body = {"documents": {**DOCUMENTS, "fleet.yaml": WITH_ITEMS}, "reason": "items"}
    assert (await world.operator.post("/v1/config", body))[0] == 200
    await enrolled(world, "m0")
    tess = world.client(Grant("tess", Role.technician))
    await tab.open(tess.token, "/nodes/m0")
    items = tab.page.locator(".checklist .todo > li")
    await expect(items).to_have_count(2)
    await items.nth(1).get_by_role("button", name="Tick item 2").click()
    await done(tab, "inspection")
    await expect(items.nth(1)).to_contain_text("ticked by tess")
    (tmp_path / "cage.jpg").write_bytes(JPEG)
    await items.first.get_by_text("Add a photo or file").click()
    await items.first.locator("input[type=file]").set_input_files(tmp_path / "cage.jpg")
    await items.first.get_by_role("button", name="Add", exact=True).click()
    await expect(items.first.get_by_role("button", name="cage.jpg")).to_be_visible()
    await tab.page.locator(".checklist").get_by_role("button", name="Certify").click()
    await tab.page.get_by_label("Reason").fill("inspected")
    await tab.page.get_by_role("button", name="Show what it would do").click()
    await expect(tab.page.get_by_role("dialog")).to_contain_text("1 of 2 items of m0 are not ticked: 1. cables sit")
    await tab.page.get_by_role("button", name="Cancel").click()
    await items.first.get_by_role("button", name="Tick item 1").click()
    await done(tab, "inspection")
    await tab.page.locator(".checklist").get_by_role("button", name="Certify").click()
    await done(tab, "inspected")
    await world.until(lambda: world.cell.view.nodes["m0"].phase != "onboard")
    await expect(tab.page.locator(".checklist")).to_have_count(0)
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]


async def test_who_ticked_is_told_that_another_certifies_and_that_one_does(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the refusal is not read where it was asked for; the page of the second person offers no button."""
    await world.reads_all()
    assert (await world.operator.post("/v1/config", {"documents": two_people(), "reason": "two people"}))[0] == 200
    await enrolled(world, "m0")
    tess, bo = (world.client(Grant(name, Role.technician)) for name in ("tess", "bo"))
    await tab.open(tess.token, "/nodes/m0")
    checklist = tab.page.locator(".checklist")
    for number in (1, 2):
        await checklist.get_by_role("button", name=f"Tick item {number}").click()
        await done(tab, "inspection")
    await checklist.get_by_role("button", name="Certify").click()
    await tab.page.get_by_label("Reason").fill("inspected")
    await tab.page.get_by_role("button", name="Show what it would do").click()
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog.get_by_role("status")).to_contain_text("tess has ticked items of m0 (1, 2)")
    await expect(dialog.get_by_role("status")).to_contain_text("another person, who has ticked none of them")
    await expect(dialog.get_by_role("button", name="Do it")).to_have_count(0)
    await dialog.get_by_role("button", name="Cancel").click()
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]
    assert world.cell.view.nodes["m0"].phase == "onboard"
    await tab.open(bo.token, "/nodes/m0")
    await expect(checklist.locator(".todo > li").first).to_contain_text("ticked by tess")
    await checklist.get_by_role("button", name="Certify").click()
    await done(tab, "looked at")
    await world.until(lambda: world.cell.view.nodes["m0"].phase != "onboard")
    events = [record.event for record in world.cell.journal.history("m0")]
    assert [event.person for event in events if isinstance(event, NodeCertified)] == ["bo"]
