"""One safe step forward, in its order: protection, what is under way, remedies, the phase's own work, service."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.next_step import next_step
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Answer, Rest, Wait
from hostler.core.state.model import Assignment, Node, Phase
from tests.kit import CLUSTER, NOW, a_node, after
from tests.unit.planning.values import a_condition, a_context, an_operation, idle, with_plan

LEAK = a_condition("cooling.leak")
FAULT = a_condition("gpu.fallen_off_bus")


def asked(node: Node) -> Answer:
    return next_step(idle(a_context(node), "a"), node)


def begun(answer: Answer) -> list[str]:
    assert isinstance(answer, Act), answer
    return [event.plan.name for event in answer.events if isinstance(event, e.PlanRecorded)]


def test_a_healthy_node_rests() -> None:
    assert asked(a_node("a")) == Rest()


def test_a_fault_gets_the_remedy_of_its_rule() -> None:
    assert begun(asked(replace(a_node("a"), conditions=(FAULT,)))) == ["power_cycle"]


def test_protection_goes_before_any_other_remedy_and_before_what_may_still_land() -> None:
    """Mutant: a wet tray waits for a reboot that was given up."""
    wet = replace(a_node("a"), conditions=(FAULT, LEAK), settling=(an_operation("reboot"),))
    assert begun(asked(wet)) == ["protective_power_off"]


def test_what_was_given_up_and_may_still_land_is_waited_for() -> None:
    late = an_operation("reboot")
    answer = asked(replace(a_node("a"), conditions=(FAULT,), settling=(late,)))
    assert isinstance(answer, Wait)
    assert (answer.what, answer.blockers[0].name, answer.until) == ("settle", late.id, late.deadline)


def test_a_plan_that_runs_goes_on_before_anything_new_begins() -> None:
    node, plan = with_plan("power_cycle", replace(a_node("a"), conditions=(FAULT,)))
    answer = asked(node)
    assert isinstance(answer, Act)
    (event,) = answer.events
    assert isinstance(event, e.OperationStarted)
    assert (event.operation.kind, event.operation.plan) == ("cordon", plan.id)


@pytest.mark.parametrize(
    ("phase", "recipe"),
    [(Phase.initializing, "initializing"), (Phase.seatrial, "seatrial"), (Phase.zap, "zap"), (Phase.test, "test")],
)
def test_a_phases_own_work_is_its_recipe(phase: Phase, recipe: str) -> None:
    assert begun(asked(a_node("a", pool="", phase=phase))) == [recipe]


@pytest.mark.parametrize("phase", [Phase.onboard, Phase.zap_fail, Phase.rma, Phase.debug])
def test_where_only_a_person_moves_it_on_it_says_for_what_it_waits(phase: Phase) -> None:
    answer = asked(a_node("a", pool="", phase=phase))
    assert isinstance(answer, Wait)
    assert (answer.what, answer.blockers[0].kind) == (phase.value, "person")


def test_over_its_limit_a_phase_leads_where_its_row_says() -> None:
    """Mutant: work that begins only now, since others held its node, is over its limit already."""
    late = replace(a_node("a", pool="", phase=Phase.initializing), deadline=NOW)
    begun = asked(late)
    assert isinstance(begun, Act)
    assert [type(event) for event in begun.events] == [e.PlanRecorded]
    node, _ = with_plan("initializing", late, at="wait_agent", step_since=NOW)
    answer = asked(node)
    assert isinstance(answer, Act)
    assert [event.after for event in answer.events if isinstance(event, e.PhaseChanged)] == [Phase.triage]


def test_the_clock_wakes_it_for_the_first_of_what_has_a_moment() -> None:
    """Mutant: an operation's deadline is behind the phase's, and nobody looks when the first has passed."""
    made = replace(a_node("a", pool="", phase=Phase.seatrial), deadline=after(minutes=3))
    for kind, moment in (("power_on", after(minutes=3)), ("run_checks", after(minutes=5))):
        node, plan = with_plan("seatrial", made, at=kind)
        busy = replace(node, operation=an_operation(kind, plan=plan.id))
        answer = asked(busy)
        assert isinstance(answer, Wait)
        assert answer.until == moment, kind


def test_a_member_of_a_pool_in_no_configuration_waits_for_its_budget() -> None:
    gone = replace(a_node("a"), assignment=Assignment("gone", "acme", CLUSTER, NOW), conditions=(FAULT,))
    answer = asked(gone)
    assert isinstance(answer, Wait)
    assert any(b.kind == "budget" for b in answer.blockers)
