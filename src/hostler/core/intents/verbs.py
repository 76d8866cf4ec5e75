"""What people ask for: a table from verb to the events that grant it, or the reason and the way out.

A wish about a node becomes a condition with the person's name; the same guards, plans and records apply to it as to
any fault. Every intent is recorded, granted or not, unless it is a dry run; a repeated key gets the first answer.
"""

from collections.abc import Callable

from msgspec.structs import replace

from hostler.core import events as e
from hostler.core.errors import InvalidInputError
from hostler.core.intents import deciding, keeping, lifecycle
from hostler.core.intents.ask import REASON_MAX, Answered, Ask, Granted, RefusalError
from hostler.core.intents.wishes import WISHES, grant_wish, preview
from hostler.core.model import Intent, Phase


def answer(ask: Ask) -> Answered:
    """The recorded answer to an intent. Never raises on what was asked."""
    intent = ask.intent
    earlier = ask.scene.fleet.answers.get(intent.key) if intent.key else None
    if earlier is not None:
        return Answered(earlier.granted, earlier.answer, detail={"intent": earlier.intent, "repeated": "yes"})
    try:
        _check(intent)
        if intent.dry_run and intent.verb in WISHES:
            return preview(ask)
        text, events = VERBS[intent.verb](ask)
    except (RefusalError, InvalidInputError) as refused:
        recorded = e.IntentRecorded(_slim(intent), granted=False, answer=str(refused)[:2000])
        return Answered(False, str(refused), () if intent.dry_run else (recorded,), {"intent": intent.id})
    if intent.dry_run:
        return Answered(True, f"would be granted: {text}", detail={"events": str(len(events))})
    recorded = e.IntentRecorded(_slim(intent), granted=True, answer=text)
    return Answered(True, text, (recorded, *events), {"intent": intent.id})


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
    "activate": deciding.activate,
    "cordon": keeping.cordon,
    "uncordon": keeping.uncordon,
    "hold": keeping.place_hold,
    "release": keeping.release_hold,
    "pause": keeping.set_pause(paused=True),
    "resume": keeping.set_pause(paused=False),
    "mode": deciding.set_mode,
    "release-brake": deciding.release_brake,
    "approve": deciding.approve,
    "reject": deciding.reject,
    "certify": lifecycle.certify,
    "start-work": keeping.start_work,
    "end-work": keeping.end_work,
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
"""Every verb that an intent may carry."""
