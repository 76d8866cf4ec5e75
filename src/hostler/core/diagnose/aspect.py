"""Aspects of a part's readings: what each says, and how long it must say so before it counts.

An agent reads many times a minute and tells only when what the readings say has changed and stayed so. The same table
judges there and in the controller: the agent to know what is news, the controller to decide.
"""

import math
from collections.abc import Callable

from msgspec import Struct

from hostler.core.diagnose import Finding
from hostler.core.diagnose.line import printable
from hostler.core.state.model import Facts, Severity

BETWEEN, UNKNOWN, GOOD = "", "unknown", "good"
"""Marks of an aspect that is bad by none and good by none of its limits (it stays as it was), of one without a
believable reading, and of one that is as it should be. Any other mark is bad, and another bad mark is news."""

UNSETTLED, MISSING, ABSENT = "unsettled", "missing", "absent"
"""Facts of an observation, names with commas between: aspects too new to count, aspects that were readable once and
are no more, and readings that the hardware or its driver does not give, with the reason."""

WORD_CHARS = 80


class AspectReading(Struct, frozen=True):
    """Judgement of one aspect by its readings: findings (of no part yet, or of a part they name), and their mark."""

    mark: str = UNKNOWN
    findings: tuple[Finding, ...] = ()


class Aspect(Struct, frozen=True):
    """One row. `raise_polls` and `clear_polls`: how many polls in a row must agree; 1 for an error that latches.

    `expected`: where it has never been readable, that is told; other aspects belong to some models only.
    """

    name: str
    judge: Callable[[Facts], AspectReading]
    raise_polls: int
    clear_polls: int
    expected: bool = False


NOTHING = AspectReading()
AS_IT_WAS = AspectReading(BETWEEN)


def stands(
    condition: str, text: str, part: str = "", facts: Facts | None = None, severity: Severity = Severity.info
) -> Finding:
    """The condition is there, as grave as its row says or as `severity` does, whichever is worse.

    The row is looked up by the controller (`state`): the table of conditions would be a hundredth of an agent's memory.
    """
    return Finding(condition, severity, printable(text), part, facts=facts or {})


def over(condition: str, text: str, part: str = "") -> Finding:
    """The readings show that the condition is not there."""
    return Finding(condition, Severity.info, printable(text), part, standing=False)


def number(facts: Facts, name: str, low: float = 0.0, high: float = 2.0**63) -> float | None:
    """The fact, if it is a number that can be believed: NaN, truth values, text and what is out of range are not."""
    value = facts.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if low <= value <= high else None


def names(facts: Facts, fact: str, limit: int = 256) -> tuple[str, ...]:
    """The names of a fact that lists them, made printable and short."""
    value = facts.get(fact)
    listed = value.split(",")[:limit] if isinstance(value, str) else []
    return tuple(printable(name.strip()[:WORD_CHARS]) for name in listed if name.strip())


def amount(value: float) -> str:
    """A count as a mark: news only when it has doubled."""
    return f"bad {int(value).bit_length()}"
