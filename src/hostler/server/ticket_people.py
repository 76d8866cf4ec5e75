"""People who may take a ticket: known by a token or a sign-in, allowed to work, and within reach of its machine."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches

from hostler.core.intents.bounds import within
from hostler.core.state.cases import Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.verbs.facts import Permission
from hostler.server.app_state import AppState
from hostler.server.auth import MAY
from hostler.server.problems import refuse
from hostler.server.tokens import Grant

NAMED_MOST = 5
"""Names that a refusal offers."""


async def people_of(app_state: AppState, ticket: Ticket) -> dict[str, Grant]:
    """People who may take the ticket, by name. Raises JournalError where tokens cannot be read."""
    known = await asyncio.to_thread(app_state.tokens.people)
    return {grant.name: grant for grant in known if _may_take(app_state.fleet, ticket, grant)}


async def demand_colleague(app_state: AppState, ticket_id: str, name: str) -> None:
    """Raises ProblemError (422) where the ticket is handed over to a name that cannot take it, with names near it."""
    ticket = app_state.fleet.tickets.get(ticket_id)
    if ticket is None:
        return  # the decision says so, in its own words
    people = await people_of(app_state, ticket)
    if name in people:
        return
    what = f"'{name}' may not take ticket {ticket.id}: no such colleague is known"
    raise refuse(422, "unknown_person", what, _offer(name, sorted(people)))


def _may_take(fleet: Fleet, ticket: Ticket, grant: Grant) -> bool:
    """Whether the grant works on tickets and reaches this one; what hangs on no node is for grants without bounds."""
    if Permission.work not in MAY[grant.role]:
        return False
    node = fleet.nodes.get(ticket.node)
    return within(grant.bounds, node) if node is not None else not (grant.site or grant.pool or grant.tenant)


def _offer(name: str, people: Sequence[str]) -> str:
    """Advice: the names that are spelt nearly so, or some that there are."""
    spelt = {one.casefold(): one for one in people}
    near = [spelt[one] for one in get_close_matches(name.casefold(), spelt, NAMED_MOST, 0.5)]
    known = "who has a token for this work or signs in with a group for it is known"
    if near:
        return f"did you mean {' or '.join(near)}? {known}"
    some = ", ".join(people[:NAMED_MOST]) + (" …" if len(people) > NAMED_MOST else "")
    return f"name one of {some}; {known}"
