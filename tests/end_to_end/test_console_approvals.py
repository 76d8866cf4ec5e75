"""The second person on the console's approvals page, in Debian's Chromium: what one asked for is one decision."""

import pytest
from playwright.async_api import Locator, expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]


async def a_busy_fleet(world: House) -> None:  # noqa: F811
    await world.make_room(12)
    await world.adopt(8, start=4)
    for number in range(12):
        world.driver.works(f"n{number}", ())


async def one_by_one(world: House, verb: str, reason: str) -> None:  # noqa: F811
    """Ask as a command over many nodes does: for each of them. Those within one person's reach go through."""
    for number in range(12):
        await world.operator.post("/v1/intents", {"act": {"verb": verb}, "target": f"n{number}", "reason": reason})


async def answer(tab: Tab, button: Locator, reason: str) -> Locator:  # noqa: F811
    await button.click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill(reason)
    await dialog.get_by_role("button", name="Show what it would do").click()
    return dialog


async def test_one_request_is_shown_with_reason_and_reach_and_approved_by_a_second_person(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutants: the yes is sent without the name being typed; whoever asked is offered to approve."""
    await a_busy_fleet(world)
    drain = {"act": {"verb": "drain", "hours": 2.5}, "target": "pool:alpha", "reason": "a new floor"}
    status, body = await world.operator.post("/v1/intents", drain)
    assert status == 202, body
    await tab.open(world.operator.token, "/approvals")
    card = tab.page.get_by_role("article")
    await expect(card.get_by_role("button")).to_have_text(["Withdraw"])
    await tab.open(world.client(Grant("bob", Role.operator)).token, "/approvals")
    await expect(card.get_by_role("button")).to_have_text(["Approve", "Deny"])
    await expect(card.get_by_role("heading")).to_have_text("ada asks to drain pool:alpha")
    await expect(card).to_contain_text("a new floor")
    await expect(card).to_contain_text("hours 2.5")
    await expect(card).to_contain_text("12 nodes, 24 GPUs: 12 of pool alpha")
    await expect(card).to_contain_text("one person may disturb 8")
    dialog = await answer(tab, card.get_by_role("button", name="Approve"), "I have looked")
    await expect(dialog.locator(".plan")).to_contain_text("cordon")
    await expect(dialog.locator(".plan")).to_contain_text("n11")
    do_it = dialog.get_by_role("button", name="Do it")
    await expect(do_it).to_be_disabled()
    await dialog.get_by_label("Type ").fill(body["detail"]["approval"])
    await do_it.click()
    await world.until(lambda: not world.cell.view.approvals)
    await expect(card).to_have_count(0)


async def test_what_was_asked_for_node_by_node_is_one_decision(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: one yes answers the other request too; only the first of a request is answered."""
    await a_busy_fleet(world)
    await one_by_one(world, "drain", "a new floor")
    await one_by_one(world, "power-cycle", "a new wall")
    waiting = list(world.cell.view.approvals.values())
    floor = {approval.id for approval in waiting if approval.intent.reason == "a new floor"}
    wall = {approval.id for approval in waiting if approval.intent.reason == "a new wall"}
    assert len(floor) > 1
    assert len(wall) > 1
    await tab.open(world.client(Grant("bob", Role.operator)).token, "/approvals")
    cards = tab.page.get_by_role("article")
    await expect(cards).to_have_count(2)
    first = cards.filter(has_text="a new floor")
    await expect(first).to_contain_text(f"{len(floor)} nodes")
    dialog = await answer(tab, first.get_by_role("button", name=f"Approve all {len(floor)}"), "I have looked")
    await expect(dialog.get_by_role("status")).to_have_text(f"{len(floor)} of {len(floor)} would be answered so")
    await expect(dialog.locator("p .cli")).to_contain_text(
        f"hostler approval approve {' '.join(sorted(floor, key=lambda a: int(a[2:])))}"
    )
    await dialog.get_by_label("Type ").fill(f"{len(floor)} approvals")
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: not floor & set(world.cell.view.approvals))
    assert wall <= set(world.cell.view.approvals)
    await dialog.get_by_role("button", name="Close").click()
    dialog = await answer(
        tab, cards.filter(has_text="a new wall").get_by_role("button", name="Deny all"), "not in this month"
    )
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: not world.cell.view.approvals)
    await expect(cards).to_have_count(0)


async def test_an_answer_that_is_refused_says_which_and_stops_none_of_the_others(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutant: the first refusal ends it, and what was answered before is told as refused too."""
    await a_busy_fleet(world)
    await one_by_one(world, "drain", "a new floor")
    bob = world.client(Grant("bob", Role.operator))
    await tab.open(bob.token, "/approvals")
    waiting = sorted(world.cell.view.approvals, key=lambda name: int(name[2:]))
    dialog = await answer(tab, tab.page.get_by_role("button", name="Deny all"), "no")
    await expect(dialog.get_by_role("button", name="Do it")).to_be_visible()
    assert (await bob.post(f"/v1/approvals/{waiting[0]}/deny", {"reason": "by hand"}))[0] == 200
    await dialog.get_by_role("button", name="Do it").click()
    told = dialog.get_by_role("status")
    await expect(told).to_contain_text(f"{len(waiting) - 1} of {len(waiting)} are answered; {waiting[0]}: ")
    assert not world.cell.view.approvals
    tab.complaints[:] = [one for one in tab.complaints if "404" not in one and "403" not in one]
