"""Records that the journal keeps when its server, or the way to it, goes."""

import contextlib
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, Table

from hostler.journal import postgres
from hostler.journal.database import Values
from hostler.journal.memory import MemoryJournal
from hostler.journal.postgres import PATIENCE_S, PostgresDatabase, PostgresJournal
from hostler.ports import Batch, FencedError, JournalError, Lease, Snapshot
from tests.contract.journal_samples import boot, boots, observed
from tests.postgres import PostgresServer


@pytest.fixture
def journal(postgres_url: str) -> Iterator[PostgresJournal]:
    made = PostgresJournal(postgres_url)
    yield made
    made.close()


class Proxy:
    """A TCP hop in front of a server; `on_commit` says what becomes of the next COMMIT and its connection."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.on_commit: Callable[[socket.socket, bytes], None] | None = None
        self._sockets = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), client, server:  # ValueError: closed under select
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    if ready is client and b"COMMIT\0" in data and self.on_commit:
                        self.on_commit(server, data)
                        return
                    (server if ready is client else client).sendall(data)


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    made = Proxy(postgres.port)
    yield made
    made.close()


def reached(server: socket.socket, data: bytes) -> None:
    """The COMMIT reaches the server, its answer nobody."""
    server.sendall(data)
    assert server.recv(1 << 16)


def lost(server: socket.socket, data: bytes) -> None:
    """The COMMIT reaches nobody."""


@pytest.mark.parametrize("fate", [reached, lost])
def test_an_unknown_commit_is_safe_either_way(
    postgres: PostgresServer, postgres_url: str, proxy: Proxy, fate: Callable[[socket.socket, bytes], None]
) -> None:
    """Mutants: the writer goes on from the batch before, or from this one, without loading again."""
    name = postgres_url.rpartition("/")[2]
    writer = PostgresJournal(postgres.url(name, proxy.port))
    epoch = writer.acquire("a")
    writer.append(boots(1, 3), epoch)
    proxy.on_commit = fate
    unknown = Batch(records=boots(4, 6).records, observations=(observed("n1", 1),), cursors={"n1": ("s", 1)})
    with pytest.raises(JournalError, match="whether this is kept is unknown"):
        writer.append(unknown, epoch)
    proxy.on_commit = None
    again = writer.acquire("a")
    last = writer.latest_seq()
    assert last == (6 if fate is reached else 3)
    assert (writer.observation("n1/s/1") is not None) == (fate is reached)
    with pytest.raises(FencedError):
        writer.append(boots(last + 1, last + 1), epoch)
    writer.append(boots(last + 1, last + 2, again), again)
    assert [record.seq for record in writer.records()] == list(range(1, last + 3))
    writer.close()


def test_every_connection_killed_is_a_journal_error_at_most_once(postgres_url: str, journal: PostgresJournal) -> None:
    epoch = journal.acquire("a")
    journal.append(boots(1, 3), epoch)
    kill_all(postgres_url)
    assert [r.seq for r in journal.records()] == [1, 2, 3]
    journal.append(boots(4, 6), epoch)
    assert journal.latest_seq() == 6


def test_a_connection_killed_inside_an_append_leaves_nothing_of_it(postgres_url: str, journal: PostgresJournal) -> None:
    epoch = journal.acquire("a")
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SELECT 1 FROM lease FOR UPDATE")
        appending = pool.submit(journal.append, boots(1, 3), epoch)
        until(lambda: waiting_for_locks(postgres_url) == 1)
        kill_all(postgres_url, "wait_event_type = 'Lock'")
        with pytest.raises(JournalError, match="nothing of this is kept"):
            appending.result(timeout=30)
    assert journal.latest_seq() == 0
    journal.append(boots(1, 3), epoch)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_restarted_server_is_found_again(
    postgres: PostgresServer, journal: PostgresJournal, how: signal.Signals
) -> None:
    """Mutant: the pool keeps its dead connections."""
    epoch = journal.acquire("a")
    journal.append(boots(1, 3), epoch)
    postgres.stop(how)
    for question in (lambda: journal.append(boots(4, 4), epoch), journal.lease, lambda: journal.wait(9, Lease(), 5.0)):
        with pytest.raises(JournalError, match=r"refused|closed|terminat"):
            question()
    postgres.start()
    journal.append(boots(4, 6), epoch)
    assert [r.seq for r in journal.records()] == [1, 2, 3, 4, 5, 6]
    journal.wait(5, journal.lease(), 30.0)


def test_who_waits_hears_that_the_server_is_gone(postgres: PostgresServer, journal: PostgresJournal) -> None:
    journal.acquire("a")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(journal.wait, 0, journal.lease(), 600.0)
        time.sleep(0.3)
        postgres.stop()
        with pytest.raises(JournalError):
            waiting.result(timeout=60)
    postgres.start()


@pytest.mark.parametrize("change", ["append", "acquire", "resign"])
def test_who_waits_is_told_and_need_not_look(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Mutant: nothing is notified, and waiting ends only because it looks again by itself."""
    monkeypatch.setattr(postgres, "POLL_S", 600.0)
    epoch = journal.acquire("a")
    changes: dict[str, Callable[[], object]] = {
        "append": lambda: journal.append(boots(1, 1), epoch),
        "acquire": lambda: journal.acquire("b"),
        "resign": lambda: journal.resign(epoch),
    }
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(journal.wait, 0, journal.lease(), 600.0)
        time.sleep(0.3)
        changes[change]()
        waiting.result(timeout=60)


def test_a_hung_server_is_an_error_within_seconds(
    postgres: PostgresServer, postgres_url: str, journal: PostgresJournal
) -> None:
    """Mutant: only the server's own time limits stand, which a stopped process does not keep."""
    epoch = journal.acquire("a")
    journal.append(boots(1, 3), epoch)
    with postgres.hung(postgres_url), ThreadPoolExecutor(3) as pool:
        asked: list[Future[object]] = [
            pool.submit(journal.append, boots(4, 4), epoch),
            pool.submit(journal.lease),
            pool.submit(journal.wait, 9, Lease(), 600.0),
        ]
        for each in asked:
            with pytest.raises(JournalError, match=f"said nothing for {PATIENCE_S} s|timeout"):
                each.result(timeout=60)
    assert journal.acquire("a") == 2
    last = journal.latest_seq()
    journal.append(boots(last + 1, last + 1, 2), 2)


def test_a_lock_that_somebody_keeps_is_an_error_within_seconds(postgres_url: str, journal: PostgresJournal) -> None:
    epoch = journal.acquire("a")
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM lease FOR UPDATE")
        with pytest.raises(JournalError, match="lock timeout"):
            journal.append(boots(1, 1), epoch)
    journal.append(boots(1, 1), epoch)


def test_an_append_in_flight_is_decided_before_the_lease_is_taken(
    postgres_url: str, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the fence reads the lease without a lock; the old epoch's batch then lands behind the takeover."""
    epoch, other = journal.acquire("a"), PostgresJournal(postgres_url)
    insert, inside, go_on = PostgresDatabase.insert, threading.Event(), threading.Event()

    def slowly(self: PostgresDatabase, db: Connection, table: Table, rows: Sequence[Values]) -> None:
        inside.set()
        go_on.wait(30)
        insert(self, db, table, rows)

    monkeypatch.setattr(PostgresDatabase, "insert", slowly)
    with ThreadPoolExecutor(2) as pool:
        appending = pool.submit(journal.append, boots(1, 1), epoch)
        assert inside.wait(30)
        taking = pool.submit(other.acquire, "b")
        until(lambda: taking.done() or waiting_for_locks(postgres_url) == 1)
        early = taking.done()
        go_on.set()
        appending.result(timeout=30)
        assert taking.result(timeout=30) == epoch + 1
    assert not early
    other.close()


def test_a_takeover_between_fence_and_commit_waits_for_the_append(postgres_url: str, journal: PostgresJournal) -> None:
    """Mutant: as above, seen from the append: records of the old epoch never follow those of the new one."""
    stop = threading.Event()

    def take_and_write(name: str) -> int:
        mine, written = PostgresJournal(postgres_url), 0
        while not stop.is_set():
            epoch = mine.acquire(name)
            with contextlib.suppress(JournalError):
                for _ in range(20):
                    mine.append(Batch(records=(boot(mine.latest_seq() + 1, epoch),)), epoch)
                    written += 1
        mine.close()
        return written

    with ThreadPoolExecutor(3) as pool:
        racing = [pool.submit(take_and_write, name) for name in "bcd"]
        time.sleep(2.0)
        stop.set()
        written = sum(each.result(timeout=60) for each in racing)
    epochs = [record.epoch for record in journal.records()]
    assert len(epochs) == written
    assert epochs == sorted(epochs)


def test_a_reader_sees_one_moment(journal: PostgresJournal) -> None:
    """Mutant: readers are READ COMMITTED, and two questions of one answer fall on either side of an append."""
    epoch = journal.acquire("a")
    database = journal._database  # noqa: SLF001 - two questions in one reading
    with database.reading() as connection:
        before = connection.exec_driver_sql("SELECT count(*) FROM records").scalar_one()
        journal.append(boots(1, 5), epoch)
        assert connection.exec_driver_sql("SELECT count(*) FROM records").scalar_one() == before


def test_a_commit_is_synchronous_whatever_the_database_is_set_to(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        name = postgres_url.rpartition("/")[2]
        server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    database = PostgresDatabase(postgres_url)
    with database.writing() as db:
        assert db.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "on"
    database.close()


@pytest.mark.parametrize("text", ["a\0b", "\x10", "\x100", "\x101\0\x10", "\0"])
def test_a_node_cannot_stop_its_cell_with_a_nul(journal: PostgresJournal, text: str) -> None:
    """Mutants: one of the two replacements is missing, or their order is turned."""
    epoch, twin = journal.acquire("a"), MemoryJournal()
    twin.acquire("a")
    record = boot(1, node=text)
    batch = Batch(
        records=(record,), observations=(observed(text, 1, spool=text),), cursors={text: (text, 1), "n": ("s", 2)}
    )
    journal.append(batch, epoch)
    twin.append(batch, epoch)
    assert journal.history(text) == [record]
    assert journal.cursors() == {text: (text, 1), "n": ("s", 2)}
    assert journal.observations_of(text) == [observed(text, 1, spool=text)]
    assert list(journal.records()) == [record]
    assert journal.digest() == twin.digest()


def test_names_are_sorted_by_code_point(journal: PostgresJournal) -> None:
    names = ["B", "a", "Z", "é", "ä", "n10", "n2", "_"]
    journal.append(Batch(cursors=dict.fromkeys(names, ("s", 1))), journal.acquire("a"))
    assert list(journal.cursors()) == sorted(names)


def test_a_snapshot_of_many_parts_survives_a_restart(postgres: PostgresServer, journal: PostgresJournal) -> None:
    journal.append(boots(1, 3), journal.acquire("a"))
    snapshot = Snapshot(seq=3, digest=journal.digest(), body=bytes(range(256)) * 20_000)
    journal.save_snapshot(snapshot)
    postgres.stop()
    postgres.start()
    assert journal.snapshot() == snapshot


@pytest.mark.parametrize(
    "place", ["postgresql://", "postgresql://localhost:x/d", "postgresql://u@127.0.0.1:1/d?nothing=1"]
)
def test_an_address_that_leads_nowhere(place: str) -> None:
    with pytest.raises(JournalError):
        PostgresJournal(place)


def test_no_error_shows_the_password() -> None:
    with pytest.raises(JournalError) as caught:
        PostgresJournal("postgresql://somebody:hunter2@127.0.0.1:1/cell")
    assert "somebody@127.0.0.1:1/cell" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    try:
        with pytest.raises(JournalError, match="is encoded in LATIN1; create it again"):
            PostgresJournal(postgres.url("latin"))
    finally:
        with psycopg.connect(postgres.url(), autocommit=True) as server:
            server.execute("DROP DATABASE latin WITH (FORCE)")


def test_a_full_disk_keeps_what_was_acknowledged_and_goes_on_with_room(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Mutant: the error of an append is swallowed."""
    disk = postgres.folder / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs", disk], check=False).returncode:
        pytest.skip("needs a mount of its own: run as root with CAP_SYS_ADMIN")
    try:
        with on_small_disk(postgres, disk) as url:
            fill_and_go_on(url, disk)
    finally:
        subprocess.run(["umount", disk], check=True)
        disk.rmdir()


@contextlib.contextmanager
def on_small_disk(postgres: PostgresServer, disk: Path) -> Iterator[str]:
    """A database whose tables lie on that disk."""
    place = disk / "tables"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    postgres.own(place)
    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
        server.execute("CREATE DATABASE full_disk TEMPLATE template0 TABLESPACE small")
    try:
        yield postgres.url("full_disk")
    finally:
        with psycopg.connect(postgres.url(), autocommit=True) as server:
            server.execute("DROP DATABASE full_disk WITH (FORCE)")
            server.execute("DROP TABLESPACE small")


def fill_and_go_on(url: str, disk: Path) -> None:
    journal, acknowledged = PostgresJournal(url), 0
    epoch = journal.acquire("a")
    said = ""
    while not said and acknowledged < 500_000:
        last = acknowledged + 500
        seen = tuple(observed("n1", seq) for seq in range(acknowledged + 1, last + 1))
        try:
            journal.append(Batch(records=boots(acknowledged + 1, last).records, observations=seen), epoch)
            acknowledged = last
        except JournalError as error:
            said = str(error)
    assert "No space left" in said
    assert acknowledged > 0
    assert len(list(journal.records())) == acknowledged
    subprocess.run(["mount", "-o", "remount,size=128m", disk], check=True)
    journal.append(boots(acknowledged + 1, acknowledged + 500), epoch)
    assert len(list(journal.records())) == acknowledged + 500
    assert len(journal.observations_of("n1", limit=10_000)) == min(acknowledged, 10_000)
    journal.close()


def kill_all(url: str, which: str = "true") -> None:
    """The connections to a database that fit."""
    with psycopg.connect(url, autocommit=True) as killer:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        assert killer.execute(f"{query} AND pid != pg_backend_pid() AND {which}".encode()).fetchall()


def waiting_for_locks(url: str) -> int:
    with psycopg.connect(url) as server:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        row = server.execute(query).fetchone()
    assert row
    return int(row[0])


def until(true: Callable[[], bool], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)
