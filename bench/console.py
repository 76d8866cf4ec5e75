"""Measures what the console's fleet page costs a browser: the first paint of its cells, and each batch of the stream.

Chromium opens the page over a served fleet. A frame counts from the outside: as soon as one is on the screen that the
page filled cells in. The cost of a batch is what the page's main thread does while agents report faults, from a trace.
"""

import asyncio
import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from bench.controller import POOLS
from bench.figures import Figures
from bench.posts import LINE
from bench.takeover import PATIENT, fill
from tests.end_to_end.served_fleet import Layout, ServedFleet, a_served_fleet

SIZES = tuple(int(size) for size in os.environ.get("BENCH_NODES", "10000,100000").split(","))
VISITS = int(os.environ.get("BENCH_VISITS", "5"))
BATCHES = int(os.environ.get("BENCH_BATCHES", "20"))
FAULTY = 50
"""Agents that report a fault in the same moment."""
EVERY_S = 0.5
FAULTS = FAULTY * BATCHES
COLOURED = {"firmware": "no node has told any: all cells are unknown", "tenant": "all cells are filled"}
"""Colourings that are looked at, and what their cells are: unknown ones are stroked where they have room for it."""


@dataclass(frozen=True)
class FleetPage:
    """The fleet's page of so many nodes, by phase or coloured."""

    nodes: int
    colour: str = ""

    @property
    def name(self) -> str:
        """Name of its figures."""
        return f"{self.nodes:,} nodes by {self.colour}" if self.colour else f"{self.nodes:,} nodes"

    def address(self, fleet: ServedFleet) -> str:
        """The page's address, with the token of who looks."""
        query = f"?colour={self.colour}" if self.colour else ""
        return f"{fleet.server}/{query}#token={fleet.operator}"


def faulty_nodes(nodes: int) -> list[str]:
    """Nodes that report a fault, one a rack, so that no incident of a rack is opened: for two rounds where they fit."""
    return [f"c1-n{number * 8:06d}" for number in range(min(2 * FAULTS, nodes // 8))]


QUIET_S = 10.0
PATIENCE_MS = 120_000
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel", "blink.user_timing"]

FRAMES = """
window.frames_shown = [];
let filled = 0, asked = false;
for (const name of ["fillRect", "strokeRect"]) {
  const paint = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (x, y, width, height) {
    filled += 1;
    paint.call(this, x, y, width, height);
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => {
        const coloured = document.querySelector("[aria-label^='Colours:']") !== null;
        frames_shown.push([performance.now(), filled, coloured]);
        filled = 0;
        asked = false;
      };
      after.port2.postMessage(0);
    });
  };
}
"""
"""Notes when a frame with painted cells was shown, how many were filled or stroked since the frame before, and whether
the page's legend was a colouring's then.
"""


async def main_async() -> Figures:
    """Open the page, and report faults under it."""
    figures = Figures("the console's fleet page in Chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        for nodes in SIZES:
            faulty = faulty_nodes(nodes)
            layout = Layout(POOLS, (), policy=PATIENT, fill=partial(fill, nodes=nodes), agents=faulty)
            with tempfile.TemporaryDirectory() as folder:
                async with a_served_fleet(Path(folder), layout) as fleet:
                    await _measured(figures, browser, fleet, nodes)
                    await _batches(figures, browser, fleet, FleetPage(nodes), faulty[:FAULTS])
                    for colour in COLOURED:
                        await _coloured(figures, browser, fleet, FleetPage(nodes, colour))
                    if len(faulty) == 2 * FAULTS:
                        await _batches(figures, browser, fleet, FleetPage(nodes, next(iter(COLOURED))), faulty[FAULTS:])
        await browser.close()
    return figures


async def _measured(figures: Figures, browser: Browser, fleet: ServedFleet, nodes: int) -> None:
    fresh, known, whole = [], [], []
    for _ in range(VISITS):
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        page = await context.new_page()
        await page.add_init_script(FRAMES)
        await page.goto(f"{fleet.server}/#token={fleet.operator}")
        fresh.append((await _painted(page, nodes))[0])
        await page.reload()
        first, last = await _painted(page, nodes)
        known.append(first)
        whole.append(last)
        await context.close()
    note = f"load {os.getloadavg()[0]:.1f}, {VISITS} visits"
    figures.add(f"{nodes:,} nodes: first cells shown, nothing cached, median", statistics.median(fresh), "ms", note)
    figures.add(f"{nodes:,} nodes: first cells shown, files cached, median", statistics.median(known), "ms")
    figures.add(f"{nodes:,} nodes: first cells shown, files cached, longest", max(known), "ms")
    figures.add(f"{nodes:,} nodes: all cells shown, files cached, median", statistics.median(whole), "ms")


async def _coloured(figures: Figures, browser: Browser, fleet: ServedFleet, seen: FleetPage) -> None:
    """The page by a link that colours the grid, its files cached."""
    first, whole = [], []
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    await page.add_init_script(FRAMES)
    await page.goto(seen.address(fleet))
    await _painted(page, seen.nodes, coloured=True)
    for _ in range(VISITS):
        await page.reload()
        shown, last = await _painted(page, seen.nodes, coloured=True)
        first.append(shown)
        whole.append(last)
    await context.close()
    cells = f"load {os.getloadavg()[0]:.1f}; {COLOURED[seen.colour]}"
    figures.add(f"{seen.name}: first cells shown, files cached, median", statistics.median(first), "ms", cells)
    figures.add(f"{seen.name}: first cells shown, files cached, longest", max(first), "ms")
    figures.add(f"{seen.name}: all cells shown, files cached, median", statistics.median(whole), "ms")


async def _painted(page: Page, nodes: int, *, coloured: bool = False) -> tuple[float, float]:
    """When the first frame with cells was shown, and the first with all of them; ms after the navigation."""
    found = await page.wait_for_function(
        "([nodes, wanted]) => frames_shown.some(([, cells, is]) => cells >= nodes && is === wanted) && frames_shown",
        arg=[nodes, coloured],
        timeout=PATIENCE_MS,
    )
    frames = [(at, cells) for at, cells, is_coloured in await found.json_value() if is_coloured == coloured]
    return frames[0][0], next(at for at, cells in frames if cells >= nodes)


async def _batches(figures: Figures, browser: Browser, fleet: ServedFleet, seen: FleetPage, names: list[str]) -> None:
    """Cost of faults on these nodes, batch by batch."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    await page.add_init_script(FRAMES)
    await page.goto(seen.address(fleet))
    await _painted(page, seen.nodes, coloured=bool(seen.colour))
    await page.wait_for_function("document.querySelector('.live.live')", timeout=PATIENCE_MS)
    await asyncio.sleep(QUIET_S / 2)
    before = await page.evaluate("frames_shown.length")
    await browser.start_tracing(page=page, categories=CATEGORIES)
    for batch in range(BATCHES):
        await asyncio.gather(*(_fault(fleet, name) for name in names[batch * FAULTY : (batch + 1) * FAULTY]))
        await asyncio.sleep(EVERY_S)
    await asyncio.sleep(1)
    await page.evaluate("1")  # answered once the page has done what was queued
    await asyncio.sleep(1)
    frames = (await page.evaluate("frames_shown"))[before:]
    trace = json.loads(await browser.stop_tracing())
    if out := os.environ.get("BENCH_TRACE"):
        await asyncio.to_thread(Path(f"{out}-{seen.nodes}{seen.colour}.json").write_text, json.dumps(trace))
    tasks = sorted(_main_thread(trace, "dur"))
    busy = sorted(_main_thread(trace, "tdur"))
    assert frames, "the faults were not drawn"
    figures.add(f"{seen.name}: frames drawn for {BATCHES} batches of {FAULTY} faults", len(frames), "")
    figures.add(f"{seen.name}: main thread a batch, CPU", sum(busy) / BATCHES, "ms", f"load {os.getloadavg()[0]:.1f}")
    figures.add(f"{seen.name}: longest task, CPU", busy[-1], "ms")
    figures.add(f"{seen.name}: longest task by the clock", tasks[-1], "ms")
    await context.close()


async def _fault(fleet: ServedFleet, name: str) -> None:
    """One agent's post of a line that raises a condition."""
    seen = {"node": name, "source": "agent", "spool": "s", "sequence": 1, "kind": "kernel_log", "text": LINE}
    body = {"node": name, "spool": "s", "boot_id": "", "observations": [{**seen, "facility": 0}]}
    headers = {"Authorization": f"Bearer {fleet.tokens[name]}"}
    async with fleet.session.post(f"{fleet.server}/v1/agent/observations", json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


def _main_thread(trace: dict[str, Any], clock: str) -> Iterator[float]:
    """Milliseconds of each task of the page's main thread: `dur` by the clock, `tdur` of CPU."""
    events = trace["traceEvents"]
    mains = {(e["pid"], e["tid"]) for e in events if e.get("args", {}).get("name") == "CrRendererMain"}
    drawn = {(e["pid"], e["tid"]) for e in events if e.get("name") == "FireAnimationFrame"}
    page = mains & drawn
    for event in events:
        if event.get("name") == "RunTask" and clock in event and (event["pid"], event["tid"]) in page:
            yield event[clock] / 1e3


def main() -> Figures:
    """Run it."""
    return asyncio.run(main_async())
