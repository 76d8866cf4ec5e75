"""Conditions come and go: raised, told again when it is news, history, expired."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from hostler.core.conditions.lifecycle import DAY_S, QUIET_S, expired, stand
from hostler.core.diagnose import Finding
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Evidence, Node, Severity
from tests.kit import NOW, a_node, after


def seen(kind: str = "gpu.fallen_off_bus", *, standing: bool = True, severity: Severity = Severity.critical) -> Finding:
    return Finding(kind, severity, "as seen", "G0", standing=standing)


def told(
    node: Node, at: datetime, finding: Finding | None = None, boot: str = "a-b1", count: int = 1
) -> e.Event | None:
    return stand(node, finding or seen(), Evidence(at, "agent", "as seen"), boot, count)


def with_condition(event: e.Event | None, **fields: Any) -> Node:
    return a_node("a", conditions=(condition_of(event),), **fields)


def condition_of(event: e.Event | None) -> Condition:
    assert isinstance(event, (e.ConditionRaised, e.ConditionUpdated))
    return event.condition


def test_it_is_raised_once_and_cleared_once() -> None:
    raised = told(a_node("a"), NOW)
    assert isinstance(raised, e.ConditionRaised)
    node = with_condition(raised)
    over = told(node, NOW, seen(standing=False))
    assert isinstance(over, e.ConditionCleared)
    assert told(a_node("a"), NOW, seen(standing=False)) is None


@pytest.mark.parametrize(
    ("at_s", "count", "severity", "boot", "news"),
    [
        (1, 0, Severity.critical, "a-b1", False),
        (QUIET_S - 1, 0, Severity.critical, "a-b1", False),
        (QUIET_S + 1, 0, Severity.critical, "a-b1", True),
        (1, 5, Severity.critical, "a-b1", True),
        (1, 0, Severity.catastrophic, "a-b1", True),
        (1, 0, Severity.critical, "a-b2", True),
    ],
)
def test_a_repeat_is_told_when_it_is_news(at_s: float, count: int, severity: Severity, boot: str, news: bool) -> None:
    """Worse, from a new boot, twice as often, or not told for a while. Mutant: every repeat is recorded."""
    node = with_condition(told(a_node("a"), NOW))
    again = told(node, NOW + timedelta(seconds=at_s), seen(severity=severity), boot, count)
    assert (again is not None) is news


def test_what_has_stood_for_long_is_told_rarely_and_once_a_day_at_least() -> None:
    node, times = a_node("a"), []
    for minute in range(5 * 24 * 60):
        event = told(node, after(minutes=minute), count=0 if minute else 1)
        if event is not None:
            times.append(minute)
            node = with_condition(event)
    assert len(times) < 16
    assert max(b - a for a, b in pairwise(times)) <= DAY_S / 60


def test_what_expires_is_told_before_it_does() -> None:
    """Mutant: a condition that is seen all the time expires, because its repeats are not told."""
    node, finding = a_node("a"), seen("observation.unreadable", severity=Severity.info)
    for minute in range(24 * 60):
        assert expired(node, after(minutes=minute)) == ()
        if (event := told(node, after(minutes=minute), finding, count=0 if minute else 1)) is not None:
            node = with_condition(event)
    assert [getattr(event, "condition", "") for event in expired(node, after(days=3))] == [node.conditions[0].id]


def test_a_finding_of_an_earlier_boot_is_history() -> None:
    node = a_node("a", boots=("a-b0", "a-b1"))
    condition = condition_of(told(node, NOW, boot="a-b0"))
    assert (condition.clears, condition.severity) == ("age", Severity.degraded)
    assert condition.expires_at == after(days=1)


def test_history_that_happens_again_is_no_history() -> None:
    """Mutant: the fault of the new boot keeps its old clothes, and asks for nothing."""
    node = a_node("a", boots=("a-b0", "a-b1"))
    node = with_condition(told(node, NOW, boot="a-b0"), boots=("a-b0", "a-b1"))
    fresh = condition_of(told(node, after(seconds=1)))
    assert (fresh.clears, fresh.severity, fresh.expires_at) == ("remedy", Severity.critical, None)
