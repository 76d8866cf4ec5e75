"""How what a check says ends its step: one table, in which only *failed* is evidence against a node.

*Inconclusive*, *stale* and *never_verified* end nothing: the step stays open until somebody answers it, or a person
vouches. A phase that only evidence may lead to is entered with a `Conviction`, which no open step can make.
"""

from enum import StrEnum

from msgspec import Struct

from hostler.core.state.model import Outcome, Verdict


class StepEnd(StrEnum):
    """How a step that looks at a node ends."""

    passed = "passed"
    failed = "failed"
    open = "open"


ENDS: dict[Verdict, StepEnd] = {
    Verdict.passed: StepEnd.passed,
    Verdict.failed: StepEnd.failed,
    Verdict.stale: StepEnd.open,
    Verdict.never_verified: StepEnd.open,
    Verdict.inconclusive: StepEnd.open,
}


class Conviction(Struct, frozen=True):
    """Why a node may go where only evidence leads: what was seen of it, or the person who says so."""

    text: str
    person: str = ""


def verdict_of(outcome: Outcome) -> Verdict:
    """Verdict of a check; a refusal, a crash, or a word that is no verdict is inconclusive."""
    said = outcome.facts.get("verdict") if outcome.result == "done" else None
    return Verdict(said) if isinstance(said, str) and said in set(Verdict) else Verdict.inconclusive
