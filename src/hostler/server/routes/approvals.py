"""Intents that wait for a second person, and configurations that come into force slice by slice."""

from datetime import datetime
from typing import Any, Literal

from litestar import Router, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from hostler.client.answers import IntentView
from hostler.core.intents.bounds import concerned
from hostler.core.planning.rollouts import waits_for
from hostler.core.report.approval_requests import requests_of
from hostler.core.report.sentences import asked_for
from hostler.core.state.change_control import Approval, Rollout, Slice, SliceError
from hostler.core.state.verbs.activation import StopRollout
from hostler.core.state.verbs.approvals import ApproveRequest, DenyRequest, WithdrawRequest
from hostler.core.state.verbs.facts import Permission, name_of
from hostler.server.acts import act_view
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL, needs
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.paging import Page, listed
from hostler.server.problems import unknown
from hostler.server.routes.intents import ActBody, TheCaller, requested, submit
from hostler.server.rows import row_of
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity

NODES_SHOWN = 100


class ApprovalView(Struct, frozen=True):
    """An intent that waits: who asked for what, why, how many nodes of which pools ("" none) it would disturb.

    `act` is what was asked for, as one asks for it. `nodes` are the first of them, `text` says it all in a sentence,
    `configuration` is the digest of one that waits.
    `request`: the first of the approvals that were asked for together with it (the same person, act and reason).
    """

    id: str
    request: str
    person: str
    verb: str
    target: str
    act: dict[str, Any]
    reason: str
    why: str
    asked: datetime
    expires: datetime
    disturbs: int
    gpus: int
    pools: dict[str, int]
    nodes: tuple[str, ...]
    configuration: str
    text: str


def approval_view(approval: Approval, request: str) -> ApprovalView:
    """The approval as the API shows it; `request` is the first of those that were asked for together with it."""
    intent = approval.intent
    return row_of(
        ApprovalView,
        approval,
        request=request,
        person=intent.person,
        verb=intent.verb,
        target=intent.target,
        act=act_view(intent),
        reason=intent.reason,
        disturbs=approval.count,
        pools=dict(approval.pools),
        nodes=approval.nodes[:NODES_SHOWN],
        configuration=approval.configuration.sha256 if approval.configuration else "",
        text=asked_for(approval),
    )


class RolloutView(Struct, frozen=True):
    """A rollout: its slices in their order, which of them is watched, what went wrong, and what it waits for.

    `sha256` is put in force, `before` is in force wherever it has not come to, and everywhere once it stopped. `ahead`
    counts the nodes not reached that it would have disturbed unforeseen, of `ahead_most` that are tolerated.
    """

    id: str
    state: str
    sha256: str
    before: str
    person: str
    approved_by: str
    reason: str
    started: datetime
    ended: datetime | None
    ended_by: str
    why: str
    slices: tuple[Slice, ...]
    index: int
    until: datetime
    errors: tuple[SliceError, ...]
    tolerated: int
    ahead: int
    ahead_most: int
    waits_for: str


def rollout_view(app_state: AppState, rollout: Rollout) -> RolloutView:
    """The rollout as the API shows it."""
    return row_of(
        RolloutView,
        rollout,
        ahead=len(rollout.ahead),
        waits_for=waits_for(app_state.context(), rollout) if rollout.state == "running" else "",
    )


def approvals_of(app_state: AppState, who: Identity) -> list[Approval]:
    """Intents that wait for a second person: all of them, or those wholly within the caller's reach."""
    return [
        app_state.shown(who, a) for a in app_state.fleet.approvals.values() if who.whole or _reaches(app_state, who, a)
    ]


def _reaches(app_state: AppState, who: Identity, approval: Approval) -> bool:
    nodes = concerned(app_state.fleet, approval.intent.target, approval.intent.nodes)
    return bool(nodes) and all(sees(who, node) for node in nodes)


@get("/approvals", guards=SEE)
async def list_approvals(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[ApprovalView]:
    """Intents that wait for a second person."""
    found = approvals_of(app_state, who)
    requests = requests_of(found)
    return listed(((a.id, approval_view(a, requests[a.id])) for a in found), wanted)


@get("/approvals/{approval:str}", guards=SEE)
async def get_approval(app_state: TheAppState, who: Who, approval: FromPath[str]) -> ApprovalView:
    """One intent that waits. What has been answered stands in the history of its target."""
    waiting = approvals_of(app_state, who)
    found = next((a for a in waiting if a.id == approval), None)
    if found is None:
        raise unknown("approval", approval)
    return approval_view(found, requests_of(waiting)[found.id])


_VERBS = {
    "approve": name_of(ApproveRequest),
    "deny": name_of(DenyRequest),
    "withdraw": name_of(WithdrawRequest),
}


@post(
    "/approvals/{approval:str}/{answer:str}",
    guards=SEE,
    status_code=200,
    example={"reason": "the rack is drained, I have looked"},
)
async def post_approval(
    app_state: TheAppState,
    caller: TheCaller,
    approval: FromPath[str],
    answer: FromPath[Literal["approve", "deny", "withdraw"]],
    data: JSONBody[ActBody],
) -> IntentView:
    """Approve or deny what somebody else asked for, or withdraw what you asked for."""
    return await submit(app_state, caller, requested(app_state, caller, _VERBS[answer], approval, data))


@get("/rollouts", guards=SEE_CELL)
async def list_rollouts(app_state: TheAppState, wanted: Wanted) -> Page[RolloutView]:
    """The rollout that runs and the last that ended."""
    return listed(((r.id, rollout_view(app_state, r)) for r in app_state.fleet.rollouts.values()), wanted)


@get("/rollouts/{rollout:str}", guards=SEE_CELL)
async def get_rollout(app_state: TheAppState, rollout: FromPath[str]) -> RolloutView:
    """One rollout."""
    found = app_state.fleet.rollouts.get(rollout)
    if found is None:
        raise unknown("rollout", rollout)
    return rollout_view(app_state, found)


@post(
    "/rollouts/{rollout:str}/stop",
    guards=[needs(Permission.operate)],
    status_code=200,
    example={"reason": "two nodes of the first slice failed their gate"},
)
async def stop_rollout(
    app_state: TheAppState, caller: TheCaller, rollout: FromPath[str], data: JSONBody[ActBody]
) -> IntentView:
    """Stop a rollout: the configuration before decides everywhere again."""
    return await submit(app_state, caller, requested(app_state, caller, name_of(StopRollout), rollout, data))


router = Router(
    path="/",
    route_handlers=[list_approvals, get_approval, post_approval, list_rollouts, get_rollout, stop_rollout],
    tags=["approvals and rollouts"],
)
