"""An export is the whole journal and is imported whole, into any database, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.journal.check import check
from hostler.journal.codec import GENESIS
from hostler.journal.exporting import export
from hostler.journal.importing import EPOCHS_SKIPPED, import_journal
from hostler.journal.line_format import LineTally, read
from hostler.journal.opening import open_database, open_journal
from hostler.journal.sql import SqlJournal
from hostler.ports import Batch, JournalError, Lease, Restored, Snapshot
from tests.contract.journal_samples import boots, every_event, observed, of_events

NOW = datetime(2025, 6, 1, 8, 30, tzinfo=UTC)
BODY = bytes(range(256)) * 10_000


def fill(journal: SqlJournal) -> None:
    """Two epochs, one of each event, a snapshot of several pieces, observations of two nodes, cursors."""
    epoch = journal.acquire("a")
    records = of_events(every_event())
    journal.append(Batch(records=records), epoch)
    journal.save_snapshot(Snapshot(seq=len(records), digest=journal.digest(), body=BODY))
    epoch = journal.acquire("b")
    seen = tuple(observed(node, i) for i in range(1, 1_500) for node in ("n1", "n2", "odd \x10 name/é"))
    more = boots(len(records) + 1, len(records) + 5, epoch).records
    journal.append(Batch(records=more, observations=seen, cursors={"n1": ("s", 7), "n2": ("t", 9)}), epoch)


def exported(place: str | Path) -> list[bytes]:
    lines: list[bytes] = []
    export(place, lines.append)
    return lines


@contextmanager
def opened(place: str | Path) -> Iterator[SqlJournal]:
    journal = open_journal(place)
    yield journal
    journal.close()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The export of a full journal."""
    place = tmp_path_factory.mktemp("exported") / "journal"
    with opened(place) as journal:
        fill(journal)
    return exported(place)


def state(journal: SqlJournal) -> tuple[object, ...]:
    return (
        list(journal.records()),
        journal.digest(),
        journal.cursors(),
        journal.history("n1"),
        journal.observations_of("n1", limit=10_000),
        journal.observation("n2/s/1499"),
        journal.snapshot(),
        journal.archived(),
    )


def test_there_and_back_again_is_the_same_journal(tmp_path: Path, postgres_url: str) -> None:
    """Mutants: the index by subject is not filled; observations are left out; the end's digest is believed."""
    with opened(tmp_path / "first") as journal:
        fill(journal)
        before = state(journal)
    there = exported(tmp_path / "first")
    import_journal(postgres_url, there, "first.jsonl", NOW)
    with opened(postgres_url) as journal:
        assert state(journal) == before
    import_journal(tmp_path / "second", exported(postgres_url), "second.jsonl", NOW)
    with opened(tmp_path / "second") as journal:
        assert state(journal) == before
    back = exported(tmp_path / "second")
    assert back[1:-1] == there[1:-1]
    assert check(tmp_path / "second").sound
    assert check(postgres_url).sound


def test_an_imported_journal_says_so_and_goes_on_under_an_epoch_nobody_has_heard(tmp_path: Path, place: str) -> None:
    """Mutants: the mark is not kept; the lease goes on at the epoch of the export."""
    with opened(tmp_path / "first") as journal:
        fill(journal)
        last = journal.latest_seq()
        assert journal.restored() is None
    import_journal(place, exported(tmp_path / "first"), "backup/june.jsonl", NOW)
    with opened(place) as journal:
        assert journal.restored() == Restored(at=NOW, source="backup/june.jsonl", seq=last)
        assert journal.lease() == Lease(epoch=2 + EPOCHS_SKIPPED)
        epoch = journal.acquire("c")
        assert epoch == 3 + EPOCHS_SKIPPED
        journal.append(boots(last + 1, last + 2, epoch), epoch)
    with opened(place) as journal:
        assert journal.restored() == Restored(at=NOW, source="backup/june.jsonl", seq=last)


def test_an_empty_journal_travels_too(tmp_path: Path, place: str) -> None:
    open_journal(tmp_path / "first").close()
    end = import_journal(place, exported(tmp_path / "first"), "-", NOW)
    assert (end.records, end.last, end.digest) == (0, 0, GENESIS.hex())
    with opened(place) as journal:
        assert journal.latest_seq() == 0


def test_a_journal_in_use_is_exported_as_of_one_moment(place: str, tmp_path: Path) -> None:
    """Mutant: each question of the export is a transaction of its own."""
    with opened(place) as journal:
        epoch = journal.acquire("a")
        journal.append(Batch(records=boots(1, 5_000).records, observations=(observed("n1", 1),)), epoch)
        lines: list[bytes] = []

        def slowly(text: bytes) -> None:
            if len(lines) == 10:
                journal.append(
                    Batch(
                        records=boots(5_001, 5_010).records,
                        observations=(observed("n1", 2),),
                        cursors={"n1": ("s", 2)},
                    ),
                    epoch,
                )
            lines.append(text)

        end = export(place, slowly)
        assert journal.latest_seq() == 5_010
    assert (end.last, end.records, end.observations, end.cursors) == (5_000, 5_000, 1, 0)
    import_journal(tmp_path / "copy", lines, "-", NOW)


def test_only_an_empty_target_is_filled(lines: list[bytes], place: str) -> None:
    """Mutant: rows are added to what is there."""
    with opened(place) as journal:
        journal.append(Batch(cursors={"n1": ("s", 1)}), journal.acquire("a"))
        before = state(journal)
    with pytest.raises(JournalError, match=r"is not empty \(it holds cursors\): import into a new file"):
        import_journal(place, lines, "-", NOW)
    with opened(place) as journal:
        assert state(journal) == before
        assert journal.restored() is None


def test_a_target_that_a_controller_has_opened_is_not_empty(lines: list[bytes], place: str) -> None:
    with opened(place) as journal:
        journal.acquire("a")
    with pytest.raises(JournalError, match="a controller was here, under epoch 1"):
        import_journal(place, lines, "-", NOW)


# --- refused whole ---


def changed(lines: list[bytes], kind: str, **fields: Any) -> list[bytes]:
    """The lines with the fields of the last one of that kind changed, under a checksum that fits."""
    place = max(i for i, line in enumerate(lines) if msgspec.json.decode(line)["line"] == kind)
    wrong = msgspec.json.encode(msgspec.json.decode(lines[place]) | fields) + b"\n"
    return resealed([*lines[:place], wrong, *lines[place + 1 :]])


def resealed(lines: list[bytes]) -> list[bytes]:
    """The lines with an end that has the right counts and checksum: what is refused is refused for itself."""
    tally, end = LineTally(), msgspec.json.decode(lines[-1])
    for _, line, text in read(lines[:-1]):
        tally.add(line, text)
    right = tally.end(end["last"], bytes.fromhex(end["digest"]))
    return [*lines[:-1], msgspec.json.encode(right) + b"\n"]


WRONG: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "nothing": (lambda _: [], "line 1: it is missing: the export was cut off"),
    "no text": (lambda lines: [b"\xff\xfe", *lines], "line 1: it cannot be read"),
    "another start": (lambda lines: lines[1:], "line 1: an export begins with one line of kind journal"),
    "a second start": (lambda lines: [lines[0], *lines], "line 2: an export begins with one line"),
    "cut off": (lambda lines: lines[:-1], "it is missing: the export was cut off before its end"),
    "cut in a line": (lambda lines: [*lines[:-1], lines[-1][:20]], "it cannot be read"),
    "goes on": (lambda lines: [*lines, lines[1]], "it comes behind the end"),
    "a newer format": (
        lambda lines: changed(lines, "journal", format=9),
        "format 9, this Hostler reads",
    ),
    "an epoch beyond any": (lambda lines: changed(lines, "journal", epoch=2**63 - 5), "outside what a journal holds"),
    "a start in the air": (
        lambda lines: changed(lines, "journal", before="ff" * 16),
        "a first record follows",
    ),
    "a start that is late": (
        lambda lines: changed(lines, "journal", first=2),
        "record 2 is corrupt",
    ),
    "a record less": (lambda lines: resealed([lines[0], *lines[2:]]), "record 1 is corrupt: it is missing"),
    "records turned": (lambda lines: resealed([lines[0], lines[2], lines[1], *lines[3:]]), "record 1 is corrupt"),
    "another cause": (lambda lines: changed(lines, "record", cause="someone"), "its content and its digest differ"),
    "another body": (lambda lines: changed(lines, "record", body={"type": "x"}), "its content and its digest differ"),
    "no digest": (lambda lines: changed(lines, "record", digest="zz"), "its content and its digest differ"),
    "another node's observation": (
        lambda lines: changed(lines, "observation", node="n9"),
        "is not the one",
    ),
    "an unreadable observation": (lambda lines: changed(lines, "observation", body=7), "observation cannot be read"),
    "a cursor outside": (lambda lines: changed(lines, "cursor", sequence=-1), "outside 0"),
    "another snapshot": (lambda lines: changed(lines, "snapshot", body="AAAA"), "does not belong to these records"),
    "a snapshot of another place": (
        lambda lines: changed(lines, "snapshot", digest="00" * 16),
        "not belong|continue",
    ),
    "half a snapshot": (
        lambda lines: changed(lines, "snapshot", checksum=""),
        "is not whole",
    ),
    "a wrong count": (
        lambda lines: [*lines[:-1], lines[-1].replace(b'"cursors":2', b'"cursors":3')],
        "cursors is 3",
    ),
    "a flipped cursor": (
        lambda lines: [line.replace(b'"sequence":9}', b'"sequence":8}') for line in lines],
        "checksum is .* there",
    ),
    "an observation less": (
        lambda lines: [line for line in lines if b'"node":"n2","spool":"s","sequence":70,' not in line],
        "observations is .* there",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_verify_is_refused_whole(lines: list[bytes], tmp_path: Path, wrong: str) -> None:
    """Mutant: rows are committed before the end has been compared."""
    change, why = WRONG[wrong]
    with pytest.raises(JournalError, match=why):
        import_journal(tmp_path / "copy", change(lines), "-", NOW)
    assert list(tmp_path.iterdir()) == []


def test_the_lines_themselves_are_not_refused(lines: list[bytes], tmp_path: Path) -> None:
    """Without it, all that is refused above might be refused for another reason."""
    import_journal(tmp_path / "copy", lines, "-", NOW)
    import_journal(tmp_path / "another", resealed(lines), "-", NOW)


def test_a_refused_import_leaves_an_empty_database_empty(lines: list[bytes], place: str) -> None:
    open_journal(place).close()
    with pytest.raises(JournalError, match="cut off"):
        import_journal(place, lines[:-1], "-", NOW)
    with opened(place) as journal:
        assert state(journal) == ([], GENESIS.hex(), {}, [], [], None, None, None)
        assert journal.restored() is None
        assert journal.lease() == Lease()
    import_journal(place, lines, "-", NOW)


def test_a_damaged_journal_is_not_exported(place: str) -> None:
    """Mutant: the chain is not verified on the way out."""
    with opened(place) as journal:
        journal.append(boots(1, 9), journal.acquire("a"))
    database = open_database(place, writable=True)
    with database.writing() as db:
        db.exec_driver_sql("UPDATE records SET cause = 'someone' WHERE seq = 4")
    database.close()
    lines: list[bytes] = []
    with pytest.raises(JournalError, match="record 4 is corrupt"):
        export(place, lines.append)
    assert not any(b'"line":"end"' in line for line in lines)
