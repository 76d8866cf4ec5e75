"""Moments as they are written on the command line, and as the API reads them."""

from datetime import UTC, datetime

from hostler.cli.command_errors import unusable


def moment(text: str) -> str:
    """The moment as the API reads it, "" for none; without a zone it is UTC. Raises CommandError."""
    if not text:
        return ""
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise unusable(f"'{text[:60]}' is not a date or time", "write 2026-01-31, or 2026-01-31T08:00:00Z") from error
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).isoformat()
