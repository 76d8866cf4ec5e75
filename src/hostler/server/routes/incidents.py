"""Incidents: faults with a common cause, what is blamed for them, and who waits for it."""

from litestar import Router, get
from litestar.params import FromPath

from hostler.client.answers import IncidentRow
from hostler.core.state.events import IncidentOpened
from hostler.server.api_resources import IncidentView, incident_row
from hostler.server.auth import SEE
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import Before
from hostler.server.paging import Limit, Page, listed
from hostler.server.problems import unknown
from hostler.server.subject_histories import subject_history
from hostler.server.token_scope import incident_within


@get("/incidents", guards=SEE)
async def list_incidents(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[IncidentRow]:
    """Open incidents of which the caller sees a node; closed ones stand in their nodes' histories."""
    within = (incident_within(who, app_state.fleet, incident) for incident in app_state.fleet.incidents.values())
    return listed(((i.id, incident_row(app_state.shown(who, i))) for i in within if i is not None), wanted)


@get("/incidents/{incident_id:str}", guards=SEE)
async def get_incident(
    app_state: TheAppState, who: Who, incident_id: FromPath[str], before: Before = None, limit: Limit = 200
) -> IncidentView:
    """One incident with all its members and its history, newest first; of a closed one the history."""
    standing = app_state.fleet.incidents.get(incident_id)
    found = app_state.shown(who, incident_within(who, app_state.fleet, standing)) if standing is not None else None
    if found is None and not who.whole:
        raise unknown("incident", incident_id)
    if found is None and not await app_state.named(incident_id, IncidentOpened):
        raise unknown("incident", incident_id)
    told = await subject_history(app_state, who, [incident_id], before, limit)
    row, members = (incident_row(found), found.members) if found else (None, {})
    return IncidentView(row, members, told.rows, told.cursor, told.archived)


router = Router(path="/", route_handlers=[list_incidents, get_incident], tags=["incidents"])
