"""What stands before and around every answer: whose host name was called, from which page, and the headers sent."""

from urllib.parse import urlsplit

from litestar.datastructures import Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from hostler.server.problems import refuse
from hostler.server.settings import Settings, is_loopback

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BEFORE_THE_BODY = frozenset({401, 403, 413, 421})
"""Answers given before the body was read: what follows on that connection would be taken for the rest of it."""

CONTENT_POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self'; "
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
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class HostFence:
    """Refuses requests that were sent to a name which is not ours (rebound DNS), or by another site's page.

    Names are checked where the server listens on loopback or was told its names. There are no cookies to ride on;
    this is the second lock.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        checks = is_loopback(settings.host) or bool(settings.hosts)
        self._names = settings.names() if checks else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            headers = Headers.from_scope(scope)
            host = headers.get("host", "")
            if self._names is not None and name_of(host) not in self._names:
                raise refuse(
                    421, "misdirected", f"'{host[:100]}' is not this server", "call it by a name it knows (--host-name)"
                )
            origin = headers.get("origin", "")
            if origin and scope.get("method") not in _SAFE and urlsplit(origin).netloc.lower() != host.lower():
                raise refuse(
                    403, "forbidden", f"a page of '{origin[:100]}' may not act here", "use the console of this server"
                )
        await self._app(scope, receive, send)


def name_of(host: str) -> str:
    """The host without its port, in lower case; an IPv6 address without brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


async def add_headers(message: Message, _: Scope) -> None:
    """Puts the security headers on every answer; what is not a file of the console is not kept by anybody."""
    if message["type"] != "http.response.start":
        return
    headers = MutableScopeHeaders.from_message(message)
    for name, value in HEADERS.items():
        headers[name] = value
    headers.setdefault("Cache-Control", "no-store")
    if message["status"] in _BEFORE_THE_BODY:
        headers["Connection"] = "close"
