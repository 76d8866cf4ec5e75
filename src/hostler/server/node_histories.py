"""Records of a node as a caller may read them: its whole past, or the intervals in which it was theirs."""

import asyncio
from typing import Annotated

from litestar.params import QueryParameter

from hostler.core.state.events import Record
from hostler.server.app_state import AppState
from hostler.server.problems import unknown
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity, Role

EXPLAINED_MAX = 1_000
"""Records read for one explanation."""
LANES_MAX = 10_000
"""Records read for the lanes of a node."""
OWN_PAGES_MAX = 20
"""Pages of a node's history read to find a tenant's intervals."""

Before = Annotated[
    int | None, QueryParameter(ge=1, le=2**63 - 1, description="continue before this record (the last page's cursor)")
]


async def history(app_state: AppState, who: Identity, name: str, before: int | None, limit: int) -> list[Record]:
    """A node's records as the caller may read them, newest first. Raises ProblemError (404).

    A tenant reads of its past nodes too; one narrowed to a site or pool only of those that it sees now. Others whose
    token is narrowed read all of a node that they see, and of one that has left what was recorded until it did.
    """
    node = app_state.fleet.resolve(name)
    if who.role is Role.tenant:
        if (who.grant.site or who.grant.pool) and (node is None or not sees(who, node)):
            raise unknown("node", name)
        return await _own_history(app_state, who, node.id if node else name, before, limit)
    if not who.whole and (node is None or not sees(who, node)):
        return await _own_history(app_state, who, node.id if node else name, before, limit)
    if node is None and name not in app_state.fleet.retired:
        raise unknown("node", name)
    records = await asyncio.to_thread(app_state.cell.journal.history, node.id if node else name, before, limit)
    return [app_state.shown(who, record) for record in records]


async def archived(app_state: AppState, cursor: str) -> str:
    """Archive with the records before a history, for its last page; "" where nothing is missing."""
    gone = None if cursor else await asyncio.to_thread(app_state.cell.journal.archived)
    return gone.text if gone else ""


async def _own_history(
    app_state: AppState, who: Identity, node_id: str, before: int | None, limit: int
) -> list[Record]:
    """Part of a node's history within the intervals in which it was the caller's, past ones too."""
    records: list[Record] = []
    for _ in range(OWN_PAGES_MAX):
        oldest = records[-1].seq if records else None
        page = await asyncio.to_thread(app_state.cell.journal.history, node_id, oldest, EXPLAINED_MAX)
        records.extend(page)
        if len(page) < EXPLAINED_MAX:
            break
    own = app_state.visible(who, records)
    if not own:
        raise unknown("node", node_id)
    page = [r for r in own if before is None or r.seq < before][:limit]
    return [app_state.shown(who, record, frozenset({node_id})) for record in page]
