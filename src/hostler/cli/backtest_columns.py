"""Columns of backtests."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hostler.cli.list_view import Column, View, age
from hostler.client import routes


def came_to(run: Mapping[str, Any]) -> str:
    """Sum of what the answer says, or why there is none."""
    result = run.get("result")
    if not result:
        return str(run.get("why", ""))
    changed = ", ".join(f"{count} {kind}" for kind, count in result["differences"].items())
    return f"{changed} on {result['nodes']} node(s)" if changed else "no difference"


def _short(digest: Any, _: datetime) -> str:
    return str(digest)[:12]


BACKTESTS = View(
    routes.BACKTESTS,
    (
        Column("BACKTEST", "id"),
        Column("STATE", "state"),
        Column("CONFIGURATION", "sha256", _short),
        Column("BY", "person"),
        Column("ASKED", "asked", age),
        Column("CAME TO", "came_to"),
        Column("REASON", "reason"),
        Column("AGAINST", "against", _short, wide=True),
    ),
    empty="no backtest is kept: hostler backtest begin FILES --reason WHY",
)
