"""How the controller grows with its fleet, 1,000 to 100,000 nodes: decisions at 5,000 observations/s, memory, start-up.

Posts come at their own moments whether or not those before were answered, and each is timed from the moment at which
it was due: a controller that falls behind cannot hide it. An exponent is the slope of the logarithms, by least squares:
0 grows not at all, 1 with the fleet.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from math import log
from pathlib import Path

import uvloop

from bench.controller import fill, rss_mb
from bench.figures import Figures
from bench.posts import PER_POST, a_post
from hostler.journal.sqlite import SqliteJournal
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.runtime.runner import Cell, keep_out_of_collections

SIZES = (1_000, 3_162, 10_000, 31_623, 100_000)
RATE = 5_000
SECONDS = 15.0
WARM = 0.2
"""Share of the posts that comes first and is not counted."""


def make(path: str, size: int) -> None:
    """Leave a journal of so many nodes, with a snapshot."""
    journal = SqliteJournal(Path(path))
    fill(journal, datetime.now(UTC), size)
    journal.close()


def tell(path: str) -> None:
    """Print what was measured, as JSON."""
    sys.stdout.write(json.dumps(uvloop.run(measure(Path(path)))))


async def measure(path: Path) -> dict[str, float]:
    """One fleet: start from its snapshot, then take the posts."""
    gc.set_threshold(*COLLECTIONS)  # as `serve` does, and its loop
    before_mb, began = rss_mb(), time.perf_counter()
    journal = SqliteJournal(path)
    cell = Cell(journal, {}, loaded=keep_out_of_collections)
    await cell.start()
    started_s = time.perf_counter() - began
    gc.collect()
    held_mb = rss_mb() - before_mb
    nodes, cpu = len(cell.view.nodes), time.process_time()
    latencies = await _posts(cell, nodes)
    cpu = time.process_time() - cpu
    await cell.stop()
    journal.close()
    counted = sorted(latencies[int(len(latencies) * WARM) :])
    return {
        "nodes": nodes,
        "started_s": started_s,
        "held_mb": held_mb,
        "p50_ms": counted[len(counted) // 2] * 1e3,
        "p99_ms": counted[len(counted) * 99 // 100] * 1e3,
        "cpu_us": cpu / (RATE * SECONDS) * 1e6,
    }


async def _posts(cell: Cell, nodes: int) -> list[float]:
    """Each post's seconds from the moment it was due until it was decided and durable, in the order they were due."""
    loop = asyncio.get_running_loop()
    count = int(RATE * SECONDS / PER_POST)
    found = [0.0] * count

    async def post(number: int, due: float) -> None:
        batch = a_post(number, nodes)
        await cell.observe(batch[0].node, batch)
        found[number] = loop.time() - due

    began, under_way = loop.time() + 0.1, set[asyncio.Task[None]]()
    for number in range(count):
        due = began + number * PER_POST / RATE
        if (left_s := due - loop.time()) > 0:
            await asyncio.sleep(left_s)
        task = asyncio.create_task(post(number, due))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    return found


def exponent(rows: list[dict[str, float]], what: str) -> float:
    """The slope of log(what) over log(nodes)."""
    points = [(log(row["nodes"]), log(max(row[what], 1e-9))) for row in rows]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    across: float = sum((x - mean_x) * (y - mean_y) for x, y in points)
    spread: float = sum((x - mean_x) ** 2 for x, _ in points)
    return across / spread


def main() -> Figures:
    """Each fleet in a process of its own."""
    figures = Figures("growth")
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as directory:
        for size in SIZES:
            path = Path(directory) / f"{size}.db"
            _ran(f"make({str(path)!r}, {size})")
            rows.append(json.loads(_ran(f"tell({str(path)!r})")))
    for row in rows:
        fleet = f"{row['nodes']:,.0f} nodes"
        figures.add(f"{fleet}: post to decided and durable, P50", row["p50_ms"], "ms", f"{RATE:,} observations/s")
        figures.add(f"{fleet}: … P99", row["p99_ms"], "ms")
        figures.add(f"{fleet}: CPU per observation", row["cpu_us"], "µs")
        figures.add(f"{fleet}: start from a snapshot until it decides", row["started_s"], "s")
        figures.add(f"{fleet}: memory it takes", row["held_mb"], "MB")
    for what, named in (("p50_ms", "P50"), ("cpu_us", "CPU per observation"), ("held_mb", "memory")):
        figures.add(f"exponent of {named}", exponent(rows, what), "", "0: not at all, 1: with the fleet")
    return figures


def _ran(code: str) -> str:
    program = [sys.executable, "-c", f"from bench.growth import make, tell; {code}"]
    return subprocess.run(program, check=True, env=os.environ, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    print(main())
