"""Returns to vendors and spares in stock."""

from datetime import datetime

from litestar import Router, get
from litestar.params import FromPath, FromQuery
from msgspec import Struct

from hostler.core.state.events import RmaCaseOpened
from hostler.core.state.rma_cases import CaseStep, RmaCase, StockLine
from hostler.core.tables.rma_steps import next_steps
from hostler.server.api_resources import HistoryRow
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import Before
from hostler.server.paging import Limit, Name, Page, listed
from hostler.server.problems import unknown
from hostler.server.rows import row_of
from hostler.server.subject_histories import subject_history


class RmaRow(Struct, frozen=True):
    """An open case as a list shows it. `waits_for` are the steps that may be next; `overdue`: `due` is over."""

    id: str
    node: str
    kind: str
    state: CaseStep
    since: datetime
    waits_for: tuple[str, ...]
    due: datetime | None
    overdue: bool
    component: str
    serial: str
    slot: str
    part_number: str
    site: str
    fault: str
    ticket: str
    vendor: str
    vendor_case: str
    replacement: str
    fitted: str
    macs: tuple[str, ...]
    opened: datetime


class RmaView(Struct, frozen=True):
    """A case with its history, newest first. A closed one has only that.

    `cursor` goes on with the history (`before`), "" where it is whole; `archived` says where what came before is.
    """

    case: RmaCase | None
    waits_for: tuple[str, ...]
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""


class StockRow(Struct, frozen=True):
    """Spares of one part number at one site. `low`: fewer than somebody said they should be."""

    id: str
    site: str
    part_number: str
    count: int
    least: int
    low: bool


@get("/rma-cases", guards=SEE_CELL)
async def list_cases(
    app_state: TheAppState, wanted: Wanted, node: Name = "", overdue: FromQuery[bool] = False
) -> Page[RmaRow]:
    """Open returns to vendors; closed ones stand in the histories of their node, part and case."""
    now = app_state.now()
    rows = (_row(case, now) for case in app_state.fleet.rma_cases.values() if node in ("", case.node))
    return listed(((row.id, row) for row in rows if row.overdue or not overdue), wanted)


def _row(case: RmaCase, now: datetime) -> RmaRow:
    return row_of(
        RmaRow,
        case,
        since=case.steps[-1].at,
        waits_for=_waits_for(case),
        overdue=case.due is not None and case.due <= now,
    )


def _waits_for(case: RmaCase) -> tuple[str, ...]:
    return tuple(row.step.value for row in next_steps(case))


@get("/rma-cases/{case_id:str}", guards=SEE_CELL)
async def get_case(
    app_state: TheAppState, who: Who, case_id: FromPath[str], before: Before = None, limit: Limit = 200
) -> RmaView:
    """One return with its history."""
    case = app_state.fleet.rma_cases.get(case_id)
    if case is None and not await app_state.named(case_id, RmaCaseOpened):
        raise unknown("return", case_id)
    page = await subject_history(app_state, who, [case_id], before, limit)
    told = tuple(row for row in page.rows if row.name != "ticket_opened")
    return RmaView(case, _waits_for(case) if case is not None else (), told, page.cursor, page.archived)


@get("/stock", guards=SEE_CELL)
async def list_stock(
    app_state: TheAppState, wanted: Wanted, site: Name = "", low: FromQuery[bool] = False
) -> Page[StockRow]:
    """Spares by site and part number, as they were counted, came and were fitted."""
    rows = (_stock_row(line) for line in app_state.fleet.stock.values() if site in ("", line.site))
    return listed(((row.id, row) for row in rows if row.low or not low), wanted)


def _stock_row(line: StockLine) -> StockRow:
    return StockRow(line.id, line.site, line.part_number, line.count, line.least, line.count < line.least)


router = Router(path="/", route_handlers=[list_cases, get_case, list_stock], tags=["returns"])
