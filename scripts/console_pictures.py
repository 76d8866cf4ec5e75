"""Takes the pictures of the console that the documents show: `make pictures` (needs Chromium; some five minutes).

Starts `hostler up` with an emulated fleet of one seed, tells it a story (faults on named nodes, a claimed ticket, a
window, requests that wait for a second person) and photographs each page as who works there sees it. The story is
always the same; moments, and what is under way just then, are not.
"""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct
from playwright.async_api import Browser, async_playwright

from hostler.client import Address, Client
from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.rail_rule import RailRule, generate
from hostler.server.tokens import Grant, Role, TokenStore
from hostler.sim.emulated.kernel_messages import NAME

OUT = Path(__file__).parents[1] / "docs" / "images"
HOSTLER = Path(sys.executable).with_name("hostler")
ADOPTED = ("up", "--adopted", "--nodes", "64", "--seed", "7", "--faults-per-hour", "0", "--port", "0")
SIZES = {"desk": (1400, 850), "phone": (390, 844), "paper": (794, 1123)}
PATIENCE_S = 300.0
SETTLED_MS = 1_500
LIVE = ".bar .live:text('live ·')"
"""Shown once the page hears of changes as they come."""


class Picture(Struct, frozen=True):
    """A picture: its page's address, who looks (a name of WHO, "" for a stranger), by which colours and on what."""

    page: str
    who: str = "olga"
    scheme: str = "light"
    size: str = "desk"


WHO = {
    "olga": Grant("olga", Role.operator),
    "tess": Grant("tess", Role.technician),
    "amy": Grant("amy", Role.tenant, tenant="tenant-a"),
}
STRICKEN, SEEN_TO, RETURNED = "c1-n0021", "c1-n0034", "c1-n0045"
"""Nodes of the story: one whose GPU falls off the bus, one with a driver's unknown word, one with a dead GPU."""
ON_THEIR_WAY = {"bring-up": Picture("/bring-up")}
"""Pictures taken while the spares are brought up."""
PICTURES = {
    "sign-in": Picture("/", who=""),
    "fleet": Picture("/"),
    "fleet-dark": Picture("/", scheme="dark"),
    "fleet-phone": Picture("/", size="phone"),
    "node": Picture(f"/nodes/{STRICKEN}?span=1h"),
    "node-dark": Picture(f"/nodes/{STRICKEN}?span=1h", scheme="dark"),
    "nodes": Picture("/nodes?sort=severity&order=down"),
    "waiting": Picture("/waiting"),
    "tickets": Picture("/tickets"),
    "board": Picture("/board", who="tess"),
    "board-phone": Picture("/board", who="tess", size="phone"),
    "board-printed": Picture("/board", who="tess", size="paper"),
    "approvals": Picture("/approvals"),
    "incidents": Picture("/incidents"),
    "jobs": Picture("/jobs"),
    "parts": Picture("/parts?q=EMU00045"),
    "pools": Picture("/pools"),
    "racks": Picture("/racks/r05"),
    "fabrics": Picture("/fabrics/ib0"),
    "events": Picture("/events"),
    "flow": Picture("/flow?span=1h"),
    "flow-dark": Picture("/flow?span=1h", scheme="dark"),
    "returns": Picture("/returns"),
    "trends": Picture("/trends"),
    "maintenance": Picture("/maintenance"),
    "policy": Picture("/policy"),
    "audit": Picture("/audit"),
    "tenant": Picture("/", who="amy"),
    "tenant-maintenance": Picture("/maintenance", who="amy"),
}
"""Every other picture by its file's name."""
TAKEN = {**ON_THEIR_WAY, **PICTURES}
OFF_THE_BUS = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."
LINES = {
    **{f"c1-n{number:04d}": OFF_THE_BUS for number in range(26, 32)},
    STRICKEN: OFF_THE_BUS,
    SEEN_TO: "NVRM: Xid (PCI:0000:1b:00): 999, pid=1234, name=python3, no catalogue lists this",
    RETURNED: "NVRM: Xid (PCI:0000:1b:00): 64, pid=1234, name=python3, Row Remapper: failed",
    "c1-n0053": "EXT4-fs error (device nvme1n1): ext4_find_entry:1455: inode #2: comm kubelet: reading directory",
}
"""Kernel messages of the story: six nodes of one rack at once, the others by themselves."""


ASSETS = [
    {
        "id": f"r05-{name}",
        "kind": kind,
        "rack": "r05",
        "u": u,
        "serial": serial,
        "bmc": f"https://r05-{name}.mgmt.example",
    }
    for name, kind, u, serial in (
        ("ps1", "power_shelf", 1, "SH-0501"),
        ("ps2", "power_shelf", 3, "SH-0502"),
        ("cdu1", "coolant_unit", 46, "CDU-0501"),
        ("sw1", "switch_tray", 20, "TR-0501"),
        ("sw2", "switch_tray", 21, "TR-0502"),
    )
]
"""Assets that stand in a rack beside its nodes."""


def main() -> None:
    """Start the fleet, take the pictures, end it."""
    asyncio.run(_run())


async def _run() -> None:
    with tempfile.TemporaryDirectory(prefix="hostler-pictures-") as folder:
        data = Path(folder)
        words = (HOSTLER, *ADOPTED, "--data", str(data))
        fleet = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        assert fleet.stdout is not None
        try:
            url = await _address(fleet.stdout)
            store = TokenStore(data / "tokens.db")
            tokens = {name: store.create(grant) for name, grant in WHO.items()}
            store.close()
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                await _photograph(Story(url, tokens, data), browser)
                await browser.close()
        finally:
            fleet.terminate()
            await fleet.wait()


async def _address(output: asyncio.StreamReader) -> str:
    """The API's address, as `hostler up` prints it."""
    async for line in output:
        name, _, rest = line.decode().strip().partition(" ")
        if name == "API":
            return rest.strip().removesuffix("/v1")
    sys.exit("hostler up ended before it was ready")


class Story:
    """Events in the fleet while the pictures are taken, caused by those who act in it."""

    def __init__(self, url: str, tokens: dict[str, str], data: Path) -> None:
        self.url = url
        self.tokens = tokens
        self._data = data

    def client(self, who: str) -> Client:
        """A client that asks in this person's name."""
        return Client([Address.parse(self.url)], self.tokens[who])

    def rows(self, path: str, **query: str | int) -> list[dict[str, Any]]:
        """Rows of a list, as the operator reads it."""
        with self.client("olga") as client:
            return list(client.pages(path, query))

    async def until(self, seen: Callable[[], bool], what: str) -> None:
        """Wait until this is seen."""
        for _ in range(int(PATIENCE_S)):
            if await asyncio.to_thread(seen):
                return
            await asyncio.sleep(1.0)
        sys.exit(f"{what}: not seen within {PATIENCE_S:.0f} s")

    def ask(self, who: str, verb: str, target: str, reason: str, **more: Any) -> None:
        """Ask for an act; a refusal ends the story."""
        with self.client(who) as client:
            client.ask(verb, target, reason, **more)

    def strike(self) -> None:
        """The kernels say what is wrong."""
        with (self._data / NAME).open("wb", buffering=0) as kernels:
            for node, line in LINES.items():
                kernels.write(f"{node} {line}\n".encode())

    def act(self) -> None:
        """People act on it."""
        with self.client("olga") as client:
            design = {"name": "ib0", "design": _design()}
            client.post("/v1/fabrics", {"fabric": design, "reason": "the training network"})
            client.post("/v1/assets", {"assets": ASSETS, "reason": "what stands in rack r05"})
        night = datetime.now(UTC).replace(hour=22, minute=0, second=0, microsecond=0) + timedelta(days=1)
        window = {"starts": night.isoformat(), "ends": (night + timedelta(hours=4)).isoformat()}
        self.ask("olga", "schedule-maintenance", "rack:r05", "new power shelf", **window)
        self.ask("olga", "hold", "c1-n0060", "kept as it is for the vendor's visit")
        self.ask("olga", "open-rma", RETURNED, "row remapping failed", fault="Xid 64 on GPU 0")
        for node in ("c1-n0061", "c1-n0062"):
            moved = {"kind": "bmc", "value": f"https://{node}-bmc.mgmt.example"}
            self.ask("olga", "rebind", node, "its management port moved", **moved)
        self.ask("olga", "reboot", "c1-n0048", "new kernel")
        ticket = next(row for row in self.rows("/v1/tickets") if row["kind"] != "consent")["id"]
        self.ask("tess", "claim-ticket", ticket, "my shift")
        with self.client("amy") as client:
            (planned,) = client.get("/v1/maintenance")["windows"]
            client.ask("answer-maintenance", planned["id"], "our training pauses by then")


def _design() -> str:
    """Cables of the story's network: a rail-optimised tree."""
    rule = RailRule(hosts=32, unit=16, spines=8, rate="4xNDR", host_model="h100-8", host_name="c1-n{:04d}")
    return render_csv(generate(rule))


async def _photograph(story: Story, browser: Browser) -> None:
    def way() -> bool:
        return sum(row["phase"] in ("seatrial", "zap") for row in story.rows("/v1/bring-up")) > 3

    await story.until(way, "spares on their way")
    for name, picture in ON_THEIR_WAY.items():
        await _one(story, browser, name, picture)
    await story.until(lambda: not story.rows("/v1/bring-up"), "spares in production")
    story.strike()
    await story.until(lambda: any(row["kind"] != "consent" for row in story.rows("/v1/tickets")), "a ticket")
    await asyncio.to_thread(story.act)
    for name, picture in PICTURES.items():
        await _one(story, browser, name, picture)


async def _one(story: Story, browser: Browser, name: str, picture: Picture) -> None:
    width, height = SIZES[picture.size]
    page = await browser.new_page(viewport={"width": width, "height": height}, color_scheme=picture.scheme)  # type: ignore[arg-type]
    if picture.who:
        await page.goto(f"{story.url}/#token={story.tokens[picture.who]}")
        await page.wait_for_selector(LIVE)
        await page.goto(story.url + picture.page)
        await page.wait_for_selector(LIVE)
    else:
        await page.goto(story.url + picture.page)
    if picture.size == "paper":
        await page.emulate_media(media="print")
    await page.wait_for_timeout(SETTLED_MS)
    await page.screenshot(path=OUT / f"console-{name}.png")
    await page.close()
    print(f"docs/images/console-{name}.png", flush=True)


if __name__ == "__main__":
    main()
