"""Stories that a node's records tell: its history, why it is where it is, its life in lanes, and raw observations."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated

from litestar import Router, get
from litestar.params import FromPath, QueryParameter
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.policy.abilities import excluded_by
from hostler.core.report.explain import explain, probation_of
from hostler.core.report.explanation_chains import Explanation
from hostler.core.report.lanes import LANE_EVENTS, Lanes, lanes
from hostler.core.report.last_failures import last_failures
from hostler.core.report.next_actor import acts_next
from hostler.core.state.model import Node, Observation
from hostler.journal.named_records import record_names
from hostler.server.api_resources import AgentSeen, HistoryRow, history_row
from hostler.server.app_state import AppState
from hostler.server.auth import SEE
from hostler.server.cell_view import ObservationLog
from hostler.server.dependencies import TheAppState, Who
from hostler.server.node_histories import (
    EXPLAINED_LEAST,
    LANES_LEAST,
    RECENT_DAYS,
    Before,
    HistoryQuery,
    archived,
    history,
)
from hostler.server.paging import Limit, Name, Page
from hostler.server.problems import refuse
from hostler.server.running_jobs import job_spans
from hostler.server.token_scope import sees
from hostler.server.tokens import Role

LANES_READ = record_names(*LANE_EVENTS)
"""Records that a node's lanes are made of."""
LOOKED_MOST, LOOKED_AT_ONCE = 20_000, 10_000
"""Observations that one page looks through for those of a source, and in one question to the journal."""
Beyond = Annotated[
    str, QueryParameter(max_length=400, description="go on beyond this observation (the last page's cursor)")
]


@get("/nodes/{node_id:str}/history", guards=SEE)
async def node_history(
    app_state: TheAppState, who: Who, node_id: FromPath[str], before: Before = None, limit: Limit = 100
) -> Page[HistoryRow]:
    """Records about a node, newest first; of a retired one too."""
    stands = app_state.fleet.cell.seq
    records = await history(app_state, who, node_id, HistoryQuery(before, limit))
    cursor = str(records[-1].seq) if len(records) == limit else ""
    return Page(tuple(history_row(r) for r in records), cursor, await archived(app_state, cursor), stands)


@get("/nodes/{node_id:str}/explain", guards=SEE)
async def node_explain(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Explanation:
    """Why a node is where it is: evidence → condition → rule → remedy → operations → outcome, latest first.

    From the records of the last 7 days, and from those of the time since which its conditions stand, at least the last
    1,000; `since` is the first of them.
    """
    node = app_state.fleet.resolve(node_id)
    asked = HistoryQuery(None, EXPLAINED_LEAST, since=_asked_since(app_state, node))
    records = await history(app_state, who, node_id, asked)
    if node is not None and not sees(who, node):
        node = None
    told = replace(explain(records, app_state.shown(who, node)), since=records[-1].at if records else None)
    if node is None:
        return told
    told = replace(told, acts_next=acts_next(app_state.fleet, node), failures=last_failures(node, app_state.now()))
    if who.role is Role.tenant:
        return told
    standing = await app_state.burn_ins.standing(node, app_state.now())
    cannot = tuple(
        f"{', '.join(names)}: {one.why}; {one.mend}" for one, names in excluded_by(app_state.context(), node)
    )
    told = replace(told, probation=probation_of(node, app_state.now()), burn_in=standing, cannot=cannot)
    if not app_state.agent_view(node).heard:
        return told
    return replace(told, progress=app_state.agents.get(node.id, AgentSeen()).doing)


def _asked_since(app_state: AppState, node: Node | None) -> datetime:
    """The moment since which everything about the node is read: what it has now began since then."""
    since = app_state.now() - timedelta(days=RECENT_DAYS)
    if node is None:
        return since
    began = [one.since for one in node.conditions]
    return min([since, *began, *([node.plan.recorded_at] if node.plan is not None else [])])


@get("/nodes/{node_id:str}/lanes", guards=SEE)
async def node_lanes(app_state: TheAppState, who: Who, node_id: FromPath[str], before: Before = None) -> Lanes:
    """A node's life as spans: phases, pools, conditions, plans, operations, checks, tickets, holds, parts, people.

    Jobs are those that run now, in the latest part alone: no record keeps them. The rest is of the last 7 days, or the
    last ones before record `before`, and further back until 10,000 records are read. Where they are `partial`, an
    earlier part is before their `first` record.
    """
    until = app_state.now()
    if before is not None:
        (last,) = await history(app_state, who, node_id, HistoryQuery(before, 1, LANES_READ)) or (None,)
        until = last.at if last is not None else until
    asked = HistoryQuery(before, LANES_LEAST, LANES_READ, until - timedelta(days=RECENT_DAYS))
    records = await history(app_state, who, node_id, asked)
    node = app_state.fleet.resolve(node_id)
    found = lanes(node.id if node else node_id, records, earlier=before is not None)
    if node is None or before is not None or not sees(who, node):
        return found
    jobs = job_spans(node, app_state.cell.live, who.grant.tenant, app_state.now(), app_state.fleet.cell.seq)
    spans = sorted((*found.intervals, *jobs), key=lambda span: (span.since, span.seq))
    return replace(found, intervals=tuple(spans))


@get("/nodes/{node_id:str}/observations", guards=SEE)
async def node_observations(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState, who: Who, node_id: FromPath[str], source: Name = "", cursor: Beyond = "", limit: Limit = 100
) -> Page[Observation]:
    """Raw observations of a node, newest first; `source=bmc` gives its BMC's log.

    With a source a page looks through 20,000 observations at most, and may be short, or empty, while it has a cursor.
    """
    node, journal, stands = app_state.node(who, node_id), app_state.cell.journal, app_state.fleet.cell.seq
    if not isinstance(journal, ObservationLog):
        raise refuse(501, "unsupported", "this journal does not list observations", "read the history instead")
    since = node.assignment.since if who.role is Role.tenant and node.assignment else None
    place = await asyncio.to_thread(app_state.cell.journal.observation, cursor) if cursor else None
    if cursor and (place is None or place.node != node.id):
        what = f"observation '{cursor}' of {node.id} is not kept"
        raise refuse(404, "unknown", what, "list from the newest on, without a cursor")
    found, goes_on = await asyncio.to_thread(_seen_by, journal, SeenQuery(node.id, since, source, limit, cursor))
    return Page(tuple(found), goes_on, seq=stands)


class SeenQuery(Struct, frozen=True):
    """Observations that are asked for: of a node, since a moment, of one source ("": of all), beyond one of them."""

    node: str
    since: datetime | None
    source: str
    limit: int
    beyond: str


def _seen_by(journal: ObservationLog, asked: SeenQuery) -> tuple[list[Observation], str]:
    """One page, and the observation beyond which the next begins ("": nowhere).

    What others say of the node is passed over here: a log of its agent's hides nothing of its BMC's.
    """
    found: list[Observation] = []
    last, size = asked.beyond, LOOKED_AT_ONCE if asked.source else asked.limit
    for _ in range(LOOKED_MOST // LOOKED_AT_ONCE):
        page = journal.observations_of(asked.node, asked.since, size, last)
        for seen in page:
            last = seen.id
            if asked.source in ("", seen.source):
                found.append(seen)
            if len(found) == asked.limit:
                return found, last
        if len(page) < size:
            return found, ""
    return found, last


router = Router(path="/", route_handlers=[node_history, node_explain, node_lanes, node_observations], tags=["nodes"])
