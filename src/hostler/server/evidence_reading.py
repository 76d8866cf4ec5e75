"""Reads what a bundle of evidence is made from: a node's records and raw observations."""

from datetime import datetime

from hostler.core.report.evidence_bundle import MAX_OBSERVATIONS, MAX_RECORDS, Known
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Observation
from hostler.server.cell_view import JournalView, ObservationLog


def known(fleet: Fleet, node: Node, journal: JournalView, made: datetime) -> Known:
    """Records and observations of the node at this moment. Blocking; raises JournalError."""
    records = journal.history(node.id, None, MAX_RECORDS)
    seen: list[Observation] = []
    if isinstance(journal, ObservationLog):
        seen = journal.observations_of(node.id, None, MAX_OBSERVATIONS)
    return Known(fleet, node, records, seen, made)
