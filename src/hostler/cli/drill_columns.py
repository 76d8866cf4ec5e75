"""Columns of drills, and the lines of one drill's clock."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from hostler.cli.list_view import Column, View, age, parsed, span
from hostler.client import routes
from hostler.core.report.drill_clock import STAGES

_SAYS = {
    "injected": "fault shown",
    "seen": "condition raised",
    "cordoned": "new work kept away",
    "drained": "no work left",
    "filled": "its place in the pool filled",
    "returned": "open to work again",
}


def _since(stage: str) -> Callable[[dict[str, Any]], str]:
    """Tells how long after the beginning a moment was, "-" where it was not."""

    def told(clock: dict[str, Any]) -> str:
        begun, at = parsed(clock["since"]), parsed(clock[stage]) if clock[stage] else None
        return "-" if begun is None or at is None else f"{max(0.0, (at - begun).total_seconds()):.1f}s"

    return told


def with_clock(clock: dict[str, Any]) -> dict[str, Any]:
    """The drill with its moments as seconds since its beginning, for a table."""
    return {**clock, "clock": {stage: _since(stage)(clock) for stage in STAGES}}


DRILLS = View(
    routes.DRILLS,
    (
        Column("NODE", "node"),
        Column("FAULT", "fault"),
        Column("AGE", "since", age),
        *(Column(stage.upper(), f"clock.{stage}") for stage in STAGES),
        Column("RESULT", "result"),
        Column("BY", "by"),
        Column("REMEDIES", "remedies", wide=True),
        Column("DETAIL", "detail", wide=True),
        Column("WHY", "why", wide=True),
    ),
    empty="no node has had a drill",
    events=("drill_", "plan_", "operation_"),
)


def clock_lines(clock: dict[str, Any]) -> Iterator[str]:
    """One drill and its clock, as lines."""
    bounds = "" if clock["remedy"] else ", no remedy"
    yield f"drill {clock['id']}: {clock['fault']} on {clock['node']}{bounds}, by {clock['by']}: {clock['why']}"
    for stage in STAGES:
        yield stage_line(clock, stage)
    if clock["ended"]:
        begun, over = parsed(clock["since"]), parsed(clock["ended"])
        length = span((over - begun).total_seconds()) if begun is not None and over is not None else "?"
        yield f"over after {length} ({clock['ended_by']}): {clock['result']}, {clock['detail']}"
    else:
        yield f'runs, until {clock["until"]} at most; end it: hostler drill end {clock["node"]} --reason "…"'


def stage_line(clock: dict[str, Any], stage: str) -> str:
    """One moment of a clock: after how long, when, and what it is."""
    also = {"seen": clock["condition"], "filled": clock["place"], "cordoned": ", ".join(clock["remedies"])}
    more = f" ({also[stage]})" if clock[stage] and also.get(stage) else ""
    at = f"{datetime.fromisoformat(clock[stage]):%H:%M:%S}" if clock[stage] else "-"
    return f"  {stage:<9} {_since(stage)(clock):>9}  {at:<8}  {_SAYS[stage]}{more}"
