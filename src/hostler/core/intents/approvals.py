"""The second person: which intents wait for one, and what their yes, no or silence leads to.

An approved intent is decided anew on the fleet as it is then, in the name of who asked.
"""

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from hostler.core.intents import call_off
from hostler.core.intents.activation import rolls_out
from hostler.core.intents.ask import AnyAsk, Ask, Granted, Handler, Handlers, Nodes, RefusalError
from hostler.core.intents.bounds import check_bounds
from hostler.core.planning.what_if import acting, by_pool, gpus_of, loosens
from hostler.core.report.sentences import asked_for
from hostler.core.state import events as e
from hostler.core.state.assets import DPU_BMC, OUTLET
from hostler.core.state.change_control import APPROVALS_MAX, NODES_LISTED, Approval
from hostler.core.state.configuration import Configuration
from hostler.core.state.intent import Intent
from hostler.core.state.people import KnownPeople, is_same, separates
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.approvals import DenyRequest, WithdrawRequest
from hostler.core.state.verbs.nodes import NO_BMC, Rebind
from hostler.core.state.ways_out import by_act


class Demand(Struct, frozen=True):
    """Whether one person may decide alone (`why` is ""), or why a second one is needed."""

    nodes: tuple[str, ...]
    why: str = ""


def demand(ask: AnyAsk, nodes: Nodes) -> Demand:
    """The nodes that the intent would disturb, and why that is not for one person to decide."""
    fleet, reach = ask.context.fleet, ask.context.fleet.policy.reach
    since = ask.context.now - timedelta(seconds=reach.window_s)
    people, names = KnownPeople(fleet.policy.people), ask.intent.names
    lately = {n for a in fleet.cell.acts if a.at > since and people.is_same((a.person,), names) for n in a.nodes}
    total = len(lately.union(nodes))
    if nodes and total > reach.nodes:
        more = f" together with the recent requests of {ask.intent.person}" if total > len(nodes) else ""
        return Demand(nodes, f"it would disturb {total} nodes{more}; one person may disturb {reach.nodes}")
    return Demand(nodes, _unwatched(ask))


def _unwatched(ask: AnyAsk) -> str:
    """Why what disturbs few now, a configuration or where a BMC's password is sent, still needs a second person."""
    fleet, fresh = ask.context.fleet, ask.configuration
    if isinstance(ask.act, Rebind) and ask.act.kind in _WHOSE and ask.act.value != NO_BMC:
        return f"{_WHOSE[ask.act.kind]} password will be sent to its new address"
    if fresh is None or not len(fleet.nodes):
        return ""
    if separates(fleet.policy.people, fresh.policy.people):
        return "names that are one person's would be two people's"
    acts = acting(fleet, fleet.configuration, fresh)
    if acts <= fleet.policy.reach.nodes:
        return ""
    if loosens(fleet.policy.reach, fresh.policy.reach):
        return "it raises the limit for one person, or shortens the watch of a rollout"
    if isinstance(ask.act, Activate) and ask.act.at_once and rolls_out(ask.context, fresh):
        return f"it would take effect at once on {acts} nodes, without a rollout"
    return ""


_WHOSE = {"bmc": "the BMC's", DPU_BMC: "a DPU's", OUTLET: "a PDU's"}
"""Kind of binding → whose password is sent to the address that it names."""


def pending(ask: AnyAsk) -> Approval | None:
    """The approval that the same person's same intent waits for already."""
    asked, now = _sameness(ask.intent, ask.configuration), ask.context.now
    waiting = (a for a in ask.context.fleet.approvals.values() if a.expires > now)
    alike = (a for a in waiting if _sameness(a.intent, a.configuration) == asked)
    return next((a for a in alike if _is_their_own(ask, a)), None)


def _is_their_own(ask: AnyAsk, approval: Approval) -> bool:
    """Whether the person asks about their own request, under whichever of their names."""
    return is_same(ask.context.fleet.policy.people, approval.intent.names, ask.intent.names)


def _sameness(intent: Intent, configuration: Configuration | None) -> tuple[object, ...]:
    sha256 = configuration.sha256 if configuration else ""
    return intent.act, intent.target, intent.nodes, sha256


def request(ask: AnyAsk, why: str, nodes: tuple[str, ...]) -> Approval:
    """The approval that the intent waits for from now on. Raises RefusalError where too many wait already."""
    fleet, now = ask.context.fleet, ask.context.now
    if len(fleet.approvals) >= APPROVALS_MAX:
        raise RefusalError(f"{APPROVALS_MAX} intents wait for a second person already; see `hostler approval list`")
    return Approval(
        id=f"a-{fleet.cell.seq}",
        intent=ask.intent,
        asked=now,
        expires=now + timedelta(seconds=fleet.policy.reach.approval_s),
        why=why,
        nodes=nodes[:NODES_LISTED],
        pools=by_pool(fleet, nodes),
        gpus=gpus_of(fleet, nodes),
        configuration=ask.configuration,
        documents=ask.documents,
    )


def told(approval: Approval) -> str:
    """Answer to the requester."""
    return f"{asked_for(approval)}; {approval.why} (another person: hostler approval approve {approval.id} --reason …)"


def _the_approval(ask: AnyAsk) -> Approval:
    approval = ask.context.fleet.approvals.get(ask.intent.target)
    if approval is None or approval.expires <= ask.context.now:
        also = call_off.hint(ask, ask.intent.target)
        raise RefusalError(f"no intent waits for approval {ask.intent.target}; see `hostler approval list`{also}")
    return approval


def asked_again(ask: AnyAsk) -> AnyAsk:
    """The intent that the approval waits for, as the second person's yes has it decided. Raises RefusalError."""
    approval = _the_approval(ask)
    return Ask(ask.context, approval.intent, approval.configuration, approval.documents, ask.intent.person)


def approving(
    grant: Callable[[AnyAsk], Granted], disturbed_by: Callable[[AnyAsk], Nodes]
) -> Callable[[AnyAsk], Granted]:
    """The verb by which a second person says yes; `grant` decides the approved intent as it decides any other."""

    def approve(ask: AnyAsk) -> Granted:
        approval = _the_approval(ask)
        if _is_their_own(ask, approval):
            raise RefusalError(f"{_asker(ask, approval)} asked for it; a second person has to approve it")
        again = asked_again(ask)
        try:
            check_bounds(again)
            _refuse_more(again, approval, disturbed_by(again))
            text, events = grant(again)
        except RefusalError as refused:
            ended = _ended(approval, "refused", ask.intent.person, str(refused))
            raise RefusalError(f"approval {approval.id} is over: {refused}", ended) from refused
        ended = _ended(approval, "approved", ask.intent.person, ask.intent.reason)
        return f"{approval.id} approved: {text}", (ended, *events)

    return approve


def _asker(ask: AnyAsk, approval: Approval) -> str:
    """The person who asked, by the name that they gave then, beside the one they give now."""
    before, now = approval.intent.person, ask.intent.person
    return now if before == now else f"{now} is the same person as {before}, who"


def _refuse_more(ask: AnyAsk, approval: Approval, nodes: Nodes) -> None:
    """Raises RefusalError where the intent would do more by now than was asked to be approved."""
    approved = dict(approval.pools)
    for pool, number in by_pool(ask.context.fleet, nodes):
        if number > approved.get(pool, 0):
            where = f"pool {pool}" if pool else "nodes of no pool"
            asked = approved.get(pool, 0)
            raise RefusalError(
                f"it would now disturb {number} nodes of {where}, {asked} when it was asked for; ask again"
            )


def deny(ask: AnyAsk) -> Granted:
    """A second person says no."""
    approval = _the_approval(ask)
    if _is_their_own(ask, approval):
        raise RefusalError(
            f"{_asker(ask, approval)} asked for it; withdraw it instead", way=by_act(WithdrawRequest(), approval.id)
        )
    return f"{approval.id} denied", (_ended(approval, "denied", ask.intent.person, ask.intent.reason),)


def withdraw(ask: AnyAsk) -> Granted:
    """End an approval that its requester withdraws."""
    approval = _the_approval(ask)
    if not _is_their_own(ask, approval):
        raise RefusalError(
            f"{ask.called(approval.intent.person)} asked for it; deny it instead",
            way=by_act(DenyRequest(), approval.id),
        )
    return f"{approval.id} withdrawn", (_ended(approval, "withdrawn", ask.intent.person, ask.intent.reason),)


def _ended(approval: Approval, result: str, person: str, why: str) -> e.ApprovalEnded:
    return e.ApprovalEnded(approval.id, approval.intent.target, result, person, why[:500])


HANDLERS: Handlers = {DenyRequest: Handler(deny), WithdrawRequest: Handler(withdraw)}
