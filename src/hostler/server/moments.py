"""Moments in a URL: they carry their zone, or are refused."""

from datetime import datetime
from typing import Annotated

from litestar.params import QueryParameter

from hostler.server.problems import refuse

Moment = Annotated[datetime | None, QueryParameter(description="A moment with its zone: 2026-01-31T08:00:00Z.")]


def aware(moment: datetime | None) -> datetime | None:
    """The moment. Raises ProblemError (400) where it has no zone."""
    if moment is not None and moment.tzinfo is None:
        raise refuse(400, "malformed", f"{moment.isoformat()} has no zone", "end it with Z, or with +00:00")
    return moment
