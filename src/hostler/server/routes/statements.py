"""Statements: node-hours of a month by tenant, from the journal's history."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from litestar import Router, get
from litestar.params import QueryParameter
from msgspec import Struct

from hostler.client.answers import CauseRow, StatementRow, WaitedRow
from hostler.core.report.node_hours import TenantStay, stays
from hostler.core.report.node_standing import AWAY, STANDING_EVENTS
from hostler.core.state.events import NodeReleased, Record
from hostler.core.state.model import Node
from hostler.journal.named_records import each_named_since, each_record, record_names
from hostler.ports import RecordWindow
from hostler.server.app_state import AppState
from hostler.server.auth import SEE
from hostler.server.cell_view import JournalView
from hostler.server.dependencies import TheAppState, Who
from hostler.server.fleet_status import own_pools
from hostler.server.paging import Limit, Name, Page, Selection
from hostler.server.problems import refuse
from hostler.server.token_scope import HOLDERS, intervals, sees
from hostler.server.tokens import Identity

LEFT = record_names(NodeReleased)
"""Departures from pools."""
NAMES_READ = record_names(*STANDING_EVENTS)
"""Records of a node that its statement is made of, all that the journal has."""

TheMonth = Annotated[
    str,
    QueryParameter(
        pattern=r"^(20[0-9]{2}-(0[1-9]|1[0-2]))?$",
        max_length=7,
        description="a month of UTC, as 2026-11; the present one where none is named",
    ),
]


class Month(Struct, frozen=True):
    """A month, the present one until now."""

    since: datetime
    until: datetime


class PageStart(Struct, frozen=True):
    """Node behind which a page begins ("" for the first), and the rows that it may have."""

    cursor: str
    limit: int


class Stretch(Struct, frozen=True):
    """Nodes that are looked at for one page, by id; others follow behind `end`, "" where none do."""

    nodes: tuple[str, ...]
    end: str


class StatementQuery(Struct, frozen=True):
    """Question to the journal: which nodes, whose they were to be ("" for anybody's), and what they are now."""

    month: Month
    tenant: str
    pool: str
    stretch: Stretch
    now: dict[str, Node]
    limit: int


@get("/statement", guards=SEE)
async def get_statement(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState,
    who: Who,
    month: TheMonth = "",
    tenant: Name = "",
    cursor: Name = "",
    limit: Limit = 100,
) -> Page[StatementRow]:
    """Node-hours of a month: a row for each stay of a node in a tenant's pool, its seconds by how the node was.

    Seconds of a row sum to `had_s`. Of the present month until now. A tenant reads its own, also of nodes that left its
    pool, until they did. A token that is narrowed to a site or pool reads of nodes that it sees now.
    """
    now, own = app_state.now(), who.grant.tenant
    if own and tenant not in ("", own):
        raise refuse(403, "forbidden", "a tenant's token reads its own statement", "leave out `tenant`")
    wanted = _month(month, now)
    if wanted is None:
        raise refuse(400, "malformed", f"month {month} has not begun", "name this month or an earlier one")
    journal, stands = app_state.cell.journal, app_state.fleet.cell.seq
    left = await asyncio.to_thread(lambda: list(each_named_since(journal, LEFT, wanted.since)))
    stretch = _stretch(app_state, who, own or tenant, left, PageStart(cursor, limit))
    standing = {name: node for name in stretch.nodes if (node := app_state.fleet.nodes.get(name)) is not None}
    asked = StatementQuery(wanted, own or tenant, who.grant.pool, stretch, standing, limit)
    rows, more = await asyncio.to_thread(_rows, journal, asked)
    return Page(tuple(rows), more, "" if more else await asyncio.to_thread(_missing, journal), stands)


def _month(text: str, now: datetime) -> Month | None:
    """The month of this name until now at most, None where it has not begun."""
    now = now.astimezone(UTC)
    year, number = map(int, text.split("-")) if text else (now.year, now.month)
    since = datetime(year, number, 1, tzinfo=UTC)
    following = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    return Month(since, min(following, now)) if since <= now else None


def _stretch(app_state: AppState, who: Identity, tenant: str, left: Sequence[Record], begin: PageStart) -> Stretch:
    """The next nodes that serve a pool of the caller's (and tenant's), and unless its token is narrowed have left one.

    It is asked on the server's loop: of a large fleet only as many nodes are looked at as the page may have rows. One
    that has no row leaves the page short, with a cursor.
    """
    fleet, narrowed = app_state.fleet, bool(who.grant.site or who.grant.pool)
    pools = {pool.name for pool in own_pools(fleet, who) if tenant in ("", pool.tenant)}
    ids = _ids(app_state, who, tenant, pools)
    start = bisect_right(ids, begin.cursor)
    near = ids[start : start + begin.limit]
    end = near[-1] if start + begin.limit < len(ids) else ""
    serve = {i for i in near if (node := fleet.nodes.get(i)) is not None and node.pool in pools and sees(who, node)}
    gone = () if narrowed else (one.event.node for one in left if isinstance(one.event, NodeReleased))
    return Stretch(tuple(sorted(serve.union(i for i in gone if begin.cursor < i and (not end or i <= end)))), end)


def _ids(app_state: AppState, who: Identity, tenant: str, pools: set[str]) -> list[str]:
    """Sorted ids among which the nodes of these pools are; the whole fleet's are kept sorted."""
    fleet = app_state.fleet
    if who.whole and not tenant:
        return app_state.nodes.ids(fleet, Selection())
    return sorted(i for name in pools for i in fleet.index.members(f"pool:{name}"))


def _missing(journal: JournalView) -> str:
    """Records that this statement lacks, "" for none."""
    gone = journal.archived()
    return gone.text if gone is not None else ""


def _rows(journal: JournalView, asked: StatementQuery) -> tuple[list[StatementRow], str]:
    """The rows of a page, and the node behind which the next one begins; all stays of a node are on one page."""
    found: list[StatementRow] = []
    last = ""
    for node in asked.stretch.nodes:
        rows = _of_node(journal, asked, node)
        if rows and len(found) >= asked.limit:
            return found, last
        last = node if rows else last
        found += rows
    return found, asked.stretch.end


def _of_node(journal: JournalView, asked: StatementQuery, node: str) -> list[StatementRow]:
    now = asked.now.get(node)
    if asked.tenant and not _served(journal, asked.tenant, node, now):
        return []
    records = each_record(journal, RecordWindow(subject=node, names=NAMES_READ, oldest_first=True))
    found = stays(node, records, now, asked.month.since, asked.month.until)
    return [_row(stay) for stay in found if asked.tenant in ("", stay.tenant) and asked.pool in ("", stay.pool)]


def _served(journal: JournalView, tenant: str, node: str, now: Node | None) -> bool:
    """Whether the node was ever the tenant's: few records tell that, and keep others' histories from being read."""
    if now is not None and now.assignment is not None and now.assignment.tenant == tenant:
        return True
    return bool(intervals(list(each_record(journal, RecordWindow(subject=node, names=HOLDERS))), tenant))


def _row(stay: TenantStay) -> StatementRow:
    return StatementRow(
        node=stay.node,
        tenant=stay.tenant,
        pool=stay.pool,
        since=stay.since,
        until=stay.until,
        had_s=stay.had_s,
        healthy_s=stay.seconds("healthy"),
        degraded_s=stay.seconds("degraded"),
        away_s=stay.seconds("away"),
        unknown_s=stay.seconds("unknown"),
        away_by={kind: stay.seconds("away", kind) for kind in AWAY},
        causes=tuple(CauseRow(cause.state, cause.kind, cause.condition, seconds) for cause, seconds in stay.spent),
        waited=tuple(WaitedRow(one.what, one.reason, seconds) for one, seconds in stay.waited),
    )


router = Router(path="/", route_handlers=[get_statement], tags=["fleet"])
"""Routes of the statement."""
