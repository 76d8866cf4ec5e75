"""Backtests: history replayed through other documents, beside the configuration that is active."""

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from hostler.core.report.configuration_differences import differences
from hostler.core.state.configuration import Configuration
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.scopes import text_hook
from hostler.core.state.verbs.facts import Permission
from hostler.server.app_state import AppState
from hostler.server.audit_trail import note
from hostler.server.auth import SEE_CELL, needs
from hostler.server.backtests import BacktestQuestion, BacktestRun, Backtests
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.paging import Page, listed
from hostler.server.problems import ProblemError, invalid, problem_details, refuse, unknown
from hostler.server.routes.cell import CONFIG_EXAMPLE, DOCUMENTS_MAX, LARGE
from hostler.server.routes.intents import Reason

CONFIGURE = [needs(Permission.configure)]
Aware = Annotated[datetime, Meta(tz=True)]


class BacktestBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Configuration documents, name → YAML text; together they are the whole configuration that is tried.

    `since` and `until` bound the history that is replayed, null for all that the journal and its archive hold.
    """

    documents: Annotated[dict[str, str], Meta(min_length=1, max_length=DOCUMENTS_MAX)]
    reason: Reason
    since: Aware | None = None
    until: Aware | None = None


class CancelBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a backtest is ended."""

    reason: Reason


@get("/backtests", guards=SEE_CELL)
async def list_backtests(
    app_state: TheAppState, wanted: Wanted, sha256: Annotated[str, QueryParameter(max_length=64)] = ""
) -> Page[BacktestRun]:
    """Backtests, the one that runs and the latest 20 that ended, oldest first; `sha256`: those of one configuration.

    The rows of an answer are in the answer about one backtest.
    """
    found = await _backtests(app_state).listed()
    return listed(((run.id, run) for run in found if run.sha256.startswith(sha256)), wanted)


@get("/backtests/{backtest:str}", guards=SEE_CELL)
async def get_backtest(app_state: TheAppState, backtest: FromPath[str]) -> BacktestRun:
    """One backtest with its answer: what would have differed, node by node, and how far that can be believed."""
    found = await _backtests(app_state).found(backtest)
    if found is None:
        raise unknown("backtest", backtest)
    return found


@post(
    "/backtests",
    guards=CONFIGURE,
    request_max_body_size=LARGE,
    status_code=202,
    example={
        "documents": CONFIG_EXAMPLE,
        "reason": "a larger pool",
        "since": "2026-10-01T00:00:00Z",
        "until": "2026-11-01T00:00:00Z",
    },
)
async def post_backtest(app_state: TheAppState, who: Who, data: JSONBody[BacktestBody]) -> BacktestRun:
    """Begin to replay history through these documents, in a process of its own at the lowest priority.

    409 where one runs already. Refused with 422 and every problem by file and line.
    """
    backtests = _backtests(app_state)
    try:
        fresh = await app_state.documents.parse(data.documents)
    except InvalidInputError as error:
        raise invalid(error) from error
    heard = note()
    heard.verb, heard.target = "backtest", fresh.sha256
    if (running := backtests.running) is not None:
        what = f"backtest {running.id} of {running.person} runs since {running.asked:%Y-%m-%d %H:%M} UTC"
        instead = f"wait for it, or end it: hostler backtest cancel {running.id} --reason …"
        raise ProblemError(problem_details(409, "refused", what, instead, facts={"backtest": running.id}))
    run = _run(app_state, who.name, data, fresh)
    backtests.begin(run, BacktestQuestion(data.documents, data.since, data.until))
    return run


def _run(app_state: AppState, person: str, data: BacktestBody, fresh: Configuration) -> BacktestRun:
    active, now = app_state.fleet.configuration, app_state.now()
    return BacktestRun(
        id=f"b-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}-{fresh.sha256[:12]}",
        sha256=fresh.sha256,
        against=active.sha256,
        documents=tuple(sorted(data.documents)),
        differences=tuple(differences(_plain(active), _plain(fresh))),
        person=person,
        reason=data.reason,
        asked=now,
        since=data.since,
        until=data.until,
    )


def _plain(configuration: Configuration) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(configuration, enc_hook=text_hook)
    return found


@post("/backtests/{backtest:str}/cancel", guards=CONFIGURE, status_code=200, example={"reason": "the wrong month"})
async def cancel_backtest(
    app_state: TheAppState, who: Who, backtest: FromPath[str], data: JSONBody[CancelBody]
) -> BacktestRun:
    """End a backtest that runs; its process is gone when this is answered. 409 where it has ended."""
    heard = note()
    heard.verb, heard.target = "cancel-backtest", backtest
    backtests = _backtests(app_state)
    if backtests.running is None or backtests.running.id != backtest:
        if await backtests.found(backtest) is None:
            raise unknown("backtest", backtest)
        raise refuse(
            409, "refused", f"backtest {backtest} has ended", f"read what came of it: hostler backtest show {backtest}"
        )
    await backtests.cancel(who.name, data.reason)
    found = await backtests.found(backtest)
    if found is None:
        raise unknown("backtest", backtest)
    return found


def _backtests(app_state: AppState) -> Backtests:
    if app_state.outside.backtests is None:
        instead = "replay a journal that is kept: hostler policy backtest --journal FILE --policy FILES"
        raise refuse(404, "unknown", "this controller keeps no journal that could be replayed", instead)
    return app_state.outside.backtests


router = Router(
    path="/", route_handlers=[list_backtests, get_backtest, post_backtest, cancel_backtest], tags=["backtests"]
)
