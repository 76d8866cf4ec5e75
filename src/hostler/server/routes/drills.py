"""Drills: which run, which have ended, and each one's clock, read from the records of its node."""

import asyncio
from collections.abc import Iterable

from litestar import Router, get
from litestar.params import FromPath

from hostler.core.report.drill_clock import DRILL_EVENTS, DrillClock, clocks, filled_by
from hostler.core.state.events import DrillBegan, OperationFinished, Record
from hostler.journal.named_records import each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import HistoryQuery, history
from hostler.server.paging import Page, listed
from hostler.server.tokens import Identity, Role

BEGAN = record_names(DrillBegan)
READ = record_names(*DRILL_EVENTS)
FILLS = record_names(OperationFinished)
EVERY = 1_000_000
"""Drills of a node, and records of their courses: people start few, and all of them are read."""


@get("/drills", guards=SEE_CELL)
async def list_drills(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[DrillClock]:
    """The last drill of each node that had one, with its clock."""
    nodes = ((node.id, node.id) for node in app_state.fleet.nodes.values() if node.drill is not None)
    page = listed(nodes, wanted)
    found = [(await _clocks(app_state, await _records(app_state, who, one, 1), one))[:1] for one in page.items]
    return page.of(clock for first in found for clock in first)


@get("/drills/{node_id:str}", guards=SEE)
async def node_drills(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Page[DrillClock]:
    """The drills of a node that the journal has, the latest first, each with its clock."""
    stands = app_state.fleet.cell.seq
    records = await _records(app_state, who, node_id, EVERY)
    node = app_state.fleet.resolve(node_id)
    name = node.id if node is not None else node_id
    found = clocks(name, records) if who.role is Role.tenant else await _clocks(app_state, records, name)
    return Page(found, seq=stands)


async def _records(app_state: AppState, who: Identity, name: str, drills: int) -> list[Record]:
    """Records about a node's last drills, from the first one's begin on. Raises ProblemError (404)."""
    began = await history(app_state, who, name, HistoryQuery(None, drills, BEGAN))
    if not began:
        return []
    return await history(app_state, who, name, HistoryQuery(None, 0, READ, began[-1].at))


async def _clocks(app_state: AppState, records: Iterable[Record], node: str) -> tuple[DrillClock, ...]:
    """The clocks with the moment in which another node served in the place, by that node's records."""
    found: list[DrillClock] = []
    for clock in clocks(node, records):
        of_place = await asyncio.to_thread(_since, app_state, clock) if clock.place else []
        found.append(filled_by(clock, of_place))
    return tuple(found)


def _since(app_state: AppState, clock: DrillClock) -> list[Record]:
    """Records of the node that fills the drilled one's place, since the drill."""
    journal = app_state.cell.journal
    first = journal.first_since(clock.since)
    wanted = RecordWindow(after=first - 1, subject=clock.place, names=FILLS)
    return list(each_record(journal, wanted)) if first else []


router = Router("/", route_handlers=[list_drills, node_drills], tags=["Nodes"])
