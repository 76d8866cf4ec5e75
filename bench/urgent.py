"""An unrelated Xid 79 amid as many observations as a controller takes: until it is durable, with its plan.

400 senders post ten lines each as fast as they are answered; twenty times another node's agent posts one fault, which
it calls urgent. No HTTP is in it: `bench.storm` has that.
"""

import asyncio
import gc
import os
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.controller import fill
from bench.figures import Figures
from bench.posts import PER_POST, a_post
from hostler.core.state.model import Observation
from hostler.journal.opening import open_journal
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.runtime.runner import Cell, keep_out_of_collections

NODES, FAULTS, SENDERS = 5_000, 20, 400
BUSY = NODES - FAULTS
XID79 = "NVRM: Xid (PCI:0000:4c:00): 79, pid=1, name=python3, GPU has fallen off the bus."
WARM_S = 1.5


def main() -> Figures:
    """Fill a journal, and measure on it."""
    figures = Figures(f"an urgent fault amid {SENDERS} senders")
    with tempfile.TemporaryDirectory() as directory:
        place = str(Path(directory) / "journal.db")
        journal = open_journal(place)
        fill(journal, datetime.now(UTC), NODES)
        journal.close()
        uvloop.run(_measure(place, figures))
    return figures


async def _measure(place: str, figures: Figures) -> None:
    gc.set_threshold(*COLLECTIONS)  # as `serve` does
    journal = open_journal(place)
    cell = Cell(journal, {}, loaded=keep_out_of_collections)
    await cell.start()
    sent = [0] * SENDERS

    async def sender(number: int) -> None:
        at = number
        while True:
            await cell.observe(f"c1-n{at % BUSY:06d}", a_post(at, BUSY))
            sent[number] += PER_POST
            at += SENDERS

    sending = [asyncio.create_task(sender(number)) for number in range(SENDERS)]
    await asyncio.sleep(WARM_S)
    before, began, cpu = sum(sent), time.perf_counter(), time.process_time()
    took = await _faults(cell)
    seconds, spent, taken = time.perf_counter() - began, time.process_time() - cpu, sum(sent) - before
    for task in sending:
        task.cancel()
    await asyncio.gather(*sending, return_exceptions=True)
    await cell.stop()
    journal.close()
    figures.add("the fault durable after: P50", statistics.median(took) * 1e3, "ms", f"load {os.getloadavg()[0]:.1f}")
    figures.add("… longest", max(took) * 1e3, "ms", f"of {FAULTS}")
    figures.add("observations beside it", taken / seconds, "/s")
    figures.add("… CPU of each", spent / taken * 1e6, "µs")


async def _faults(cell: Cell) -> list[float]:
    took, chance = list[float](), random.Random(1)
    for number in range(BUSY, NODES):
        node, now = f"c1-n{number:06d}", datetime.now(UTC)
        seen = Observation(
            node, "kernel_log", "agent", "v", 1, boot_id=f"boot-{number}", text=XID79, facility=0, received=now
        )
        began = time.perf_counter()
        await cell.observe(node, (seen,), urgent=True)
        took.append(time.perf_counter() - began)
        await asyncio.sleep(chance.uniform(0.1, 0.4))
    return took
