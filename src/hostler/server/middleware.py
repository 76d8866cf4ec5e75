"""Middleware around every answer: checks of host name, origin and audience, answers on a standby, headers."""

import re
import secrets
from contextlib import ExitStack
from http import HTTPStatus
from urllib.parse import urlsplit

from litestar.datastructures import Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from opentelemetry.trace import Span

from hostler.logs import traces
from hostler.logs.structured import bound
from hostler.server.app_state import AppState
from hostler.server.auth import ON_PERSON, authenticate
from hostler.server.problems import refuse, standby
from hostler.server.standby_proxy import MARK, REQUEST_ID

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_AGENTS = "/v1/agent/"
_PROBES = frozenset({"/healthz", "/readyz"})
_AGENTS_POLL = "/v1/agent/operations"
"""The one GET that is not answered from what is recorded: an agent's orders lie where they were given."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEFORE_THE_BODY = frozenset({401, 403, 413, 421})
"""Answers given before the body was read: what follows on that connection would be taken for the rest of it."""

TRACE_ID = "x-trace-id"
"""Header of an answer that names the request's trace."""

CONTENT_POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self' blob:; "
    "connect-src 'self'; "
    "base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
}


class RequestIds:
    """Names each request: by the caller's `x-request-id` where it is a plain one, else anew; log lines carry it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            told = Headers.from_scope(scope).get(REQUEST_ID, "")
            name = told if _REQUEST_ID.fullmatch(told) else secrets.token_hex(8)
            scope["state"]["request_id"] = name
            bound(request=name)  # the server runs each request in a task of its own
        await self._app(scope, receive, send)


class TraceRequests:
    """Traces each request of a person that may change something, once its sender is known; answer and log name it.

    What a stranger sends has no span: whoever can reach the port could fill the queue, and join others' traces.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or not traces.on() or _is_untraced(scope):
            await self._app(scope, receive, send)
            return
        method = str(scope["method"])
        told = {"http.request.method": method, "hostler.request": scope["state"]["request_id"]}
        begun: list[Span] = []
        with ExitStack() as until_answered:

            def begin() -> None:
                begun.append(until_answered.enter_context(traces.root(method, Headers.from_scope(scope), told)))
                if name := traces.trace_id():
                    bound(trace=name)

            async def sent(message: Message) -> None:
                if begun and message["type"] == "http.response.start":
                    if name := traces.trace_id():
                        MutableScopeHeaders(message)[TRACE_ID] = name
                    _ended(begun[0], scope, method, message["status"])
                await send(message)

            scope["state"][ON_PERSON] = begin
            await self._app(scope, receive, sent)


def _is_untraced(scope: HTTPScope) -> bool:
    """Whether it is a read, or an agent's: there is one of those for each node and turn."""
    return scope["method"] in _SAFE or scope["path"].startswith(_AGENTS)


def _ended(span: Span, scope: HTTPScope, method: str, status: int) -> None:
    route = str(scope.get("path_template") or "none")
    span.update_name(f"{method} {route}")
    traces.tell(span, "http.route", route)
    traces.tell(span, "http.response.status_code", status)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        traces.failed(span, str(status))


class HostFence:
    """Refuses requests that were sent to a name which is not ours (rebound DNS), or by another site's page.

    Names are checked where the server listens on loopback or was told its names. There are no cookies to ride on;
    this is the second lock.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            names = scope["litestar_app"].state["app_state"].names
            headers = Headers.from_scope(scope)
            host = headers.get("host", "")
            if names is not None and name_of(host) not in names:
                raise refuse(
                    421, "misdirected", f"'{host[:100]}' is not this server", "call it by a name it knows (--host-name)"
                )
            origin = headers.get("origin", "")
            if origin and scope.get("method") not in _SAFE and urlsplit(origin).netloc.lower() != host.lower():
                raise refuse(
                    403, "forbidden", f"a page of '{origin[:100]}' may not act here", "use the console of this server"
                )
        await self._app(scope, receive, send)


class AudienceFence:
    """Separates listeners: keeps agents on their own, and everybody else off it.

    What another controller carries comes on the listener for people, agents' requests too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope.get("state", {}).get("connection")
        audience = connection.audience if connection is not None else "everybody"
        if audience != "everybody" and scope["type"] == ScopeType.HTTP:
            agents = scope["path"].startswith(_AGENTS)
            if audience == "agents" and not agents and scope["path"] not in _PROBES:
                raise refuse(
                    421, "misdirected", "this address is for agents alone", "call the one for people (--listen)"
                )
            if audience == "people" and agents and MARK not in Headers.from_scope(scope):
                instead = "call the one for agents (--agent-listen)"
                raise refuse(421, "misdirected", "agents have an address of their own", instead)
        await self._app(scope, receive, send)


class StandbyFence:
    """Lets reads in; carries everything else to the active controller where this one is not it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app_state: AppState = scope["litestar_app"].state["app_state"]
        if scope["type"] != ScopeType.HTTP or app_state.cell.role == "active" or _is_read(scope):
            await self._app(scope, receive, send)
            return
        headers = Headers.from_scope(scope)
        await authenticate(scope, app_state.tokens)
        address = app_state.cell.elsewhere
        if not address or MARK in headers:
            raise standby(address, "" if address else app_state.cell.health().why)
        scope["state"]["forwarded"] = True
        await app_state.forwarder.carry(scope, receive, send, lambda: app_state.cell.elsewhere)


def _is_read(scope: HTTPScope) -> bool:
    return scope["method"] in _SAFE and scope["path"].rstrip("/") != _AGENTS_POLL


def name_of(host: str) -> str:
    """The host without its port, in lower case; an IPv6 address without brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


async def add_headers(message: Message, scope: Scope) -> None:
    """Puts the security headers on every answer, and who gives it, how far behind the journal.

    What is not a file of the console is not kept by anybody.
    """
    if message["type"] != "http.response.start":
        return
    headers = MutableScopeHeaders.from_message(message)
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")
    if request := scope["state"].get("request_id"):
        headers[REQUEST_ID] = request
    if not scope["state"].get("forwarded"):
        cell = scope["litestar_app"].state["app_state"].cell
        headers["Hostler-Role"] = cell.role
        if cell.role != "active":
            health = cell.health()
            headers["Hostler-Behind"] = f"records={health.behind}, seconds={health.behind_s:.1f}"
    if message["status"] in _BEFORE_THE_BODY:
        headers["Connection"] = "close"
