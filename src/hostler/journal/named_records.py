"""Records of a subject or of the fleet by their names, all of them, a page at a time: readers never count records.

A reader that took "the last N of a node" could be blinded by whatever else was recorded of that node, and was: 20
seconds of one agent's noise pushed an hour of a customer's bill out. Who needs a few names asks for those names.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events import Record
from hostler.ports import RecordWindow

PAGE = 2_000
"""Records read per question: none holds up the database's tidying for longer."""


class RecordPages(Protocol):
    """The questions of a journal that are asked page by page."""

    def window(self, wanted: RecordWindow, limit: int) -> list[Record]:
        """At most `limit` records of the window, in its order."""
        ...

    def named_since(self, names: Sequence[str], at: datetime, limit: int, beyond: Record | None = None) -> list[Record]:
        """At most `limit` records of these names since a moment, the latest first, of those beyond one."""
        ...


def record_names(*events: type[Struct]) -> tuple[str, ...]:
    """Names under which records of these events are found."""
    return tuple(str(event.__struct_config__.tag) for event in events)


def each_record(journal: RecordPages, wanted: RecordWindow, first: int = PAGE) -> Iterator[Record]:
    """Every record of the window, in its order; `first` are asked for at once. Blocks; raises JournalError."""
    size = first
    while records := journal.window(wanted, size):
        yield from records
        if len(records) < size:
            return
        size = PAGE
        last = records[-1].seq
        wanted = replace(wanted, after=last) if wanted.oldest_first else replace(wanted, before=last)


def each_named_since(journal: RecordPages, names: Sequence[str], at: datetime) -> Iterator[Record]:
    """Every record of these names, of that moment and later, the latest first. Blocks; raises JournalError."""
    beyond: Record | None = None
    while records := journal.named_since(names, at, PAGE, beyond):
        yield from records
        if len(records) < PAGE:
            return
        beyond = records[-1]
