"""Drills: which run, which have ended, and each one's clock, read from the records of its node."""

import asyncio
from collections.abc import Iterable

from litestar import Router, get
from litestar.params import FromPath

from hostler.core.report.drill_clock import DrillClock, clocks, filled_by
from hostler.core.state.events import Record
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import EXPLAINED_MAX, history
from hostler.server.paging import Page, listed
from hostler.server.tokens import Role


@get("/drills", guards=SEE_CELL)
async def list_drills(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[DrillClock]:
    """The last drill of each node that had one, with its clock."""
    nodes = ((node.id, node.id) for node in app_state.fleet.nodes.values() if node.drill is not None)
    page = listed(nodes, wanted)
    found = [
        (await _clocks(app_state, await history(app_state, who, one, None, EXPLAINED_MAX), one))[:1]
        for one in page.items
    ]
    return page.of(clock for first in found for clock in first)


@get("/drills/{node_id:str}", guards=SEE)
async def node_drills(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Page[DrillClock]:
    """The drills among a node's last 1,000 records, the latest first, each with its clock."""
    stands = app_state.fleet.cell.seq
    records = await history(app_state, who, node_id, None, EXPLAINED_MAX)
    node = app_state.fleet.resolve(node_id)
    name = node.id if node is not None else node_id
    found = clocks(name, records) if who.role is Role.tenant else await _clocks(app_state, records, name)
    return Page(found, seq=stands)


async def _clocks(app_state: AppState, records: Iterable[Record], node: str) -> tuple[DrillClock, ...]:
    """The clocks with the moment in which another node served in the place, by that node's records."""
    found: list[DrillClock] = []
    for clock in clocks(node, records):
        of_place = (
            await asyncio.to_thread(app_state.cell.journal.history, clock.place, None, EXPLAINED_MAX)
            if clock.place
            else []
        )
        found.append(filled_by(clock, of_place))
    return tuple(found)


router = Router("/", route_handlers=[list_drills, node_drills], tags=["Nodes"])
