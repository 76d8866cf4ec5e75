"""Reads what a bundle of evidence is made from: a node's records and raw observations."""

from datetime import datetime, timedelta
from itertools import islice

from hostler.core.report.evidence_bundle import (
    CITED_MOST,
    MACHINE_EVENTS,
    MAX_OBSERVATIONS,
    MAX_RECORDS,
    WHOLE_DAYS,
    Known,
)
from hostler.core.state.events import ConditionRaised, Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Observation
from hostler.journal.named_records import each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.cell_view import JournalView, ObservationLog


def known(fleet: Fleet, node: Node, journal: JournalView, made: datetime) -> Known:
    """Records and observations of the node at this moment. Blocking; raises JournalError."""
    wanted = RecordWindow(subject=node.id, names=record_names(*MACHINE_EVENTS))
    since = made - timedelta(days=WHOLE_DAYS)
    records = list[Record]()
    for record in each_record(journal, wanted):
        if len(records) >= MAX_RECORDS and record.at < since:
            break
        records.append(record)
    seen: list[Observation] = []
    if isinstance(journal, ObservationLog):
        seen = journal.observations_of(node.id, None, MAX_OBSERVATIONS)
    log_since = seen[-1].received if len(seen) == MAX_OBSERVATIONS else None
    return Known(fleet, node, records, _with_cited(journal, records, seen), made, log_since)


def _with_cited(journal: JournalView, records: list[Record], seen: list[Observation]) -> list[Observation]:
    """The observations, newest first, and those beyond them on which a condition among the records rests.

    A log that repeats itself fills any number of last lines within minutes; the line of the fault is read by its id.
    """
    there = {one.id for one in seen}
    cited = dict.fromkeys(
        evidence.observation
        for record in records
        if isinstance(record.event, ConditionRaised)
        for evidence in record.event.condition.evidence
        if evidence.observation and evidence.observation not in there
    )
    found = (journal.observation(one) for one in islice(cited, CITED_MOST))
    older = [one for one in found if one is not None and one.received is not None]
    return [*seen, *sorted(older, key=_received, reverse=True)]


def _received(seen: Observation) -> datetime:
    assert seen.received is not None, "asked of stored observations only"
    return seen.received
