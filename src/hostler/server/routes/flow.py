"""Flow: how nodes move through their phases, from the journal's history."""

import asyncio
from datetime import timedelta
from typing import Literal

from litestar import Router, get
from litestar.params import FromQuery

from hostler.core.report.flow import Flow, PhaseStanding, flow, moves_of
from hostler.core.state.model import Phase
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState
from hostler.server.paging import Name

SPANS_H = {"1h": 1, "24h": 24, "7d": 168, "30d": 720}
MOVES_MOST = 10_000
"""Moves that are read, the latest; where there were more, the flow begins with the first of them."""
MOVES = ("phase_changed", "node_registered")


@get("/flow", guards=SEE_CELL)
async def get_flow(
    app_state: TheAppState,
    span: FromQuery[Literal["1h", "24h", "7d", "30d"]] = "24h",
    pool: Name = "",
    rack: Name = "",
    sku: Name = "",
) -> Flow:
    """Counts of nodes by phase over time, moves between phases, and time in each phase against its limit.

    Of nodes that are now in the pool, rack or SKU, wherever they were before.
    """
    standing = _standing(app_state, pool, rack, sku)
    until = app_state.now()
    since = until - timedelta(hours=SPANS_H[span])
    records = await asyncio.to_thread(app_state.cell.journal.named_since, MOVES, since, MOVES_MOST)
    moves = moves_of(records)
    cut = len(records) == MOVES_MOST
    if cut:
        since = max(since, min(record.at for record in records))
    archived = await asyncio.to_thread(app_state.cell.journal.archived)
    return flow(standing, moves, since, until, partial=cut or archived is not None)


def _standing(app_state: AppState, pool: str, rack: str, sku: str) -> dict[str, PhaseStanding]:
    """The nodes that are asked for, as they are; retired ones only where all are."""
    fleet = app_state.fleet
    found = {
        node.id: PhaseStanding(node.phase, node.phase_since)
        for node in (fleet.nodes[name] for name in fleet.nodes)
        if pool in ("", node.pool) and rack in ("", node.position.rack) and sku in ("", node.sku)
    }
    if not (pool or rack or sku):
        found |= {name: PhaseStanding(Phase.retired, fleet.retired[name]) for name in fleet.retired}
    return found


router = Router(path="/", route_handlers=[get_flow], tags=["fleet"])
"""Routes of the flow."""
