"""Problem answers of failed requests: what is wrong, and what to do instead. Never a traceback."""

import math
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state import input_problems
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.ways_out import WayOut
from hostler.logs.structured import logger
from hostler.ports import JournalError
from hostler.runtime.disk_room import NoRoomError
from hostler.runtime.input_queues import BusyError, StandbyError

log = logger()

MEDIA_TYPE = "application/problem+json"
WHAT_MAX = 2000


class DocumentProblem(Struct, frozen=True):
    """One thing wrong with a document: file or entry, line (0 where lines mean nothing), and what to write instead."""

    file: str
    line: int
    what: str
    instead: str


class ProblemDetails(Struct, frozen=True, omit_defaults=True):
    """The body of every answer that is not a success: problem details (RFC 9457) of no type but their status.

    `title` is the status's name, `detail` what is wrong. Members of ours: `error`, a code for programs; `instead`, what
    to do; `problems`, what is wrong with a document; `facts` that programs read; `ways` out of a refusal, of which an
    act is what `POST /v1/intents` takes.
    """

    error: str
    title: str
    status: int
    detail: str
    instead: str
    problems: tuple[DocumentProblem, ...] = ()
    facts: dict[str, str] = {}
    ways: tuple[WayOut, ...] = ()


def problem_details(
    status: int,
    error: str,
    what: str,
    instead: str,
    facts: dict[str, str] | None = None,
) -> ProblemDetails:
    """The details of a problem; what is too long is cut."""
    return ProblemDetails(error, HTTPStatus(status).phrase, status, what[:WHAT_MAX], instead, facts=facts or {})


class ProblemError(Exception):
    """A request that is answered with a problem. `headers` go along (Retry-After, WWW-Authenticate)."""

    def __init__(self, problem: ProblemDetails, headers: dict[str, str] | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers or {}

    @property
    def status(self) -> int:
        """The answer's status."""
        return self.problem.status


def refuse(status: int, error: str, what: str, instead: str) -> ProblemError:
    """A problem to raise."""
    return ProblemError(problem_details(status, error, what, instead))


def standby(address: str, why: str = "", retry_after_s: float = 1.0) -> ProblemError:
    """Problem of a standby that could not have the active controller, at `address` ("" unknown), answer."""
    what = f"this controller stands by; the active one is at {address}" if address else "no controller is active now"
    instead = "send it again in a moment" + (f", or to {address}" if address else "")
    problem = problem_details(503, "standby", f"{what}: {why}" if why else what, instead, facts={"active": address})
    return ProblemError(problem, {"Retry-After": str(max(1, math.ceil(retry_after_s)))})


LISTED_BY: dict[str, str] = {
    "node": "hostler node list",
    "approval": "hostler approval list",
    "backtest": "hostler backtest list",
    "bundle": "hostler node bundles NODE",
    "certificate": "hostler node certificates NODE",
    "dead letter": "hostler notify dead",
    "design version": "hostler fabric versions FABRIC",
    "domain": "hostler rack list",
    "file": "hostler ticket get TICKET, hostler node checklist NODE or hostler fabric show FABRIC",
    "finding": "hostler fabric findings FABRIC",
    "golden": "hostler golden list",
    "incident": "hostler incident list",
    "intent": "hostler events --name intent_recorded",
    "link": "hostler fabric links FABRIC",
    "network": "hostler fabric list",
    "pool": "hostler pool list",
    "rack": "hostler rack list",
    "return": "hostler rma list",
    "rollout": "hostler rollout list",
    "route": "hostler notify list",
    "ticket": "hostler ticket list",
}
"""Kind of thing → the command that lists what there is of it."""


def unknown(kind: str, name: str) -> ProblemError:
    """Not there, or not for this caller's eyes: both read the same."""
    return refuse(404, "unknown", f"no {kind} '{name[:100]}'", f"see what there is: {LISTED_BY[kind]}")


def invalid(error: InvalidInputError) -> ProblemError:
    """A document or registration that is refused whole."""
    found = tuple(_found(problem) for problem in error.problems)
    what = f"{len(found)} problem{'s' if len(found) != 1 else ''}; nothing was used"
    instead = "correct what is named and send it again"
    return ProblemError(replace(problem_details(422, "invalid_input", what, instead), problems=found))


def _found(problem: input_problems.Problem) -> DocumentProblem:
    return DocumentProblem(problem.where, problem.line, problem.what[:WHAT_MAX], problem.instead)


def _answer(problem: ProblemDetails, headers: dict[str, str] | None = None) -> Response[ProblemDetails]:
    return Response(problem, status_code=problem.status, media_type=MEDIA_TYPE, headers=headers or {})


def _raised(_: Request[Any, Any, Any], error: ProblemError) -> Response[ProblemDetails]:
    return _answer(error.problem, error.headers)


def _no_room(_: Request[Any, Any, Any], error: NoRoomError) -> Response[ProblemDetails]:
    problem = problem_details(503, "no_room", error.why, "keep it and send it again later")
    return _answer(problem, {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))})


def _busy(_: Request[Any, Any, Any], error: BusyError) -> Response[ProblemDetails]:
    what = "the controller does not take this now; nothing was accepted"
    problem = problem_details(503, "busy", what, "send it again later")
    return _answer(problem, {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))})


def _standby(request: Request[Any, Any, Any], error: StandbyError) -> Response[ProblemDetails]:
    return _raised(request, standby(error.address, retry_after_s=error.retry_after_s))


def _journal(_: Request[Any, Any, Any], error: JournalError) -> Response[ProblemDetails]:
    log.warning("journal_unreadable", reason=str(error))
    what, instead = "the journal cannot be read", "look at the server's log; try again"
    return _answer(problem_details(503, "unavailable", what, instead), {"Retry-After": "5"})


def _malformed(_: Request[Any, Any, Any], error: Exception) -> Response[ProblemDetails]:
    """JSON that does not parse, or does not fit."""
    what = str(error) or type(error).__name__
    if isinstance(error, RecursionError):
        what = "nested too deeply"
    fits = isinstance(error, msgspec.ValidationError)
    instead = "see /schema/openapi.json for the fields and types" if fits else "send one JSON document in UTF-8"
    return _answer(problem_details(422 if fits else 400, "malformed", what, instead))


_INSTEAD = {
    400: "see /schema/openapi.json for the parameters",
    404: "see /schema/openapi.json for the paths there are",
    405: "see /schema/openapi.json for the methods of this path",
    413: "send it in smaller pieces",
}


def _http(request: Request[Any, Any, Any], error: HTTPException) -> Response[ProblemDetails]:
    """Problem of a request that the framework itself refuses."""
    what = error.detail
    if isinstance(error.extra, list):
        keys = ("key", "message")
        told = [": ".join(str(e[k]) for k in keys if k in e) for e in error.extra if isinstance(e, dict)]
        what = "; ".join(told) or what
    status = error.status_code
    if status >= 500:
        log.error("request_failed", path=request.url.path, reason=what)
        what = "the server failed"
    name = {404: "unknown", 405: "method", 413: "too_large"}.get(status, "malformed" if status < 500 else "internal")
    return _answer(problem_details(status, name, what, _INSTEAD.get(status, "look at the server's log")))


def _bug(request: Request[Any, Any, Any], error: Exception) -> Response[ProblemDetails]:
    log.error("request_failed", exc_info=error, path=request.url.path)
    return _answer(problem_details(500, "internal", "the server failed; this is a bug", "look at the server's log"))


HANDLERS: ExceptionHandlersMap = {
    ProblemError: _raised,
    StandbyError: _standby,
    NoRoomError: _no_room,
    BusyError: _busy,
    JournalError: _journal,
    msgspec.DecodeError: _malformed,
    RecursionError: _malformed,
    UnicodeDecodeError: _malformed,
    HTTPException: _http,
    Exception: _bug,
}
"""Handler of each kind of exception."""
