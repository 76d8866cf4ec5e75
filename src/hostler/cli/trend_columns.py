"""Columns of the lists of `hostler trend`."""

from datetime import datetime
from typing import Any

from hostler.cli.list_view import Column, View, age


def _share(value: Any, _: datetime) -> str:
    return f"{float(value):.0%}"


TRENDS = View(
    "/v1/trends",
    (
        Column("NODE", "node"),
        Column("METRIC", "metric"),
        Column("PART", "part"),
        Column("SINCE", "since", age),
        Column("FLOOR IN DAYS", "floor_in.expected", lambda days, _: f"{float(days):.0f}"),
        Column("ACTED", "acted"),
        Column("SAYS", "says"),
        Column("CHANCE", "chance", lambda chance, _: f"{float(chance):.1e}", wide=True),
        Column("FALSE", "q_value", _share, wide=True),
    ),
    name="node",
    empty="no reading has drifted",
)

TREND_SHIFTS = View(
    "/v1/trends/shifts",
    (
        Column("METRIC", "metric"),
        Column("STACK", "stack"),
        Column("NODES", "nodes"),
        Column("SINCE", "since", age),
        Column("SAYS", "says"),
    ),
    name="metric",
    empty="no cohort has moved",
)

TREND_SCORES = View(
    "/v1/trends/scorecard",
    (
        Column("METRIC", "metric"),
        Column("JUDGED", "judged"),
        Column("UNJUDGED", "unjudged"),
        Column("CAME TRUE", "came_true"),
        Column("FALSE", "false_alarms"),
        Column("OPEN", "open"),
        Column("MISSED", "missed"),
        Column("PRECISION", "precision", _share),
        Column("RECALL", "recall", _share),
        Column("LEAD DAYS", "lead_days"),
    ),
    name="metric",
    empty="nothing has been judged yet",
)
