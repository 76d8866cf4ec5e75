"""Events of returns to vendors and of spares in stock."""

from datetime import datetime

from msgspec import Struct

from hostler.core.state.events.row import EventRow, EventRows, FoldError
from hostler.core.state.fleet import Fleet
from hostler.core.state.rma_cases import CaseResult, RmaCase, StockLine


class RmaCaseOpened(Struct, frozen=True, tag="rma_case_opened"):
    """A part or a chassis is to be returned or replaced. `person` is "hostler" where triage opened it."""

    case: RmaCase
    person: str
    reason: str


class RmaCaseChanged(Struct, frozen=True, tag="rma_case_changed"):
    """The whole case as it now stands: a step was taken, a field was filled in, or it is overdue."""

    case: RmaCase
    person: str
    reason: str


class RmaCaseClosed(Struct, frozen=True, tag="rma_case_closed"):
    """The case has come to its result."""

    case: RmaCase
    result: CaseResult
    person: str
    reason: str


class StockChanged(Struct, frozen=True, tag="stock_changed"):
    """The line as it now stands; `before` is the count that it had. `case` took or brought a spare, "" for a count."""

    line: StockLine
    before: int
    person: str
    reason: str
    case: str = ""


RmaEvent = RmaCaseOpened | RmaCaseChanged | RmaCaseClosed | StockChanged


def _of_case(event: RmaCaseOpened | RmaCaseChanged | RmaCaseClosed) -> tuple[str, ...]:
    case = event.case
    names = (case.node, case.id, case.serial, case.fitted, case.ticket)
    return tuple(dict.fromkeys(name for name in names if name))


def _put(fleet: Fleet, event: RmaCaseOpened | RmaCaseChanged, _at: datetime) -> None:
    fleet.put_rma_case(event.case.id, event.case)


def _close(fleet: Fleet, event: RmaCaseClosed, _at: datetime) -> None:
    fleet.put_rma_case(event.case.id, None)


def _stock(fleet: Fleet, event: StockChanged, _at: datetime) -> None:
    line = event.line
    if line.count < 0:
        raise FoldError(f"{line.count} of {line.part_number} in stock at {line.site}")
    fleet.stock.put(line.id, line if line.count or line.least else None)


ROWS: EventRows = (
    EventRow(RmaCaseOpened, _of_case, _put),
    EventRow(RmaCaseChanged, _of_case, _put),
    EventRow(RmaCaseClosed, _of_case, _close),
    EventRow(StockChanged, lambda e: (f"stock:{e.line.id}",), _stock),
)
