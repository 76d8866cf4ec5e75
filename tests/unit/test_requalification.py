"""When a node has shown that it works since its hardware was last acted upon."""

from datetime import datetime

import pytest

from hostler.core.state.model import ActClass, Attempt, CheckResult, Plan, Radius, Verdict
from hostler.core.state.requalification import has_proven_itself
from tests.kit import a_node, after

NOTHING = Radius((), 0)


def tried(hours: float, **fields: bool) -> Attempt:
    return Attempt("reboot", "", after(hours=hours), **fields)


def checked(hours: float, verdict: Verdict = Verdict.passed) -> CheckResult:
    return CheckResult("gate", verdict, after(hours=hours))


def planned(at: datetime, *, touched: bool) -> Plan:
    return Plan("p", "reboot", "a", ActClass.pending, (), (), (), "", "", NOTHING, at, touched=touched)


@pytest.mark.parametrize(
    ("attempts", "checks", "proven"),
    [
        ((), (), True),
        ((tried(2),), (), False),
        ((tried(2),), (checked(1),), False),
        ((tried(2),), (checked(2),), True),
        ((tried(2),), (checked(3),), True),
        ((tried(2),), (checked(1), checked(3, Verdict.failed)), False),
        ((tried(2),), (checked(3, Verdict.inconclusive),), False),
        ((tried(2),), (checked(3, Verdict.stale),), False),
        ((tried(1), tried(4)), (checked(2),), False),
        ((tried(1), tried(4)), (checked(2), checked(5)), True),
        ((tried(1), tried(4, touched=False)), (checked(2),), True),
        ((tried(1), tried(4, struck=False)), (checked(2),), False),
        ((tried(1), tried(4, struck=False, touched=False)), (checked(2),), True),
    ],
)
def test_only_a_check_that_passed_since_the_last_act_is_proof(
    attempts: tuple[Attempt, ...], checks: tuple[CheckResult, ...], proven: bool
) -> None:
    """Mutants: a check older than the repair; one that failed; one since the first of two acts; ended work touches."""
    assert has_proven_itself(a_node("a", attempts=attempts, checks=checks)) is proven


@pytest.mark.parametrize(("touched", "proven"), [(False, True), (True, False)])
def test_a_plan_that_has_touched_nothing_yet_asks_for_no_proof(touched: bool, proven: bool) -> None:
    """Mutant: its own attempt counts before it has acted, or no longer when it has."""
    node = a_node("a", attempts=(tried(2),), checks=(checked(1),), plan=planned(after(hours=2), touched=touched))
    assert has_proven_itself(node) is proven
