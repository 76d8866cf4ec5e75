"""A burn-in beside its cohort, exactly: who counts, when it may end, and what is said where nobody tells."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hostler.core.report.burn_ins import (
    COHORT_MOST,
    EndedBurnIn,
    first_start,
    last_verdicts,
    operation_that_ended,
    running,
    standing,
)
from hostler.core.state import events as e
from hostler.core.state.model import CheckResult, Node, Operation, Verdict
from hostler.core.state.operations import PowerOn, RunChecks
from tests.kit import a_node

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
H = 3600.0


def ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def node(name: str = "a", **fields: Any) -> Node:
    return a_node(name, "", sku=fields.pop("sku", "h100"), **fields)


def ended(hours: float, verdict: Verdict = Verdict.passed, name: str = "") -> EndedBurnIn:
    return EndedBurnIn(name or f"n{hours}", verdict, hours * H)


COHORT = [ended(hours) for hours in (20, 24, 24.5, 25, 30)]


def test_it_ends_as_those_did_that_took_longer() -> None:
    """Mutants: the median of all, which is past for a slow one; an end counted from now and not from its start."""
    early = standing(node(), ago(2), NOW, COHORT)
    assert early.ends is not None
    assert (early.ends.median, early.ends.p90, early.ends.of) == (ago(2 - 24.5), ago(2 - 30), 5)
    assert early.text == (
        "burning in for 2 h; 5 of 5 others of h100 passed, half of them within 1 d; "
        "by the 5 that took longer than it has: about 22 h 30 min left, 1 d 4 h for 9 of 10"
    )
    late = standing(node(), ago(24.2), NOW, COHORT)
    assert late.ends is not None
    assert (late.ends.median, late.ends.of) == (ago(24.2 - 25), 3)
    assert late.ends.median > NOW


def test_one_that_takes_longer_than_all_has_no_end_and_says_so() -> None:
    """A mutant that takes the longest tells an end in the past."""
    found = standing(node(), ago(31), NOW, COHORT)
    assert (found.ends, found.longest_s) == (None, 30 * H)
    assert found.text.endswith("it takes longer than all of them (at most 1 d 6 h)")


def test_failed_and_inconclusive_ones_tell_no_time() -> None:
    """A mutant that takes them says that a burn-in takes the minutes after which bad nodes end."""
    quick = [ended(0.1, Verdict.failed, "x"), ended(0.2, Verdict.inconclusive, "y")]
    found = standing(node(), ago(1), NOW, [*quick, ended(24)])
    assert (found.ended, found.passed, found.failed, found.median_s) == (3, 1, 1, 24 * H)
    none = standing(node(), ago(1), NOW, quick)
    assert (none.median_s, none.ends) == (None, None)
    assert none.text == "burning in for 1 h; of 2 others of h100 that ended one, none passed (1 failed)"


def test_without_a_cohort_it_says_that_nobody_tells() -> None:
    """The node's own earlier burn-in is no cohort."""
    found = standing(node("a"), ago(1), NOW, [ended(24, name="a")])
    assert (found.ended, found.median_s, found.ends) == (0, None, None)
    assert "no other h100 has ended a burn-in here, so nobody tells how long it takes" in found.text


def test_a_start_in_the_future_is_no_negative_time() -> None:
    assert standing(node(), ago(-1), NOW, COHORT).text.startswith("burning in for 0 s")


def check(at: datetime, profile: str = "burn_in", verdict: Verdict = Verdict.passed, person: str = "") -> CheckResult:
    return CheckResult(profile, verdict, at, "", person)


def test_the_cohort_is_of_the_sku_by_checks_alone_and_the_latest() -> None:
    """Mutants: a node that a person vouched for; another profile's verdict; another SKU; burn-ins of years ago."""
    nodes = [
        node("old", checks=(check(ago(24 * 91)),)),
        node("vouched", checks=(check(ago(1), person="ana"),)),
        node("gate", checks=(check(ago(1), "gate"),)),
        node("other", sku="b200", checks=(check(ago(1)),)),
        node("kept", checks=(check(ago(2), verdict=Verdict.failed), check(ago(3), "gate"))),
    ]
    assert last_verdicts(nodes, "h100", ago(24 * 90)) == [("kept", Verdict.failed, ago(2))]
    many = [node(f"m{at}", checks=(check(ago(at)),)) for at in range(COHORT_MOST + 5)]
    found = last_verdicts(many, "h100", ago(24 * 90))
    assert (len(found), found[0][0]) == (COHORT_MOST, "m0")


def operation(name: str, hours: float, attempt: int = 1, profile: str = "burn_in") -> Operation:
    return Operation(name, RunChecks(profile), "a", "p", 0, ago(hours), ago(hours - 48), attempt=attempt)


CELL = e.OperationSettled("a", "o0", "")


def record(seq: int, event: e.Event) -> e.Record:
    return e.Record(seq, NOW, 1, "clock", event)


def test_an_operation_that_was_asked_three_times_began_with_the_first() -> None:
    """A mutant that takes the present attempt forgets the hours before a takeover or a lost answer."""
    started = [record(at, e.OperationStarted(operation("o1", 30 - at, at))) for at in (3, 2, 1)]
    others = [record(10, e.OperationSettled("a", "o1", "")), record(9, e.OperationStarted(operation("o0", 90)))]
    assert first_start([*others, *started], "o1") == ago(29)
    assert first_start(others, "o1") is None


def test_nothing_is_read_beyond_the_first_attempt() -> None:
    """Mutant: each question reads all operations that the node ever had."""
    told = iter([record(at, e.OperationStarted(operation("o1", 30 - at, at))) for at in (2, 1)] + [record(0, CELL)])
    assert first_start(told, "o1") == ago(29)
    assert [one.seq for one in told] == [0]


def test_the_operation_that_ended_is_a_burn_in() -> None:
    """Mutants: the gate that ended after it; a burn-in that goes on."""
    told: list[e.Event] = [
        e.OperationStarted(operation("o1", 30)),
        e.OperationFinished("a", "o1", "run_checks", "done"),
        e.OperationStarted(operation("o2", 2, profile="gate")),
        e.OperationFinished("a", "o2", "run_checks", "done"),
        e.OperationStarted(operation("o3", 1)),
    ]
    newest_first = [record(at, event) for at, event in enumerate(told, 1)][::-1]
    assert operation_that_ended(newest_first) == "o1"
    assert operation_that_ended([record(1, told[1])]) == ""


@pytest.mark.parametrize(
    ("act", "is_one"), [(RunChecks("burn_in"), True), (RunChecks("suspect"), False), (PowerOn(), False)]
)
def test_a_burn_in_is_an_operation_of_its_profile(act: Any, is_one: bool) -> None:
    under_way = Operation("o1", act, "a", "p", 0, ago(1), ago(-1))
    assert (running(node(operation=under_way)) is not None) is is_one
    assert running(node()) is None
