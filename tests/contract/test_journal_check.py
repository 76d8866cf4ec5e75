"""`check` says what stands in a journal file, and leaves every byte of it as it was."""

import random
import sqlite3
from pathlib import Path

import pytest

from hostler.core.state.snapshot import SNAPSHOT_VERSION
from hostler.journal.check import check
from hostler.journal.database import FINDINGS_MAX
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch, JournalError, Snapshot
from tests.contract.journal_samples import boots, observed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed journal: ten records, a snapshot at five, thirty observations."""
    journal = SqliteJournal(tmp_path / "journal")
    epoch = journal.acquire("controller-a")
    journal.append(boots(1, 5), epoch)
    journal.save_snapshot(Snapshot(seq=5, digest=journal.digest(), body=b"fleet"))
    journal.append(boots(6, 10), epoch)
    journal.append(Batch(observations=tuple(observed("n1", i) for i in range(30))), epoch)
    journal.close()
    return tmp_path / "journal"


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement).rowcount, "the test changes something"
    connection.close()


def test_a_sound_journal(path: Path) -> None:
    report = check(path)
    assert report.sound
    assert (report.chain.kept, report.chain.first_bad, report.chain.why) == (10, None, "")
    assert (report.epoch, report.holder, report.observations) == (1, "controller-a", 30)
    assert [(s.seq, s.fault) for s in report.snapshots] == [(5, "")]
    journal = SqliteJournal(path)
    assert report.chain.digest == journal.digest()
    journal.close()


def test_an_empty_journal_is_sound(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / "journal").close()
    assert check(tmp_path / "journal").sound


def test_it_changes_nothing(path: Path) -> None:
    change(path, "UPDATE records SET body = x'00' WHERE seq = 7")
    before = path.read_bytes()
    check(path)
    assert path.read_bytes() == before


def test_a_journal_in_use_can_be_checked(path: Path) -> None:
    journal = SqliteJournal(path)
    epoch = journal.acquire("controller-b")
    journal.append(boots(11, 20, epoch), epoch)
    assert check(path).chain.kept == 20
    journal.append(boots(21, 21, epoch), epoch)
    journal.close()


def test_the_first_bad_record_and_what_can_be_kept(path: Path) -> None:
    """Mutant: the chain starts at the snapshot, and a fault before it is not seen."""
    change(path, "UPDATE records SET body = x'00' WHERE seq IN (3, 8)")
    report = check(path)
    assert not report.sound
    assert (report.chain.kept, report.chain.first_bad) == (2, 3)
    assert "record 3 is corrupt: its content and its digest differ" in report.chain.why
    assert report.snapshots[0].fault == "it was taken behind record 2, the last valid one"


def test_text_that_the_database_cannot_read(path: Path) -> None:
    change(path, "UPDATE records SET cause = CAST(x'ff' AS TEXT) WHERE seq = 8")
    report = check(path)
    assert (report.chain.kept, report.chain.first_bad) == (7, 8)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE snapshot_parts SET body = x'00'", "its body does not match its checksum; it is not used"),
        ("DELETE FROM snapshot_parts", "its body does not match its checksum; it is not used"),
        ("UPDATE snapshots SET digest = x'00'", "its digest is not that of record 5"),
        ("UPDATE snapshots SET version = 9", f"it has version 9, this Hostler uses version {SNAPSHOT_VERSION}"),
    ],
)
def test_what_is_wrong_with_a_snapshot(path: Path, statement: str, fault: str) -> None:
    change(path, statement)
    report = check(path)
    assert [s.fault for s in report.snapshots] == [fault]
    assert not report.sound


def test_index_entries_without_a_record_and_records_without_an_entry(path: Path) -> None:
    change(path, "DELETE FROM subjects WHERE seq IN (4, 5)")
    change(path, "INSERT INTO subjects (subject, seq) VALUES ('n1', 99)")
    report = check(path)
    assert report.unindexed == 2
    assert report.orphans == ("n1: record 99",)
    assert not report.sound


def test_observations_that_cannot_be_read(path: Path) -> None:
    change(path, "UPDATE observations SET body = x'00' WHERE id > 4")
    report = check(path)
    assert report.unreadable_observations == tuple(range(5, 5 + FINDINGS_MAX))
    assert not report.sound


def test_a_broken_file_is_a_report_too(path: Path) -> None:
    path.write_bytes(b"no database " * 1_000)
    report = check(path)
    assert not report.sound
    assert report.chain.kept == 0
    assert "not a database" in report.chain.why


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="is not there"):
        check(tmp_path / "journal")


@pytest.mark.parametrize("table", ["observations", "records", "lease", "snapshots", "subjects"])
def test_any_type_in_any_column_is_a_report(path: Path, table: str) -> None:
    """SQLite keeps whatever was written, whatever the column's type. Mutant: `check` passes on what our types raise."""
    connection = sqlite3.connect(path)
    columns = [(row[1], row[5]) for row in connection.execute(f"PRAGMA table_info({table})")]
    for column, key in columns:
        for value in ("x'fffe'", "'\u00e9'", "1e308", "-1", "9223372036854775807", "NULL"):
            if key and value not in ("-1", "9223372036854775807"):
                continue
            rows = f"SELECT rowid FROM {table} LIMIT 1"
            try:
                connection.execute("BEGIN")
                if table != "subjects":
                    connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = ({rows})")
                else:
                    connection.execute(f"UPDATE {table} SET {column} = {value} WHERE seq = 2")
                connection.commit()
            except sqlite3.IntegrityError:
                connection.rollback()
                continue
            check(path)
    connection.close()


def test_broken_bytes_anywhere_are_a_report_that_names_the_first_record_that_is_lost(path: Path) -> None:
    """Mutants: a body that is no UTF-8 raises UnicodeDecodeError; a chain that cannot be read names no record."""
    whole = path.read_bytes()
    broken = path.with_name("broken")
    for seed in range(60):
        draw = random.Random(seed)
        damaged = bytearray(whole)
        match seed % 4:
            case 0:
                for _ in range(20):
                    damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            case 1:
                at = draw.randrange(len(damaged))
                damaged[at : at + 256] = draw.randbytes(256)
            case 2:
                del damaged[draw.randrange(len(damaged)) :]
            case _:
                at = draw.randrange(len(damaged) // 4096) * 4096
                damaged[at : at + 4096] = bytes(4096)
        broken.write_bytes(damaged)
        report = check(broken)
        assert bool(report.chain.why) == (report.chain.first_bad is not None), f"seed {seed}: {report.chain}"
        assert report.chain.first_bad in (None, report.chain.kept + 1), f"seed {seed}"
        assert report.chain.kept == 10 or not report.sound, f"seed {seed}: {report}"


def test_observations_that_are_no_text_are_listed(path: Path) -> None:
    """Mutant: only what is no JSON is caught, not what is no UTF-8 nor what is no body at all."""
    body = '{"node":"n1","kind":"k","source":"agent","spool":"s","sequence":1,"text":"\\xff"}'
    change(path, f"UPDATE observations SET body = CAST(replace('{body}', '\\xff', x'ff') AS BLOB) WHERE id = 3")
    assert check(path).unreadable_observations == (3,)
