"""Acts of people on the console's pages, in Debian's Chromium: find, compare, act, approve, work at a rack."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from hostler.controller.inputs import NodeSeen
from hostler.server.routes import console_files
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import FLEET, POLICY, XID79, House, bmc_of
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab, world  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

NAMED = ("/nodes/n1", "/racks/r0", "/parts/GPU-n1-0", "/board?ticket=none", "/events?node=n1")
"""Pages of one thing."""
PAGES = ("/", *(f"/{page}" for page in console_files.PAGES), *NAMED)


async def test_filters_stand_in_the_address_and_the_rows_leave_as_csv_json_and_a_command(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: a link shows another selection than its sender saw; a spreadsheet runs what a host name says."""
    await tab.open(world.operator.token, "/nodes?phase=production&sort=id&order=down")
    rows = tab.page.locator("tbody tr")
    await expect(rows).to_have_count(4)
    await expect(rows.first).to_contain_text("n3")
    await tab.page.get_by_label("id, name or serial").fill("n2")
    await tab.page.keyboard.press("Enter")
    await expect(rows).to_have_count(1)
    await expect(tab.page).to_have_url(re.compile(r"/nodes\?phase=production&sort=id&order=down&q=n2$"))
    await expect(tab.page.locator(".cli")).to_have_text("hostler node list -l phase=production --search n2")
    await tab.page.reload()
    await expect(rows).to_have_count(1)
    async with tab.page.expect_download() as begun:
        await tab.page.get_by_role("button", name="CSV").click()
    kept = tmp_path / "nodes.csv"
    await (await begun.value).save_as(kept)
    (row,) = csv.DictReader(kept.read_text().splitlines())
    assert (row["node"], row["phase"], row["pool"]) == ("n2", "production", "alpha")
    async with tab.page.expect_download() as begun:
        await tab.page.get_by_role("button", name="JSON").click()
    await (await begun.value).save_as(kept)
    assert [one["id"] for one in json.loads(kept.read_text())] == ["n2"]


async def test_an_act_shows_what_it_would_do_and_asks_for_the_name_where_it_disturbs(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutants: the first click acts; the name of another node will do."""
    await tab.open(world.operator.token, "/nodes/n1")
    await tab.page.get_by_text("Act on it").click()
    await tab.page.get_by_role("button", name="reboot", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("new kernel")
    await expect(dialog.locator(".cli")).to_have_text("hostler node reboot n1 --reason 'new kernel'")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await expect(dialog.locator(".plan")).to_contain_text("cordon → ")
    assert world.cell.view.nodes["n1"].plan is None
    do_it = dialog.get_by_role("button", name="Do it")
    await expect(do_it).to_be_disabled()
    await dialog.get_by_label("Type n1").fill("n2")
    await expect(do_it).to_be_disabled()
    await dialog.get_by_label("Type n1").fill("n1")
    await do_it.click()
    await expect(dialog.get_by_role("button", name="Close")).to_be_visible()
    await expect(tab.page.locator(".timeline")).to_contain_text("reboot planned for operator.reboot")
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_have_count(0)


async def test_numbers_and_booleans_are_sent_as_what_they_are(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a number is sent as the text that was typed; a box that was checked and cleared is sent as true."""
    await tab.open(world.operator.token, "/nodes/n1")
    await tab.page.get_by_text("Act on it").click()
    await tab.page.get_by_role("button", name="locate", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("where is it")
    await dialog.get_by_label("hours").fill("0.5")
    lead = dialog.get_by_label("shift lead")
    await lead.check()
    await lead.uncheck()
    await expect(dialog.locator(".cli")).to_have_text("hostler node locate n1 --reason 'where is it' --hours 0.5")
    await lead.check()
    async with tab.page.expect_request("**/v1/intents") as asked:
        await dialog.get_by_role("button", name="Show what it would do").click()
    sent = json.loads((await asked.value).post_data or "")
    assert sent["act"] == {"verb": "locate", "hours": 0.5, "shift_lead": True}
    await expect(dialog.get_by_role("status")).not_to_be_empty()
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]


async def test_a_nodes_life_is_drawn_in_lanes_and_told_as_a_table(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: what happens is not drawn until the page is read anew; the span is forgotten with the page."""
    await tab.open(world.operator.token, "/nodes/n1")
    lanes = tab.page.get_by_role("region", name="Timeline")
    await expect(lanes.locator("g.p-production rect")).to_have_count(1)
    world.driver.stuck.add("power_off")
    await world.report("n1", kind="kernel_log", text=XID79, facility=0)
    await expect(lanes.locator("g.s-critical rect")).to_have_count(1, timeout=20_000)
    await lanes.get_by_role("button", name="1h").click()
    await expect(tab.page).to_have_url(re.compile(r"/nodes/n1\?span=1h$"))
    await tab.page.reload()
    await expect(lanes.get_by_role("button", name="1h")).to_have_attribute("aria-pressed", "true")
    await lanes.get_by_text("As a table").click()
    rows = lanes.locator("tbody tr")
    await expect(rows.filter(has_text="gpu.fallen off bus")).to_contain_text("lasts")
    await expect(rows.filter(has_text="production")).to_have_count(1)


async def test_a_refusal_is_read_where_it_was_asked_for(world: House, tab: Tab) -> None:  # noqa: F811
    await tab.open(world.operator.token, "/nodes/n1")
    await tab.page.get_by_text("Act on it").click()
    await tab.page.get_by_role("button", name="certify", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("looks fine")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await expect(dialog.get_by_role("status")).to_contain_text("production")
    await expect(dialog.get_by_role("button", name="Do it")).to_have_count(0)
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]


async def test_chosen_nodes_are_compared_and_acted_upon_as_one(world: House, tab: Tab) -> None:  # noqa: F811
    await tab.open(world.operator.token, "/nodes")
    for name in ("n0", "n2"):
        await tab.page.get_by_label(f"Choose {name}").check()
    await expect(tab.page.get_by_role("group")).to_contain_text("pool alpha 2 of 2")
    await tab.page.get_by_role("button", name="cordon", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("a new switch")
    await dialog.get_by_role("button", name="Show what it would do").click()
    do_it = dialog.get_by_role("button", name="Do it")
    await expect(do_it).to_be_visible()
    if await (again := dialog.get_by_label("Type 2 nodes")).count():
        await again.fill("2 nodes")
    await do_it.click()
    await world.until(lambda: world.cell.view.nodes["n0"].cordons and world.cell.view.nodes["n2"].cordons)
    assert not world.cell.view.nodes["n1"].cordons


async def test_a_technician_begins_work_from_a_ticket_with_the_serial_number(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    """Mutant: a technician is offered what only operators may do."""
    await world.reads_all()
    world.driver.verdict = "failed"
    nodes = [{"id": "m0", "sku": "h100", "serial": "SN-m0", "rack": "r9", "u": 7, "bmc": bmc_of("m0")}]
    await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    await world.until(lambda: world.cell.view.nodes["m0"].phase == "onboard")
    await world.operator.post("/v1/nodes/m0/certify", {"reason": "cabled"})
    await world.until(lambda: len(world.cell.view.tickets))
    technician = world.client(Grant("tess", Role.technician))
    (ticket,) = world.cell.view.tickets
    await technician.post("/v1/intents", {"act": {"verb": "claim-ticket"}, "target": ticket, "reason": "my shift"})
    await tab.open(technician.token, "/nodes/m0")
    await tab.page.get_by_text("Act on it").click()
    await tab.page.get_by_role("button", name="power off", exact=True).click()
    await tab.page.get_by_label("Reason").fill("the board")
    await tab.page.get_by_role("button", name="Show what it would do").click()
    await tab.page.get_by_label("Type m0").fill("m0")
    await tab.page.get_by_role("button", name="Do it").click()
    await world.until(lambda: any(h.kind == "power" for h in world.cell.view.holds.values()))
    world.cell.tell(NodeSeen("m0", power="off"))
    await tab.page.goto(f"{world.url}/tickets?rack=r9")
    row = tab.page.locator("tbody tr")
    await expect(row).to_contain_text("m0")
    await row.get_by_role("button", name="Start work").click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("the board")
    await dialog.get_by_label("serial").fill("SN-m0")
    await dialog.get_by_role("button", name="Show what it would do").click()
    do_it = dialog.get_by_role("button", name="Do it")
    await expect(do_it).to_be_visible()
    if await (again := dialog.get_by_label("Type m0")).count():
        await again.fill("m0")
    await do_it.click()
    await world.until(lambda: any(h.kind == "physical_work" for h in world.cell.view.holds.values()))
    await dialog.get_by_role("button", name="Close").click()
    await tab.page.goto(f"{world.url}/nodes/m0")
    await tab.page.get_by_text("Act on it").click()
    await expect(tab.page.get_by_role("button", name="certify", exact=True)).to_be_visible()
    await expect(tab.page.get_by_role("button", name="retire", exact=True)).to_have_count(0)


async def test_a_page_of_nothing_says_so_and_where_to_look(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: "Reading nope …" for ever."""
    await tab.open(world.operator.token, "/nodes/nope")
    await expect(tab.page.get_by_role("alert")).to_contain_text("nope")
    await expect(tab.page).to_have_title("nope · Hostler")
    await tab.page.get_by_role("link", name="Look for it").click()
    await expect(tab.page.locator("h1")).to_have_text("Nodes")
    tab.complaints[:] = [one for one in tab.complaints if "404" not in one]


async def test_a_tenant_sees_own_nodes_on_every_page_and_is_offered_what_a_tenant_may(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
) -> None:
    await world.adopt(2, "beta", start=8)
    await tab.open(world.client(Grant("alice", Role.tenant, tenant="acme")).token, "/nodes")
    await expect(tab.page.locator("tbody tr")).to_have_count(4)
    for page in PAGES:
        await tab.page.goto(world.url + page)
        await expect(tab.page.locator(".live")).to_contain_text("live")
        assert "globex" not in await tab.page.content()
    await tab.page.goto(f"{world.url}/nodes/n1")
    await tab.page.get_by_text("Act on it").click()
    await expect(tab.page.get_by_role("button", name="cordon", exact=True)).to_be_visible()
    await expect(tab.page.get_by_role("button", name="certify", exact=True)).to_have_count(0)


async def test_an_operator_sees_who_asked_what_and_from_where(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the filter stays in the page; the command lists something else; a viewer is offered the page."""
    await world.operator.post("/v1/nodes/n1/hold", {"reason": "leave it"})
    await tab.open(world.operator.token, "/audit?verb=hold")
    row = tab.page.locator("tbody tr")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("ada")
    await expect(row).to_contain_text("127.0.0.1")
    await tab.page.get_by_label("outcome").select_option("refused")
    await expect(tab.page).to_have_url(re.compile(r"/audit\?verb=hold&result=refused$"))
    await expect(tab.page.get_by_text("None.")).to_be_visible()
    await expect(tab.page.locator(".cli")).to_have_text("hostler audit list --limit 0 --verb hold --outcome refused")
    await expect(tab.page).to_have_title("audit · Hostler")
    await tab.open(world.client(Grant("vic", Role.viewer)).token, "/policy")
    await tab.page.get_by_role("button", name="Admin").click()
    await expect(tab.page.get_by_role("link", name="policy")).to_be_visible()
    await expect(tab.page.get_by_role("link", name="audit")).to_have_count(0)


async def test_a_policy_is_tried_before_it_is_put_in_force(
    world: House,  # noqa: F811
    tab: Tab,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Mutants: the first click activates; a document that is wrong says no line."""
    fleet, broken = tmp_path / "fleet.yaml", tmp_path / "broken.yaml"
    fleet.write_text(FLEET.replace("target: 3", "target: 4", 1))
    broken.write_text("pools: {alpha: {sku: nope}}\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    before = world.cell.view.configuration.sha256
    await tab.open(world.operator.token, "/policy")
    await expect(tab.page.locator("main")).to_contain_text(before[:12])
    await tab.page.get_by_text("Try another configuration").click()
    await tab.page.get_by_label("Documents").set_input_files([policy, broken])
    await tab.page.get_by_label("Reason").fill("one more node")
    button = tab.page.locator(".another .buttons button")
    await button.click()
    await expect(tab.page.locator(".another")).to_contain_text("broken.yaml:1")
    tab.complaints[:] = [one for one in tab.complaints if "422" not in one]
    await tab.page.get_by_label("Documents").set_input_files([policy, fleet])
    await button.click()
    await expect(button).to_have_text("Put it in force")
    assert world.cell.view.configuration.sha256 == before
    await button.click()
    await world.until(lambda: world.cell.view.configuration.sha256 != before or world.cell.view.rollouts)


async def test_a_window_is_answered_by_whom_it_concerns_and_called_off(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a tenant sees the windows of others; an operator is not shown what the tenant answered."""
    await world.adopt(1, "beta", start=8)
    await world.reads_all()
    for pool in ("alpha", "beta"):
        window = {"starts": "2099-01-01T00:00:00+00:00", "ends": "2099-01-01T04:00:00+00:00"}
        asked = {
            "act": {"verb": "schedule-maintenance", **window},
            "target": f"pool:{pool}",
            "reason": f"feed of {pool}",
        }
        assert (await world.operator.post("/v1/intents", asked))[0] == 200
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    await tab.open(tenant.token, "/maintenance")
    windows = tab.page.get_by_role("region", name="windows, a table").locator("tbody tr")
    await expect(windows).to_have_count(1)
    await expect(windows).to_contain_text("pool:alpha")
    await expect(windows.get_by_role("button", name="Call off")).to_have_count(0)
    await windows.get_by_role("button", name="Acknowledge").click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("a run ends then")
    await dialog.get_by_label("rather").fill("2099-01-02T00:00:00+00:00")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: any(window.answers for window in world.cell.view.windows.values()))
    await dialog.get_by_role("button", name="Close").click()
    await tab.open(world.operator.token, "/maintenance")
    await expect(windows).to_have_count(2)
    await expect(windows.filter(has_text="alpha")).to_contain_text("acme asks for")
    await expect(windows.get_by_role("button", name="Acknowledge")).to_have_count(0)
    await windows.filter(has_text="alpha").get_by_role("button", name="Call off").click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("not needed")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: len(world.cell.view.windows) == 1)
    await expect(windows).to_have_count(1)


async def test_the_flow_is_drawn_and_told_as_tables(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the span stays in the page; a drawing without its numbers."""
    await tab.open(world.operator.token, "/flow")
    moves = tab.page.get_by_role("region", name="moves, a table").locator("tbody tr")
    await expect(moves.filter(has_text="registered")).to_have_count(2)
    times = tab.page.get_by_role("region", name="times, a table").locator("tbody tr")
    await expect(times.filter(has_text="production")).to_contain_text("production4")
    await expect(tab.page.locator("svg.chart path.move")).to_have_count(2)
    await tab.page.get_by_role("button", name="7d").click()
    await expect(tab.page).to_have_url(re.compile(r"/flow\?span=7d$"))
    await expect(tab.page.locator(".cli").last).to_have_text("hostler flow --span 7d")
