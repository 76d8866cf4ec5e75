"""Starts that a controller refuses: beside what a cell has left without its journal, or beside another on one file."""

import asyncio
import gc
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hostler.app.controller_process import Gate, Standing, running
from hostler.app.first_start import refuse_a_second_beginning
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.live_state import Release
from hostler.journal.memory import MemoryJournal
from hostler.journal.sqlite import SqliteJournal
from hostler.runtime.lease_validity import LeaseTerms
from hostler.runtime.performers import Wiring
from hostler.runtime.runner import Cell
from hostler.server.agent_mailbox import KINDS as AGENTS
from hostler.server.server_settings import Settings
from tests.unit.test_performers import SENT, Driver

WIRED = Wiring((Driver(*SENT - AGENTS),))


async def starts(data: Path, journal: str = "") -> None:
    async with running(Settings(port=0, stop_s=1.0), Standing(data, journal), WIRED, Gate()):
        pass


def gone(journal: Path) -> None:
    journal.unlink()


def emptied(journal: Path) -> None:
    journal.write_bytes(b"")


@pytest.mark.parametrize(("how", "said"), [(gone, "it is not there"), (emptied, "it is empty")])
async def test_a_journal_that_is_gone_beside_its_tokens_begins_no_new_cell(
    tmp_path: Path, how: Callable[[Path], None], said: str
) -> None:
    """Mutants: only a missing file counts; the check comes after the journal was laid out anew."""
    await starts(tmp_path)
    await starts(tmp_path)
    how(tmp_path / "journal.db")
    for _ in range(2):
        with pytest.raises(InvalidInputError) as refused:
            await starts(tmp_path)
        assert f"{said}, and tokens.db and operator.token of a cell are beside it" in str(refused.value)
        assert "put the journal back" in str(refused.value)
    for name in ("tokens.db", "operator.token"):
        (tmp_path / name).unlink()
    await starts(tmp_path)


def test_tokens_alone_are_a_cell_and_a_database_without_any_is_none(tmp_path: Path) -> None:
    """Mutant: a tokens file that cannot be read is taken for none."""
    journal = tmp_path / "journal.db"
    refuse_a_second_beginning(journal)
    with closing(sqlite3.connect(tmp_path / "tokens.db")) as db:
        refuse_a_second_beginning(journal)
        db.execute("CREATE TABLE tokens (id TEXT)")
        refuse_a_second_beginning(journal)
        db.execute("INSERT INTO tokens VALUES ('a')")
        db.commit()
    with pytest.raises(InvalidInputError, match=r"tokens\.db of a cell"):
        refuse_a_second_beginning(journal)
    SqliteJournal(journal).close()
    refuse_a_second_beginning(journal)
    journal.unlink()
    (tmp_path / "tokens.db").write_bytes(b"no database " * 100)
    with pytest.raises(InvalidInputError, match=r"tokens\.db of a cell"):
        refuse_a_second_beginning(journal)


async def test_a_second_controller_over_one_file_is_refused_and_told_of_postgresql(tmp_path: Path) -> None:
    """Mutant: the file's directory is locked for sharing: a frozen active then keeps SQLite's lock from the other."""
    journal = str(tmp_path / "cell" / "journal.db")
    async with running(Settings(port=0, stop_s=1.0), Standing(tmp_path / "a", journal), WIRED, Gate()) as first:
        assert first.cell.role == "active"
        with pytest.raises(InvalidInputError, match=r"two controllers of one cell need PostgreSQL"):
            await starts(tmp_path / "b", journal)
        with pytest.raises(InvalidInputError, match=r"another Hostler serves this directory"):
            await starts(tmp_path / "a")
    await starts(tmp_path / "b", journal)


async def test_what_a_process_has_loaded_is_kept_out_of_collections(tmp_path: Path) -> None:
    """Mutant: a collection walks the whole fleet again and again."""
    gc.unfreeze()
    try:
        async with running(Settings(port=0, stop_s=1.0), Standing(tmp_path, ""), WIRED, Gate()):
            assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def test_a_cell_beside_others_in_one_process_is_freed_when_it_has_stopped() -> None:
    """Mutant: it is kept out of collections, and a run of tests grows by six megabytes with each."""

    async def stopped() -> "weakref.ref[Cell]":
        cell = Cell(MemoryJournal(), {})
        await cell.start()
        await cell.stop()
        return weakref.ref(cell)

    left = asyncio.run(stopped())
    gc.collect()
    assert left() is None


async def test_a_controller_that_is_alone_writes_todays_format_at_once() -> None:
    """Mutant: it says that it is there before its term begins, and is heard a lease later."""
    cell = Cell(MemoryJournal(), {})
    await cell.start()
    async with asyncio.timeout(LeaseTerms().lease_s / 2):
        while cell.view.cell.format < Release().reads:  # noqa: ASYNC110 - the view has no event to wait for
            await asyncio.sleep(0.01)
    await cell.stop()
