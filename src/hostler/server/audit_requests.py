"""Middleware that has each act and each refusal of a request written to the audit trail."""

import re
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from hostler.journal.audit_log import TEXT_MAX, AuditEntry, Outcome
from hostler.server.audit_trail import NOTE, AuditTrail, RequestNote
from hostler.server.problems import ProblemError
from hostler.server.tokens import Identity

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_STRANGERS = frozenset({401, 403, 421})
"""Refusals that are written whatever was asked for; of reads, and of agents, no others are."""
_AGENTS = "/v1/agent/"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECRET = re.compile(r"(hst_[0-9a-f]{12})_[\w-]+")
_SENT = re.compile(r"(?i:bearer)\s+hst_([0-9a-f]{12})_[\w-]{43}\s*")


class AuditRequests:
    """Watches what becomes of each request, where this controller keeps an audit trail.

    An act's entry is written before its answer is sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        trail: AuditTrail | None = scope["litestar_app"].state["app_state"].outside.audit
        if scope["type"] != ScopeType.HTTP or trail is None:
            await self._app(scope, receive, send)
            return
        note = RequestNote()
        NOTE.set(note)  # the server runs each request in a task of its own
        told = False

        async def sent(message: Message) -> None:
            nonlocal told
            if message["type"] == "http.response.start" and not told:
                told = True
                await _tell(trail, scope, note, note.refused or message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except ProblemError as refused:
            if not told:
                await _tell(trail, scope, note, refused.status)
            raise


async def _tell(trail: AuditTrail, scope: Scope, note: RequestNote, status: int) -> None:
    if not _counts(scope, note, status):
        return
    entry = entry_of(scope, note, status, trail.clock(), trail.controller)
    if entry.chain == "acts":
        await trail.act(entry)
    else:
        trail.refusal(entry)


def _counts(scope: Scope, note: RequestNote, status: int) -> bool:
    if str(scope.get("path", "")).startswith(_AGENTS) or (scope.get("method") in _SAFE and not note.verb):
        return status in _STRANGERS
    return True


def entry_of(scope: Scope, note: RequestNote, status: int, at: datetime, controller: str) -> AuditEntry:
    """The entry of a request that is answered with this status."""
    who = scope.get("user")
    grant = who.grant if isinstance(who, Identity) else None
    outcome = _outcome(note, status)
    route = str(scope.get("path_template") or "none")
    return AuditEntry(
        chain="acts" if outcome in ("done", "waits") else "refusals",
        at=at,
        last=at,
        person=grant.name if grant else note.person,
        role=grant.role.value if grant else note.role,
        token=who.token if isinstance(who, Identity) else note.token or _token(scope),
        address=_address(scope),
        method=str(scope.get("method")) if scope.get("method") in _METHODS else "other",
        route=route,
        verb=plain(note.verb or _verb(scope, route)),
        target=plain(note.target or _target(scope)),
        status=status,
        outcome=outcome,
        request=str(scope.get("state", {}).get("request_id", "")),
        controller=controller,
        intent=note.intent,
    )


def plain(text: str) -> str:
    """The text without a token's secret and without what cannot be printed."""
    cut = _SECRET.sub(r"\1", unquote(text[: 4 * TEXT_MAX]))
    return "".join(c if c.isprintable() else "?" for c in cut)[:TEXT_MAX]


def _outcome(note: RequestNote, status: int) -> Outcome:
    if status >= 400:
        return "refused" if status < 500 else "failed"
    if note.dry_run:
        return "dry_run"
    return "waits" if note.waits else "done"


def _token(scope: Scope) -> str:
    """The id of the token that was sent, though it is good for nothing; ids are no secrets."""
    found = _SENT.fullmatch(Headers.from_scope(scope).get("authorization", ""))
    return found[1] if found else ""


def _address(scope: Scope) -> str:
    client: Any = scope.get("client")
    return str(client[0])[:TEXT_MAX] if client else ""


def _verb(scope: Scope, route: str) -> str:
    """The verb in the path, else the route's last word."""
    named = scope.get("path_params", {}).get("verb")
    words = [word for word in route.split("/") if word and "{" not in word]
    return str(named) if named else (words[-1] if words else "")


def _target(scope: Scope) -> str:
    """Names in the path."""
    found: dict[str, Any] = scope.get("path_params", {})
    return "/".join(str(value) for name, value in found.items() if name not in ("verb", "path", "name_path"))
