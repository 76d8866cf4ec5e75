"""Keeps a start from beginning a new cell where one was: its journal is gone, its tokens are still there."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from hostler.core.state.input_problems import InvalidInputError, Problem

TOKEN = "operator.token"  # noqa: S105 - a file's name
TOKENS = "tokens.db"


def refuse_a_second_beginning(journal: Path) -> None:
    """Raises InvalidInputError where the journal's file is missing or empty beside what a cell has left there.

    A journal that was laid out and has no record yet is one that has never begun: it may.
    """
    state = _state(journal)
    if not state or not (left := _left_behind(journal)):
        return
    what = f"{state}, and {' and '.join(left)} of a cell are beside it: a start would begin a new, empty cell"
    instead = (
        "put the journal back (with its -wal, from a copy of the directory, or by `hostler journal import`); "
        f"to begin a new cell, move {' and '.join(left)} away"
    )
    raise InvalidInputError((Problem(str(journal), 0, what, instead),))


def _state(journal: Path) -> str:
    """Why there is no journal in the file, "" where something is."""
    if not journal.exists():
        return "it is not there"
    wal = journal.with_name(f"{journal.name}-wal")
    return "" if journal.stat().st_size or (wal.exists() and wal.stat().st_size) else "it is empty"


def _left_behind(journal: Path) -> list[str]:
    folder = journal.parent
    found = [f"{journal.name}-wal"] if journal.with_name(f"{journal.name}-wal").exists() else []
    found += [TOKENS] if _holds_tokens(folder / TOKENS) else []
    return found + ([TOKEN] if (folder / TOKEN).exists() else [])


def _holds_tokens(path: Path) -> bool:
    """Whether any token is there; a file that cannot be read counts as one."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as db:
            return db.execute("SELECT 1 FROM tokens LIMIT 1").fetchone() is not None
    except sqlite3.Error as error:
        return "no such table" not in str(error)
