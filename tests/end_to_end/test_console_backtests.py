"""A backtest on the console's policy page, in Debian's Chromium: begun, followed, read, linked to, and ended."""

import csv
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import HISTORY, House
from tests.contract.test_api_backtests import RECORDED, Halted, halted, on_trial, write_history
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures
from tests.end_to_end.test_console_commands import compared

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]


async def try_documents(tab: Tab, folder: Path, documents: dict[str, str]) -> None:  # noqa: F811
    """Choose the documents on the policy page, and give a reason."""
    for name, text in documents.items():
        (folder / name).write_text(text)
    await tab.page.get_by_text("Try another configuration").click()
    await tab.page.get_by_label("Documents").set_input_files([folder / name for name in documents])
    await tab.page.get_by_label("Reason").fill("fewer power cycles")


async def test_history_is_replayed_with_documents_and_the_answer_stands_beside_what_is_in_force(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: the end is never noticed, as it is no record; the link shows the page without the answer."""
    write_history(tmp_path / HISTORY)
    await tab.open(world.operator.token, "/policy")
    await try_documents(tab, tmp_path, on_trial())
    await tab.page.get_by_label("until").fill("2026-02-01T00:00")
    await tab.page.get_by_role("button", name="Replay history with it").click()
    answer = tab.page.locator("section.chain")
    await expect(answer.get_by_role("heading")).to_have_text("Backtest done: fewer power cycles")
    await expect(answer).to_contain_text("policy.rules.gpu.fallen_off_bus.remedy: power_cycle → triage")
    await expect(answer).to_contain_text("1 changed on 1 nodes")
    await expect(answer).to_contain_text("2 of 2 recorded remedies follow from the recorded policy")
    row = answer.get_by_role("region", name="differences").locator("tbody tr")
    await expect(row).to_contain_text("acts power_cycle (immediate)")
    listed = tab.page.get_by_role("region", name="backtests").locator("tbody tr")
    await expect(listed).to_contain_text("done")
    await expect(listed.get_by_role("button", name="Cancel")).to_have_count(0)
    async with tab.page.expect_download() as begun:
        await answer.get_by_role("button", name="CSV").click()
    await (await begun.value).save_as(tmp_path / "differences.csv")
    (saved,) = csv.DictReader((tmp_path / "differences.csv").read_text().splitlines())
    assert (saved["node"], saved["what"]) == ("b", "changed")
    lists, wrong = await compared(world, tab, tmp_path / "rows.json", 4)
    assert (lists["differences"], lists["backtests"], wrong) == (1, 1, [])
    viewer = world.client(Grant("vic", Role.viewer)).token
    link = tab.page.url.removeprefix(world.url)
    assert "backtest=b-" in link
    await tab.open(viewer, link)
    await expect(answer.get_by_role("heading")).to_have_text("Backtest done: fewer power cycles")
    await expect(tab.page.get_by_role("button", name="Replay history with it")).to_have_count(0)
    for width in (1280, 390):
        await tab.page.set_viewport_size({"width": width, "height": 800})
        assert (await Axe().run(tab.page)).response["violations"] == []
        assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_one_that_runs_is_seen_by_everybody_and_ended_with_a_button(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: the second is begun too; what was ended is shown as running for ever."""
    replays: Halted = halted(world, tmp_path)
    await world.operator.post("/v1/backtests", {"documents": RECORDED, "reason": "as it was"})
    await tab.open(world.client(Grant("bob", Role.operator)).token, "/policy")
    row = tab.page.get_by_role("region", name="backtests").locator("tbody tr")
    await expect(row).to_contain_text("running")
    await try_documents(tab, tmp_path, on_trial())
    await tab.page.get_by_role("button", name="Replay history with it").click()
    await expect(tab.page.locator(".another").get_by_role("status")).to_contain_text("of ada runs since")
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]
    await row.get_by_role("button", name="Cancel").click()
    await expect(row).to_contain_text("cancelled")
    await expect(row).to_contain_text("ended on the policy page")
    assert replays.left == 1
