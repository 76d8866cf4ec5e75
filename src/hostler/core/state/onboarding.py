"""Inspection of a node by hands before its first test: the items to look at, who ticked each, and their photos."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.attached_files import AttachedFile

ITEMS_MOST = 50
"""Items of one checklist."""
ITEM_CHARS = 200
INSPECTION_FILES_MOST = 100
"""Photos and files of all items of one inspection."""
REJECTED = "onboard"
"""The kind of ticket of a node that was rejected at its inspection."""


class OnboardTick(Struct, frozen=True):
    """An item that a person looked at and found right, or says why it does not apply; by its words, not its number."""

    item: str
    at: datetime
    person: str
    note: str = ""


class OnboardFile(Struct, frozen=True):
    """A photo or file that shows an item."""

    item: str
    file: AttachedFile


class Inspection(Struct, frozen=True):
    """Ticks and files of an inspection that is under way; the journal tells of those that are over."""

    ticks: tuple[OnboardTick, ...] = ()
    files: tuple[OnboardFile, ...] = ()


NOT_BEGUN = Inspection()
"""An inspection of which nothing is done yet."""
