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
FAULTY_NODES = [f"c1-n{number * 8:06d}" for number in range(FAULTY * BATCHES)]
"""One a rack: no incident of a rack is opened."""
QUIET_S = 10.0
PATIENCE_MS = 120_000
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel", "blink.user_timing"]

FRAMES = """
window.frames_shown = [];
let filled = 0, asked = false;
const fill = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
  filled += 1;
  fill.call(this, x, y, width, height);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = () => {
      frames_shown.push([performance.now(), filled]);
      filled = 0;
      asked = false;
    };
    after.port2.postMessage(0);
  });
};
"""
"""Notes when a frame with filled cells was shown, and how many were filled since the frame before."""


async def main_async() -> Figures:
    """Open the page, and report faults under it."""
    figures = Figures("the console's fleet page in Chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        for nodes in SIZES:
            layout = Layout(POOLS, (), policy=PATIENT, fill=partial(fill, nodes=nodes), agents=FAULTY_NODES)
            with tempfile.TemporaryDirectory() as folder:
                async with a_served_fleet(Path(folder), layout) as fleet:
                    await _measured(figures, browser, fleet, nodes)
                    await _batches(figures, browser, fleet, nodes)
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


async def _painted(page: Page, nodes: int) -> tuple[float, float]:
    """When the first frame with cells was shown, and the first with all of them; ms after the navigation."""
    found = await page.wait_for_function(
        "nodes => frames_shown.some(([, cells]) => cells >= nodes) && frames_shown", arg=nodes, timeout=PATIENCE_MS
    )
    frames = await found.json_value()
    return frames[0][0], next(at for at, cells in frames if cells >= nodes)


async def _batches(figures: Figures, browser: Browser, fleet: ServedFleet, nodes: int) -> None:
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    page = await context.new_page()
    await page.add_init_script(FRAMES)
    await page.goto(f"{fleet.server}/#token={fleet.operator}")
    await _painted(page, nodes)
    await page.wait_for_function("document.querySelector('.live.live')", timeout=PATIENCE_MS)
    await asyncio.sleep(QUIET_S / 2)
    before = await page.evaluate("frames_shown.length")
    await browser.start_tracing(page=page, categories=CATEGORIES)
    for number in range(BATCHES):
        names = FAULTY_NODES[number * FAULTY : (number + 1) * FAULTY]
        await asyncio.gather(*(_fault(fleet, name) for name in names))
        await asyncio.sleep(EVERY_S)
    await asyncio.sleep(1)
    await page.evaluate("1")  # answered once the page has done what was queued
    await asyncio.sleep(1)
    frames = (await page.evaluate("frames_shown"))[before:]
    trace = json.loads(await browser.stop_tracing())
    if out := os.environ.get("BENCH_TRACE"):
        await asyncio.to_thread(Path(f"{out}-{nodes}.json").write_text, json.dumps(trace))
    tasks = sorted(_main_thread(trace, "dur"))
    busy = sorted(_main_thread(trace, "tdur"))
    assert frames, "the faults were not drawn"
    figures.add(f"{nodes:,} nodes: frames drawn for {BATCHES} batches of {FAULTY} faults", len(frames), "")
    figures.add(
        f"{nodes:,} nodes: main thread a batch, CPU", sum(busy) / BATCHES, "ms", f"load {os.getloadavg()[0]:.1f}"
    )
    figures.add(f"{nodes:,} nodes: longest task, CPU", busy[-1], "ms")
    figures.add(f"{nodes:,} nodes: longest task by the clock", tasks[-1], "ms")
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
