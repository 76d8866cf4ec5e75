"""Measures a month's statement over many nodes: each page, and for how long it keeps the server's loop from others.

Run as `python -m bench.statements`. The handler is called as the server calls it, over a journal in SQLite in
which every node is registered, given to a pool, and has failed, been power-cycled and come back once in the month.
"""

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from bench.figures import Figures
from hostler.core.state import events as e
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Condition, Node, Severity
from hostler.journal.opening import open_journal
from hostler.ports import Batch
from hostler.runtime.garbage_collection import COLLECTIONS
from hostler.server.paging import Nodes
from hostler.server.routes import statements
from hostler.server.tokens import Grant, Identity, Role
from tests.kit import a_node, configuration, pool_document

SIZES = (10_000, 100_000)
BATCH = 1_000
MONTH = datetime(2026, 10, 1, tzinfo=UTC)
NOW = MONTH + timedelta(days=29)
PAGES_MOST = 20
"""Pages that are read of a statement; the others are as these."""
TENANTS = 50
"""Pools, each of a tenant of its own."""
FAILED = "gpu.ecc_uncorrectable"


def main() -> None:
    """Print the figures of each size."""
    gc.set_threshold(*COLLECTIONS)  # as `serve` does
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            print(measured(size, str(Path(folder, "journal.sqlite"))), flush=True)


def measured(size: int, place: str) -> Figures:
    """The figures of a cell of this size."""
    nodes = [_node(number) for number in range(size)]
    journal = open_journal(place)
    epoch, begun = journal.acquire("bench"), time.perf_counter()
    for some in _batched(_records(nodes)):
        journal.append(Batch(records=some), epoch)
    figures = Figures(f"statement of a month, {size:,} nodes")
    figures.add("records", journal.latest_seq(), "", f"written in {time.perf_counter() - begun:.0f} s")
    fleet = _fleet(nodes)
    gc.freeze()  # as a controller does once it has its fleet
    view = SimpleNamespace(fleet=fleet, cell=SimpleNamespace(journal=journal), now=lambda: NOW, nodes=Nodes())
    for who, limit in (("operator", 100), ("operator", 1_000), ("tenant", 1_000)):
        asyncio.run(_read(figures, view, who, limit))
    journal.close()
    return figures


def _batched(records: Iterator[e.Record]) -> Iterator[tuple[e.Record, ...]]:
    while some := tuple(islice(records, BATCH)):
        yield some


def _node(number: int) -> Node:
    place = f"{number % TENANTS:02}"
    node = a_node(f"n{number:06}", f"pool{place}")
    assert node.assignment is not None
    return replace(node, assignment=replace(node.assignment, tenant=f"tenant{place}"))


def _records(nodes: list[Node]) -> Iterator[e.Record]:
    numbers = count(1)
    for node in nodes:
        yield e.Record(next(numbers), MONTH - timedelta(days=60), 1, "clock", e.NodeRegistered(node))
    for number, node in enumerate(nodes):
        at = MONTH + timedelta(seconds=number * 20)
        for after_s, event in _repair(node, at):
            yield e.Record(next(numbers), at + timedelta(seconds=after_s), 1, "clock", event)


def _repair(node: Node, at: datetime) -> Iterator[tuple[int, e.Event]]:
    """A fault, what is done about it, and its end: as many records as a month has at published rates."""
    one = Condition(f"{node.id}/{FAILED}", FAILED, node.id, Severity.critical, at, at, "", "")
    yield 0, e.ConditionRaised(one)
    yield 60, e.OperationFinished(node.id, f"{node.id}/op/1", "cordon", "done")
    yield 400, e.BootObserved(node.id, f"{node.id}-b2")
    yield 3_600, e.OperationFinished(node.id, f"{node.id}/op/2", "uncordon", "done")
    yield 3_601, e.ConditionCleared(node.id, one.id, "gate", "proved")


def _fleet(nodes: list[Node]) -> Fleet:
    fleet = Fleet()
    pools = {f"pool{n:02}": pool_document(target=len(nodes), tenant=f"tenant{n:02}") for n in range(TENANTS)}
    fleet.configurations.put("active", configuration(pools))
    for node in nodes:
        fleet.put_node(node.id, node)
    fleet.merge()
    return fleet


async def _read(figures: Figures, view: SimpleNamespace, role: str, limit: int) -> None:
    """One whole statement, page by page, and how late the loop was meanwhile."""
    grant = Grant("t", Role.tenant, tenant="tenant07") if role == "tenant" else Grant("o", Role.operator)
    who = Identity("bench", grant)
    late = [0.0]
    going = asyncio.create_task(_watch(late))
    cursor, rows, pages = "", 0, list[float]()
    used, on_loop = time.process_time(), time.thread_time()
    while (cursor or not pages) and len(pages) < PAGES_MOST:
        begun = time.perf_counter()
        page = await cast("Any", statements.get_statement).fn(view, who, "2026-10", "", cursor, limit)
        pages.append(time.perf_counter() - begun)
        rows, cursor = rows + len(page.items), page.cursor
    used, on_loop = time.process_time() - used, time.thread_time() - on_loop
    going.cancel()
    of = f"{role}, pages of {limit:,}"
    figures.add(f"{of}: processor time of a row", used / rows * 1e3, "ms", f"{rows:,} rows in {len(pages)} pages")
    figures.add(f"{of}: on the loop of that, a page", on_loop / len(pages) * 1e3, "ms")
    figures.add(f"{of}: the slowest page", max(pages) * 1e3, "ms")
    figures.add(f"{of}: the loop late by at most", max(late) * 1e3, "ms")


async def _watch(late: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.002)
        late.append(time.perf_counter() - begun - 0.002)


if __name__ == "__main__":
    main()
