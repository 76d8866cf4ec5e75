"""What people ask for: a table from verb to the events that grant it, or the reason and the way out.

A wish about a node becomes a condition with the person's name; the same guards, plans and records apply to it as to
any fault. Every intent is recorded, granted or not, unless it is a dry run; a repeated key gets the first answer.
What would disturb more than one person may decide waits for a second one.
"""

from collections.abc import Callable

from msgspec.structs import replace

from hostler.core.intents import (
    accepting,
    activating,
    approvals,
    calling_off,
    consenting,
    deciding,
    keeping,
    lifecycle,
    trusting,
    vouching,
)
from hostler.core.intents.ask import REASON_MAX, Answered, Ask, Granted, RefusalError
from hostler.core.intents.bounds import check_bounds
from hostler.core.intents.repeating import content_of, repeated
from hostler.core.intents.wishes import WISHES, grant_wish, preview
from hostler.core.state import events as e
from hostler.core.state import formats
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Intent, Phase


def answer(ask: Ask) -> Answered:
    """The recorded answer to an intent. Never raises on what was asked."""
    intent = ask.intent
    earlier = ask.scene.fleet.answers.get(intent.key) if intent.key else None
    if earlier is not None:
        return repeated(ask, earlier)
    try:
        _check(intent)
        check_bounds(ask)
        text, events = VERBS[intent.verb](ask)
        if needed := formats.needs(ask.scene, events):
            raise RefusalError(formats.too_old(ask.scene, needed))  # noqa: TRY301 - it is answered here
        needs = approvals.demand(ask)
        if intent.dry_run:
            return _tried(ask, needs, text)
        if needs.why:
            return _waiting(ask, needs)
    except (RefusalError, InvalidInputError) as refused:
        beside = refused.events if isinstance(refused, RefusalError) else ()
        recorded = e.IntentRecorded(_slim(intent), granted=False, answer=str(refused)[:2000], content=content_of(ask))
        return Answered(False, str(refused), () if intent.dry_run else (recorded, *beside), {"intent": intent.id})
    recorded = e.IntentRecorded(_slim(intent), granted=True, answer=text, disturbs=needs.nodes, content=content_of(ask))
    return Answered(True, text, (recorded, *events), {"intent": intent.id})


def _waiting(ask: Ask, needs: approvals.Demand) -> Answered:
    """The intent waits for a second person; asked once more, it waits for the same approval."""
    waits = approvals.pending(ask)
    fresh = waits or approvals.request(ask, needs.why, needs.nodes)
    text = approvals.told(fresh)
    recorded = e.IntentRecorded(
        _slim(ask.intent), granted=False, answer=text[:2000], approval=fresh.id, content=content_of(ask)
    )
    events = (recorded,) if waits else (recorded, e.ApprovalRequested(fresh))
    return Answered(False, text, events, {"intent": ask.intent.id, "approval": fresh.id})


def _tried(ask: Ask, needs: approvals.Demand, text: str) -> Answered:
    """What a dry run shows: the plan or the effect, and whether a second person would be asked."""
    if ask.intent.verb in WISHES:
        shown = preview(ask)
    else:
        detail = activating.effect(ask) if ask.intent.verb == "activate" else {}
        shown = Answered(True, f"would be granted: {text}", detail={"disturbs": str(len(needs.nodes)), **detail})
    if not needs.why:
        return shown
    return replace(
        shown, text=f"{shown.text}, after a second person's approval", detail={**shown.detail, "approval": needs.why}
    )


def _check(intent: Intent) -> None:
    if intent.verb not in VERBS:
        raise RefusalError(f"no verb '{intent.verb}'; there are {', '.join(sorted(VERBS))}")
    if not intent.person:
        raise RefusalError("an intent carries the name of the person who asks")
    if not intent.reason.strip() or len(intent.reason) > REASON_MAX:
        raise RefusalError(f"give a reason of 1 to {REASON_MAX} characters: it is shown wherever this act is")
    if len(intent.key) > 128:
        raise RefusalError("an idempotency key has at most 128 characters")


def _slim(intent: Intent) -> Intent:
    """The intent without bulky documents: what they did stands in the events that follow."""
    return replace(intent, args={k: v for k, v in intent.args.items() if len(v) <= 256})


VERBS: dict[str, Callable[[Ask], Granted]] = {
    **dict.fromkeys(WISHES, grant_wish),
    "register": lifecycle.register(adopt=False),
    "adopt": lifecycle.register(adopt=True),
    "register-assets": lifecycle.register_assets,
    "activate": activating.activate,
    "stop-rollout": activating.stop_rollout,
    "cordon": keeping.cordon,
    "uncordon": keeping.uncordon,
    "call-off": calling_off.call_off,
    "hold": keeping.place_hold,
    "release": keeping.release_hold,
    "pause": keeping.set_pause(paused=True),
    "resume": keeping.set_pause(paused=False),
    "mode": deciding.set_mode,
    "release-brake": deciding.release_brake,
    "report-remediators": accepting.report,
    "accept-remediator": accepting.accept(accepted=True),
    "withdraw-remediator": accepting.accept(accepted=False),
    "release-restore": trusting.release_restore,
    "confirm-clock": trusting.confirm_clock,
    "approve": consenting.approve,
    "reject": consenting.reject,
    "consent": consenting.consent,
    "deny-request": approvals.deny,
    "withdraw-request": approvals.withdraw,
    "certify": lifecycle.certify,
    "start-work": keeping.start_work,
    "end-work": keeping.end_work,
    "vouch": vouching.vouch,
    "rma-send": vouching.send_to_vendor,
    "rma-return": lifecycle.return_from_vendor,
    "debug": lifecycle.moving(Phase.triage, Phase.debug),
    "onboard": lifecycle.moving(Phase.debug, Phase.onboard),
    "zap-again": lifecycle.moving(Phase.zap_fail, Phase.zap),
    "triage": lifecycle.moving(Phase.zap_fail, Phase.triage),
    "retire": lifecycle.retire,
    "rebind": lifecycle.rebind,
    "clear-condition": deciding.clear_condition,
    "close-ticket": deciding.close_ticket,
    "close-incident": deciding.close_incident,
    "treat-individually": deciding.treat_individually,
    "schedule-maintenance": keeping.schedule_window,
    "cancel-maintenance": keeping.cancel_window,
}
VERBS["approve-request"] = approvals.approving(lambda ask: VERBS[ask.intent.verb](ask))
"""Every verb that an intent may carry."""
