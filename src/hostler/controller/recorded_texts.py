"""Takes secrets out of what is about to be recorded: lines of agents and BMCs, drivers' answers, people's reasons.

What a journal holds is read for years, exported, archived, and shown to customers and vendors; no reader of it needs a
secret. So the one door is where inputs enter the loop. Whoever adds a text that others write to an input adds it here,
or `tests/unit/test_secret_exits.py` fails.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from hostler.controller.inputs import Input, IntentAsked, NodeSeen, Observed, Replied
from hostler.core.state.model import Observation
from hostler.logs.secret_patterns import certainly_none, redact, redact_facts


def without_secrets(told: Input) -> Input:
    """The input without secrets in its texts; the input itself where it has none."""
    match told:
        case Observed(observations=seen):
            if certainly_none([one.text for one in seen]) and not any(one.facts for one in seen):
                return told
            kept = tuple(_observation(one) for one in seen)
            return told if _same(kept, seen) else replace(told, observations=kept)
        case Replied(outcome=outcome):
            detail, facts = redact(outcome.detail), redact_facts(outcome.facts)
            if detail == outcome.detail and facts is outcome.facts:
                return told
            return replace(told, outcome=replace(outcome, detail=detail, facts=facts))
        case IntentAsked(intent=intent):
            reason = redact(intent.reason)
            return told if reason == intent.reason else replace(told, intent=replace(intent, reason=reason))
        case NodeSeen(bmc_refuses=refuses, bmc_says=says) if refuses or says:
            return replace(told, bmc_refuses=redact(refuses) if refuses else refuses, bmc_says=redact(says))
        case _:
            return told


def _observation(seen: Observation) -> Observation:
    text, facts = redact(seen.text) if seen.text else "", redact_facts(seen.facts)
    if text == seen.text and facts is seen.facts:
        return seen
    return replace(seen, text=text, facts=facts)


def _same(kept: Iterable[Observation], seen: Iterable[Observation]) -> bool:
    return all(one is other for one, other in zip(kept, seen, strict=True))
