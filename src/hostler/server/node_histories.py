"""Records of a node as a caller may read them: its whole past, or the intervals in which it was theirs."""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from litestar.params import QueryParameter
from msgspec import Struct

from hostler.core.state.events import Record
from hostler.core.state.model import Node
from hostler.journal.named_records import PAGE, each_record
from hostler.ports import RecordWindow
from hostler.server.app_state import AppState
from hostler.server.cell_view import JournalView
from hostler.server.problems import unknown
from hostler.server.token_scope import PLACES, Interval, own_intervals, sees
from hostler.server.tokens import Identity, Role

RECENT_DAYS = 7
"""An explanation, and each part of a node's lanes, tells at least of so many days, however much happened in them."""
EXPLAINED_LEAST, LANES_LEAST = 1_000, 10_000
"""Explanations and lanes reach further back until so many records were read."""

Before = Annotated[
    int | None, QueryParameter(ge=1, le=2**63 - 1, description="continue before this record (the last page's cursor)")
]


class HistoryQuery(Struct, frozen=True):
    """Records that are asked for: before record `before` (None: to the end), of these names (none: of all).

    Newest first, at most `limit`; but none that is of `since` or later is left out for the limit's sake.
    """

    before: int | None = None
    limit: int = 100
    names: tuple[str, ...] = ()
    since: datetime | None = None


async def history(app_state: AppState, who: Identity, name: str, asked: HistoryQuery) -> list[Record]:
    """A node's records as the caller may read them, newest first. Raises ProblemError (404).

    A tenant reads of its past nodes too; one narrowed to a site or pool only of those that it sees now. Others whose
    token is narrowed read all of a node that they see, and of one that has left what was recorded until it did.
    """
    node = app_state.fleet.resolve(name)
    seen = node is not None and sees(who, node)
    if who.role is Role.tenant and (who.grant.site or who.grant.pool) and not seen:
        raise unknown("node", name)
    if who.role is Role.tenant or not (who.whole or seen):
        return await _own_history(app_state, who, node or name, asked)
    if node is None and name not in app_state.fleet.retired:
        raise unknown("node", name)
    wanted = RecordWindow(before=asked.before, subject=node.id if node else name, names=asked.names)
    records = await asyncio.to_thread(_read, app_state.cell.journal, (wanted,), asked)
    return [app_state.shown(who, record) for record in records]


def _read(journal: JournalView, windows: Iterable[RecordWindow], asked: HistoryQuery) -> list[Record]:
    """Records of the windows, one after the other, as far as is asked for."""
    found: list[Record] = []
    for wanted in windows:
        for record in each_record(journal, wanted, PAGE if asked.since else min(asked.limit, PAGE)):
            if len(found) >= asked.limit and (asked.since is None or record.at < asked.since):
                return found
            found.append(record)
            if len(found) == asked.limit and asked.since is None:
                return found
    return found


async def archived(app_state: AppState, cursor: str) -> str:
    """Archive with the records before a history, for its last page; "" where nothing is missing."""
    gone = None if cursor else await asyncio.to_thread(app_state.cell.journal.archived)
    return gone.text if gone else ""


async def _own_history(app_state: AppState, who: Identity, node: Node | str, asked: HistoryQuery) -> list[Record]:
    """Part of a node's history within the intervals in which it was the caller's, past ones too."""
    name = node.id if isinstance(node, Node) else node

    def read() -> list[Record] | None:
        journal = app_state.cell.journal
        own = _intervals(journal, who, name, node if isinstance(node, Node) else None)
        windows = (
            RecordWindow(one.since - 1, _earlier(asked.before, one.until), name, names=asked.names)
            for one in reversed(own)
        )
        return _read(journal, windows, asked) if own else None

    records = await asyncio.to_thread(read)
    if records is None:
        raise unknown("node", name)
    return [app_state.shown(who, record, frozenset({name})) for record in records]


def _intervals(journal: JournalView, who: Identity, name: str, node: Node | None) -> tuple[Interval, ...]:
    """The caller's intervals of the node, the earliest first; the present one also where its begin is archived."""
    told = list(each_record(journal, RecordWindow(subject=name, names=PLACES)))
    own = own_intervals(told, who.grant.bounds)
    served = node is not None and node.assignment is not None and sees(who, node)
    if served and not any(one.until is None for one in own):
        assert node is not None
        assert node.assignment is not None
        own = (*own, Interval(journal.first_since(node.assignment.since) or journal.latest_seq() + 1))
    return own


def _earlier(before: int | None, until: int | None) -> int | None:
    """The record before which both ends lie; `until` itself is within."""
    return min((end for end in (before, until + 1 if until is not None else None) if end is not None), default=None)
