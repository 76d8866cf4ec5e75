"""Maintenance of all nodes or of one: windows, work, notices, and what was repaired."""

import asyncio
from datetime import timedelta
from functools import partial

from litestar import Router, get
from msgspec.structs import replace

from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.journal.named_records import each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.app_state import AppState
from hostler.server.auth import SEE
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.maintenance_report import (
    ASSIGNING,
    DEEDS_MAX,
    REPAIRS_MAX,
    Maintenance,
    NoticeRow,
    WorkRow,
    deeds_of,
    notices_of,
    opened_tickets,
    repair,
    was_taken,
    with_account,
    work_of,
)
from hostler.server.node_histories import HistoryQuery, history
from hostler.server.node_reach import scopes_within, selected, within_reach
from hostler.server.paging import Name, paged
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity

TICKETS = record_names(e.TicketOpened, e.TicketUpdated)
CLOSING = record_names(e.TicketClosed)
ENDED, MOVED = record_names(e.OperationFinished), record_names(e.PartMoved)
SERVED = record_names(e.NodeAssigned, e.NodeRegistered)
DEEDS_LEAST, DEEDS_DAYS = 1_000, 30
"""Deeds are looked for among so many ended operations at least, and in all of so many days."""
ALL = 1_000_000
"""Tickets of a node, and the times that it was assigned: all are read."""


@get("/maintenance", guards=SEE)
async def maintenance(app_state: TheAppState, who: Who, wanted: Wanted, node: Name = "") -> Maintenance:
    """Windows, current and upcoming work, notices; for one node (`node=`) its repair history too (BFX02)."""
    fleet = app_state.fleet
    if node:
        return await _of_one(app_state, who, node)
    at_work = sorted(
        {i for key in ("planned", "waiting", "ailing") for i in fleet.index.members(key)} | _ticketed(fleet)
    )
    tickets: dict[str, list[Ticket]] = {}
    for ticket in fleet.tickets.values():
        tickets.setdefault(ticket.node, []).append(ticket)
    shown = partial(app_state.shown, who)
    page = paged(within_reach(app_state, who, at_work), wanted, lambda i: selected(app_state, who, wanted, i))
    accounts = await asyncio.to_thread(_assignments, app_state, [n.id for n in page.items if was_taken(n)])
    work = tuple(
        row
        for n in page.items
        for row in with_account(n, work_of(fleet, n, shown(tickets.get(n.id, ()))), accounts.get(n.id, ()))
    )
    notices = tuple(row for n in page.items for row in notices_of(n))
    seen = None if who.whole else scopes_within(app_state, who)
    windows = tuple(w for w in fleet.windows.values() if seen is None or w.scope in seen)
    return Maintenance(shown(windows), work, (*notices, *_retired(app_state, who)), cursor=page.cursor)


def _assignments(app_state: AppState, ids: list[str]) -> dict[str, list[Record]]:
    """For each node the records that tell whom it served last: one or two, found by their names."""
    journal, found = app_state.cell.journal, dict[str, list[Record]]()
    for node_id in ids:
        for name in ASSIGNING:
            if found.setdefault(node_id, []):
                break
            found[node_id] = journal.window(RecordWindow(subject=node_id, name=name), 1)
    return found


def _ticketed(fleet: Fleet) -> set[str]:
    return {ticket.node for ticket in fleet.tickets.values() if ticket.node in fleet.nodes}


RETIRED_SHOWN = 100


def _retired(app_state: AppState, who: Identity) -> tuple[NoticeRow, ...]:
    """The latest retirements."""
    if not who.whole:
        return ()
    latest = sorted(app_state.fleet.retired.base.items(), key=lambda item: item[1], reverse=True)[:RETIRED_SHOWN]
    return tuple(NoticeRow(node_id, "", "retired", at) for node_id, at in latest)


async def _of_one(app_state: AppState, who: Identity, name: str) -> Maintenance:
    fleet = app_state.fleet
    opened = await history(app_state, who, name, HistoryQuery(None, ALL, TICKETS))
    since = app_state.now() - timedelta(days=DEEDS_DAYS)
    ended = await history(app_state, who, name, HistoryQuery(None, DEEDS_LEAST, ENDED, since))
    moved = await history(app_state, who, name, HistoryQuery(None, DEEDS_MAX + 1, MOVED))
    node = fleet.resolve(name)
    if node is not None and not sees(who, node):
        node = None
    repairs: list[WorkRow] = []
    tickets_opened = opened_tickets(opened)
    repairs_since = tickets_opened[REPAIRS_MAX - 1].opened if len(tickets_opened) > REPAIRS_MAX else None
    for ticket in tickets_opened[:REPAIRS_MAX]:
        closing = await asyncio.to_thread(_closing, app_state, ticket.id)
        repairs.append(repair(node, ticket, app_state.shown(who, closing)))
    known_since = ended[-1].at if len(ended) >= DEEDS_LEAST else None
    deeds = deeds_of(node.id if node is not None else name, ended, moved, known_since)
    told = Maintenance((), (), (), tuple(repairs), deeds.rows, "", repairs_since, deeds.since)
    if node is None:
        return told
    holding = frozenset(scopes(app_state.context().fleet, node))
    windows = app_state.shown(who, tuple(w for w in fleet.windows.values() if w.scope in holding))
    tickets = app_state.shown(who, tuple(t for t in fleet.tickets.values() if t.node == node.id))
    node = app_state.shown(who, node)
    served = await history(app_state, who, name, HistoryQuery(None, 1, SERVED))
    work = with_account(node, work_of(fleet, node, tickets), served)
    return replace(told, windows=windows, work=work, notices=tuple(notices_of(node)))


def _closing(app_state: AppState, ticket: str) -> list[Record]:
    return list(each_record(app_state.cell.journal, RecordWindow(subject=ticket, names=CLOSING)))


router = Router(path="/", route_handlers=[maintenance], tags=["lists"])
