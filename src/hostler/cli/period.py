"""A part of recorded history, as two options of a command."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from hostler.cli.command_errors import unusable


@Parameter(name="*")
@dataclass(frozen=True)
class Period:
    """Part of the history: all of it, unless a moment is given (2026-03-01, or 2026-03-01T12:00Z)."""

    begins: Annotated[str, Parameter(name="--from", show_default=False, help="Its first moment (UTC).")] = ""
    ends: Annotated[str, Parameter(name="--to", show_default=False, help="The moment after its last (UTC).")] = ""

    def since(self) -> datetime | None:
        """First moment of the period, None for the beginning. Raises CommandError for what is no moment."""
        return _moment("--from", self.begins)

    def until(self) -> datetime | None:
        """Last moment of the period, None for the end. Raises CommandError for what is no moment."""
        return _moment("--to", self.ends)


def _moment(option: str, text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise unusable(f"{option} {text} is not a date or time", "write 2026-03-01 or 2026-03-01T12:00Z") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


PERIOD = Period()
