"""The evidence of a node for its vendor: bounded, without secrets and without names of customers."""

import asyncio

from litestar import Router, get
from litestar.params import FromPath

from hostler.core.report.evidence_bundle import (
    MAX_OBSERVATIONS,
    MAX_RECORDS,
    EvidenceBundle,
    Known,
    evidence_bundle,
)
from hostler.core.state.model import Observation
from hostler.core.state.verbs.facts import Permission
from hostler.server.auth import needs
from hostler.server.cell_view import ObservationLog
from hostler.server.dependencies import TheAppState, Who


@get("/nodes/{node_id:str}/evidence", guards=[needs(Permission.see_cell)])
async def node_evidence(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> EvidenceBundle:
    """Files for a vendor's case: timeline, log, checks, parts, firmware, sensors, and the case's own fields."""
    node, journal = app_state.node(who, node_id), app_state.cell.journal
    records = await asyncio.to_thread(journal.history, node.id, None, MAX_RECORDS)
    seen: list[Observation] = []
    if isinstance(journal, ObservationLog):
        seen = await asyncio.to_thread(journal.observations_of, node.id, None, MAX_OBSERVATIONS)
    known = Known(app_state.fleet, node, records, seen, app_state.now())
    return await asyncio.to_thread(evidence_bundle, known)


router = Router(path="/", route_handlers=[node_evidence], tags=["nodes"])
