"""The technician's board in Debian's Chromium: scans, photos, a phone, paper."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from hostler.controller.inputs import NodeSeen
from hostler.core.state import events as e
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, bmc_of, house
from tests.end_to_end.test_console import CONSOLE, Tab, browser, tab  # noqa: F401 - fixtures

pytestmark = [*CONSOLE, pytest.mark.nightly("a browser works through the page")]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)
"""One red pixel."""


@pytest_asyncio.fixture(loop_scope="module")
async def world(tmp_path: Path) -> AsyncIterator[House]:
    """Two nodes whose seatrial failed, each with a ticket, in two racks; and one that serves."""
    async with house(tmp_path) as inside:
        await inside.reads_all()
        await inside.adopt(1)
        inside.driver.verdict = "failed"
        places = ({"rack": f"r{9 + n}", "u": 7 + n, "bmc": bmc_of(f"m{n}")} for n in range(2))
        nodes = [{"id": f"m{n}", "sku": "h100", "serial": f"SN-m{n}"} | at for n, at in enumerate(places)]
        await inside.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
        for name in ("m0", "m1"):
            await inside.until(lambda name=name: inside.cell.view.nodes[name].phase == "onboard")
            await inside.operator.post(f"/v1/nodes/{name}/certify", {"reason": "cabled"})
            await inside.until(lambda name=name: any(t.node == name for t in inside.cell.view.tickets.values()))
        yield inside


async def test_a_scan_begins_work_at_its_machine_and_at_no_other(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: any serial begins work on the first card; a serial that is nobody's says nothing."""
    tess = world.client(Grant("tess", Role.technician))
    (ticket,) = (t.id for t in world.cell.view.tickets.values() if t.node == "m1")
    await tess.post("/v1/intents", {"act": {"verb": "claim-ticket"}, "target": ticket, "reason": "my shift"})
    await tess.post("/v1/nodes/m1/power-off", {"reason": "the board"})
    await world.until(lambda: any(h.kind == "power" for h in world.cell.view.holds.values()))
    world.cell.tell(NodeSeen("m1", power="off"))
    await tab.open(tess.token, "/board")
    field = tab.page.get_by_label("Scan the serial at the machine")
    await expect(field).to_be_focused()
    told = tab.page.get_by_role("alert")
    await expect(tab.page.locator(".card")).to_have_count(2)
    await tab.page.keyboard.type("SN-n0\n")
    await expect(told).to_have_text("SN-n0 is n0, rack r0 U?: no ticket asks for work there. Nothing was begun.")
    await tab.page.keyboard.type("SN-x\n")
    await expect(told).to_have_text("No machine here has the serial SN-x. Nothing was begun.")
    await expect(tab.page.get_by_role("dialog")).to_have_count(0)
    await tab.page.keyboard.type("SN-m1\n")
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog.locator("h2")).to_have_text("start work m1")
    await expect(dialog.get_by_label("serial")).to_have_value("SN-m1")
    await dialog.get_by_role("button", name="Show what it would do").click()
    do_it = dialog.get_by_role("button", name="Do it")
    await expect(do_it).to_be_visible()
    if await (again := dialog.get_by_label("Type m1")).count():
        await again.fill("m1")
    await do_it.click()
    await world.until(lambda: any(h.kind == "physical_work" for h in world.cell.view.holds.values()))
    (hold,) = (h for h in world.cell.view.holds.values() if h.kind == "physical_work")
    assert (hold.scope.text, hold.owner, bool(hold.ticket)) == ("m1", "tess", True)


async def test_one_tickets_board_refuses_another_machine(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: at the wrong machine work begins there, since that one has a ticket too."""
    ticket = next(t.id for t in world.cell.view.tickets.values() if t.node == "m0")
    await tab.open(world.client(Grant("tess", Role.technician)).token, f"/board?ticket={ticket}")
    await expect(tab.page.locator(".card")).to_have_count(1)
    await expect(tab.page.locator(".card")).to_contain_text("SN-m0")
    await tab.page.get_by_label("Scan the serial at the machine").fill("SN-m1")
    await tab.page.keyboard.press("Enter")
    told = tab.page.get_by_role("alert")
    await expect(told).to_have_text(
        "SN-m1 is not SN-m0, which stands in rack r9 U7: this is another machine, m1. Nothing was begun."
    )
    await expect(tab.page.get_by_role("dialog")).to_have_count(0)
    await tab.page.get_by_role("button", name="All tickets").click()
    await expect(tab.page.locator(".card")).to_have_count(2)


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), ("light", 1280)])
async def test_a_photo_is_added_and_shown(
    world: House,
    tab: Tab,  # noqa: F811
    tmp_path: Path,
    scheme: str,
    width: int,
) -> None:
    """Mutants: a photo that another person added is not seen; the picture is an address that anybody may open."""
    (tmp_path / "board.png").write_bytes(PNG)
    (tmp_path / "page.html").write_bytes(b"<html>\x00")
    await tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await tab.page.set_viewport_size({"width": width, "height": 800})
    await tab.open(world.client(Grant("tess", Role.technician)).token, "/board?rack=r9")
    card = tab.page.locator(".card")
    await expect(card).to_have_count(1)
    await card.get_by_label("photo, PDF or text").set_input_files(tmp_path / "board.png")
    await card.get_by_role("button", name="Add").click()
    await expect(card.locator(".files li")).to_contain_text("board.png")
    await expect(card.locator(".files li")).to_contain_text("tess")
    await card.get_by_role("button", name="Show").click()
    picture = card.get_by_role("img", name="board.png, by tess")
    await expect(picture).to_have_js_property("naturalWidth", 1)
    assert (await picture.get_attribute("src") or "").startswith("blob:")
    async with tab.page.expect_download() as begun:
        await card.get_by_role("button", name="board.png").click()
    await (await begun.value).save_as(tmp_path / "back.png")
    assert (tmp_path / "back.png").read_bytes() == PNG
    assert (await Axe().run(tab.page)).response["violations"] == []
    assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await card.get_by_label("photo, PDF or text").set_input_files(tmp_path / "page.html")
    await card.get_by_role("button", name="Add").click()
    await expect(card.get_by_text("of a kind that is not taken")).to_be_visible()
    tab.complaints[:] = [one for one in tab.complaints if "422" not in one]


async def test_the_board_on_paper_has_its_cards_and_no_buttons(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the menu is printed; a card is cut in two; nothing to sign."""
    await tab.open(world.client(Grant("tess", Role.technician)).token, "/board")
    await expect(tab.page.locator(".card")).to_have_count(2)
    await tab.page.emulate_media(media="print", color_scheme="dark")
    for hidden in ("header.bar", ".scan", ".card .buttons", ".card form"):
        await expect(tab.page.locator(hidden).first).to_be_hidden()
    await expect(tab.page.locator(".card .onprint")).to_contain_text(["done", "done"])
    await expect(tab.page.locator(".card").first).to_be_visible()
    assert await tab.page.locator(".card").first.evaluate("card => getComputedStyle(card).breakInside") == "avoid"
    assert await tab.page.locator(".card b").first.evaluate("b => getComputedStyle(b).color") == "rgb(0, 0, 0)"


async def test_a_ticket_is_claimed_with_one_tap_on_a_phone_and_handed_over(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: a claim of somebody else's can be pressed; the filter shows everybody's; a verdict is said to nobody."""
    tom = world.client(Grant("tom", Role.technician))
    ticket = next(t.id for t in world.cell.view.tickets.values() if t.node == "m1")
    await tom.post("/v1/intents", {"act": {"verb": "claim-ticket"}, "target": ticket, "reason": "mine"})
    await tab.page.set_viewport_size({"width": 390, "height": 800})
    await tab.open(world.client(Grant("tess", Role.technician)).token, "/board")
    await expect(tab.page.locator(".card")).to_have_count(2)
    theirs = tab.page.locator(".card", has_text="SN-m1")
    await expect(theirs).to_contain_text("tom, until")
    await expect(theirs.get_by_role("button", name="Claim")).to_have_count(0)
    await expect(theirs.get_by_role("button", name="Hand over")).to_have_count(0)
    own = tab.page.locator(".card", has_text="SN-m0")
    await own.get_by_role("button", name="Claim").click()
    await expect(own).to_contain_text("tess, until")
    await tab.page.get_by_label("claimed by").select_option("mine")
    await expect(tab.page.locator(".card")).to_have_count(1)
    assert "claim=mine" in tab.page.url
    assert (await Axe().run(tab.page)).response["violations"] == []
    assert await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await own.get_by_role("button", name="Hand over").click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("end of my shift")
    await dialog.get_by_label("to", exact=False).first.fill("tom")
    await dialog.get_by_role("button", name="Show what it would do").click()
    await dialog.get_by_role("button", name="Do it").click()
    await world.until(lambda: all(t.claimed_by == "tom" for t in world.cell.view.tickets.values()))
    await dialog.get_by_role("button", name="Close").click()
    await expect(tab.page.get_by_text("No ticket asks for work here.")).to_be_visible()


async def test_what_came_of_ones_own_work_is_said_on_the_board(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: a ticket that is closed is gone without a word."""
    tess = world.client(Grant("tess", Role.technician))
    ticket = next(t.id for t in world.cell.view.tickets.values() if t.node == "m0")
    await tess.post("/v1/intents", {"act": {"verb": "claim-ticket"}, "target": ticket, "reason": "mine"})
    await tab.open(tess.token, "/board")
    await expect(tab.page.locator(".card")).to_have_count(2)
    await expect(tab.page.get_by_role("log")).to_have_count(0)
    await tess.post("/v1/intents", {"act": {"verb": "close-ticket"}, "target": ticket, "reason": "the cable was loose"})
    log = tab.page.get_by_role("log")
    await expect(log).to_contain_text(f"ticket {ticket} closed by tess: the cable was loose")
    await expect(tab.page.locator(".card")).to_have_count(1)
    assert (await Axe().run(tab.page)).response["violations"] == []


async def test_a_rack_is_claimed_and_printed_whole_in_one_walk(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the other rack is printed too; the order is that of the tickets' names; what another has is taken."""
    nodes = [
        {"id": f"x{n}", "sku": "h100", "serial": f"SN-x{n}", "rack": "r9", "u": u, "bmc": bmc_of(f"x{n}")}
        for n, u in ((1, 10), (2, 2))
    ]
    await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    for name in ("x1", "x2"):
        await world.until(lambda name=name: world.cell.view.nodes[name].phase == "onboard")
        await world.operator.post(f"/v1/nodes/{name}/certify", {"reason": "cabled"})
        await world.until(lambda name=name: any(t.node == name for t in world.cell.view.tickets.values()))
    theirs = next(t.id for t in world.cell.view.tickets.values() if t.node == "x2")
    tom = world.client(Grant("tom", Role.technician))
    await tab.open(world.client(Grant("tess", Role.technician)).token, "/board")
    rack = tab.page.get_by_role("region", name="Rack r9")
    await expect(rack.locator(".card")).to_have_count(3)
    walk = await rack.locator(".card h3").all_text_contents()
    assert [text.split(" ")[0] for text in walk] == ["U2", "U7", "U10"]
    await tom.post("/v1/intents", {"act": {"verb": "claim-ticket"}, "target": theirs, "reason": "faster"})
    await rack.get_by_role("button", name="Claim all of r9").click()
    await expect(rack.get_by_role("status").first).to_contain_text("2 of")
    claimed = {t.node: t.claimed_by for t in world.cell.view.tickets.values()}
    assert claimed == {"m0": "tess", "m1": "", "x1": "tess", "x2": "tom"}
    tab.complaints[:] = [one for one in tab.complaints if "409" not in one]
    await tab.page.evaluate("window.print = () => { window.printed = true }")
    await rack.get_by_role("button", name="Print r9").click()
    await tab.page.wait_for_function("window.printed")
    await tab.page.emulate_media(media="print")
    await expect(rack).to_be_visible()
    await expect(tab.page.get_by_role("region", name="Rack r10")).to_be_hidden()
    await expect(rack.locator(".onprint").first).to_contain_text("1 of 3: done ☐")
    paper = await tab.page.pdf(prefer_css_page_size=True)
    sizes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox ?\[([^\]]+)\]", paper)}
    assert {(round(w), round(h)) for _, _, w, h in sizes} == {(595, 842)}, "A4"
    await tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    await tab.page.emulate_media(media="screen")
    await expect(tab.page.get_by_role("region", name="Rack r10")).to_be_visible()


async def test_the_light_of_a_claimed_ticket_is_lit_and_put_out_with_one_tap(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the button is there without a claim; what the BMC did is not said; a second tap lights it again."""
    tess = world.client(Grant("tess", Role.technician))
    nodes = [{"id": "b1", "sku": "h100", "serial": "SN-b1", "rack": "r9", "u": 3, "bmc": "https://10.0.0.9"}]
    await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"})
    await world.until(lambda: world.cell.view.nodes["b1"].phase == "onboard")
    await world.operator.post("/v1/nodes/b1/certify", {"reason": "cabled"})
    await world.until(lambda: any(t.node == "b1" for t in world.cell.view.tickets.values()))
    ticket = next(t.id for t in world.cell.view.tickets.values() if t.node == "b1")
    await tab.page.set_viewport_size({"width": 390, "height": 800})
    await tab.open(tess.token, "/board")
    card = tab.page.locator(".card", has_text="SN-b1")
    await expect(card).to_be_visible()
    await expect(tab.page.get_by_role("button", name="Locate light")).to_have_count(0)
    await tess.post("/v1/intents", {"act": {"verb": "claim-ticket"}, "target": ticket, "reason": "mine"})
    await card.get_by_role("button", name="Locate light").click()
    await expect(card).to_contain_text("lit, for tess until")
    assert (await Axe().run(tab.page)).response["violations"] == []
    await card.get_by_role("button", name="Locate light", pressed=True).click()
    await expect(card.get_by_role("button", name="Locate light", pressed=False)).to_be_visible()
    assert world.cell.view.nodes["b1"].light is None
    kinds = [r.event.operation.kind for r in world.cell.journal.records() if isinstance(r.event, e.OperationStarted)]
    assert [kind for kind in kinds if kind.startswith("locate")] == ["locate_on", "locate_off"]


CAMERA = """
window.looks = 0;
window.BarcodeDetector = class {
  async detect() { window.looks += 1; return window.looks > 2 ? [{ rawValue: "SN-n0" }] : []; }
};
const canvas = document.createElement("canvas");
canvas.getContext("2d").fillRect(0, 0, 9, 9);
window.stream = canvas.captureStream(5);
setInterval(() => canvas.getContext("2d").fillRect(Math.random() * 99, 0, 9, 9), 50);
navigator.mediaDevices.getUserMedia = async () => window.stream;
"""
"""A bar code that is seen at the third look, before a camera of this page's own."""


async def test_a_camera_reads_the_serial_and_is_let_go(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutants: the camera stays on; what it read is not looked up as what is typed."""
    await tab.open(world.client(Grant("tess", Role.technician)).token, "/board")
    await expect(tab.page.locator(".card")).to_have_count(2)
    await tab.page.evaluate(f"(() => {{ {CAMERA} }})()")
    await tab.page.get_by_role("textbox", name="rack").fill("r9")  # drawn anew: the browser reads bar codes now
    await tab.page.get_by_role("textbox", name="rack").fill("")
    await tab.page.get_by_role("button", name="Camera").click()
    await expect(tab.page.get_by_role("alert")).to_contain_text(
        "SN-n0 is n0, rack r0 U?: no ticket asks for work there"
    )
    await expect(tab.page.locator("video")).to_have_count(0)
    assert await tab.page.evaluate("window.stream.getTracks().every(track => track.readyState === 'ended')")


async def test_a_scan_has_a_serving_machine_taken_out_and_says_so(world: House, tab: Tab) -> None:  # noqa: F811
    """Mutant: at a machine that serves, a scan is refused and the technician has to find an operator."""
    await world.until(lambda: world.cell.view.nodes["n0"].phase == "production")
    tess = world.client(Grant("tess", Role.technician))
    body = {"act": {"verb": "start-work", "serial": "SN-n0", "prepare": True}, "target": "n0", "reason": "fan"}
    status, answer = await tess.post("/v1/intents", body)
    assert status == 200, answer
    assert "is to be drained and taken out of service first" in answer["text"]
    status, answer = await tess.post("/v1/nodes/n0/return-for-maintenance", {"reason": "by myself"})
    assert status == 403, "a scan of its own serial, and no other way"
