"""The controller at 100,000 nodes: durable observations per second, latency, memory, start-up from a snapshot."""

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import uvloop
from msgspec.structs import replace

from bench.figures import Figures
from bench.posts import PER_POST, a_fleet, a_post
from hostler.core.policy.documents import parse
from hostler.core.state.events import NodeRegistered, Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.snapshot import dump, state_of
from hostler.journal.opening import open_journal
from hostler.ports import Batch, Journal, Snapshot
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.runtime.runner import Cell, keep_out_of_collections
from tests.postgres import PostgresServer

NODES = 100_000
POSTS = 40_000
AT_ONCE = 400
POLICY = Path(__file__).parent.parent / "src/hostler/core/policy/default_policy.yaml"
POOLS = "skus: {h100: {gpus: 8}}\npools: {train: {sku: h100, target: 100000, modes: {'*': act}}}\n"


def rss_mb() -> float:
    """The resident memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def fill(journal: Journal, now: datetime, size: int = NODES) -> None:
    """Register the fleet in the journal and leave a snapshot of it."""
    epoch = journal.acquire("bench")
    policy = POLICY.read_text().replace("agent_silence_s: 30", "agent_silence_s: 86400")  # nobody sends heartbeats here
    configuration = parse({"policy.yaml": policy, "pools.yaml": POOLS})
    fleet = Fleet()
    fleet.configurations.put("active", replace(configuration, activated=now))
    seq = 0
    nodes = a_fleet(now, size)
    for start in range(0, size, 2_000):
        records = []
        for node in nodes[start : start + 2_000]:
            seq += 1
            records.append(Record(seq, now, epoch, "intent:bench", NodeRegistered(node)))
            evolve(fleet, records[-1])
        journal.append(Batch(tuple(records)), epoch)
        fleet.merge()
    journal.save_snapshot(Snapshot(seq, journal.digest(), dump(state_of(fleet))))


async def storm(cell: Cell) -> tuple[float, list[float]]:
    """Post observations from many senders at once; seconds in all, and each post's latency."""
    latencies: list[float] = []
    work = iter(range(POSTS))

    async def sender() -> None:
        for number in work:
            node = f"c1-n{number % NODES:06d}"
            batch = a_post(number, NODES)
            began = time.perf_counter()
            await cell.observe(node, batch)
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(sender() for _ in range(AT_ONCE)))
    return time.perf_counter() - began, latencies


async def measure(place: str, figures: Figures, database: str, aim: int) -> None:
    """Start from the snapshot, then take the storm."""
    gc.set_threshold(*COLLECTIONS)  # as `serve` does, and its loop
    began = time.perf_counter()
    journal = open_journal(place)
    cell = Cell(journal, {}, loaded=keep_out_of_collections)
    await cell.start()
    figures.add(
        f"{database}: start-up from snapshot, 100,000 nodes", time.perf_counter() - began, "s", "until it decides"
    )
    assert len(cell.view.nodes) == NODES
    gc.collect()
    figures.add(f"{database}: controller RSS at rest, 100,000 nodes", rss_mb(), "MB", "aim < 600")
    seconds, latencies = await storm(cell)
    latencies.sort()
    rate = POSTS * PER_POST / seconds
    figures.add(f"{database}: durable observations", rate, "/s", f"aim ≥ {aim:,}; every tenth raises a condition")
    figures.add(f"{database}: post to durable, P50", latencies[len(latencies) // 2] * 1e3, "ms", f"{AT_ONCE} at once")
    figures.add(f"{database}: post to durable, P99", latencies[len(latencies) * 99 // 100] * 1e3, "ms")
    figures.add(f"{database}: records written", cell.view.cell.seq, "")
    figures.add(f"{database}: controller RSS after the storm", rss_mb(), "MB")
    await cell.stop()
    journal.close()


def main() -> Figures:
    """Fill and measure each journal in processes of their own, so that nothing else counts in their memory."""
    figures = Figures("controller")
    with tempfile.TemporaryDirectory() as directory:
        _apart("SQLite", str(Path(directory) / "journal.db"), 20_000, figures)
        server = PostgresServer(Path(directory))
        try:
            with server.database() as url:
                _apart("PostgreSQL", url, 10_000, figures)
        finally:
            server.close()
    return figures


def _apart(database: str, place: str, aim: int, figures: Figures) -> None:
    fills = f"j = open_journal({place!r}); fill(j, datetime.now(UTC)); j.close()"
    measures = f"print(measured({place!r}, {database!r}, {aim}))"
    _ran(fills)
    figures.rows += [tuple(row) for row in json.loads(_ran(measures))]


def measured(place: str, database: str, aim: int) -> str:
    """The figures of this journal as JSON."""
    figures = Figures("")
    uvloop.run(measure(place, figures, database, aim))
    return json.dumps(figures.rows)


def _ran(code: str) -> str:
    program = [sys.executable, "-c", f"from datetime import UTC; from bench.controller import *; {code}"]
    return subprocess.run(program, check=True, env=os.environ, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    print(main())
