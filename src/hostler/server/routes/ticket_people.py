"""People to whom a ticket may be handed over: what a form for it offers."""

from litestar import Router, get
from litestar.params import FromPath
from msgspec import Struct

from hostler.core.state.verbs.facts import Permission
from hostler.server.auth import needs
from hostler.server.dependencies import TheAppState, Who
from hostler.server.problems import unknown
from hostler.server.ticket_people import people_of
from hostler.server.token_scope import sees
from hostler.server.tokens import Role


class PersonView(Struct, frozen=True):
    """A person by the name that tickets are claimed under, and their role."""

    name: str
    role: Role


@get("/tickets/{ticket:str}/people", guards=[needs(Permission.work)])
async def list_ticket_people(app_state: TheAppState, who: Who, ticket: FromPath[str]) -> tuple[PersonView, ...]:
    """People who may take an open ticket: known by a token or a sign-in of the last 90 days and within reach."""
    found = app_state.fleet.tickets.get(ticket)
    node = app_state.fleet.nodes.get(found.node) if found is not None else None
    if found is None or not (who.whole or (node is not None and sees(who, node))):
        raise unknown("ticket", ticket)
    people = await people_of(app_state, found)
    return tuple(PersonView(name, people[name].role) for name in sorted(people))


router = Router(path="/", route_handlers=[list_ticket_people], tags=["tickets"])
