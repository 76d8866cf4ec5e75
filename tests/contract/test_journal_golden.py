"""A journal written by an older version opens forever.

`journal_golden/version_N.journal` holds one of each event of its day, `format_N.jsonl` (an export) what was new in a
format. Neither is written again: a body that changes gets a new VERSION with an upcaster, what
is new gets a format, and each its golden journal (`python scripts/event_formats.py --raise`).
"""

import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.core.state.events import Event, name_of
from hostler.core.state.recorded_bodies import recorded
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
from tests.contract.journal_samples import START, every_act, every_event, every_verb, observed, of_events

FOLDER = Path(__file__).parent / "journal_golden"
GOLDEN = sorted((*FOLDER.glob("version_*.journal"), *FOLDER.glob("format_*.jsonl")))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return opened(request.param, tmp_path)


def opened(golden: Path, folder: Path) -> Path:
    """A golden journal as SQLite has it, in this folder."""
    if golden.suffix == ".journal":
        return Path(shutil.copy(golden, folder))
    place = folder / f"{golden.stem}.journal"
    import_journal(place, golden.read_bytes().splitlines(keepends=True), golden.name, START)
    return place


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


def test_each_format_that_is_recorded_has_a_golden_journal() -> None:
    """The oldest is that of version 3, whose shapes were the first to be recorded."""
    after = recorded().formats[1:]
    assert {path.stem for path in GOLDEN if path.suffix == ".jsonl"} == {f"format_{number}" for number in after}
    assert (FOLDER / "version_3.journal") in GOLDEN


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
        if row.name == "node_registered":
            stored["node"].pop("test_mode", None)  # gone on purpose: drills stand in its place
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


def new_in(number: int) -> tuple[Event, ...]:
    """Samples of today's events that a cell of the format before cannot be given."""
    found = []
    for event in (*every_event(), *every_act(), *every_verb()):
        body = msgspec.json.decode(msgspec.json.encode(event, enc_hook=text_hook))
        if recorded().read(name_of(event), body, number - 1).said:
            found.append(event)
    return tuple(found)


def write_format() -> None:
    """Write the newest format's golden journal: what is new in it, with observations, cursors and a snapshot."""
    number = recorded().newest
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "golden.journal"
        journal = SqliteJournal(place)
        epoch = journal.acquire("golden")
        seen = tuple(observed("n1", sequence) for sequence in (1, 2, 3))
        journal.append(Batch(records=of_events(new_in(number)), observations=seen, cursors={"n1": ("s", 3)}), epoch)
        journal.save_snapshot(Snapshot(seq=journal.latest_seq(), digest=journal.digest(), body=b"golden"))
        journal.close()
        lines: list[bytes] = []
        export(place, lines.append)
    (FOLDER / f"format_{number}.jsonl").write_bytes(b"".join(lines))
