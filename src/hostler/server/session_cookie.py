"""The cookie of a sign-in: the session's token, out of reach of scripts and of other sites.

SameSite=Strict keeps it from what other sites' pages send; whoever follows a link from elsewhere gets the console's
static page first, and that page's own requests carry it. What changes something has to come from a page of this server
besides (Origin), so an old browser's mistake changes nothing either.
"""

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from litestar.datastructures import Headers
from litestar.types import Scope

from hostler.server.problems import refuse
from hostler.server.standby_proxy import MARK

SESSION, FLOW, FAILURE = "hostler_session", "hostler_sign_in", "hostler_sign_in_failure"
FLOW_S, FAILURE_S = 600, 60
COOKIES_MOST = 8_192
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def cookie(name: str, value: str, max_age_s: int, *, secure: bool, same_site: str = "Strict") -> str:
    """The Set-Cookie header. Over TLS the name's prefix binds it to this very host and to the whole of it."""
    words = [f"{_named(name, secure=secure)}={value}", "Path=/", "HttpOnly", f"SameSite={same_site}"]
    return "; ".join([*words, f"Max-Age={max_age_s}", *(["Secure"] if secure else [])])


def read_cookie(headers: Headers, name: str, *, secure: bool) -> str:
    """The cookie's value, "" where there is none. Over TLS it is the prefixed one, which no other host sets."""
    text = headers.get("cookie", "")
    if not text or len(text) > COOKIES_MOST:
        return ""
    try:
        found = SimpleCookie(text)
    except CookieError:
        return ""
    kept = found.get(_named(name, secure=secure))
    return kept.value if kept is not None else ""


def _named(name: str, *, secure: bool) -> str:
    return f"__Host-{name}" if secure else name


def authorization(scope: Scope) -> str:
    """The Authorization header that counts: as it was sent, or the session's in its place.

    Raises ProblemError (403) where a session would change something and no page of this server asks for it.
    """
    headers = Headers.from_scope(scope)
    sent = headers.get("authorization", "")
    sign_in = scope["litestar_app"].state["app_state"].outside.sign_in
    if sent or sign_in is None or not (token := read_cookie(headers, SESSION, secure=sign_in.settings.secure)):
        return sent
    demand_own_page(scope)
    return f"Bearer {token}"


def demand_own_page(scope: Scope) -> None:
    """Raises ProblemError (403) where the request changes something, and no page of this very server asks for it."""
    headers = Headers.from_scope(scope)
    origin, host = headers.get("origin", ""), headers.get("host", "")
    ours = bool(origin) and urlsplit(origin).netloc.lower() == host.lower()
    if scope.get("method") not in _SAFE and MARK not in headers and not ours:
        raise refuse(403, "forbidden", "a session acts from a page of this server alone", "use the console, or a token")
