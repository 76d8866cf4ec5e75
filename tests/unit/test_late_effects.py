"""Late effects: an operation that was given up may still take effect until its settle time is over."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.live_updates import by_clock, next_by_clock
from hostler.core.planning.execution import advance
from hostler.core.state import events as e
from hostler.core.state.deadlines import extend
from hostler.core.state.decisions import Act
from hostler.core.tables.operations import OPERATIONS
from tests.kit import a_node, after
from tests.unit.planning.values import a_context, a_fleet, an_operation, idle, with_plan

LATE = an_operation("power_off", settling=True)


def test_what_is_given_up_settles_for_the_time_of_its_kind() -> None:
    """Mutants: it settles at once; it does not settle; it settles from when it was asked for."""
    node, plan = with_plan("power_cycle", at="power_off", disturbed=True)
    asked = an_operation("power_off")
    node, now = replace(node, operation=asked), asked.deadline
    answer = advance(idle(a_context(node, now=now), "a"), node, plan, None)
    assert isinstance(answer, Act)
    settles = now + timedelta(seconds=OPERATIONS["power_off"].settle_s)
    assert settles > now
    assert answer.events[0] == e.OperationFinished("a", asked.id, "power_off", "timed_out", settle_until=settles)


@pytest.mark.parametrize(("seconds", "settled"), [(-1, []), (0, [LATE.id]), (1, [LATE.id])])
def test_a_late_effect_is_settled_at_its_deadline_and_wakes_its_node_then(seconds: int, settled: list[str]) -> None:
    """Mutants: it is settled a moment late; the node is not woken for it."""
    node = replace(a_node("a"), settling=(LATE,))
    context = a_context(node, now=LATE.deadline + timedelta(seconds=seconds))
    told = [event for event in by_clock(context, node, {}) if isinstance(event, e.OperationSettled)]
    assert [event.operation for event in told] == settled
    assert settled or next_by_clock(context, node) == LATE.deadline


def test_time_without_a_controller_does_not_settle_a_late_effect() -> None:
    """Mutant: the deadline stays where it was, and what nobody watched counts as over."""
    fleet = a_fleet(replace(a_node("a"), settling=(LATE,)))
    extend(fleet, timedelta(hours=1))
    assert fleet.nodes["a"].settling[0].deadline == after(hours=1, minutes=5)
