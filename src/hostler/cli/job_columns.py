"""Columns of customers' jobs and of the nodes that one has, and one job's page."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hostler.cli.list_view import Column, View, age, severity, span
from hostler.client import routes
from hostler.core.state.counting import first_names

NODES_NAMED = 4


def _nodes(value: Any, _now: datetime) -> str:
    return f"{len(value)}: {first_names(value, NODES_NAMED)}"


def _waits(value: Any, now: datetime) -> str:
    return ", ".join(f"{wait['what']} on {wait['node']} for {age(wait['since'], now)}" for wait in value)


JOBS = View(
    routes.JOBS,
    (
        Column("JOB", "id"),
        Column("TENANT", "tenant"),
        Column("NODES", "nodes", _nodes),
        Column("GPUS", "gpus"),
        Column("CLASS", "work_class"),
        Column("FOR", "began", age),
        Column("AILING", "ailing"),
        Column("CONDITIONS", "conditions"),
        Column("WAITS FOR ITS END", "waiting", _waits),
        Column("CLUSTER", "cluster", wide=True),
        Column("POOLS", "pools", wide=True),
        Column("OWNER", "owner", wide=True),
        Column("PROGRESS", "progress", wide=True),
        Column("HELD BY", "held_by", wide=True),
    ),
    empty="no job runs, as far as schedulers have told",
    events=("plan_", "condition_", "waiting_", "node_", "operation_"),
)

JOB_NODES = View(
    "",
    (
        Column("NODE", "node"),
        Column("RACK", "rack"),
        Column("GPUS", "gpus"),
        Column("PARTS", "parts"),
        Column("HEALTH", "severity", severity),
        Column("CONDITIONS", "conditions"),
        Column("CORDONED", "cordoned"),
        Column("WORK", "work", wide=True),
    ),
    name="node",
)


def job_lines(job: dict[str, Any]) -> Iterator[str]:
    """Lines of what a job is, how it may be ended, and what waits for that; its nodes are a table of their own."""
    now = datetime.now(UTC)
    yield f"{job['id']}  of {job['tenant'] or 'an unknown tenant'}, on {len(job['nodes'])} nodes"
    for title, value in (
        ("gpus", "unknown" if job["gpus"] is None else str(job["gpus"])),
        ("runs for", age(job["began"], now) if job["began"] else "unknown"),
        ("progress", job["progress"]),
        ("pools", ", ".join(job["pools"])),
        ("cluster", job["cluster"]),
        ("class", job["work_class"]),
        ("owner", job["owner"]),
        ("agreed", _agreed(job["agreed_after_s"])),
        ("held by", job["held_by"]),
    ):
        if value:
            yield f"  {title:<12}{value}"
    for wait in job["waiting"]:
        yield f"  {wait['what']} on {wait['node']} waits for its end since {age(wait['since'], now)}"
    if not job["waiting"]:
        yield "  nothing waits for its end"


def _agreed(after_s: float | None) -> str:
    return "" if after_s is None else f"it may be ended when a drain has waited {span(after_s)}"
