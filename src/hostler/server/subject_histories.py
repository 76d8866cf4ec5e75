"""Histories of an incident, a return, a stack's bits, a rack, a network, a link: a page, and where it goes on.

Each page says how far back it reaches: `cursor` is the record before which the next page begins, and on the last one
`archived` says where what came before is. What a page is judged by is read by name (`AppState.named`), never from here.
"""

import asyncio
from collections.abc import Collection
from heapq import merge

from msgspec import Struct

from hostler.core.state.events import Record
from hostler.journal.named_records import PAGE, each_record
from hostler.ports import RecordWindow
from hostler.server.api_resources import HistoryRow, history_row
from hostler.server.app_state import AppState
from hostler.server.node_histories import archived
from hostler.server.tokens import Identity


class HistoryPage(Struct, frozen=True):
    """Rows newest first, the record before which the next page begins ("" on the last), and what is archived then."""

    rows: tuple[HistoryRow, ...]
    cursor: str
    archived: str


async def subject_history(
    app_state: AppState, who: Identity, subjects: Collection[str], before: int | None, limit: int
) -> HistoryPage:
    """The latest `limit` records before `before` about any of the subjects, as the caller is shown them."""
    journal = app_state.cell.journal

    def read() -> list[Record]:
        windows = (RecordWindow(before=before, subject=one) for one in sorted(subjects))
        told = merge(*(each_record(journal, one, min(limit + 1, PAGE)) for one in windows), key=lambda r: -r.seq)
        found: dict[int, Record] = {}  # a record about two of the subjects comes twice, one after the other
        for record in told:
            found[record.seq] = record
            if len(found) > limit:
                break
        return list(found.values())

    records = await asyncio.to_thread(read)
    shown = tuple(history_row(app_state.shown(who, record)) for record in records[:limit])
    cursor = str(shown[-1].seq) if len(records) > limit else ""
    return HistoryPage(shown, cursor, await archived(app_state, cursor) if who.whole else "")
