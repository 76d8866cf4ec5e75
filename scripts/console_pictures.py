"""Takes the pictures of the console that the documents show: `make pictures` (needs Chromium).

Starts `hostler up` with its emulated fleet, waits until most of it is in production and something has failed, and
photographs each page as an operator sees it.
"""

import asyncio
import re
import shutil
import sys
from pathlib import Path

from playwright.async_api import Page, async_playwright

OUT = Path(__file__).parents[1] / "docs" / "images"
HOSTLER = Path(sys.executable).with_name("hostler")
ADDRESS = re.compile(r"console\s+(\S+)/#(token=\S+)")
PAGES = {"console": "/", "console-nodes": "/nodes?sort=phase", "console-tickets": "/tickets"}
IN_PRODUCTION = """most => {
    const shown = document.querySelector(".phase i.p-production");
    return Number(shown?.parentElement.querySelector("b").textContent) > most;
}"""
SIZE = (1400, 850)
PATIENCE_MS = 240_000
FAULTS_SEEN_MS = 45_000


async def address(output: asyncio.StreamReader) -> tuple[str, str]:
    """The console's address and token, as `hostler up` prints them."""
    async for line in output:
        if found := ADDRESS.search(line.decode()):
            return found[1], found[2]
    sys.exit("hostler up ended before it was ready")


async def photograph(page: Page, url: str, token: str) -> None:
    """Takes every picture."""
    await page.goto(f"{url}/#{token}")
    await page.wait_for_function(
        IN_PRODUCTION,
        arg=50,
        timeout=PATIENCE_MS,
    )
    await page.wait_for_timeout(FAULTS_SEEN_MS)
    for name, path in PAGES.items():
        await _one(page, name, url + path)
    await page.goto(url)
    worst = await page.evaluate(
        """async () => {
            const headers = { Authorization: `Bearer ${sessionStorage.getItem("hostler.token")}` };
            const rows = (await (await fetch("/v1/nodes?limit=1000", { headers })).json()).items;
            return rows.sort((a, b) => b.severity - a.severity || b.conditions.length - a.conditions.length)[0].id;
        }"""
    )
    await _one(page, "console-node", f"{url}/nodes/{worst}")


async def _one(page: Page, name: str, address: str) -> None:
    await page.goto(address)
    await page.wait_for_selector(".live.live")
    await page.wait_for_timeout(2_000)
    await page.screenshot(path=OUT / f"{name}.png")
    print(f"docs/images/{name}.png")


async def main() -> None:
    """Starts the fleet, takes the pictures, ends it."""
    fleet = await asyncio.create_subprocess_exec(HOSTLER, "up", "--port", "0", stdout=asyncio.subprocess.PIPE)
    assert fleet.stdout is not None
    try:
        url, token = await address(fleet.stdout)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
            await photograph(page, url, token)
            await browser.close()
    finally:
        fleet.terminate()
        await fleet.wait()


asyncio.run(main())
