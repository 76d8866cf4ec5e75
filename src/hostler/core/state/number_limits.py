"""How large a number from outside may be: what the store, the snapshot and the arithmetic of time can hold."""

from collections.abc import Iterable

from hostler.core.state.model import Facts, Observation, Outcome, Scalar

INTEGER_LEAST, INTEGER_MOST = -(2**63), 2**64 - 1
"""Of a fact: what a device's 64-bit counter holds, signed or not. A snapshot cannot hold more."""
FLOAT_MOST = 1e300
COUNT_MOST = 10**9
"""How often one line is said to have repeated; a million a second would take a quarter of an hour."""
TOTAL_MOST = 2**53
"""How often a condition is counted; nothing is added behind it."""
SEQUENCE_MOST = 2**53 - 1
AGE_MOST_S = 10 * 365 * 86_400.0
FACILITY_MOST = 2**31 - 1
"""/dev/kmsg takes any number for a facility that 32 bits hold."""
ATTEMPT_MOST = 2**31 - 1

_Bound = tuple[str, float | int | None, float, float]


def outside(told: Observation | Outcome) -> str:
    """The number that is out of bounds and what it may be, "" where none is."""
    wrong = (
        f"{name}: {_short(value)} is out of bounds, it is {_short(least)} to {_short(most)}"
        for name, value, least, most in _bounds(told)
        if value is not None and not least <= value <= most
    )
    return next(wrong, "")


def within(facts: Facts) -> Facts:
    """The facts as a snapshot can hold them: a number that is out of bounds is told as text."""
    if all(_holds(value) for value in facts.values()):
        return facts
    return {name: value if _holds(value) else _short(value) for name, value in facts.items()}


def _bounds(told: Observation | Outcome) -> Iterable[_Bound]:
    match told:
        case Observation():
            yield "sequence", told.sequence, 1, SEQUENCE_MOST
            yield "count", told.count, 1, COUNT_MOST
            yield "age_s", told.age_s, 0, AGE_MOST_S
            yield "facility", told.facility, 0, FACILITY_MOST
        case Outcome():
            yield "attempt", told.attempt, 0, ATTEMPT_MOST
    yield from _of_facts(told.facts)


def _of_facts(facts: Facts) -> Iterable[_Bound]:
    for name, value in facts.items():
        if isinstance(value, int | float):
            yield f"facts[{name[:64]!r}]", value, *_limits(value)


def _holds(value: Scalar) -> bool:
    if not isinstance(value, int | float):
        return True
    least, most = _limits(value)
    return least <= value <= most


def _limits(value: float) -> tuple[float, float]:
    return (-FLOAT_MOST, FLOAT_MOST) if isinstance(value, float) else (INTEGER_LEAST, INTEGER_MOST)


def _short(value: Scalar) -> str:
    """The number in a few characters, however many digits it has."""
    if isinstance(value, int) and abs(value) > INTEGER_MOST:
        return f"an integer of {value.bit_length()} bits"
    return f"{value:g}" if isinstance(value, float) else str(value)
