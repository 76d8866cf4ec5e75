"""Measures what a node costs a cell: memory and CPU of its agent's connections, and bytes of journal for its reports.

A served cell and agents that hold their long poll open, as real ones do, with heartbeats and posts over a second
connection. `BENCH_AGENTS` (2,000) sets how many. docs/scale.md computes a cell of 100,000 nodes from these figures.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from bench.figures import Figures
from bench.http_posts import beat, cpu_s
from bench.memory import seen
from bench.posts import a_fleet
from hostler.agent.collectors.inventory import NodeInventory
from hostler.agent.controller_client import POLL_S
from hostler.agent.inventory_news import InventoryNews
from hostler.agent.local_observation import LocalObservation
from hostler.agent.main import INVENTORY_S
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Observation, Severity
from hostler.journal.opening import open_journal
from hostler.ports import Batch
from tests.end_to_end.served_fleet import Layout, ServedFleet, a_served_fleet

AGENTS = int(os.environ.get("BENCH_AGENTS", "2000"))
POOLS = f"skus: {{this: {{gpus: 0}}}}\npools: {{train: {{sku: this, target: {AGENTS}, tenant: t}}}}\n"
ROUNDS = 2
RECORDS = 20_000
BATCH = 500


def rss_kib(pid: int) -> int:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def main() -> Figures:
    """Run it."""
    figures = Figures("what a node costs a cell")
    asyncio.run(_agents(figures))
    _journal(figures)
    return figures


async def _agents(figures: Figures) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with a_served_fleet(Path(folder), Layout(POOLS, [f"n{n}" for n in range(AGENTS)])) as fleet:
            await _hold(fleet, figures)


async def _hold(fleet: ServedFleet, figures: Figures) -> None:
    session, url, tokens, pid = fleet.session, fleet.server, list(fleet.tokens.values()), fleet.pid
    before_kib, free = rss_kib(pid), asyncio.Semaphore(50)

    async def polls(number: int) -> None:
        headers = {"Authorization": f"Bearer {tokens[number]}"}
        for _ in range(ROUNDS):
            query = {"node": f"n{number}", "wait_s": str(POLL_S)}
            async with session.get(f"{url}/v1/agent/operations", params=query, headers=headers) as answer:
                assert answer.status == 200, await answer.text()
                await answer.read()

    async def lives(number: int) -> None:
        headers = {"Authorization": f"Bearer {tokens[number]}", "Content-Type": "application/json"}
        async with (
            free,
            session.post(f"{url}/v1/agent/heartbeat", data=beat(number, 0), headers=headers) as answer,
        ):
            assert answer.status in (200, 204), await answer.text()

    began, cpu = time.monotonic(), cpu_s(pid)
    polling = [asyncio.create_task(polls(number)) for number in range(AGENTS)]
    await asyncio.sleep(POLL_S / 2)
    figures.add("an agent's held poll: memory", (rss_kib(pid) - before_kib) / AGENTS, "KiB", f"{AGENTS:,} agents")
    await asyncio.gather(*polling)
    spent = cpu_s(pid) - cpu
    note = f"with all that the server does beside it in {time.monotonic() - began:.0f} s"
    figures.add("a poll from asking to its end: CPU", spent / AGENTS / ROUNDS * 1e6, "µs", note)
    await asyncio.gather(*(lives(number) for number in range(AGENTS)))
    grown = (rss_kib(pid) - before_kib) / AGENTS
    figures.add("an agent after that, no poll held: memory", grown, "KiB", "connections are kept")


def _journal(figures: Figures) -> None:
    """Bytes on disk of each kind of thing that is told, through the journal's own tables and indexes."""
    now = datetime.now(UTC)
    line = "systemd[1]: Started Session 4 of User root."
    node = a_fleet(now, 1)[0].id

    def told(number: int) -> Observation:
        return Observation(node, "kernel_log", "agent", "s", number, boot_id="b", text=line, facility=3, received=now)

    def record(number: int) -> e.Record:
        held = Condition(
            f"{node}/gpu.xid/g{number}", "gpu.xid", node, Severity.warning, now, now, "observation", "hostler"
        )
        return e.Record(number, now, 1, f"record:{number}", e.ConditionRaised(held))

    kinds: dict[str, Callable[[int], Batch]] = {
        "an observation of one line": lambda n: Batch((), (told(n),)),
        "an inventory of 58 parts": lambda n: Batch((), (_numbered(seen(node, n, now), n),)),
        "a record of a condition": lambda n: Batch((record(n),)),
        "a day of looks at 58 parts": lambda n: Batch((), _day(node, n, now, held=True)),
        "a day of them for a controller that holds none": lambda n: Batch((), _day(node, n, now, held=False)),
    }
    for what, made in kinds.items():
        number = RECORDS // 200 if "a day" in what else RECORDS // 20 if "58" in what else RECORDS
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "journal.db"
            journal = open_journal(place)
            epoch = journal.acquire("bench")
            for start in range(1, number + 1, BATCH):
                ones = [made(n) for n in range(start, min(start + BATCH, number + 1))]
                records = tuple(r for one in ones for r in one.records)
                observations = tuple(o for one in ones for o in one.observations)
                journal.append(Batch(records, observations), epoch)
            journal.close()
            figures.add(f"{what}: on disk", place.stat().st_size / number, "B", f"of {number:,}")


def _numbered(one: Observation, number: int) -> Observation:
    return replace(one, sequence=number)


def _day(node: str, day: int, now: datetime, *, held: bool) -> tuple[Observation, ...]:
    """Measures an agent's reports of one day, after days like it. `held`: the controller holds what it was told."""
    news, parts, told = InventoryNews(), seen(node, 1, now), list[LocalObservation]()
    found = NodeInventory(parts.parts, parts.facts)
    for hour in range(48):
        news.held = found.digest() if held else ""
        looked = news.of(found, hour * INVENTORY_S)
        told += looked if hour >= 24 else ()
    kept = ((one.facts, one.parts, one.kind, one.text) for one in told)
    return tuple(
        Observation(node, kind, "agent", "s", day * 50 + place, "b", text=text, facts=facts, parts=parts, received=now)
        for place, (facts, parts, kind, text) in enumerate(kept)
    )
