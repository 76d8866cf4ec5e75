"""The journals that one contract is asked of: the one on disk and its twin in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.engine.journal.memory import MemoryJournal
from hostler.engine.journal.sqlite import SqliteJournal


@pytest.fixture(params=["sqlite", "memory"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteJournal | MemoryJournal]:
    made: SqliteJournal | MemoryJournal
    made = SqliteJournal(tmp_path / "journal") if request.param == "sqlite" else MemoryJournal()
    yield made
    made.close()
