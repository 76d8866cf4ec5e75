"""Columns of `hostler trend`, `hostler flow` and `hostler bring-up`."""

from datetime import datetime
from typing import Any

from hostler.cli.list_view import Column, View, age, span
from hostler.client import routes


def _share(value: Any, _: datetime) -> str:
    return f"{float(value):.0%}"


def _rounded(value: Any, _: datetime) -> str:
    return f"{float(value):.1f}"


TRENDS = View(
    routes.TRENDS,
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

SERIES = View(
    "",
    (
        Column("PANEL", "panel"),
        Column("METRIC", "metric"),
        Column("PART", "part"),
        Column("UNIT", "unit"),
        Column("STEPS", "value", lambda steps, _: str(len(steps))),
        Column("READINGS", "count", lambda counts, _: str(sum(counts))),
        Column("LAST", "value", lambda steps, _: f"{steps[-1]:g}"),
        Column("LOWEST", "low", lambda steps, _: f"{min(steps):g}"),
        Column("HIGHEST", "high", lambda steps, _: f"{max(steps):g}"),
    ),
    name="metric",
    empty="nothing was read: nobody looked",
)

TREND_SHIFTS = View(
    routes.TRENDS_SHIFTS,
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

TREND_LEMONS = View(
    routes.TRENDS_LEMONS,
    (
        Column("UNIT", "unit"),
        Column("NAME", "name"),
        Column("KIND", "kind"),
        Column("NODE", "node"),
        Column("LEMON", "lemon"),
        Column("DAYS", "days", _rounded),
        Column("EVENTS", "events"),
        Column("A YEAR", "rate", _rounded),
        Column("USUAL", "usual", _rounded),
        Column("SURE", "probability", _share),
        Column("LOW", "low", _rounded, wide=True),
        Column("HIGH", "high", _rounded, wide=True),
        Column("FALSE", "q_value", _share, wide=True),
        Column("NODES", "nodes", wide=True),
        Column("SINCE", "since", age, wide=True),
        Column("SAYS", "says", wide=True),
    ),
    name="name",
    empty="no node and no part had trouble in service, or nothing has been judged yet",
)

TREND_SCORES = View(
    routes.TRENDS_SCORECARD,
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


def _lasted(value: Any, _: datetime) -> str:
    return span(float(value)) if value is not None else ""


FLOW = View(
    routes.FLOW,
    (
        Column("PHASE", "phase"),
        Column("NODES", "nodes"),
        Column("CAME", "entered"),
        Column("LEFT", "left"),
        Column("MEDIAN", "median_s", _lasted),
        Column("P90", "p90_s", _lasted),
        Column("LIMIT", "limit_s", _lasted),
        Column("OVER", "over"),
        Column("OLDEST", "oldest_s", _lasted),
        Column("OVER NOW", "now_over"),
        Column("LONGEST", "longest_s", _lasted, wide=True),
        Column("UNKNOWN", "unknown", wide=True),
    ),
    name="phase",
)


BRING_UP = View(
    routes.BRING_UP,
    (
        Column("NODE", "node"),
        Column("STAGE", "phase"),
        Column("FOR", "phase_since", age),
        Column("MEDIAN", "cohort.median_s", _lasted),
        Column("P90", "cohort.p90_s", _lasted),
        Column("IN PRODUCTION", "arrives.median", age),
        Column("STEP", "step"),
        Column("WAITS FOR", "blockers"),
        Column("NEXT", "next_act"),
        Column("ENDS WHEN", "ends_when", wide=True),
        Column("DOING", "doing", wide=True),
        Column("BURN-IN", "burn_in.text", wide=True),
        Column("SKU", "sku", wide=True),
        Column("BACK", "returns", wide=True),
        Column("RACK", "position.rack", wide=True),
        Column("SERIAL", "serial", wide=True),
    ),
    name="node",
    empty="no node is on its way to production",
    events=("phase_", "plan_", "waiting_"),
)

STAGES = View(
    routes.BRING_UP_STAGES,
    (
        Column("STAGE", "phase"),
        Column("SKU", "sku"),
        Column("BACK", "returns"),
        Column("NODES", "nodes"),
        Column("WAIT", "waiting"),
        Column("STAYS", "cohort.stays"),
        Column("WENT ON", "cohort.went_on"),
        Column("MEDIAN", "cohort.median_s", _lasted),
        Column("P90", "cohort.p90_s", _lasted),
    ),
    name="phase",
    empty="no node is on its way to production, and none was in 30 days",
)
