"""A journal written by an older version opens forever.

`journal_golden/version_N.journal` holds one of each event of its day. It is never written again once a version is
released: a body that changes gets a new VERSION, an upcaster and a golden journal of its own. Until the first
release `python -m tests.contract.test_journal_golden` writes the newest anew.
"""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.core.state.events import VERSION
from hostler.core.state.scopes import text_hook
from hostler.core.state.upcast import upcast
from hostler.journal.check import check
from hostler.journal.codec import StoredRow, unseal
from hostler.journal.exporting import export
from hostler.journal.importing import import_journal
from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import open_journal
from hostler.journal.sql import SqlJournal
from hostler.journal.sqlite import SqliteJournal
from hostler.ports import Batch, Snapshot
from tests.contract.journal_samples import START, every_act, every_event, observed, of_events

FOLDER = Path(__file__).parent / "journal_golden"
GOLDEN = sorted(FOLDER.glob("version_*.journal"))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(request.param, tmp_path))


def rows_of(path: Path) -> list[StoredRow]:
    connection = sqlite3.connect(path)
    rows = [StoredRow(*row) for row in connection.execute("SELECT * FROM records ORDER BY seq")]
    connection.close()
    return rows


def reads_to_its_end(journal: SqlJournal, golden: Path) -> None:
    """Whether all that the golden file holds is there, with the same digest."""
    rows = rows_of(golden)
    assert [record.seq for record in journal.records()] == [row.seq for row in rows]
    assert journal.digest() == rows[-1].digest.hex()
    assert journal.observation("n1/s/1") is not None
    assert journal.cursors() == {"n1": ("s", 3)}


def test_there_is_a_golden_journal() -> None:
    assert GOLDEN


def test_it_opens_and_reads_to_its_end(golden: Path) -> None:
    journal = SqliteJournal(golden)
    reads_to_its_end(journal, golden)
    journal.close()
    assert check(golden).chain.first_bad is None


def test_it_opens_in_postgresql_too(golden: Path, postgres_url: str) -> None:
    """Records of version 1 are copied as they are stored, and read to their end with the same digest."""
    open_journal(golden).close()  # which brings it to today's layout
    lines: list[bytes] = []
    export(golden, lines.append)
    import_journal(postgres_url, lines, golden.name, START)
    journal = open_journal(postgres_url)
    reads_to_its_end(journal, golden)
    journal.close()
    assert check(postgres_url).sound


def test_nothing_that_was_stored_is_lost(golden: Path) -> None:
    """Mutant: a field is renamed without an upcaster; its default takes the place of what was recorded."""
    for row in rows_of(golden):
        stored = upcast(msgspec.json.decode(row.body), row.version)
        assert holds(msgspec.json.decode(msgspec.json.encode(unseal(row).event, enc_hook=text_hook)), stored), row.name


def test_its_last_digest_is_todays(golden: Path) -> None:
    """The same records give the same digest in a journal of today, until a body changes."""
    old, new = SqliteJournal(golden), MemoryJournal()
    records = tuple(old.records())
    new.append(Batch(records=records), new.acquire("a"))
    if all(msgspec.json.encode(unseal(row).event, enc_hook=text_hook) == row.body for row in rows_of(golden)):
        assert new.digest() == old.digest()
    old.close()


def holds(new: Any, old: Any) -> bool:
    """Whether everything in `old` is in `new`."""
    if isinstance(old, dict):
        return all(key in new and holds(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)


def write(path: Path) -> None:
    """A journal of every event of today, with observations, cursors and a snapshot."""
    path.unlink(missing_ok=True)
    journal = SqliteJournal(path)
    epoch = journal.acquire("golden")
    seen = tuple(observed("n1", sequence) for sequence in (1, 2, 3))
    journal.append(
        Batch(records=of_events((*every_event(), *every_act())), observations=seen, cursors={"n1": ("s", 3)}), epoch
    )
    journal.save_snapshot(Snapshot(seq=journal.latest_seq(), digest=journal.digest(), body=b"golden"))
    journal.close()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER / f"version_{VERSION}.journal")
