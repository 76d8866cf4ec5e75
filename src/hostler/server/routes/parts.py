"""Parts by serial number: those in nodes and on shelves, and of one where it has been and which returns name it."""

import asyncio
from collections.abc import Iterable
from itertools import islice

from litestar import Router, get
from litestar.params import FromPath, FromQuery
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.report.part_story import PartCase, PartPlace, cases, is_named, places
from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.model import Part
from hostler.core.state.verbs.facts import Permission
from hostler.journal.named_records import PAGE, each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.api_resources import HistoryRow, history_row
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, may
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import Before, archived
from hostler.server.node_reach import ids_for, reached, within_reach
from hostler.server.paging import Limit, Name, Page, Selection, paged
from hostler.server.problems import ProblemError, refuse
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity, Role

STORY = record_names(e.PartMoved, e.RmaCaseOpened, e.RmaCaseChanged, e.RmaCaseClosed, e.RecurrenceCounted)
"""Records of a part that its story is made of; all of them are read."""
ALL = 1_000_000
CASES_MOST = 50
"""Returns whose own records are read for the story of a part."""
_SHELF = "~"
"""Before the serial number of a part in no node, among the keys of a search."""


class PartView(Struct, frozen=True):
    """A part with the nodes it has been in and the returns that name it, each the latest first, and its history.

    `part` None: it has gone, or it is a machine's own number, whose `node` is then named. `cases` are for who sees the
    whole cell. `cursor` continues the history (`before`); `archived` as in `Page`.
    """

    part: Part | None
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""
    node: str = ""
    places: tuple[PartPlace, ...] = ()
    cases: tuple[PartCase, ...] = ()


@get("/parts", guards=SEE)
async def list_parts(
    app_state: TheAppState, who: Who, wanted: Wanted, kind: Name = "", shelf: FromQuery[bool] = False
) -> Page[Part]:
    """Parts in nodes, by node; with `shelf=true` those that are in none.

    `q` is looked for in the parts' own serial numbers too, then also of those in no node.
    """
    loose = app_state.fleet.index.members("shelf") if who.whole and _is_of_any_node(wanted) else []
    if shelf:
        return paged(loose, wanted, lambda serial: _loose(app_state, wanted, kind, serial))
    ids = ids_for(app_state, who, wanted)
    keys = [*ids, *(f"{_SHELF}{serial}" for serial in loose)] if wanted.q and loose else ids

    def rows(key: str) -> Iterable[Part]:
        if key.startswith(_SHELF):
            return _loose(app_state, wanted, kind, key.removeprefix(_SHELF))
        return _within(app_state, who, wanted, kind, key)

    return paged(sorted(keys) if keys is not ids else ids, wanted, rows)


def _is_of_any_node(wanted: Selection) -> bool:
    """Whether nothing is asked of the node that a part is in."""
    return wanted == Selection(q=wanted.q, cursor=wanted.cursor, limit=wanted.limit, seq=wanted.seq)


def _loose(app_state: AppState, wanted: Selection, kind: str, serial: str) -> list[Part]:
    part = app_state.fleet.parts.get(serial)
    if part is None or part.node or kind not in ("", part.kind) or wanted.q.lower() not in serial.lower():
        return []
    return [part]


def _within(app_state: AppState, who: Identity, wanted: Selection, kind: str, node_id: str) -> list[Part]:
    """The parts of a node that is selected; all of them where it is what was searched for."""
    if not reached(app_state, who, replace(wanted, q=""), node_id):
        return []
    found = [part for part in app_state.fleet.parts.of(node_id) if kind in ("", part.kind)]
    if not wanted.q or reached(app_state, who, wanted, node_id):
        return found
    return [part for part in found if wanted.q.lower() in part.serial.lower()]


@get("/parts/{serial:str}", guards=SEE)
async def get_part(
    app_state: TheAppState, who: Who, serial: FromPath[str], before: Before = None, limit: Limit = 100
) -> PartView:
    """One part by its serial, with its nodes over time, the returns that name it, and its history, newest first.

    A token that is narrowed reads what was recorded of it in nodes that it sees, also after it has left them, and not
    where else it was; a tenant reads no history.
    """
    fleet = app_state.fleet
    part, machine = fleet.parts.get(serial), fleet.resolve(serial)
    node = machine.id if machine is not None and machine.binding("serial") == serial and sees(who, machine) else ""
    at = fleet.nodes.get(part.node) if part and part.node else None
    if not who.whole and (at is None or not sees(who, at)):
        part = None
    story = await _records(app_state, who, RecordWindow(subject=serial, names=STORY), ALL)
    if part is None and not any(is_named(record.event, serial) for record in story):
        if not node:
            raise _unknown(serial)
        story = []
    wanted = RecordWindow(before=before, subject=serial)
    told = await _records(app_state, who, wanted, limit) if story or node else []
    cursor = str(told[-1].seq) if len(told) == limit else ""
    return PartView(
        part,
        tuple(history_row(record) for record in told),
        cursor,
        await archived(app_state, cursor) if who.whole else "",
        node,
        places(serial, part, story),
        await _cases(app_state, serial, story) if may(who, Permission.see_cell) else (),
    )


def _unknown(serial: str) -> ProblemError:
    what = f"nothing is recorded of a part '{serial[:100]}', and no machine has that serial number"
    instead = "search for a piece of it (hostler part list --search TEXT), or look at its node (hostler node get NODE)"
    return refuse(404, "unknown", what, instead)


async def _records(app_state: AppState, who: Identity, wanted: RecordWindow, limit: int) -> list[Record]:
    """Records about the part as the caller is shown them, newest first."""
    if who.role is Role.tenant:
        return []

    def read() -> list[Record]:
        records = each_record(app_state.cell.journal, wanted, min(limit, PAGE))
        own = (r for r in records if who.whole or within_reach(app_state, who, e.subjects_of(r.event)))
        return list(islice(own, limit))

    found = await asyncio.to_thread(read)
    return found if who.whole else [app_state.shown(who, record) for record in found]


async def _cases(app_state: AppState, serial: str, story: list[Record]) -> tuple[PartCase, ...]:
    """Returns that name the part: open ones as they stand, closed ones as their own records end."""
    standing = app_state.fleet.rma_cases
    named = [case for case in standing.values() if serial in (case.serial, case.fitted, case.replacement)]
    ids = dict.fromkeys(r.event.case.id for r in story if isinstance(r.event, e.RmaCaseOpened | e.RmaCaseChanged))
    over = {record.event.case.id for record in story if isinstance(record.event, e.RmaCaseClosed)}
    left = [one for one in ids if one not in over and one not in standing][:CASES_MOST]
    own = [record for one in left for record in await app_state.named(one, e.RmaCaseClosed)]
    return cases(serial, named, [*story, *own])


router = Router(path="/", route_handlers=[list_parts, get_part], tags=["lists"])
