"""A journal of an older layout is brought to today's with all that is in it; what is newer or foreign is refused."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, select

from hostler.journal import layout, schema
from hostler.journal.check import check
from hostler.journal.codec import GENESIS, seal_all, seal_observation
from hostler.journal.opening import on_server, open_database, open_journal
from hostler.ports import Batch, ControllerMember, JournalError, Lease
from tests.contract.journal_samples import boots, observed

LAYOUT_1 = """
CREATE TABLE records (
	seq INTEGER NOT NULL,
	at BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	cause TEXT NOT NULL,
	name TEXT NOT NULL,
	version INTEGER NOT NULL,
	body BLOB NOT NULL,
	digest BLOB NOT NULL,
	PRIMARY KEY (seq)
);
CREATE INDEX records_at ON records (at);
CREATE TABLE subjects (subject TEXT NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (subject, seq)) WITHOUT ROWID;
CREATE TABLE observations (
	id INTEGER NOT NULL,
	node TEXT NOT NULL,
	spool TEXT NOT NULL,
	sequence BIGINT NOT NULL,
	received BIGINT NOT NULL,
	body BLOB NOT NULL,
	PRIMARY KEY (id)
);
CREATE UNIQUE INDEX observations_sender ON observations (node, spool, sequence);
CREATE TABLE cursors (
	node TEXT NOT NULL, spool TEXT NOT NULL, sequence BIGINT NOT NULL, PRIMARY KEY (node)
) WITHOUT ROWID;
CREATE TABLE snapshots (
	seq INTEGER NOT NULL, digest BLOB NOT NULL, version INTEGER NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (seq)
);
CREATE TABLE snapshot_parts (
	seq BIGINT NOT NULL, part INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (seq, part)
);
CREATE TABLE lease (id INTEGER NOT NULL, epoch BIGINT NOT NULL, holder TEXT NOT NULL, PRIMARY KEY (id));
INSERT INTO lease VALUES (1, 1, 'controller-a');
INSERT INTO cursors VALUES ('n1', 's', 3);
PRAGMA application_id=0x486F7374;
PRAGMA user_version=1;
"""
"""The first layout, as SQLite tells it of a file that was written by it."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A journal of the first layout with ten records of one holder, three observations and a cursor."""
    path = tmp_path / "old"
    rows = seal_all(boots(1, 10).records, 0, GENESIS, 1)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(LAYOUT_1)
        db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO subjects VALUES (?, ?)", [(f"n{seq % 10}", seq) for seq in range(1, 11)])
        db.executemany(
            "INSERT INTO observations (node, spool, sequence, received, body) VALUES (?, ?, ?, ?, ?)",
            [seal_observation(observed("n1", i)) for i in (1, 2, 3)],
        )
        db.commit()
    return path


@contextmanager
def connected(place: str | Path) -> Iterator[Connection]:
    database = open_database(place, writable=True)
    with database.reading() as connection:
        yield connection
    database.close()


def change(place: str, statement: str) -> None:
    """Behind the journal's back."""
    if on_server(place):
        with psycopg.connect(place) as server:
            server.execute(statement.encode())
    else:
        with closing(sqlite3.connect(place)) as file, file:
            file.execute(statement)


def test_the_first_layout_is_upgraded_with_all_that_is_in_it(old: Path) -> None:
    """Mutant: the file is laid out anew beside the old tables, or its lease begins again."""
    journal = open_journal(old)
    assert tuple(journal.records()) == boots(1, 10).records
    assert [r.seq for r in journal.history("n3")] == [3]
    assert journal.observation("n1/s/2") == observed("n1", 2)
    assert journal.cursors() == {"n1": ("s", 3)}
    assert journal.lease() == Lease(epoch=1, holder="controller-a")
    assert journal.members() == ()
    epoch = journal.acquire("controller-b", "https://b")
    journal.append(boots(11, 12, epoch), epoch)
    journal.close()
    assert check(old).sound
    with closing(sqlite3.connect(old)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (int(layout.HEAD),)


def test_an_upgrade_that_fails_leaves_the_old_journal_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: each step is a transaction of its own."""
    with closing(sqlite3.connect(old)) as db:
        before = list(db.iterdump())
        db.execute("CREATE TABLE restorations (id INTEGER)")
    with pytest.raises(JournalError, match="restorations"):
        open_journal(old)
    with closing(sqlite3.connect(old)) as db:
        db.execute("DROP TABLE restorations")
        assert list(db.iterdump()) == before
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    open_journal(old).close()


def test_an_older_layout_is_only_read_by_who_may_upgrade_it(old: Path) -> None:
    before = old.read_bytes()
    report = check(old)
    assert not report.sound
    assert "has layout 0001, this Hostler reads layout 0004: it is brought to it when" in report.storage[0]
    assert old.read_bytes() == before


def test_the_steps_lead_to_the_tables_that_the_journal_uses(place: str) -> None:
    """Mutant: a column is added to `schema` and no step adds it."""
    open_journal(place).close()
    with connected(place) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": layout.TABLE})
        assert compare_metadata(context, schema.metadata) == []


def test_what_is_asked_for_by_name_and_moment_is_found_by_an_index(old: Path) -> None:
    """Mutant: no index has the names, so that each page of a statement reads every record of its month."""
    open_journal(old).close()
    asked = "SELECT * FROM records WHERE at >= ? AND name IN (?, ?) ORDER BY at DESC, seq DESC LIMIT 9"
    with closing(sqlite3.connect(old)) as db:
        (how, *_) = db.execute(f"EXPLAIN QUERY PLAN {asked}", (0, "a", "b")).fetchall()
    assert how[-1] == "SEARCH records USING INDEX records_name (name=? AND at>?)"


def test_an_upgraded_file_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    open_journal(old).close()
    open_journal(tmp_path / "new").close()

    def columns(path: Path) -> list[tuple[object, ...]]:
        query = 'SELECT t.name, c.name, c.type, "notnull", pk FROM sqlite_master t, pragma_table_info(t.name) c'
        with closing(sqlite3.connect(path)) as db:
            return sorted(db.execute(query), key=repr)

    assert columns(old) == columns(tmp_path / "new")


def test_the_head_is_the_last_step() -> None:
    steps = ScriptDirectory(str(layout.MIGRATIONS))
    assert steps.get_heads() == [layout.HEAD]
    assert tuple(step.revision for step in steps.walk_revisions("base", layout.HEAD))[:0:-1] == layout.OLDER


def test_a_newer_layout_is_refused(place: str) -> None:
    open_journal(place).close()
    change(place, f"UPDATE {layout.TABLE} SET version_num = '9999'")
    change(place, "UPDATE usable SET lowest = '9998'")
    said = f"has layout 9999 and needs a Hostler of layout 9998, this Hostler knows up to layout {layout.HEAD}: run the"
    with pytest.raises(JournalError, match=said):
        open_journal(place)
    assert "9999" in check(place).storage[0]


def test_a_newer_layout_that_only_grew_is_used_as_it_is(place: str) -> None:
    """A controller of the version before goes on in a rolling upgrade. Mutant: whatever is newer is refused."""
    running = open_journal(place)
    epoch = running.acquire("a")
    change(place, "CREATE TABLE of_the_next_version (name TEXT)")
    change(place, "ALTER TABLE members ADD COLUMN mood TEXT NOT NULL DEFAULT ''")
    change(place, f"UPDATE {layout.TABLE} SET version_num = '{int(layout.HEAD) + 1:04}'")
    running.append(boots(1, 3, epoch), epoch)
    running.announce(ControllerMember("a", "http://a", 1))
    started = open_journal(place)
    assert started.latest_seq() == 3
    assert [m.name for m in started.members()] == ["a"]
    for journal in (running, started):
        journal.close()
    assert check(place).sound


def test_no_step_asks_for_more_than_the_version_before_has(place: str) -> None:
    """A removal comes a version after its replacement: every running controller can use what the next one makes."""
    open_journal(place).close()
    with connected(place) as connection:
        (lowest,) = connection.execute(select(schema.usable.c.lowest)).scalars()
    assert lowest in (*layout.OLDER[-1:], FIRST_THAT_SAYS_SO)


FIRST_THAT_SAYS_SO = "0002"


def test_another_programs_database_is_refused_and_left_alone(place: str) -> None:
    change(place, "CREATE TABLE songs (name TEXT)")
    with pytest.raises(JournalError, match="of another program"):
        open_journal(place)
    change(place, "INSERT INTO songs VALUES ('still here')")


def test_two_controllers_that_open_an_empty_journal_at_once(place: str) -> None:
    """Mutant: no lock, and both lay it out."""
    with ThreadPoolExecutor(4) as pool:
        journals = list(pool.map(lambda _: open_journal(place), range(4)))
    epoch = journals[0].acquire("a")
    journals[0].append(Batch(records=boots(1, 3).records), epoch)
    assert [journal.latest_seq() for journal in journals] == [3] * 4
    for journal in journals:
        journal.close()


def test_alembic_is_loaded_for_an_upgrade_only(tmp_path: Path) -> None:
    open_journal(tmp_path / "journal").close()
    code = (
        "import sys; from hostler.journal.opening import open_journal;"
        f"open_journal({str(tmp_path / 'journal')!r}).close();"
        "assert not {'alembic', 'psycopg', 'pyarrow'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
