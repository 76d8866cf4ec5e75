"""Decides an intent: the events that grant it, or the reason against it and the way out.

A request about a node becomes a condition with the person's name; the same guards, plans and records apply to it as to
any fault. Every intent is recorded, granted or not, unless it is a dry run; a repeated key gets the first answer.
What would disturb more than one person may decide waits for a second one.
"""

from typing import Any

from msgspec.structs import replace

from hostler.core.intents import (
    activation,
    approvals,
    asset_leaks,
    bmc_certificates,
    bmc_logins,
    call_off,
    drills,
    expected_nodes,
    fabrics,
    goldens,
    holds,
    instance_replacement,
    lights,
    machine_work,
    maintenance,
    manual_tests,
    modes,
    nodes,
    onboarding,
    proposals,
    racks,
    recablings,
    recovery,
    remediators,
    remedies,
    retirement,
    rma_cases,
    ticket_claims,
    tickets,
)
from hostler.core.intents.ask import (
    NODES_MAX,
    REASON_MAX,
    Answered,
    AnyAsk,
    Ask,
    Granted,
    Handler,
    Handlers,
    Nodes,
    RefusalError,
)
from hostler.core.intents.bounds import check_bounds
from hostler.core.intents.idempotency import content_of, repeated
from hostler.core.state import events as e
from hostler.core.state import formats
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.intent import Intent, Unreadable
from hostler.core.state.verbs.activation import Activate
from hostler.core.state.verbs.approvals import ApproveRequest
from hostler.core.state.verbs.arguments import misfit
from hostler.core.state.verbs.every import VERBS
from hostler.core.state.verbs.remedies import RemedyVerb

SLIM_CHARS = 256
"""The longest argument that is recorded with its intent."""


def decide_intent(ask: AnyAsk) -> Answered:
    """The recorded answer to an intent. Never raises on what was asked."""
    intent = ask.intent
    earlier = ask.context.fleet.answers.get(intent.key) if intent.key else None
    if earlier is not None:
        return repeated(ask, earlier)
    try:
        _check(intent)
        check_bounds(ask)
        text, events = _grant(ask)
        said = _said(ask, text, granted=True)
        if need := formats.needs(ask.context, events) or formats.unsaid(ask.context, said):
            raise RefusalError(formats.too_old(ask.context, need))  # noqa: TRY301 - it is answered here
        needs = approvals.demand(ask, _disturbed_by(ask))
        if intent.dry_run:
            return _tried(ask, needs, text)
        if needs.why:
            return _waiting(ask, needs)
    except (RefusalError, InvalidInputError) as why:
        return refused(ask, why)
    recorded = replace(said, disturbs=needs.nodes, concerns=() if needs.nodes else _concerned(ask, events))
    way_back = call_off.way_back(ask, events)
    detail = {"intent": intent.id} | ({"call_off": way_back} if way_back else {})
    return Answered(True, text, (recorded, *events), detail)


def refused(ask: AnyAsk, why: RefusalError | InvalidInputError) -> Answered:
    """The recorded refusal of an intent."""
    beside = why.events if isinstance(why, RefusalError) else ()
    ways = why.ways if isinstance(why, RefusalError) else ()
    events = () if ask.intent.dry_run else (_recorded(ask, str(why), granted=False), *beside)
    return Answered(False, str(why), events, {"intent": ask.intent.id}, ways)


def _concerned(ask: AnyAsk, events: tuple[e.Event, ...]) -> tuple[str, ...]:
    """The nodes that an act on a rack, a pool or a list concerns, for those who follow it."""
    nodes = ask.context.fleet.nodes
    if ask.intent.target in nodes:
        return ()
    found = dict.fromkeys(name for event in events for name in e.subjects_of(event) if name in nodes)
    return tuple(found)[:NODES_MAX]


def _recorded(ask: AnyAsk, text: str, *, granted: bool) -> e.IntentRecorded:
    """The record of the answer; a verb for which the cell's format has no word is recorded as text."""
    said = _said(ask, text, granted=granted)
    if formats.unsaid(ask.context, said) is None:
        return said
    as_text = _slim(replace(ask.intent, act=Unreadable(ask.intent.verb, ask.intent.args, text[:SLIM_CHARS])))
    return replace(said, intent=as_text)


def _said(ask: AnyAsk, text: str, *, granted: bool) -> e.IntentRecorded:
    handle = f"intent:{ask.intent.id}"
    return e.IntentRecorded(_slim(ask.intent), granted, text[:2000], content=content_of(ask), handle=handle)


def _grant(ask: AnyAsk) -> Granted:
    return HANDLERS[type(ask.act)].grant(ask)


def _disturbed_by(ask: AnyAsk) -> Nodes:
    found = HANDLERS[type(ask.act)].disturbs
    return found(ask) if found is not None else ()


def _waiting(ask: AnyAsk, needs: approvals.Demand) -> Answered:
    """The intent waits for a second person; asked once more, it waits for the same approval."""
    waits = approvals.pending(ask)
    fresh = waits or approvals.request(ask, needs.why, needs.nodes)
    text = approvals.told(fresh)
    recorded = replace(_recorded(ask, text, granted=False), approval=fresh.id)
    events = (recorded,) if waits else (recorded, e.ApprovalRequested(fresh))
    way_back = call_off.way_back(ask, (), fresh.id)
    return Answered(False, text, events, {"intent": ask.intent.id, "approval": fresh.id, "call_off": way_back})


def _tried(ask: AnyAsk, needs: approvals.Demand, text: str) -> Answered:
    """Answer of a dry run: the plan or the effect, and whether a second person would be asked.

    Of an approval it is the plan or the effect of what would be approved.
    """
    if isinstance(ask.act, ApproveRequest):
        again = approvals.asked_again(ask)
        effect = _tried(again, approvals.Demand(_disturbed_by(again)), text)
        return replace(effect, text=f"would be granted: {text}")
    if isinstance(ask.act, RemedyVerb):
        shown = remedies.preview(ask)
    else:
        detail = activation.effect(ask) if isinstance(ask.act, Activate) else {}
        shown = Answered(True, f"would be granted: {text}", detail={"disturbs": str(len(needs.nodes)), **detail})
    if not needs.why:
        return shown
    return replace(
        shown, text=f"{shown.text}, after a second person's approval", detail={**shown.detail, "approval": needs.why}
    )


def _check(intent: Intent) -> None:
    if isinstance(intent.act, Unreadable) and intent.verb not in VERBS:
        raise RefusalError(f"no verb '{intent.verb}'; there are {', '.join(sorted(VERBS))}")
    if not intent.person:
        raise RefusalError("the request does not say who asks; send it with a token")
    if not intent.reason.strip() or len(intent.reason) > REASON_MAX:
        raise RefusalError(f"give a reason of 1 to {REASON_MAX} characters: it is shown wherever this act is")
    if len(intent.key) > 128:
        raise RefusalError("an idempotency key has at most 128 characters")


def _slim(intent: Intent) -> Intent:
    """The intent without bulky documents: what they did stands in the events that follow."""
    act, most = intent.act, SLIM_CHARS
    bulky: dict[str, Any] = {name: "" for name in act.__struct_fields__ if len(str(getattr(act, name))) > most}
    if isinstance(act, Unreadable):
        bulky = {"args": {name: text for name, text in act.args.items() if len(text) <= most}}
    nodes = intent.nodes if len(",".join(intent.nodes)) <= most else ()
    return replace(intent, act=replace(act, **bulky), nodes=nodes)


def _unreadable(ask: Ask[Unreadable]) -> Granted:
    """Raises RefusalError: there is no such verb, or it takes other arguments."""
    verb = ask.act.said
    if (kind := VERBS.get(verb)) is None:
        raise RefusalError(f"no verb '{verb}'; there are {', '.join(sorted(VERBS))}")
    raise RefusalError(misfit(kind, ask.act.why))


HANDLERS: Handlers = {
    **activation.HANDLERS,
    **approvals.HANDLERS,
    **bmc_certificates.HANDLERS,
    **bmc_logins.HANDLERS,
    **drills.HANDLERS,
    **call_off.HANDLERS,
    **machine_work.HANDLERS,
    **instance_replacement.HANDLERS,
    **expected_nodes.HANDLERS,
    **fabrics.HANDLERS,
    **goldens.HANDLERS,
    **manual_tests.HANDLERS,
    **recablings.HANDLERS,
    **holds.HANDLERS,
    **lights.HANDLERS,
    **maintenance.HANDLERS,
    **modes.HANDLERS,
    **nodes.HANDLERS,
    **retirement.HANDLERS,
    **onboarding.HANDLERS,
    **proposals.HANDLERS,
    **racks.HANDLERS,
    **asset_leaks.HANDLERS,
    **recovery.HANDLERS,
    **remediators.HANDLERS,
    **remedies.HANDLERS,
    **rma_cases.HANDLERS,
    **ticket_claims.HANDLERS,
    **tickets.HANDLERS,
    Unreadable: Handler(_unreadable),
    ApproveRequest: Handler(approvals.approving(_grant, _disturbed_by)),
}
"""How each verb of `core.state.verbs` is decided."""
