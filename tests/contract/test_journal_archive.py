"""Records that have had their time leave the database for files, whenever that is cut off: none is lost, none twice."""

import fcntl
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from hostler.core.state.events import Record
from hostler.core.state.model import Observation
from hostler.journal import compaction, retention, whole_files
from hostler.journal.archived_records import archived_record
from hostler.journal.check import check
from hostler.journal.compaction import archive_rows, compact
from hostler.journal.database import Database
from hostler.journal.exporting import export
from hostler.journal.importing import import_journal
from hostler.journal.line_format import LineTally, read, written
from hostler.journal.opening import open_database, open_journal
from hostler.journal.parquet import DayFile
from hostler.journal.retention import archive_observations
from hostler.journal.sql import SqlJournal
from hostler.ports import Archived, ArchivedError, Batch, JournalError, Snapshot
from hostler.server.cell_view import CellView
from hostler.server.event_stream import Streams
from hostler.server.problems import ProblemError
from hostler.server.tokens import Grant, Identity, Role
from tests.contract.journal_samples import boot, boots, observed

ANN = Identity("t", Grant("ann", Role.operator))
FIRST = datetime(2025, 3, 1, tzinfo=UTC)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@contextmanager
def opened(place: str) -> Iterator[tuple[SqlJournal, Database]]:
    journal, database = open_journal(place), open_database(place, writable=True)
    yield journal, database
    journal.close()
    database.close()


class CutOffError(BaseException):
    """The process ends here."""


def cut_off_at(monkeypatch: pytest.MonkeyPatch, point: int, places: list[tuple[Any, str]]) -> list[int]:
    """The process ends at the point of that number: before or after a call of one of these. [points passed so far]."""
    passed = [0]

    def here() -> None:
        passed[0] += 1
        if passed[0] > point:
            raise CutOffError

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            here()
            done = function(*args, **named)
            here()
            return done

        return call

    for owner, name in places:
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    return passed


# --- observations ---


def seen_on(day: int, sequence: int, node: str = "n1") -> Observation:
    received = FIRST + timedelta(days=day, seconds=sequence % 86_000, microseconds=7)
    return replace(observed(node, sequence), received=received, boot_id="boot-1", facility=0)


def three_days(journal: SqlJournal) -> list[Observation]:
    """Thirty observations of each of three days, then of a fourth that is not over."""
    seen = [seen_on(day, 100 * day + i, f"n{i % 3}") for day in range(4) for i in range(30)]
    journal.append(Batch(observations=tuple(seen)), journal.acquire("a"))
    return seen


BEFORE = FIRST + timedelta(days=3, hours=5)


def archived_ids(folder: Path) -> list[str]:
    """Every observation in the files, once for each time that it is there."""
    found = []
    for path in folder.glob("*.parquet"):
        rows = pq.read_table(path).to_pylist()
        assert {row["received"].strftime("%Y-%m-%d") for row in rows} == {path.stem.removeprefix("observations-")}
        found += [f"{row['node']}/{row['spool']}/{row['sequence']}" for row in rows]
    return sorted(found)


def kept_ids(journal: SqlJournal) -> list[str]:
    return sorted(o.id for node in ("n0", "n1", "n2") for o in journal.observations_of(node, limit=10_000))


def test_whole_days_leave_for_one_file_each(place: str, archive: Path) -> None:
    """Mutants: the day of `before` itself leaves; a file for each page."""
    with opened(place) as (journal, database):
        seen = three_days(journal)
        removed = archive_observations(database, archive, BEFORE)
        names = tuple(f"observations-2025-03-0{day}.parquet" for day in (1, 2, 3))
        assert (removed.observations, removed.files) == (90, names)
        assert kept_ids(journal) == sorted(o.id for o in seen[90:])
    assert archived_ids(archive) == sorted(o.id for o in seen[:90])
    assert sorted(path.name for path in archive.iterdir()) == [".lock", *names]


def test_a_user_opens_the_files_with_duckdb(place: str, archive: Path) -> None:
    with opened(place) as (journal, database):
        seen = three_days(journal)
        archive_observations(database, archive, BEFORE)
    table = f"'{archive}/*.parquet'"
    with duckdb.connect() as db:
        counts = db.sql(
            f"SELECT node, count(*) FROM {table} WHERE source = 'agent' GROUP BY node ORDER BY node"
        ).fetchall()
        assert counts == [("n0", 30), ("n1", 30), ("n2", 30)]
        one = db.sql(
            "SELECT kind, boot_id, spool, sequence, facility, text, facts->>'xid', body->>'received',"
            f" epoch_us(received) FROM {table} WHERE node = 'n2' ORDER BY received LIMIT 1"
        ).fetchall()
        micros = (seen[2].received - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)  # type: ignore[operator]
        expected = ("kernel_log", "boot-1", "s", 2, 0, seen[2].text, "79", "2025-03-01T00:00:02.000007Z", micros)
        assert one == [expected]
        days = db.sql(f"SELECT count(DISTINCT date_trunc('day', received AT TIME ZONE 'UTC')) FROM {table}").fetchall()
        assert days == [(3,)]
        (body,) = db.sql(f"SELECT body FROM {table} WHERE node = 'n2' ORDER BY received LIMIT 1").fetchall()[0]
    assert json.loads(body)["facts"]["big"] == 2**70


def test_again_there_is_nothing_to_do(place: str, archive: Path) -> None:
    with opened(place) as (journal, database):
        three_days(journal)
        archive_observations(database, archive, BEFORE)
        before = {path.name: path.read_bytes() for path in archive.iterdir()}
        assert archive_observations(database, archive, BEFORE).observations == 0
    assert {path.name: path.read_bytes() for path in archive.iterdir()} == before


def test_a_day_that_has_a_file_already_gets_what_came_late(place: str, archive: Path) -> None:
    """Mutants: the new file replaces the old one; what both hold is there twice."""
    with opened(place) as (journal, database):
        seen = three_days(journal)
        archive_observations(database, archive, BEFORE)
        late = (seen_on(0, 7_001, "n0"), seen_on(1, 7_002, "n1"), seen[0])
        journal.append(Batch(observations=late), 1)
        assert archive_observations(database, archive, BEFORE).observations == 3
    assert archived_ids(archive) == sorted({o.id for o in (*seen[:90], *late)})


def test_observations_that_nobody_dated(place: str, archive: Path) -> None:
    with opened(place) as (journal, database):
        undated = replace(seen_on(0, 1), received=None)
        journal.append(Batch(observations=(undated,)), journal.acquire("a"))
        assert archive_observations(database, archive, BEFORE).files == ("observations-undated.parquet",)
    assert pq.read_table(archive / "observations-undated.parquet")["received"].to_pylist() == [None]


def test_many_days_are_not_all_open_at_once(place: str, archive: Path) -> None:
    """Days that come mixed are written and taken over again; each row once."""
    with opened(place) as (journal, database):
        seen = [seen_on(i % 9, i) for i in range(60)]
        journal.append(Batch(observations=tuple(seen)), journal.acquire("a"))
        archive_observations(database, archive, FIRST + timedelta(days=30))
    assert archived_ids(archive) == sorted(o.id for o in seen)
    assert len(list(archive.glob("*.parquet"))) == 9


STEPS: list[tuple[Any, str]] = [
    (whole_files, "sync"),
    (Path, "rename"),
    (DayFile, "finish"),
    (retention, "_remove"),
]


POINTS = 26


@pytest.mark.parametrize("point", range(POINTS))
def test_cut_off_between_any_two_steps(
    tmp_path: Path, archive: Path, point: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: rows are removed before the file is named; a file cut off is taken for whole."""
    with opened(str(tmp_path / "journal")) as (journal, database):
        seen = three_days(journal)
        with monkeypatch.context() as patch:
            cut_off_at(patch, point, STEPS)
            with pytest.raises(CutOffError):
                archive_observations(database, archive, BEFORE)
        everywhere = {*archived_ids(archive), *kept_ids(journal)}
        assert everywhere == {o.id for o in seen}, "nothing is lost while nobody goes on"
        archive_observations(database, archive, BEFORE)
        assert kept_ids(journal) == sorted(o.id for o in seen[90:])
    assert archived_ids(archive) == sorted(o.id for o in seen[:90])
    assert not list(archive.glob(".*.part"))


def test_the_steps_are_all_that_there_are(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a step was added, and the tests above do not end at it."""
    with opened(str(tmp_path / "journal")) as (journal, database):
        three_days(journal)
        passed = cut_off_at(monkeypatch, 10**6, STEPS)
        archive_observations(database, archive, BEFORE)
    assert passed == [POINTS]


def test_a_file_with_another_count_keeps_the_rows(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the file is not counted."""

    def torn(path: Path) -> None:
        whole_files.unfinished(path).rename(path)
        pq.write_table(pq.read_table(path).slice(1), path)

    with opened(str(tmp_path / "journal")) as (journal, database):
        seen = three_days(journal)
        monkeypatch.setattr(whole_files, "publish", torn)
        with pytest.raises(JournalError, match="holds 29 observations instead of 30: they are kept"):
            archive_observations(database, archive, BEFORE)
        assert kept_ids(journal) == sorted(o.id for o in seen)


def test_rows_that_change_under_the_archive_stay(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: all that is old is removed, also what came after the file was written."""
    with opened(str(tmp_path / "journal")) as (journal, database):
        three_days(journal)
        publish = whole_files.publish

        def meanwhile(path: Path) -> None:
            publish(path)
            with database.writing() as db:
                db.exec_driver_sql("DELETE FROM observations WHERE id = 5")

        monkeypatch.setattr(whole_files, "publish", meanwhile)
        with pytest.raises(JournalError, match="changed while they were archived: they stay"):
            archive_observations(database, archive, BEFORE)
        assert len(kept_ids(journal)) == 119


def test_a_file_that_is_no_parquet_is_left_alone(tmp_path: Path, archive: Path) -> None:
    archive.mkdir()
    (archive / "observations-2025-03-02.parquet").write_text("a diary")
    with opened(str(tmp_path / "journal")) as (journal, database):
        seen = three_days(journal)
        with pytest.raises(JournalError, match=r"cannot be read .*: move it away"):
            archive_observations(database, archive, BEFORE)
        assert kept_ids(journal) == sorted(o.id for o in seen)
    assert (archive / "observations-2025-03-02.parquet").read_text() == "a diary"


def test_one_archiver_at_a_time(tmp_path: Path, archive: Path) -> None:
    archive.mkdir()
    with opened(str(tmp_path / "journal")) as (_, database), (archive / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="somebody else is writing to the archive"):
            archive_observations(database, archive, BEFORE)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        opened(str(tmp_path / "journal")) as (_, database),
        pytest.raises(JournalError, match=r"the archive .* cannot be written"),
    ):
        archive_observations(database, tmp_path / "file" / "archive", BEFORE)


# --- records ---

LAST_ONE, LAST_BUT_ONE = 90, 60
OLD = boot(10_000).at


def snapshots(journal: SqlJournal, records: int = 100) -> list[Record]:
    """A hundred records with snapshots at 60 and 90."""
    epoch, done = journal.acquire("a"), 0
    for last in (LAST_BUT_ONE, LAST_ONE, records):
        journal.append(boots(done + 1, last, epoch), epoch)
        if last != records:
            journal.save_snapshot(Snapshot(seq=last, digest=journal.digest(), body=b"fleet"))
        done = last
    return list(journal.records())


def chain(folder: Path) -> list[int]:
    return [row.seq for path in sorted(folder.glob("records-*.jsonl")) for row in archive_rows(path)]


def test_what_the_last_but_one_snapshot_stands_for_leaves(place: str, archive: Path) -> None:
    """Mutants: up to the last snapshot; the index of what left stays; the chain begins anew behind the boundary."""
    with opened(place) as (journal, database):
        records, digest = snapshots(journal), journal.digest()
        compacted = compact(database, archive, OLD)
        name = "records-000000000001-000000000060.jsonl"
        assert (compacted.records, compacted.last, compacted.files) == (60, 60, (name,))
        assert list(journal.records(after=60)) == records[60:]
        assert (journal.digest(), journal.latest_seq(), journal.count()) == (digest, 100, 40)
        assert journal.archived() == Archived(seq=60, files=(name,))
        assert [r.seq for r in journal.history("n3")] == [93, 83, 73, 63]
        found = [archived_record(archive, (name,), seq) for seq in (1, 37, 60, 61)]
        assert found == [records[0], records[36], records[59], None]
        journal.append(boots(101, 103), 1)
    assert chain(archive) == list(range(1, 61))
    with opened(place) as (journal, _):
        assert [r.seq for r in journal.records(after=60)] == list(range(61, 104))
        assert journal.snapshot() is not None
    report = check(place, archive)
    assert report.sound
    assert report.chain.kept == 103
    assert check(place).sound


def test_what_is_archived_is_said_to_be(place: str, archive: Path) -> None:
    """Mutant: the records that are left are given as if they were all."""
    with opened(place) as (journal, database):
        snapshots(journal)
        walking = journal.records()
        assert next(walking).seq == 1
        compact(database, archive, OLD)
        for after in (0, 59):
            with pytest.raises(ArchivedError, match="records 1 to 60 are archived"):
                next(journal.records(after))


async def test_a_stream_that_would_begin_with_what_has_left_is_refused(place: str, archive: Path) -> None:
    """Mutant: begin all the same; the stream then ends at once, again and again, and nobody says why."""
    with opened(place) as (journal, database):
        snapshots(journal)
        compact(database, archive, OLD)
        view = SimpleNamespace(cell=SimpleNamespace(seq=100))
        streams = Streams(cast(CellView, SimpleNamespace(view=view, journal=journal)), 1)
        with pytest.raises(ProblemError, match="records 1 to 60 are archived") as refused:
            await streams.begin(ANN, 59)
        assert (refused.value.status, refused.value.problem.error) == (410, "gone")
        assert await streams.begin(ANN, 60) == 60


def test_a_reader_in_the_middle_hears_of_it_too(place: str, archive: Path) -> None:
    """Mutant: the gap is taken for damage."""
    with opened(place) as (journal, database):
        epoch = journal.acquire("a")
        journal.append(boots(1, 5_000), epoch)
        journal.save_snapshot(Snapshot(seq=5_000, digest=journal.digest(), body=b"fleet"))
        journal.append(boots(5_001, 5_002), epoch)
        journal.save_snapshot(Snapshot(seq=5_002, digest=journal.digest(), body=b"fleet"))
        walking = journal.records()
        assert next(walking).seq == 1
        compact(database, archive, OLD)
        with pytest.raises(ArchivedError):
            list(walking)


@pytest.mark.parametrize(("before", "last"), [(1, 0), (30, 29), (60, 59), (61, 60), (500, 60)])
def test_only_records_that_are_old_leave(tmp_path: Path, archive: Path, before: int, last: int) -> None:
    with opened(str(tmp_path / "journal")) as (journal, database):
        snapshots(journal)
        assert compact(database, archive, boot(before).at).last == last
        assert chain(archive) == list(range(1, last + 1))
        assert list(archive.glob(".*.part")) == []


def test_without_two_whole_snapshots_nothing_leaves(tmp_path: Path, archive: Path) -> None:
    """Mutant: a snapshot that is listed and damaged is counted."""
    with opened(str(tmp_path / "journal")) as (journal, database):
        snapshots(journal)
        with database.writing() as db:
            db.exec_driver_sql("UPDATE snapshot_parts SET body = x'00' WHERE seq = 90")
        assert compact(database, archive, OLD).records == 0


def test_the_next_file_goes_on_where_the_last_one_ended(place: str, archive: Path) -> None:
    with opened(place) as (journal, database):
        snapshots(journal)
        compact(database, archive, boot(41).at)
        assert compact(database, archive, OLD).last == 60
        journal.save_snapshot(Snapshot(seq=100, digest=journal.digest(), body=b"fleet"))
        assert compact(database, archive, OLD).last == 90
        assert journal.archived() is not None
    assert chain(archive) == list(range(1, 91))
    assert check(place, archive).sound
    assert len(list(archive.glob("records-*.jsonl"))) == 3


RECORD_STEPS: list[tuple[Any, str]] = [
    (whole_files, "sync"),
    (Path, "rename"),
    (compaction, "_write"),
    (compaction, "_forget"),
]


@pytest.mark.parametrize("point", [0, 1, 60, *range(118, 144)])
def test_a_compaction_cut_off_anywhere_goes_on(
    tmp_path: Path, archive: Path, point: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: records go before their file is there; the file is written again beside the first."""
    place = str(tmp_path / "journal")
    monkeypatch.setattr(compaction, "PAGE", 10)
    with opened(place) as (journal, database):
        records = snapshots(journal)
        with monkeypatch.context() as patch:
            cut_off_at(patch, point, RECORD_STEPS)
            with pytest.raises(CutOffError):
                compact(database, archive, OLD)
        begins = journal.archived()
        assert list(journal.records(begins.seq if begins else 0)) == records[begins.seq if begins else 0 :]
        assert check(place, archive).sound
        compact(database, archive, OLD)
        assert journal.count() == 40
    assert chain(archive) == list(range(1, 61))
    assert check(place, archive).sound
    assert len(list(archive.iterdir())) == 2


def test_a_changed_archive_is_noticed(tmp_path: Path, archive: Path) -> None:
    """Mutant: the chain is verified from the boundary only."""
    place = str(tmp_path / "journal")
    with opened(place) as (journal, database):
        snapshots(journal)
        compact(database, archive, OLD)
    (path,) = archive.glob("records-*.jsonl")
    sound = path.read_bytes()
    for wrong in (
        sound.replace(b"boot-17", b"boot-18"),
        sound.replace(b'"records":60', b'"records":59'),
        b"\n".join(sound.splitlines()[:-1]) + b"\n",
        sound[: len(sound) // 2],
    ):
        assert wrong != sound
        path.write_bytes(wrong)
        report = check(place, archive)
        assert not report.sound
        assert str(path) in report.chain.why
    path.unlink()
    assert "No such file" in check(place, archive).chain.why
    assert check(place).sound


def test_a_file_of_another_journal_is_not_taken_for_ones_own(tmp_path: Path, archive: Path) -> None:
    with opened(str(tmp_path / "other")) as (journal, database):
        epoch = journal.acquire("b")
        journal.append(Batch(records=tuple(boot(seq, node="x") for seq in range(1, 61))), epoch)
        journal.save_snapshot(Snapshot(seq=60, digest=journal.digest(), body=b"fleet"))
        journal.append(Batch(records=(boot(61),)), epoch)
        journal.save_snapshot(Snapshot(seq=61, digest=journal.digest(), body=b"fleet"))
        compact(database, archive, OLD)
    with opened(str(tmp_path / "journal")) as (journal, database):
        snapshots(journal)
        with pytest.raises(JournalError, match="is of another journal: move it away"):
            compact(database, archive, OLD)
        assert journal.count() == 100


def test_a_compacted_journal_is_exported_and_imported(tmp_path: Path, archive: Path, place: str) -> None:
    """Mutant: the import begins the chain at the first record that is there."""
    with opened(place) as (journal, database):
        snapshots(journal)
        compact(database, archive, OLD)
        digest, archived = journal.digest(), journal.archived()
    lines: list[bytes] = []
    export(place, lines.append)
    import_journal(tmp_path / "copy", lines, "-", FIRST)
    with opened(str(tmp_path / "copy")) as (journal, _):
        assert (journal.digest(), journal.archived(), journal.count()) == (digest, archived, 40)
        assert journal.snapshot() is not None
    assert check(tmp_path / "copy", archive).sound
    tally, without = LineTally(), [line for line in lines[:-1] if b'"line":"snapshot"' not in line]
    for _, line, text in read(without):
        tally.add(line, text)
    end = written(tally.end(100, bytes.fromhex(digest)))
    with pytest.raises(JournalError, match="records 1 to 60 are archived and no snapshot of this version covers"):
        import_journal(tmp_path / "second", [*without, end], "-", FIRST)


def test_a_running_controller_appends_while_records_leave(place: str, archive: Path) -> None:
    with opened(place) as (journal, database):
        snapshots(journal)
        with ThreadPoolExecutor(1) as pool:
            leaving = pool.submit(compact, database, archive, OLD)
            for seq in range(101, 150):
                journal.append(boots(seq, seq), 1)
            assert leaving.result(timeout=60).last == 60
        assert [r.seq for r in journal.records(after=60)] == list(range(61, 150))
    assert check(place, archive).sound
