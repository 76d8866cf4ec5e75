"""Stories that a node's records tell: its history, why it is where it is, its life in lanes, and raw observations."""

import asyncio

from litestar import Router, get
from litestar.params import FromPath
from msgspec.structs import replace

from hostler.core.policy.abilities import excluded_by
from hostler.core.report.explain import explain, probation_of
from hostler.core.report.explanation_chains import Explanation
from hostler.core.report.lanes import Lanes, lanes
from hostler.core.report.last_failures import last_failures
from hostler.core.report.next_actor import acts_next
from hostler.core.state.model import Observation
from hostler.server.api_resources import AgentSeen, HistoryRow, history_row
from hostler.server.auth import SEE
from hostler.server.cell_view import ObservationLog
from hostler.server.dependencies import TheAppState, Who
from hostler.server.node_histories import EXPLAINED_MAX, LANES_MAX, Before, archived, history
from hostler.server.paging import Limit, Name, Page
from hostler.server.problems import refuse
from hostler.server.running_jobs import job_spans
from hostler.server.token_scope import sees
from hostler.server.tokens import Role


@get("/nodes/{node_id:str}/history", guards=SEE)
async def node_history(
    app_state: TheAppState, who: Who, node_id: FromPath[str], before: Before = None, limit: Limit = 100
) -> Page[HistoryRow]:
    """Records about a node, newest first; of a retired one too."""
    stands = app_state.fleet.cell.seq
    records = await history(app_state, who, node_id, before, limit)
    cursor = str(records[-1].seq) if len(records) == limit else ""
    return Page(tuple(history_row(r) for r in records), cursor, await archived(app_state, cursor), stands)


@get("/nodes/{node_id:str}/explain", guards=SEE)
async def node_explain(app_state: TheAppState, who: Who, node_id: FromPath[str]) -> Explanation:
    """Why a node is where it is: evidence → condition → rule → remedy → operations → outcome, latest first."""
    records = await history(app_state, who, node_id, None, EXPLAINED_MAX)
    node = app_state.fleet.resolve(node_id)
    if node is not None and not sees(who, node):
        node = None
    told = explain(records, app_state.shown(who, node))
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


@get("/nodes/{node_id:str}/lanes", guards=SEE)
async def node_lanes(app_state: TheAppState, who: Who, node_id: FromPath[str], before: Before = None) -> Lanes:
    """A node's life as spans: phases, pools, conditions, plans, operations, checks, tickets, holds, parts, people.

    Jobs are those that run now, in the latest part alone: no record keeps them. The rest is of its last 10,000 records,
    or the last ones before record `before`. Where they are `partial`, an earlier part is before their `first` record.
    """
    records = await history(app_state, who, node_id, before, LANES_MAX)
    node = app_state.fleet.resolve(node_id)
    found = lanes(node.id if node else node_id, records, earlier=before is not None)
    if node is None or before is not None or not sees(who, node):
        return found
    jobs = job_spans(node, app_state.cell.live, who.grant.tenant, app_state.now(), app_state.fleet.cell.seq)
    spans = sorted((*found.intervals, *jobs), key=lambda span: (span.since, span.seq))
    return replace(found, intervals=tuple(spans))


@get("/nodes/{node_id:str}/observations", guards=SEE)
async def node_observations(
    app_state: TheAppState, who: Who, node_id: FromPath[str], source: Name = "", limit: Limit = 100
) -> Page[Observation]:
    """Raw observations of a node, newest first; `source=bmc` gives its BMC's log."""
    node, journal, stands = app_state.node(who, node_id), app_state.cell.journal, app_state.fleet.cell.seq
    if not isinstance(journal, ObservationLog):
        raise refuse(501, "unsupported", "this journal does not list observations", "read the history instead")
    since = node.assignment.since if who.role is Role.tenant and node.assignment else None
    found = await asyncio.to_thread(journal.observations_of, node.id, since, limit)
    return Page(tuple(o for o in found if not source or o.source == source), seq=stands)


router = Router(path="/", route_handlers=[node_history, node_explain, node_lanes, node_observations], tags=["nodes"])
