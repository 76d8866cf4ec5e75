"""Sign-in through an OpenID provider: there, back with a code, and a session; and out again."""

import asyncio
import re
import secrets
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

from litestar import Request, Response, Router, get, post
from litestar.datastructures import Headers
from litestar.params import QueryParameter
from msgspec import Struct
from msgspec.structs import replace

from hostler.logs.structured import logger
from hostler.server.app_state import AppState
from hostler.server.audit_trail import note
from hostler.server.dependencies import TheAppState
from hostler.server.oidc_provider import SignIn, SignInError
from hostler.server.problems import ProblemError, refuse
from hostler.server.session_cookie import (
    FAILURE,
    FAILURE_S,
    FLOW,
    FLOW_S,
    SESSION,
    cookie,
    demand_own_page,
    read_cookie,
)
from hostler.server.tokens import NAME

log = logger()

_ERROR = re.compile(r"[a-z_]{1,60}")

FAILURE_MAX = 600
"""Characters of a failure that go into its cookie."""

Text = Annotated[str, QueryParameter(max_length=2_000)]


class Ways(Struct, frozen=True):
    """How people may sign in beside by a token: through an OpenID provider; and whether they are (`session`).

    `failure`: why the last attempt of this browser failed; it is told once.
    """

    oidc: bool
    session: bool
    failure: str = ""


@get("/ways")
async def ways(request: Request[Any, Any, Any], app_state: TheAppState) -> Response[Ways]:
    """How people may sign in here, and whether this browser is signed in."""
    found = app_state.outside.sign_in
    if found is None:
        return Response(Ways(oidc=False, session=False))
    secure = found.settings.secure
    kept = read_cookie(request.headers, SESSION, secure=secure)
    known = bool(kept) and await app_state.tokens.recognise(kept) is not None
    failure = unquote(read_cookie(request.headers, FAILURE, secure=secure))
    told = {"Set-Cookie": cookie(FAILURE, "", 0, secure=secure)} if failure else {}
    return Response(Ways(oidc=True, session=known, failure=failure), headers=told)


@get("/", include_in_schema=False)
async def begin(request: Request[Any, Any, Any], app_state: TheAppState, to: Text = "/") -> Response[None]:
    """Send the person to the provider; afterwards they are back at `to`, a page of the console."""
    found = app_state.outside.sign_in
    if found is None:
        return _by_token()
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    try:
        address = await found.provider.address(state, nonce, verifier)
    except SignInError as error:
        return _led_back(request, to, _failed(error), secure=found.settings.secure)
    flow = f"{state}.{nonce}.{verifier}.{quote(local(to), safe='')}"
    kept = cookie(FLOW, flow, FLOW_S, secure=found.settings.secure, same_site="Lax")
    return Response(None, status_code=302, headers={"Location": address, "Set-Cookie": kept})


@get("/callback", include_in_schema=False)
async def callback(
    request: Request[Any, Any, Any], app_state: TheAppState, code: Text = "", error: Text = ""
) -> Response[None]:
    """Back from the provider with a code: who it is gets a session as long as the settings say."""
    found = app_state.outside.sign_in
    if found is None:
        return _by_token()
    flow = _flow(request.headers, secure=found.settings.secure)
    answer = ProviderAnswer(str(request.query_params.get("state", "")), code, error)
    try:
        token = await _signed_in(app_state, found, flow, answer)
    except ProblemError as failed:
        return _led_back(request, flow.to, failed, secure=found.settings.secure)
    session = cookie(SESSION, token, int(found.settings.session_s), secure=found.settings.secure)
    return Response(None, status_code=303, headers={"Location": local(flow.to), "Set-Cookie": session})


class SignInFlow(Struct, frozen=True):
    """A sign-in that this browser has begun: what binds the answer to it, and where it leads."""

    state: str
    nonce: str
    verifier: str
    to: str


class ProviderAnswer(Struct, frozen=True):
    """The words that the provider sent the browser back with."""

    state: str
    code: str
    error: str


async def _signed_in(app_state: AppState, found: SignIn, flow: SignInFlow, answer: ProviderAnswer) -> str:
    """The token of a session for who it is that the code names. Raises ProblemError."""
    if (
        flow.state and answer.error
    ):  # some providers refuse without the state; nothing is granted here, and a code says no sentence
        raise refuse(
            403, "sign_in", f"the sign-in provider refuses: {_code(answer.error)}", "ask the provider's administrator"
        )
    if not flow.state or not secrets.compare_digest(flow.state, answer.state):
        raise refuse(400, "sign_in", "this sign-in was not begun in this browser, or too long ago", "begin it anew")
    if not answer.code:
        raise refuse(502, "sign_in", "the sign-in provider sent no code", "ask the provider's administrator")
    try:
        claims = await found.provider.claims(answer.code, flow.nonce, flow.verifier)
    except SignInError as failed:
        raise _failed(failed) from failed
    grant = found.settings.grant(claims)
    if grant is None or not NAME.fullmatch(claims.name):
        log.warning("sign_in_refused", person=claims.name[:100], groups=len(claims.groups))
        what = f"{claims.name[:100]} is in no group that may do anything here"
        raise refuse(403, "sign_in", what, "an operator names the group in oidc.json")
    expires: datetime = app_state.settings.clock() + timedelta(seconds=found.settings.session_s)
    token = await asyncio.to_thread(app_state.tokens.begin_session, replace(grant, expires=expires))
    heard = note()
    heard.verb, heard.person, heard.role, heard.token = "sign-in", grant.name, grant.role.value, token.split("_")[1]
    log.info("signed_in", person=grant.name, role=grant.role.value, until=expires.isoformat())
    return token


def _code(error: str) -> str:
    """The provider's error where it is one of OAuth's form, so that no link has the console say a sentence."""
    return error if _ERROR.fullmatch(error) else "an error without a code"


def _led_back(request: Request[Any, Any, Any], to: str, failed: ProblemError, *, secure: bool) -> Response[None]:
    """Lead a browser back to the page it came for, which then says what failed. Raises it for everybody else.

    The text goes by a cookie: in the address, anybody could have the console say anything by a link.
    """
    if "text/html" not in request.headers.get("accept", ""):
        raise failed
    note().refused = failed.status
    said = f"{failed.problem.detail}: {failed.problem.instead}"[:FAILURE_MAX]
    kept = cookie(FAILURE, quote(said, safe=""), FAILURE_S, secure=secure)
    return Response(None, status_code=303, headers={"Location": local(to), "Set-Cookie": kept})


@post("/out", status_code=204, include_in_schema=False)
async def out(request: Request[Any, Any, Any], app_state: TheAppState) -> Response[None]:
    """End this browser's session: its token is no more. Tokens that were sent by header stay."""
    found = app_state.outside.sign_in
    if found is None:
        return Response(None, status_code=204)
    demand_own_page(request.scope)
    kept = read_cookie(request.headers, SESSION, secure=found.settings.secure)
    if (who := await app_state.tokens.recognise(kept) if kept else None) is not None:
        heard = note()
        heard.verb, heard.person, heard.role, heard.token = "sign-out", who.name, who.role.value, who.token
        await asyncio.to_thread(app_state.tokens.revoke, who.token)
    return Response(None, status_code=204, headers={"Set-Cookie": cookie(SESSION, "", 0, secure=found.settings.secure)})


def local(to: str) -> str:
    """The path as a page of this server; anything else is the front page."""
    parts = urlsplit(to)
    plain = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable() and to.isascii()
    return to if plain and not parts.netloc and not parts.scheme and "\\" not in to else "/"


def _flow(headers: Headers, *, secure: bool) -> SignInFlow:
    parts = read_cookie(headers, FLOW, secure=secure).split(".", 3)
    if len(parts) != 4:
        return SignInFlow("", "", "", "/")
    return SignInFlow(parts[0], parts[1], parts[2], unquote(parts[3]))


def _by_token() -> Response[None]:
    """Answer where no provider is set: the console asks for a token."""
    return Response(None, status_code=302, headers={"Location": "/"})


def _failed(error: SignInError) -> ProblemError:
    log.warning("sign_in_failed", reason=str(error))
    return refuse(502, "sign_in", str(error), "try again; if it stays so, Hostler's log says why")


router = Router(path="/sign-in", route_handlers=[ways, begin, callback, out], tags=["sign-in"])
