"""Columns of `hostler statement`: hours of each stay, and why the node was not healthy; CSV has the seconds."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hostler.cli.list_view import HOUR_S, Column, View, clock
from hostler.client import routes

STATES = ("healthy", "degraded", "away", "unknown")


def hours(value: Any, _now: datetime | None = None) -> str:
    """Seconds as hours."""
    return f"{value / HOUR_S:,.2f}"


def reasons(value: Any, _now: datetime) -> str:
    """Causes of what was not healthy, with their hours."""
    told = (one for one in value if one["state"] != "healthy")
    return "; ".join(f"{one['state']} {_why(one)} {hours(one['seconds'])}" for one in told)


def waits(value: Any, _now: datetime) -> str:
    """Waits of the stay, by what waited and for which kind of reason, with their hours."""
    return "; ".join(f"{one['what']} for {one['reason']} {hours(one['seconds'])}" for one in value or ())


def _why(cause: dict[str, Any]) -> str:
    return f"({' '.join(filter(None, (cause['kind'], cause['condition'])))})"


STATEMENT = View(
    routes.STATEMENT,
    (
        Column("NODE", "node"),
        Column("TENANT", "tenant"),
        Column("POOL", "pool"),
        Column("FROM", "since", clock),
        Column("UNTIL", "until", clock),
        Column("HOURS", "had_s", hours),
        *(Column(state.upper(), f"{state}_s", hours) for state in STATES),
        Column("BECAUSE", "causes", reasons),
        Column("WAITED", "waited", waits, wide=True),
        *(
            Column(f"AWAY: {kind.upper()}", f"away_by.{kind}", hours, wide=True)
            for kind in ("repair", "maintenance", "firmware", "test", "person", "handover", "unknown")
        ),
    ),
    name="node",
    empty="no node was anybody's in that month",
)


def total(items: Sequence[dict[str, Any]]) -> str:
    """The sum of all rows, as a sentence."""
    had, *spent = (sum(item[f"{name}_s"] for item in items) for name in ("had", *STATES))
    told = ", ".join(f"{hours(seconds)} {state}" for seconds, state in zip(spent, STATES, strict=True))
    return f"{hours(had)} node-hours: {told}"
