"""Room in the place of a journal, and the error of one that has none left."""

from typing import Protocol, runtime_checkable

from msgspec import Struct

from hostler.ports import JournalError


class JournalFullError(JournalError):
    """The journal's place has no room left: nothing of the batch is durable, and nothing will be before there is."""


class JournalRoom(Struct, frozen=True):
    """Room in the place of a journal: bytes that it may still grow by, bytes of the whole disk, and where that is."""

    free: int
    size: int
    place: str


@runtime_checkable
class RoomyJournal(Protocol):
    """A journal that can tell how much room its place has. The others are on a server, whose disk nobody here sees."""

    def room(self) -> JournalRoom | None:
        """The room as it is now, None where it cannot be seen. Blocks; raises JournalError."""

    def save_room(self, *, short: bool) -> None:
        """Write so that it takes little room (`short`), or as usual again. Blocks; raises JournalError."""
