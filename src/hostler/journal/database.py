"""Port to a database, whichever it is, and walking a log in it page by page."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from hostler.journal import queries
from hostler.journal.codec import StoredRow
from hostler.journal.journal_room import JournalRoom
from hostler.ports import CorruptJournalError

PAGE = 2_000
"""Records read per question while a journal is walked; no reader holds up the database's tidying for longer."""

FINDINGS_MAX = 20
"""The most findings of one kind that a report lists."""

Values = tuple[object, ...]


class Database(Protocol):
    """A place with the tables of `schema`. Whatever goes wrong in it is a JournalError, never an error of its own.

    `name` is what errors call it; no password is in it.
    """

    name: str

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection in one transaction, committed at the end or nothing of it; from any thread.

        Where the connection is lost while it commits, JournalError says that the outcome is unknown.
        """
        ...

    def upgrading(self) -> AbstractContextManager[Connection]:
        """The same for changes of the layout: alone among all processes, and with all the time it needs."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that sees one moment of the journal; from any thread, while others write."""
        ...

    def insert(self, db: Connection, table: Table, rows: Sequence[Values]) -> None:
        """Many rows at once: an observation that is there stays as it is, a cursor is replaced, all else is new."""
        ...

    def wake(self, db: Connection) -> None:
        """When this transaction is committed, those that wait look again."""
        ...

    def wait(self, moved: Callable[[], bool], timeout_s: float) -> None:
        """Return once `moved`, at the latest after `timeout_s`."""
        ...

    def spoilt(self, error: DBAPIError) -> bool:
        """Whether the error is about what is stored, not about reaching it."""
        ...

    def damage(self, connection: Connection) -> tuple[str, ...]:
        """Read the database's own report of damage, the first few lines."""
        ...

    def room(self) -> JournalRoom | None:
        """Room on the disk, None where it cannot be seen from here."""
        ...

    def save_room(self, *, short: bool) -> None:
        """Write so that it takes little room (`short`) or as usual, and give back what can be given back."""
        ...

    def foreign(self, db: Connection) -> str:
        """Why these are another program's tables, "" where they are a journal's or there are none."""
        ...

    def unmarked(self, db: Connection) -> str:
        """The revision of a layout from before layouts were written down in a table of their own, "" for none."""
        ...

    def mark(self, db: Connection, layout: int) -> None:
        """Show the layout to programs older than that table."""
        ...

    def close(self) -> None:
        """Close all connections and end every wait; closing twice is allowed."""


def rows_after(database: Database, after: int) -> Iterator[StoredRow]:
    """All rows after `after`, a page at a time; CorruptJournalError for one the database itself cannot read."""
    while rows := _page(database, after):
        yield from rows
        after = rows[-1].seq


def _page(database: Database, after: int) -> list[StoredRow]:
    with database.reading() as connection:
        try:
            return queries.page(connection, after, PAGE)
        except DBAPIError as error:
            if not database.spoilt(error):
                raise
    return _readable(database, after)


def _readable(database: Database, after: int) -> list[StoredRow]:
    """The rows of a page up to the one that cannot be read; CorruptJournalError when that is the first."""
    rows: list[StoredRow] = []
    while len(rows) < PAGE:
        with database.reading() as connection:
            try:
                rows += queries.page(connection, after + len(rows), 1)
            except DBAPIError as error:
                if not database.spoilt(error):
                    raise
                if rows:
                    break
                raise CorruptJournalError(after + 1, f"the database cannot read it ({error.orig})") from error
    return rows
