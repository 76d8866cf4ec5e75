"""The spool: contiguous, durable before `append` returns, bounded, and never silent about what it could not keep."""

import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.agent.local_observation import LocalObservation, Rank
from hostler.agent.spool import KEEP_ACKNOWLEDGED_S, MARK_EVERY_S, Spool, Spooled, SpoolLimits
from hostler.agent.spool_file import is_refusal

WRITER = """
import itertools, sys
from pathlib import Path
from hostler.agent.local_observation import LocalObservation
from hostler.agent.spool import Spool
spool = Spool(Path(sys.argv[1]), "b", lambda: 1.0, lambda: "id")
for n in itertools.count(int(sys.argv[2])):
    seen = [LocalObservation("kernel_log", 1.0, text=f"{n}.{part}") for part in range(3)]
    spool.append(seen, ("log", str(n).encode()))
    print(n, flush=True)
"""


class World:
    """A clock and ids that a test turns by hand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now_s = 100.0
        self.ids = count(1)
        self.opened: list[Spool] = []

    def open(self, boot_id: str = "b", **limits: int) -> Spool:
        bounds = replace(SpoolLimits(), **limits)
        made = Spool(self.directory, boot_id, lambda: self.now_s, lambda: f"id{next(self.ids)}", bounds)
        self.opened.append(made)
        return made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for spool in made.opened:
        with suppress(sqlite3.ProgrammingError):  # closed already
            spool.close()


def line(text: str, rank: Rank = Rank.notable, seen_s: float = 100.0) -> LocalObservation:
    return LocalObservation("kernel_log", seen_s, rank, text)


def everything(spool: Spool) -> list[Spooled]:
    return spool.pending(100_000, 1 << 30)


def texts(spool: Spool) -> list[str]:
    return [item.observation.text for item in everything(spool)]


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process can grow: what a full disk does to SQLite."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_appended_is_there_after_reopening(world: World) -> None:
    spool = world.open()
    spool.append([line("a"), line("b")], ("log", b"7"))
    spool.acknowledge(1)
    spool.close()
    again = world.open()
    assert (again.id, again.acknowledged, texts(again), again.cursor("log")) == ("id1", 1, ["b"], b"7")


def test_kill_9_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Mutant: `synchronous=OFF` survives this (the page cache lives on), a commit after the answer does not."""
    draw, began = random.Random(4), 0
    for _ in range(12):
        argv = [sys.executable, "-c", WRITER, str(tmp_path), str(began)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            confirmed = [int(writer.stdout.readline()) for _ in range(draw.randint(1, 40))][-1]
            writer.kill()
        spool = Spool(tmp_path, "b", lambda: 1.0, lambda: "id")
        items = everything(spool)
        spool.close()
        began = int(spool.cursor("log") or b"-1") + 1
        assert began > confirmed
        assert [item.sequence for item in items] == list(range(1, len(items) + 1))
        assert [item.observation.text for item in items] == [f"{n}.{part}" for n in range(began) for part in range(3)]


def test_age_is_computed_when_asked_and_grows_across_a_boot(world: World) -> None:
    spool = world.open()
    spool.append([line("old", seen_s=60.0), line("last", seen_s=90.0)])
    world.now_s = 130.0
    assert [item.age_s for item in everything(spool)] == [70.0, 40.0]
    spool.close()
    world.now_s = 12.0
    assert [(item.boot_id, item.age_s) for item in everything(world.open("b2"))] == [("b", 42.0), ("b", 12.0)]


def test_a_controller_that_fell_back_gets_the_last_day_again(world: World) -> None:
    spool = world.open()
    spool.append([line("a"), line("b"), line("c")])
    spool.acknowledge(3)
    assert texts(spool) == []
    spool.acknowledge(1)
    assert texts(spool) == ["b", "c"]
    spool.acknowledge(0)
    assert (spool.id, texts(spool)) == ("id1", ["a", "b", "c"]), "all is held still: nothing is lost, no new spool"


def test_acknowledged_observations_go_after_a_day(world: World) -> None:
    spool = world.open()
    spool.append([line("a")])
    spool.acknowledge(1)
    world.now_s += KEEP_ACKNOWLEDGED_S + MARK_EVERY_S + 1
    spool.append([line("b"), line("c")])
    spool.acknowledge(2)
    spool.acknowledge(0)
    lost = [item.observation for item in everything(spool) if item.observation.kind == "agent"]
    assert [seen.facts["lost"] for seen in lost] == [1]
    assert (spool.id, texts(spool)[:2]) == ("id2", ["b", "c"])


def test_over_its_size_the_oldest_acknowledged_go_first(world: World) -> None:
    spool = world.open(max_bytes=20_000)
    for n in range(200):
        spool.append([line(f"{n:0200d}")])
        spool.acknowledge(n + 1)
    spool.acknowledge(195)
    assert len(everything(spool)) == 5
    database = sqlite3.connect(world.directory / "spool.sqlite")
    assert database.execute("SELECT count(*) FROM rows").fetchone()[0] < 90
    database.close()


def test_full_of_unacknowledged_it_refuses_the_lowest_rank_first_and_counts(world: World) -> None:
    """Mutant: refusals are counted in memory only, and a crash forgets them."""
    spool = world.open(max_bytes=40_000)
    for n in range(300):
        spool.append([line(f"r{n}", Rank.routine)])
    for n in range(10):
        spool.append([line(f"u{n}", Rank.urgent)])
    kept = texts(spool)
    refused = 300 - sum(text.startswith("r") for text in kept)
    assert sum(text.startswith("u") for text in kept) == 10
    assert sum("refused and counted" in text for text in kept) == 1
    assert (refused > 100, spool.refused) == (True, refused)
    spool.close()
    spool = world.open(max_bytes=40_000)
    spool.acknowledge(spool.newest)
    (told,) = everything(spool)
    assert told.observation.facts == {"event": "spool_overflow", "lost": refused, "routine": refused}
    assert spool.refused == 0


def test_nothing_unacknowledged_is_ever_evicted(world: World) -> None:
    """Mutant: eviction looks at the size alone."""
    spool = world.open(max_bytes=20_000)
    for n in range(300):
        spool.append([line(f"u{n}", Rank.urgent)])
    items = everything(spool)
    assert [item.sequence for item in items] == list(range(1, spool.newest + 1))
    assert spool.refused == 300 - sum(item.observation.text.startswith("u") for item in items) > 100


def test_while_the_disk_refuses_observations_live_in_memory_and_are_written_later(world: World) -> None:
    spool = world.open()
    spool.append([line("before")])
    with full_disk():
        spool.append([line("during")])
        spool.append([line("during too")])
        assert spool.in_memory == 3
        assert texts(spool)[:2] == ["before", "during"]
    spool.append([line("after")])
    assert spool.in_memory == 0
    spool.close()
    items = everything(world.open())
    assert [item.sequence for item in items] == list(range(1, len(items) + 1))
    said = [item.observation.facts.get("event") for item in items if item.observation.kind == "agent"]
    assert said == ["collector_failed", "collector_started"]


def test_memory_is_bounded_too(world: World) -> None:
    spool = world.open(max_memory=100)
    with full_disk():
        for n in range(500):
            spool.append([line(f"{n}")])
        assert spool.in_memory == 81, "a notable one takes four fifths at most, and the refusal is said"
        assert spool.refused == 500 - 79


def test_numbers_that_died_in_memory_are_never_given_out_again(world: World) -> None:
    """Mutant: `hello` believes the spool, new sightings take numbers the controller has, and it drops them."""
    spool = world.open()
    spool.append([line("a")])
    with full_disk():
        spool.append([line("seen by the controller, then lost")])
        spool.acknowledge(3)
    # the process dies here
    again = world.open()
    again.append([line("new")])
    assert again.hello(3)
    assert again.id != spool.id
    assert texts(again)[0] == "new"
    assert [item.sequence for item in everything(again)] == [1, 2]
    assert not again.hello(9)
    spool.close()


def test_what_only_memory_held_is_in_the_new_spool_once(world: World) -> None:
    """Mutant: memory is kept when what it held has been numbered anew on disk."""
    spool = world.open()
    with full_disk():
        spool.append([line("new")])
        assert spool.in_memory > 0
    assert spool.hello(5)
    assert spool.in_memory == 0
    spool.append([line("after")])
    items = everything(spool)
    assert [item.sequence for item in items] == list(range(1, spool.newest + 1))
    assert texts(spool).count("new") == 1


def test_a_spool_that_cannot_be_read_is_put_aside_and_said(world: World) -> None:
    world.open().close()
    (world.directory / "spool.sqlite").write_bytes(b"not a database at all" * 400)
    (world.directory / "spool.sqlite-wal").unlink(missing_ok=True)
    spool = world.open()
    assert spool.id == "id2"
    assert "unreadable" in texts(spool)[0]
    assert (world.directory / "unreadable-spool.sqlite").exists()


def test_a_damaged_row_keeps_its_number_and_is_said(world: World) -> None:
    spool = world.open()
    spool.append([line("a"), line("b")])
    spool.close()
    database = sqlite3.connect(world.directory / "spool.sqlite")
    (body,) = database.execute("SELECT body FROM rows WHERE sequence = 1").fetchone()
    database.execute("UPDATE rows SET body = ? WHERE sequence = 1", (body.replace(b'"a"', b'"z"'),))
    database.commit()
    database.close()
    first, second = everything(world.open())
    assert (first.sequence, first.observation.facts["lost"], second.observation.text) == (1, 1, "b")


def test_a_batch_is_bounded_but_never_empty(world: World) -> None:
    spool = world.open()
    spool.append([line("x" * 1000) for _ in range(10)])
    assert len(spool.pending(100, 1)) == 1
    assert len(spool.pending(100, 3500)) == 2
    assert len(spool.pending(4, 1 << 20)) == 4


def test_nothing_is_left_open(world: World) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    spool = world.open()
    spool.append([line("a")])
    spool.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_disk_that_is_full_from_the_start_is_said_and_what_it_holds_goes_first_once_it_takes_writes(
    world: World,
) -> None:
    """Mutants: it cannot be opened, and the agent ends; what is on it is forgotten, or numbered like what is in memory;
    it is looked at in the midst of a send; what was acknowledged comes again.
    """
    spool = world.open()
    spool.append([line("sent"), line("old")], ("log", b"1"))
    spool.acknowledge(1)
    spool.close()
    with full_disk():
        again = world.open()
        assert (again.id, again.waiting) == ("id2", 0), "what the disk knows is not known"
        again.append([line("while full", Rank.urgent), line("also")], ("ports", b"2"))
        assert texts(again) == ["while full", "also", "the disk refuses: sightings are in memory only"]
        again.acknowledge(1)
        again.recover()
        assert texts(again) == ["also", "the disk refuses: sightings are in memory only"]
    assert texts(again) == ["also", "the disk refuses: sightings are in memory only"], "nobody has looked yet"
    again.recover()
    assert texts(again) == ["old", "also", "the disk refuses: sightings are in memory only", "spool works"]
    assert [item.sequence for item in everything(again)] == [1, 2, 3, 4]
    assert (again.id, again.acknowledged, again.in_memory) == ("id3", 0, 0)
    assert (again.cursor("log"), again.cursor("ports")) == (b"1", b"2")
    again.acknowledge(2)
    again.append([line("after")])
    again.close()
    reopened = world.open()
    assert (reopened.id, reopened.acknowledged) == ("id3", 2)
    assert texts(reopened)[-1] == "after"


def test_a_full_disk_in_which_nothing_was_seen_hurries_nobody(world: World) -> None:
    """Mutant: once the disk takes writes everything is as urgent as a fault."""
    with full_disk():
        spool = world.open()
    spool.recover()
    assert (spool.in_memory, spool.newest_urgent) == (0, 0)


def test_a_file_that_another_process_has_is_no_full_disk(world: World) -> None:
    """Mutant: every error of the start counts as a full disk; two agents would then tell the same twice."""
    world.open().close()
    path = world.directory / "spool.sqlite"
    one, other = (sqlite3.connect(path, isolation_level=None, timeout=0.0) for _ in range(2))
    one.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(sqlite3.OperationalError, match="locked") as raised:
            other.execute("BEGIN EXCLUSIVE")
    finally:
        one.close()
        other.close()
    assert not is_refusal(raised.value)
