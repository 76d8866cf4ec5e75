"""Audit: who asked what, when and from where, and what became of it."""

import asyncio
from typing import Literal

from litestar import Router, get
from litestar.params import FromQuery

from hostler.core.state.verbs.facts import Permission
from hostler.journal.audit_log import KEPT, AuditEntry, AuditQuery, AuditRow, SqlAuditLog
from hostler.journal.codec import micros
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.dependencies import TheAppState
from hostler.server.moments import Moment, aware
from hostler.server.paging import Limit, Name, Page
from hostler.server.problems import refuse

CHAIN = Literal["", "acts", "refusals"]
OUTCOME = Literal["", "done", "waits", "dry_run", "refused", "failed"]


class AuditView(AuditEntry, frozen=True, kw_only=True):
    """An entry of the audit log, its place in its chain, and the chain's digest there."""

    number: int
    digest: str


@get("/audit", guards=[needs(Permission.configure)])
async def list_audit(  # noqa: PLR0913 - one argument per parameter of the URL
    app_state: TheAppState,
    chain: FromQuery[CHAIN] = "",
    since: Moment = None,
    until: Moment = None,
    person: Name = "",
    verb: Name = "",
    target: Name = "",
    address: Name = "",
    result: FromQuery[OUTCOME] = "",
    cursor: Name = "",
    limit: Limit = 100,
) -> Page[AuditView]:
    """Requests that changed something, and those that were refused, newest first.

    Refusals that are alike are one entry for each minute, with their `count`. Neither bodies nor queries are kept.
    """
    before = _place(cursor)
    wanted = AuditQuery(chain, aware(since), aware(until), person, verb, target, address, result, before)
    rows = await asyncio.to_thread(_log(app_state).listed, wanted, limit)
    more = _cursor(rows[-1]) if len(rows) == limit else ""
    return Page(tuple(_view(row) for row in rows), more, seq=app_state.fleet.cell.seq)


def _view(row: AuditRow) -> AuditView:
    fields = {name: getattr(row.entry, name) for name in AuditEntry.__struct_fields__}
    return AuditView(**fields, number=row.number, digest=row.digest)


def _log(app_state: AppState) -> SqlAuditLog:
    found = app_state.outside.audit
    if found is None:
        instead = "ask a controller that was started with `serve`"
        raise refuse(503, "busy", "this controller keeps no audit log", instead)
    return found.written


def _cursor(row: AuditRow) -> str:
    return f"{micros(row.entry.at)}.{row.entry.chain}.{row.number}"


def _place(cursor: str) -> tuple[int, str, int] | None:
    if not cursor:
        return None
    at, _, rest = cursor.partition(".")
    chain, _, number = rest.partition(".")
    digits = at.isascii() and at.isdigit() and number.isascii() and number.isdigit()
    if not digits or len(at) > 18 or len(number) > 18 or chain not in KEPT:
        raise refuse(
            400, "malformed", f"'{cursor[:60]}' is no cursor of this list", "send the cursor of the page before"
        )
    return int(at), chain, int(number)


router = Router(path="/", route_handlers=[list_audit], tags=["audit"])
