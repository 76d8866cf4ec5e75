"""The journals that one contract is asked of: those in SQLite and PostgreSQL, and their twin in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import open_journal
from hostler.journal.sql import SqlJournal


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Place in which a journal in a database can be made."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "journal")


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlJournal | MemoryJournal]:
    made: SqlJournal | MemoryJournal
    match request.param:
        case "sqlite":
            made = open_journal(tmp_path / "journal")
        case "postgres":
            made = open_journal(request.getfixturevalue("postgres_url"))
        case _:
            made = MemoryJournal()
    yield made
    made.close()
