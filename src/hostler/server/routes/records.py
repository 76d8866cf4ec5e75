"""The journal's records, a page at a time, from either end: what happened between two moments, or last."""

import asyncio
from typing import Annotated, Literal

from litestar import Router, get
from litestar.params import FromQuery, QueryParameter
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events import Record
from hostler.ports import Archived, RecordWindow
from hostler.server.auth import SEE
from hostler.server.cell_view import JournalView
from hostler.server.dependencies import TheAppState, Who
from hostler.server.event_stream import StreamedRecord, keeper, streamed
from hostler.server.moments import Moment, aware
from hostler.server.paging import Limit, Name, Page

LOOKED_MAX = 20_000
"""Records of the fleet that one page looks through for those that are asked for."""

ORDER = Literal["newest", "oldest"]
Cursor = Annotated[
    int | None, QueryParameter(ge=1, le=2**63 - 1, description="go on beyond this record (the last page's cursor)")
]


class RecordPage(Struct, frozen=True):
    """Records found for a page, the cursor behind which the next one begins (0: none), and what was archived."""

    found: list[Record]
    cursor: int
    gone: Archived | None


@get("/records", guards=SEE)
async def list_records(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState,
    who: Who,
    node: Name = "",
    name: Annotated[str, QueryParameter(max_length=64, description="of events whose name begins so")] = "",
    since: Moment = None,
    until: Moment = None,
    order: FromQuery[ORDER] = "newest",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[StreamedRecord]:
    """Records as the stream of events tells them, newest first or oldest first: those at `since` and before `until`.

    The stream goes on after the `seq` of the first page. A page looks through 20,000 records of the fleet at most, and
    may be short, or empty, while it still has a cursor.
    """
    stands = app_state.fleet.cell.seq
    subject = app_state.node(who, node).id if node else ""
    wanted = RecordWindow(0, stands + 1, subject, name, oldest_first=order == "oldest")
    journal = app_state.cell.journal

    def read() -> RecordPage:
        between = journal.first_since(since) if since else 1, journal.first_since(until) if until else 0
        return _page(journal, _between(wanted, *between), cursor, limit)

    aware(since), aware(until)
    page = await asyncio.to_thread(read)
    keep = keeper(app_state.cell, who, subject)
    kept = tuple(streamed(shown) for record in page.found if (shown := keep(record)) is not None)
    archived = page.gone.text if page.gone and not page.cursor else ""
    return Page(kept, str(page.cursor or ""), archived, stands)


def _between(wanted: RecordWindow, first: int, end: int) -> RecordWindow:
    """The window from record `first` on (0: nothing is so late), before record `end` (0: it has no end)."""
    before = wanted.before or 0
    return replace(wanted, after=first - 1 if first else before, before=min(end, before) if end else before)


def _page(journal: JournalView, wanted: RecordWindow, cursor: int | None, limit: int) -> RecordPage:
    """One page of the window, which begins beyond the cursor."""
    gone = journal.archived()
    low, high = max(wanted.after, gone.seq if gone else 0), wanted.before or 0
    if wanted.oldest_first:
        low = max(low, cursor or 0)
        looked = high if wanted.subject else min(high, low + LOOKED_MAX + 1)
        rest = looked - 1 if looked < high else 0
        found = journal.window(replace(wanted, after=low, before=looked), limit)
    else:
        high = min(high, cursor or high)
        looked = low if wanted.subject else max(low, high - LOOKED_MAX - 1)
        rest = looked + 1 if looked > low else 0
        found = journal.window(replace(wanted, after=looked, before=high), limit)
    return RecordPage(found, found[-1].seq if found and len(found) == limit else rest, gone)


router = Router(path="/", route_handlers=[list_records], tags=["cell"])
