"""Judges who has troubles too often: nodes, and parts by serial number, from the journal; for a process of its own."""

from datetime import datetime, timedelta

import numpy as np
from msgspec.structs import replace
from sqlalchemy import select

from hostler.core.report.service_troubles import READ, UnitHistory, histories
from hostler.core.state.events import Record
from hostler.core.state.live_state import Release
from hostler.core.state.trends import LemonFinding, TrendReport
from hostler.core.statistics.lemons import score
from hostler.journal import queries
from hostler.journal.codec import LIMIT_MAX, StoredRow, micros, moment, unseal
from hostler.journal.database import Database
from hostler.journal.schema import records
from hostler.journal.sql import SqlJournal
from hostler.runtime.replica import load

WINDOW = timedelta(days=180)
"""Time in service that is looked at, as far as the journal goes back."""
PEERS_LEAST = 20
"""Units of a kind that have been in service; among fewer nobody knows what is usual."""
FALSE_MOST = 0.1
"""Of the lemons of a kind, the expected share of false ones at most."""
READ_MOST = 1_000_000
"""Records that are read, the latest; the time before them does not count."""
LISTED_MOST = 1_000
YEAR_DAYS = 365.25


def judge_lemons(database: Database, report: TrendReport) -> TrendReport:
    """The report with all units that had troubles, the likeliest lemons first. Raises JournalError."""
    fleet = load(SqlJournal(database), Release().reads)
    told, since = _told(database, report.at)
    groups: dict[tuple[str, str], list[UnitHistory]] = {}
    for one in histories(fleet, told, since, report.at):
        groups.setdefault((one.unit, one.kind), []).append(one)
    found = [finding for units in groups.values() for finding in _judged(units)]
    found.sort(key=lambda one: (not one.lemon, -one.probability, one.unit, one.name))
    return replace(report, lemons=tuple(found[:LISTED_MOST]), lemons_since=since)


def _told(database: Database, until: datetime) -> tuple[list[Record], datetime]:
    """Records that tell of service and troubles, and the moment from which on all of them are there."""
    since, found = until - WINDOW, list[Record]()
    with database.reading() as connection:
        first = queries.page(connection, queries.beginning(connection)[0], 1)
    if first:
        since = max(since, moment(first[0].at))
    c = records.c
    wanted = select(records).where(c.at >= micros(since), c.name.in_(READ)).order_by(c.seq.desc()).limit(LIMIT_MAX)
    while len(found) < READ_MOST:
        before = wanted.where(c.seq < found[-1].seq) if found else wanted
        with database.reading() as connection:
            page = [unseal(StoredRow._make(row)) for row in connection.execute(before)]
        found += page
        if len(page) < LIMIT_MAX:
            return found, since
    return found, found[-1].at


def _judged(units: list[UnitHistory]) -> list[LemonFinding]:
    """Units of one kind that had troubles. None where too few have been in service to say what is usual."""
    counts = np.array([one.count for one in units], dtype=np.int64)
    years = np.array([one.days for one in units]) / YEAR_DAYS
    if np.count_nonzero(years) < PEERS_LEAST:
        return []
    scores = score(counts, years, FALSE_MOST)
    return [
        LemonFinding(
            unit=one.unit,
            name=one.name,
            kind=one.kind,
            node=one.node,
            nodes=one.nodes,
            days=one.days,
            troubles=one.troubles,
            rate=float(scores.rate[row]),
            low=float(scores.low[row]),
            high=float(scores.high[row]),
            usual=scores.prior.mean,
            probability=float(scores.probability[row]),
            q_value=float(scores.false_share[row]),
            lemon=bool(scores.lemons[row]),
        )
        for row, one in enumerate(units)
        if one.count and one.days > 0
    ]
