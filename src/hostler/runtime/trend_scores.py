"""Scores of trends: findings of a metric beside the failures that came."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median

import msgspec
from sqlalchemy import select

from hostler.core.state.trends import DriftFinding, RuleScore
from hostler.journal.codec import micros, moment
from hostler.journal.database import Database
from hostler.journal.schema import records

WITHIN = timedelta(days=30)
"""A finding has come true where its node fails a check, or goes to its vendor, within so long."""
READ_MOST = 200_000
"""Records that are read for one score."""
_EVENTS = ("condition_raised", "phase_changed")

Failure = tuple[str, datetime]
"""A node and the moment at which it failed."""


def failures(database: Database, since: datetime) -> tuple[Failure, ...]:
    """Failed checks and returns to vendors since a moment, as the journal has them. Raises JournalError."""
    c = records.c
    wanted = select(c.at, c.name, c.body).where(c.at >= micros(since), c.name.in_(_EVENTS)).order_by(c.seq)
    with database.reading() as connection:
        rows = list(connection.execute(wanted.limit(READ_MOST)))
    told = ((moment(row.at), row.name, msgspec.json.decode(row.body)) for row in rows)
    return tuple((node, at) for at, name, body in told if (node := _failed(name, body)))


def _failed(name: str, body: dict[str, object]) -> str:
    """The node that failed by this record, "" for none."""
    if name == "phase_changed":
        return str(body.get("node", "")) if body.get("after") == "rma" else ""
    condition = body.get("condition")
    if isinstance(condition, dict) and condition.get("type") == "check.failed":
        return str(condition.get("node", ""))
    return ""


def score(
    metrics: Iterable[str], findings: Sequence[DriftFinding], failed: Sequence[Failure], now: datetime
) -> tuple[RuleScore, ...]:
    """The score of each metric. A node's first failure after a finding is what came of it; a later one is its own.

    A failure of a node that had no finding of the metric in the time before counts as missed by it.
    """
    return tuple(_of_metric(name, [one for one in findings if one.metric == name], failed, now) for name in metrics)


def _of_metric(metric: str, findings: Sequence[DriftFinding], failed: Sequence[Failure], now: datetime) -> RuleScore:
    leads, false, waiting = [], 0, 0
    foretold: set[Failure] = set()
    for one in findings:
        came = [at for node, at in failed if node == one.node and one.found <= at <= one.found + WITHIN]
        if came:
            leads.append((min(came) - one.found).total_seconds() / 86_400)
            foretold |= {(one.node, at) for at in came}
        elif now < one.found + WITHIN:
            waiting += 1
        else:
            false += 1
    missed = len({node for node, _ in set(failed) - foretold})
    return RuleScore(metric, len(leads), false, waiting, missed, median(leads) if leads else None)
