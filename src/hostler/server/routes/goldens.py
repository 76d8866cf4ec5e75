"""Goldens: the bits that peers gave on each stack, who differs, and whom witnesses convict."""

from datetime import datetime

from litestar import Router, get
from litestar.params import FromPath, FromQuery
from msgspec import Struct

from hostler.core.state import events as e
from hostler.core.state.goldens import Golden
from hostler.server.api_resources import HistoryRow
from hostler.server.auth import SEE_CELL
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.node_histories import Before
from hostler.server.paging import Limit, Name, Page, listed
from hostler.server.problems import unknown
from hostler.server.subject_histories import subject_history


class GoldenRow(Struct, frozen=True):
    """A stack as a list shows it. `state`: learning, golden, disputed (a witness is wanted) or unstable."""

    id: str
    check: str
    state: str
    digest: str
    peers: tuple[str, ...]
    disputed_by: tuple[str, ...]
    stack: str
    learned: datetime | None


class GoldenView(Struct, frozen=True):
    """A stack's bits with their history, newest first. One that is gone has only that.

    `cursor` goes on with the history (`before`), "" where it is whole; `archived` says where what came before is.
    """

    golden: Golden | None
    state: str
    history: tuple[HistoryRow, ...]
    cursor: str = ""
    archived: str = ""


@get("/goldens", guards=SEE_CELL)
async def list_goldens(
    app_state: TheAppState, wanted: Wanted, node: Name = "", disputed: FromQuery[bool] = False
) -> Page[GoldenRow]:
    """Stacks of which bits are known. `node`: those of which it is a peer, or from which it differs."""
    rows = (_row(golden) for golden in app_state.fleet.goldens.values() if not node or node in _nodes(golden))
    return listed(((row.id, row) for row in rows if row.disputed_by or not disputed), wanted)


def _row(golden: Golden) -> GoldenRow:
    return GoldenRow(
        id=golden.id,
        check=golden.check,
        state=_state(golden),
        digest=golden.digest,
        peers=golden.peers or tuple(vote.node for vote in golden.votes),
        disputed_by=tuple(dict.fromkeys(dispute.node for dispute in golden.disputes)),
        stack=golden.named(),
        learned=golden.learned,
    )


def _nodes(golden: Golden) -> set[str]:
    return {*(vote.node for vote in golden.votes), *(dispute.node for dispute in golden.disputes)}


def _state(golden: Golden) -> str:
    if golden.unstable:
        return "unstable"
    if not golden.digest:
        return "learning"
    return "disputed" if golden.wanted else "golden"


@get("/goldens/{golden_id:str}", guards=SEE_CELL)
async def get_golden(
    app_state: TheAppState, who: Who, golden_id: FromPath[str], before: Before = None, limit: Limit = 200
) -> GoldenView:
    """One stack's bits: who gave them, who differs, which witnesses were heard."""
    golden = app_state.fleet.goldens.get(golden_id)
    subject = e.golden_subject(golden_id)
    told = await subject_history(app_state, who, [subject], before, limit)
    newest = told if before is None else await subject_history(app_state, who, [subject], None, 1)
    if golden is None and not newest.rows:
        raise unknown("golden", golden_id)
    state = _state(golden) if golden is not None else "gone"
    return GoldenView(golden, state, told.rows, told.cursor, told.archived)


router = Router(path="/", route_handlers=[list_goldens, get_golden], tags=["checks"])
