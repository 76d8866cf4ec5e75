"""Measures what the journals in SQLite and PostgreSQL take and give, in batches of 1,000.

Run as `python -m bench.journal [FOLDER]`. Every batch is durable (SQLite: WAL, synchronous=FULL; PostgreSQL: fsync
and synchronous_commit on, a server of its own on this host) before the next begins. Figures depend on the disk's
fsync and on how the senders mix: a batch from 1,000 different nodes of a large cell touches 1,000 pages of an index,
one of agents' posts of ten observations each touches 100.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hostler.core.state.events import ConditionRaised, Event, OperationFinished, PhaseChanged, Record, WaitingChanged
from hostler.core.state.model import Blocker, Condition, Evidence, Observation, Phase, Severity, Waiting
from hostler.core.state.ways_out import observed
from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import open_journal
from hostler.journal.sql import SqlJournal
from hostler.ports import Batch, Snapshot
from tests.postgres import PostgresServer

NODES = 100_000
BATCH = 1_000
SECONDS = 6.0
START = datetime(2025, 1, 1, tzinfo=UTC)
LINE = "NVRM: Xid (PCI:0000:4e:00): 79, pid=4242, name=python, GPU has fallen off the bus."


def main() -> None:
    """Print one line per figure."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        print("SQLite")
        _measure(lambda name: str(Path(folder, name)))
        server = PostgresServer(Path(folder))
        try:
            with ExitStack() as databases:
                print("PostgreSQL")
                _measure(lambda _: databases.enter_context(server.database()))
        finally:
            server.close()
    print(f"memory\n  events                    {_rate(MemoryJournal(), _events()):10,.0f} /s")


def _measure(new_place: Callable[[str], str]) -> None:
    for per_post in (10, 1):
        journal = open_journal(new_place(f"observations-{per_post}"))
        rate = _rate(journal, _observations(per_post))
        print(f"  observations, posts of {per_post:2} {rate:10,.0f} /s")
        journal.close()
    place = new_place("events")
    journal = open_journal(place)
    print(f"  events                    {_rate(journal, _events()):10,.0f} /s")
    _read(journal, place)


def _rate(journal: SqlJournal | MemoryJournal, batches: Iterator[Batch]) -> float:
    """Appended per second while SECONDS pass; making the batches does not count."""
    epoch, spent, done = journal.acquire("bench"), 0.0, 0
    while spent < SECONDS:
        batch = next(batches)
        start = time.perf_counter()
        journal.append(batch, epoch)
        spent += time.perf_counter() - start
        done += BATCH
    return done / spent


def _read(journal: SqlJournal, place: str) -> None:
    total = journal.latest_seq()
    spent = _spent(lambda: sum(1 for _ in journal.records()))
    print(f"  records read and verified {total / spent:10,.0f} /s")
    spent = _spent(lambda: [journal.history(_node(i)) for i in range(1_000)])
    print(f"  histories of a node       {1_000 / spent:10,.0f} /s")
    snapshot = Snapshot(seq=total, digest=journal.digest(), body=bytes(45_000_000))
    print(f"  snapshot of 45 MB written {_spent(lambda: journal.save_snapshot(snapshot)):10.3f} s")
    journal.close()
    print(f"  opening behind a snapshot {_spent(lambda: open_journal(place).close()):10.3f} s")


def _spent(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _node(i: int) -> str:
    return f"cell1-r{i // 100:04d}-n{i % 100:02d}"


def _observations(per_post: int) -> Iterator[Batch]:
    draw, sequences = random.Random(1), [0] * NODES
    now = START
    while True:
        now += timedelta(milliseconds=16)
        seen: list[Observation] = []
        cursors = {}
        while len(seen) < BATCH:
            i = draw.randrange(NODES)
            for _ in range(per_post):
                sequences[i] += 1
                seen.append(_observation(_node(i), sequences[i], now))
            cursors[_node(i)] = ("0f3a9c1b77", sequences[i])
        yield Batch(observations=tuple(seen), cursors=cursors)


def _observation(node: str, sequence: int, now: datetime) -> Observation:
    return Observation(
        node=node,
        kind="kernel_log",
        source="agent",
        spool="0f3a9c1b77",
        sequence=sequence,
        boot_id="5f0c9f0e-8a53-4bb8-9a4e-1e2f3a4b5c6d",
        text=LINE,
        facility=0,
        facts={"xid": 79, "gpu": "0000:4e:00"},
        received=now,
    )


def _events() -> Iterator[Batch]:
    draw, seq, now = random.Random(2), 0, START
    while True:
        now += timedelta(milliseconds=30)
        records = []
        for _ in range(BATCH):
            seq += 1
            node = _node(draw.randrange(NODES))
            records.append(
                Record(seq=seq, at=now, epoch=1, cause=f"{node}/0f3a9c1b77/{seq}", event=_event(node, seq, now))
            )
        yield Batch(records=tuple(records))


def _event(node: str, i: int, now: datetime) -> Event:
    match i % 4:
        case 0:
            return ConditionRaised(condition=_condition(node, now))
        case 1:
            return PhaseChanged(node=node, before=Phase.production, after=Phase.triage, reason="gpu.fallen_off_bus")
        case 2:
            return OperationFinished(node=node, operation=f"{node}/op/{i}", kind="power_off", result="done")
        case _:
            blocker = Blocker(
                kind="budget", name="pool", text="pool train: 4 of 4 nodes disrupted", ways=observed("one returns")
            )
            return WaitingChanged(node=node, waiting=Waiting(what="power_cycle", since=now, blockers=(blocker,)))


def _condition(node: str, now: datetime) -> Condition:
    evidence = Evidence(at=now, source="kernel_log", text=LINE, observation=f"{node}/0f3a9c1b77/7", facts={"xid": 79})
    return Condition(
        id=f"{node}/gpu.fallen_off_bus",
        type="gpu.fallen_off_bus",
        node=node,
        severity=Severity.critical,
        since=now,
        last_seen=now,
        clears="remedy",
        owner="diagnose",
        part="1652923012345",
        evidence=(evidence,),
    )


if __name__ == "__main__":
    main()
