"""Takeovers: how long a cell is without anybody who decides, over kills and orderly ends, and at 100,000 nodes.

Two controllers as processes of their own over one PostgreSQL, at the default lease. A takeover begins with the signal
and ends when the other has answered a request for a hold, which is durable then.
"""

import asyncio
import re
import signal
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from bench.controller import NODES, POLICY, POOLS
from bench.figures import Figures
from bench.posts import a_fleet
from hostler.core.policy.documents import parse
from hostler.core.state.events import ConfigActivated, Event, NodeRegistered, Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.snapshot import dump, state_of
from hostler.journal.opening import open_journal
from hostler.ports import Batch, Snapshot
from hostler.runtime.lease_validity import LeaseTerms
from tests.end_to_end.standby_world import Cluster, Process, cluster, well
from tests.postgres import PostgresServer

PATIENT = re.sub(r"(?m)^  agent_silence_s: .*$", "  agent_silence_s: 3600", POLICY.read_text())
"""There are no agents here that could be heard."""

KILLS = 20
BATCH = 2_000


def fill(place: str, nodes: int = NODES) -> int:
    """Write a fleet of so many nodes in production with its snapshot, and resign; the last record's number."""
    journal, now, fleet = open_journal(place), datetime.now(UTC), Fleet()
    epoch = journal.acquire("bench")
    events: list[Event] = [ConfigActivated(parse({"policy.yaml": PATIENT, "pools.yaml": POOLS}), {}, "bench")]
    serials = (replace(node, bindings=node.bindings[:1]) for node in a_fleet(now, nodes))  # without BMCs
    events += [NodeRegistered(node) for node in serials]
    for start in range(0, len(events), BATCH):
        chunk = enumerate(events[start : start + BATCH], start + 1)
        records = tuple(Record(seq, now, epoch, "bench", event) for seq, event in chunk)
        journal.append(Batch(records), epoch)
        for record in records:
            evolve(fleet, record)
        fleet.merge()
    journal.save_snapshot(Snapshot(len(events), journal.digest(), dump(state_of(fleet))))
    journal.resign(epoch)
    journal.close()
    return len(events)


async def taken_over(cell: Cluster, how: signal.Signals, number: int) -> float:
    """Seconds from the signal until the other has durably answered; both are well again afterwards."""
    old = await cell.active()
    other = next(process for process in cell.processes if process is not old)
    began = time.monotonic()
    old.signal(how)
    body = {"act": {"verb": "hold"}, "target": f"rack:far-{how}-{number}", "reason": "a benchmark"}
    while (await other.call("POST", "/v1/intents", json=body, timeout_s=5.0))[0] != 200:  # noqa: ASYNC110 - no bell
        await asyncio.sleep(0.02)
    took = time.monotonic() - began
    await old.ended()
    await again(old, cell)
    return took


async def again(process: Process, cell: Cluster) -> None:
    """Start it once more, and wait until it follows."""
    await process.start()
    await cell.until(lambda said: len(said) == len(cell.processes) and well(said), "both well again")


async def kills(place: str, directory: Path, figures: Figures) -> None:
    """Twenty kills and as many orderly ends of an empty cell."""
    async with cluster(directory, place, lease_s=LeaseTerms().lease_s) as cell:
        for how, what in ((signal.SIGKILL, "SIGKILL"), (signal.SIGTERM, "SIGTERM")):
            took = [await taken_over(cell, how, number) for number in range(KILLS)]
            figures.add(f"takeover after {what}, P50 of {KILLS}", statistics.median(took), "s")
            figures.add(f"takeover after {what}, longest", max(took), "s")


async def whole_fleet(place: str, directory: Path, figures: Figures) -> None:
    """One kill with 100,000 nodes; what is recorded after it."""
    await asyncio.to_thread(fill, place)
    async with cluster(directory, place, lease_s=LeaseTerms().lease_s, config={}) as cell:
        before = cell.journal.last()
        figures.add(f"takeover after SIGKILL, {NODES:,} nodes", await taken_over(cell, signal.SIGKILL, 0), "s")
        seen = [record.name for record in cell.journal.records(before)]
        figures.add("conditions raised by it", seen.count("condition_raised"), "", "aim 0")
        figures.add("plans recorded by it", seen.count("plan_recorded"), "", "aim 0")


async def measure(figures: Figures) -> None:
    """Measure each on a database of its own."""
    with tempfile.TemporaryDirectory() as cache:
        server = PostgresServer(Path(cache))
        try:
            for run in (kills, whole_fleet):
                with server.database() as place, tempfile.TemporaryDirectory() as directory:
                    await run(place, Path(directory), figures)
                print(figures, flush=True)
        finally:
            server.close()


def main() -> None:
    """Measure everything, and print each as it is there."""
    asyncio.run(measure(Figures("takeover")))


if __name__ == "__main__":
    main()
