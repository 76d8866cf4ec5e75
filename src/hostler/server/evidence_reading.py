"""Reads what a bundle of evidence is made from: a node's records and raw observations."""

from datetime import datetime, timedelta

from hostler.core.report.evidence_bundle import MACHINE_EVENTS, MAX_OBSERVATIONS, MAX_RECORDS, WHOLE_DAYS, Known
from hostler.core.state.events import Record
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
    return Known(fleet, node, records, seen, made)
