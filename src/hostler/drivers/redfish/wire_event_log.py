"""Entries of a BMC's event log → ours, pure, and which of them are behind a cursor."""

from collections.abc import Iterable

from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import Document, name_of, text


class LogEntry(Struct, frozen=True):
    """One line of the system event log; `created` is the BMC's clock, for display only."""

    id: str
    created: str
    severity: str
    message: str
    sensor: str = ""


def log_entry(doc: Document) -> LogEntry | None:
    """One log entry; None where it says nothing or cannot be told from others."""
    message = text(doc, "Message", "MessageId", "Name")
    identity = name_of(doc)
    if not identity or not message:
        return None
    return LogEntry(
        identity,
        text(doc, "Created"),
        text(doc, "Severity", "EntryCode").lower(),
        message,
        text(doc, "SensorType"),
    )


def after(entries: Iterable[LogEntry], cursor: str) -> tuple[tuple[LogEntry, ...], str]:
    """The entries behind the cursor, oldest first, and the new cursor.

    A cursor is the last entry's id and creation moment. Where that entry is gone, the log was cleared (its ids begin
    anew) or has wrapped, and all entries are new: seeing one twice is better than losing one.
    """
    ordered = sorted(entries, key=_log_order)
    if not ordered:
        return (), cursor
    known = [_mark(entry) for entry in ordered]
    start = known.index(cursor) + 1 if cursor in known else 0
    return tuple(ordered[start:]), known[-1]


def _mark(entry: LogEntry) -> str:
    return f"{entry.id}@{entry.created}"


def _log_order(entry: LogEntry) -> tuple[int, str, str]:
    """By number first: the BMC's clock starts again at 1970 after a reset."""
    numbered = entry.id.isascii() and entry.id.isdigit() and len(entry.id) < 20
    return int(entry.id) if numbered else 0, entry.created, entry.id
