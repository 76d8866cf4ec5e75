"""Records that the journal on disk keeps when the machine fails, the disk fails or a person changes its files."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import event

from hostler.core.state.events import VERSION
from hostler.journal.codec import DIGEST_BYTES, UnknownEventError
from hostler.journal.memory import MemoryJournal
from hostler.journal.sql import SNAPSHOT_PART_BYTES
from hostler.journal.sqlite import SqliteDatabase, SqliteJournal
from hostler.ports import Batch, CorruptJournalError, FencedError, JournalError, RecordWindow, Snapshot
from tests.contract.journal_samples import START, boot, boots, observed
from tests.drawing import first_in_gate

BATCH = 40
WRITER = """
import resource
import sys
from tests.contract.journal_samples import boot, observed
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch, JournalError

def main(path, batch, bytes_max):
    if bytes_max:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, bytes_max))
    journal = SqliteJournal(path)
    print("ready", flush=True)
    epoch, last = journal.acquire("writer"), journal.latest_seq()
    while True:
        seqs = range(last + 1, last + 1 + batch)
        try:
            journal.append(Batch(
                records=tuple(boot(seq, epoch) for seq in seqs),
                observations=tuple(observed("n1", seq) for seq in seqs),
                cursors={"n1": ("s", seqs[-1])},
            ), epoch)
        except JournalError as error:
            print(f"failed {type(error).__name__} {error}", flush=True)
            return
        last = seqs[-1]
        print(last, flush=True)

main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def written(path: Path, last: int, snapshot_at: int = 0) -> None:
    """A closed journal of small records, with a snapshot where one is asked for."""
    journal = SqliteJournal(path)
    epoch = journal.acquire("a")
    if snapshot_at:
        journal.append(boots(1, snapshot_at), epoch)
        journal.save_snapshot(Snapshot(seq=snapshot_at, digest=journal.digest(), body=b"fleet"))
    journal.append(boots(snapshot_at + 1, last), epoch)
    journal.close()


def database_of(journal: SqliteJournal) -> SqliteDatabase:
    """The way behind a journal's back."""
    database = journal._database  # noqa: SLF001
    assert isinstance(database, SqliteDatabase)
    return database


def tamper(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement, values).rowcount == 1, "the test changes exactly one row"
    connection.close()


def flip(path: Path, seq: int, column: str = "body") -> None:
    """One bit of one stored value, behind the journal's back."""
    connection = sqlite3.connect(path)
    with connection:
        ((value,),) = connection.execute(f"SELECT {column} FROM records WHERE seq = ?", (seq,))
        flipped = bytes([value[0], value[1] ^ 1, *value[2:]])
        connection.execute(f"UPDATE records SET {column} = ? WHERE seq = ?", (flipped, seq))
    connection.close()


def consistent(journal: SqliteJournal, batch: int = BATCH) -> int:
    """The last record, once it is certain that only whole batches are there and the chain holds."""
    last = len(list(journal.records()))
    assert last % batch == 0
    assert journal.cursors() == ({"n1": ("s", last)} if last else {})
    assert len(journal.observations_of("n1", limit=10_000)) == min(last, 10_000)
    assert journal.observation(f"n1/s/{last + 1}") is None
    return last


# --- killed ---


@pytest.mark.parametrize("after_s", [0.02, 0.05, 0.1, 0.15, 0.3])
def test_a_killed_writer_leaves_whole_batches_and_all_it_acknowledged(path: Path, after_s: float) -> None:
    """Mutants: a transaction per table; synchronous=OFF is not caught here, only by pulling the plug."""
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(BATCH), "0"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    time.sleep(after_s)
    child.send_signal(signal.SIGKILL)
    acknowledged = [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.wait()
    child.stdout.close()
    journal = SqliteJournal(path)
    last = consistent(journal)
    assert last in (max(acknowledged, default=0), max(acknowledged, default=0) + BATCH)
    epoch = journal.acquire("next")
    journal.append(boots(last + 1, last + 3, epoch), epoch)
    assert journal.latest_seq() == last + 3
    journal.close()


# --- full ---


def run_writer(path: Path, bytes_max: int = 0) -> tuple[int, str]:
    """Append until it fails: the last record acknowledged, and what was said. No file may outgrow `bytes_max`."""
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path), str(BATCH), str(bytes_max)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    acknowledged = [int(line) for line in lines if line.isdigit()]
    return max(acknowledged, default=0), lines[-1] if lines else done.stderr


@pytest.mark.parametrize("kib", first_in_gate([333, 1024, 200, 256, 512, 700, 901, 2048], 2))
def test_a_full_disk_keeps_what_was_acknowledged_and_nothing_more(path: Path, kib: int) -> None:
    """Mutants: the batch is written in two transactions; the error of COMMIT is swallowed."""
    acknowledged, said = run_writer(path, kib * 1024)
    assert said.startswith("failed JournalError")
    assert "cannot be written, nothing of this is kept" in said
    journal = SqliteJournal(path)
    assert consistent(journal) == acknowledged
    epoch = journal.acquire("next")
    journal.append(boots(acknowledged + 1, acknowledged + 100, epoch), epoch)
    assert journal.latest_seq() == acknowledged + 100
    journal.close()


def test_a_full_filesystem_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False).returncode:
        pytest.skip("needs a mount of its own: run as root with CAP_SYS_ADMIN")
    try:
        acknowledged, said = run_writer(disk / "journal")
        assert said.startswith("failed JournalFullError")
        assert acknowledged > 0
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        journal = SqliteJournal(disk / "journal")
        assert consistent(journal) == acknowledged
        journal.close()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_the_same_journal_goes_on_when_there_is_room_again(path: Path) -> None:
    journal, twin = SqliteJournal(path), MemoryJournal()
    epoch = journal.acquire("a")
    twin.acquire("a")
    with database_of(journal).writing() as db:
        pages = db.exec_driver_sql("PRAGMA page_count").scalar_one()
        db.exec_driver_sql(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(JournalError, match="full"):
        journal.append(boots(1, 500), epoch)
    assert journal.latest_seq() == 0
    with database_of(journal).writing() as db:
        db.exec_driver_sql("PRAGMA max_page_count=1000000")
    for each in (journal, twin):
        each.append(boots(1, 500), epoch)
    assert journal.digest() == twin.digest()
    journal.close()


# --- tampered with ---


@pytest.mark.parametrize("seq", [6, 7, 10])
@pytest.mark.parametrize("column", ["body", "digest"])
def test_a_flipped_bit_behind_the_snapshot_stops_the_opening(path: Path, seq: int, column: str) -> None:
    """Mutant: only the last record is verified."""
    written(path, 10, snapshot_at=5)
    flip(path, seq, column)
    with pytest.raises(CorruptJournalError, match=rf"record {seq} is corrupt") as caught:
        SqliteJournal(path)
    assert caught.value.seq == seq


def test_a_flipped_bit_before_the_snapshot_is_found_by_reading(path: Path) -> None:
    written(path, 10, snapshot_at=5)
    flip(path, 3)
    journal = SqliteJournal(path)
    assert [r.seq for r in journal.records(after=5)] == [6, 7, 8, 9, 10]
    with pytest.raises(CorruptJournalError, match="record 3 is corrupt"):
        list(journal.records())
    journal.close()


def test_reading_cannot_start_at_a_record_that_is_gone(path: Path) -> None:
    written(path, 10, snapshot_at=5)
    tamper(path, "DELETE FROM records WHERE seq = 3")
    journal = SqliteJournal(path)
    with pytest.raises(CorruptJournalError, match="record 3 is corrupt: it is missing"):
        list(journal.records(after=3))
    journal.close()


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("DELETE FROM records WHERE seq = 7", 7),
        ("UPDATE records SET at = at + 1 WHERE seq = 7", 7),
        ("UPDATE records SET epoch = 9 WHERE seq = 7", 7),
        ("UPDATE records SET cause = 'someone else' WHERE seq = 7", 7),
        ("UPDATE records SET cause = CAST(x'ff' AS TEXT) WHERE seq = 7", 7),
        ("UPDATE records SET seq = 70 WHERE seq = 10", 10),
        ("UPDATE records SET body = body || ' ' WHERE seq = 7", 7),
        ("UPDATE snapshots SET digest = x'00112233445566778899aabbccddeeff'", 5),
    ],
)
def test_any_change_of_a_record_is_named(path: Path, statement: str, seq: int) -> None:
    """Mutant: the digest covers the body alone."""
    written(path, 10, snapshot_at=5)
    tamper(path, statement)
    with pytest.raises(CorruptJournalError) as caught:
        SqliteJournal(path)
    assert caught.value.seq == seq


def test_a_tail_cut_off_behind_a_snapshot_is_noticed(path: Path) -> None:
    written(path, 10, snapshot_at=10)
    tamper(path, "DELETE FROM records WHERE seq = 10")
    with pytest.raises(CorruptJournalError, match="record 10 is corrupt: it is missing, a snapshot"):
        SqliteJournal(path)


def test_a_damaged_page_is_an_error_of_the_journal(path: Path) -> None:
    written(path, 3_000)
    with path.open("r+b") as file:
        file.seek(40 * 4096)
        file.write(os.urandom(20 * 4096))
    with pytest.raises(JournalError, match=r"corrupt|cannot be"):
        SqliteJournal(path)


@pytest.mark.parametrize("content", [b"no database, a letter " * 1_000, b"SQLite format 3\0" + bytes(100)])
def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(JournalError):
        SqliteJournal(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title)")
    connection.close()
    with pytest.raises(JournalError, match="another program"):
        SqliteJournal(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("songs",)]
    connection.close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        SqliteJournal(tmp_path / "nowhere" / "journal")


@pytest.mark.parametrize(
    ("name", "version", "why"),
    [("node_teleported", VERSION, "does not know the name"), ("boot_observed", VERSION + 1, "reads up to version")],
)
def test_an_unknown_event_refuses_to_start(path: Path, name: str, version: int, why: str) -> None:
    """Mutant: a record that cannot be read is skipped."""
    written(path, 3)
    relink(path, name, version)
    with pytest.raises(UnknownEventError, match=rf"record 3 is '{name}' version {version}: .*{why}") as caught:
        SqliteJournal(path)
    assert caught.value.seq == 3


def relink(path: Path, name: str, version: int) -> None:
    """Record 3 rewritten with a right digest, as a newer Hostler would have stored it."""
    connection = sqlite3.connect(path)
    with connection:
        ((before,),) = connection.execute("SELECT digest FROM records WHERE seq = 2")
        (row,) = connection.execute("SELECT seq, at, epoch, cause, name, version, body FROM records WHERE seq = 3")
        changed = (*row[:4], name, version, row[6])
        digest = blake2b(before + msgspec.msgpack.encode(changed), digest_size=DIGEST_BYTES).digest()
        connection.execute(
            "UPDATE records SET name = ?, version = ?, digest = ? WHERE seq = 3", (name, version, digest)
        )
    connection.close()


# --- snapshots ---


def test_a_snapshot_with_a_damaged_body_is_not_used(path: Path) -> None:
    written(path, 10, snapshot_at=5)
    journal = SqliteJournal(path)
    journal.save_snapshot(Snapshot(seq=10, digest=journal.digest(), body=b"newer"))
    tamper(path, "UPDATE snapshot_parts SET body = x'00' WHERE seq = 10")
    assert (found := journal.snapshot()) is not None
    assert (found.seq, found.body) == (5, b"fleet")
    journal.save_snapshot(Snapshot(seq=10, digest=journal.digest(), body=b"again"))
    assert (found := journal.snapshot()) is not None
    assert found.body == b"again"
    journal.close()


def test_a_snapshot_of_another_version_is_not_used(path: Path) -> None:
    written(path, 10, snapshot_at=5)
    tamper(path, "UPDATE snapshots SET version = 99")
    journal = SqliteJournal(path)
    assert journal.snapshot() is None
    assert len(list(journal.records())) == 10
    journal.close()


def test_two_snapshots_are_kept_and_pieces_of_a_third_swept(path: Path) -> None:
    journal = SqliteJournal(path)
    epoch = journal.acquire("a")
    for last in range(1, 6):
        journal.append(boots(last, last), epoch)
        journal.save_snapshot(Snapshot(seq=last, digest=journal.digest(), body=bytes(2 * SNAPSHOT_PART_BYTES + last)))
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT seq FROM snapshots ORDER BY seq").fetchall() == [(4,), (5,)]
    assert connection.execute("SELECT seq, count(*) FROM snapshot_parts GROUP BY seq").fetchall() == [(4, 3), (5, 3)]
    connection.close()
    journal.close()


def test_appends_go_on_while_a_snapshot_is_written(path: Path) -> None:
    """Mutants: the snapshot is written in one transaction; one plain lock, its pieces then overtake waiting appends."""
    journal = SqliteJournal(path)
    epoch = journal.acquire("a")
    journal.append(boots(1, 1), epoch)
    snapshot = Snapshot(seq=1, digest=journal.digest(), body=os.urandom(100 * SNAPSHOT_PART_BYTES))
    watch = sqlite3.connect(path)
    pieces = set()
    with ThreadPoolExecutor(1) as pool:
        saved = pool.submit(journal.save_snapshot, snapshot)
        last = 1
        while not saved.done():
            last += 1
            journal.append(boots(last, last), epoch)
            pieces |= set(watch.execute("SELECT count(*) FROM snapshot_parts"))
        saved.result()
    watch.close()
    assert len(pieces) > 85, "appends saw the snapshot grow"
    assert journal.snapshot() == snapshot
    journal.close()


# --- several readers and writers ---


def test_readers_in_other_threads_see_whole_batches_while_the_writer_appends(path: Path) -> None:
    journal = SqliteJournal(path)
    epoch = journal.acquire("a")

    def read() -> int:
        most = 0
        while most < 60 * BATCH:
            last = len(journal.history("n1", limit=10_000)) * 10
            assert last % BATCH == 0
            assert last >= most, "a reader never goes back"
            most = last
        return most

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        for first in range(1, 60 * BATCH, BATCH):
            journal.append(boots(first, first + BATCH - 1), epoch)
        assert [reader.result(timeout=60) for reader in readers] == [60 * BATCH] * 3
    journal.close()


def test_two_controllers_on_one_file_are_fenced(path: Path) -> None:
    first, second = SqliteJournal(path), SqliteJournal(path)
    old = first.acquire("first")
    first.append(boots(1, 3, old), old)
    new = second.acquire("second")
    with pytest.raises(FencedError, match="second holds epoch 2"):
        first.append(boots(4, 4, old), old)
    second.append(boots(4, 6, new), new)
    assert [r.epoch for r in first.records()] == [1, 1, 1, 2, 2, 2]
    assert first.acquire("first") == 3
    first.append(boots(7, 7, 3), 3)
    first.close()
    second.close()


def test_an_append_waits_for_another_writer_and_then_succeeds(path: Path) -> None:
    """Mutant: a deferred BEGIN, whose reading of the lease is stale once it may write."""
    journal = SqliteJournal(path)
    epoch = journal.acquire("a")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(journal.append, boots(1, 3), epoch)
        time.sleep(0.1)
        other.execute("INSERT INTO cursors VALUES ('n', 's', 1)")
        other.execute("COMMIT")
        appended.result(timeout=60)
    other.close()
    assert (journal.latest_seq(), journal.cursors()) == (3, {"n": ("s", 1)})
    journal.close()


def test_every_acquire_gets_its_own_epoch(path: Path) -> None:
    journals = [SqliteJournal(path) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        epochs = list(pool.map(lambda journal: [journal.acquire("a") for _ in range(10)], journals))
    assert sorted(epoch for each in epochs for epoch in each) == list(range(1, 41))
    for journal in journals:
        journal.close()


def test_opening_again_goes_on_where_it_ended(path: Path) -> None:
    written(path, 10, snapshot_at=5)
    for last in (10, 11):
        journal = SqliteJournal(path)
        assert journal.latest_seq() == last
        epoch = journal.acquire("a")
        journal.append(Batch(records=(boot(last + 1, epoch),), observations=(observed("n1", 1),)), epoch)
        journal.close()
    journal = SqliteJournal(path)
    assert journal.observation("n1/s/1") == observed("n1", 1)
    journal.close()


def test_a_closed_journal_leaves_one_file(path: Path) -> None:
    written(path, 10)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_no_question_walks_a_whole_table(path: Path) -> None:
    """Mutant: first_since ordered by seq, which reads the log from its start."""
    journal = SqliteJournal(path)
    asked: list[tuple[str, tuple[object, ...]]] = []
    note = lambda _c, _cursor, statement, values, *_: asked.append((statement, values))  # noqa: E731
    event.listen(database_of(journal)._readers, "before_cursor_execute", note)  # noqa: SLF001 - what it asks is the subject
    journal.history("n1", before=5)
    journal.window(RecordWindow(3, 10, name="boot"), 10)
    journal.window(RecordWindow(3, 10, "n1", oldest_first=True), 10)
    journal.first_since(START)
    journal.observations_of("n1", START)
    journal.observation("n1/s/1")
    list(journal.records(after=0))
    event.remove(database_of(journal)._readers, "before_cursor_execute", note)  # noqa: SLF001
    filtered = [(statement, values) for statement, values in asked if "WHERE" in statement]
    assert len(filtered) >= 6
    connection = sqlite3.connect(path)
    for statement, values in filtered:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert not any("SCAN" in step for step in plan), statement
    connection.close()
    journal.close()
