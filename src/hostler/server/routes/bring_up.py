"""Bring-up: nodes on their way to production, beside how the nodes before them fared."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from litestar import Router, get
from msgspec.structs import replace

from hostler.core.report.bring_up import STAGES, BringUpRow, Journeys, StageRow, journeys, row_of, stage_rows
from hostler.core.report.flow import moves_of
from hostler.core.state.model import Node
from hostler.server.api_resources import AgentSeen
from hostler.server.app_state import AppState
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_reach import reached
from hostler.server.paging import Page, Selection, paged
from hostler.server.routes.flow import MOVES, MOVES_MOST
from hostler.server.tokens import Identity

COHORT_DAYS = 30
"""Moves of so many days tell how cohorts fare, the latest `MOVES_MOST` of them."""


@get("/bring-up", guards=SEE_CELL)
async def list_bring_up(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[BringUpRow]:
    """Nodes on their way to production: their stage, what blocks them, what a person does next, when they may arrive.

    Cohorts are nodes of one SKU, on their first way or back from repair, by their moves of the last 30 days.
    """
    known, now = await _journeys(app_state), app_state.now()
    page = paged(_ids(app_state, wanted), wanted, lambda i: reached(app_state, who, wanted, i))
    rows = [row_of(node, known, now, _doing(app_state, node)) for node in page.items]
    standings = [await app_state.burn_ins.standing(node, now) for node in page.items]
    return page.of(replace(row, burn_in=one) for row, one in zip(rows, standings, strict=True))


@get("/bring-up/stages", guards=SEE_CELL)
async def list_stages(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[StageRow]:
    """Stages of the bring-up by SKU: nodes that are there now, how many wait, and how long those before them took."""
    known = await _journeys(app_state)
    rows = stage_rows(_selected(app_state, who, wanted), known)
    named = {f"{at:05d}": row for at, row in enumerate(rows) if row.nodes or _is_asked_for(row, wanted)}
    return paged(list(named), wanted, lambda key: (named[key],))


def _is_asked_for(row: StageRow, wanted: Selection) -> bool:
    """Whether a stage without nodes is shown for its cohort: not where single nodes were asked for."""
    narrowed = wanted.searches or wanted.rack or wanted.pool or wanted.condition
    return not narrowed and wanted.phase in (None, row.phase) and wanted.sku in ("", row.sku)


def _ids(app_state: AppState, wanted: Selection) -> list[str]:
    index = app_state.fleet.index
    return sorted(i for stage in STAGES if wanted.phase in (None, stage) for i in index.members(f"phase:{stage}"))


def _selected(app_state: AppState, who: Identity, wanted: Selection) -> Iterable[Node]:
    return (node for i in _ids(app_state, wanted) for node in reached(app_state, who, wanted, i))


async def _journeys(app_state: AppState) -> Journeys:
    since = app_state.now() - timedelta(days=COHORT_DAYS)
    records = await asyncio.to_thread(app_state.cell.journal.named_since, MOVES, since, MOVES_MOST)
    moves, nodes = moves_of(records), app_state.fleet.nodes
    skus = {move.node: node.sku for move in moves if (node := nodes.get(move.node)) is not None}
    return await asyncio.to_thread(journeys, moves, skus)


def _doing(app_state: AppState, node: Node) -> str:
    """The agent's word on a long check, while it is heard."""
    return app_state.agents.get(node.id, AgentSeen()).doing if app_state.agent_view(node).heard else ""


router = Router(path="/", route_handlers=[list_bring_up, list_stages], tags=["fleet"])
