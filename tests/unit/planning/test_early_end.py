"""What ends a plan at a step boundary before its last step."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.early_end import bring_up_fails, ends_early
from hostler.core.policy.response import Need
from hostler.core.state import events as e
from hostler.core.state.model import ActClass, HoldKind, Node, Phase, Plan
from tests.kit import a_node, after
from tests.unit.planning.values import a_condition, a_scene, held, idle, with_plan

ILL = replace(a_node("a"), conditions=(a_condition(),))


def ended(node: Node, plan: Plan, need: Need | None = None, *holds: HoldKind) -> tuple[e.Event, ...] | None:
    return ends_early(held(idle(a_scene(node), "a"), *holds), node, plan, need)


def test_a_plan_whose_cause_stands_goes_on() -> None:
    node, plan = with_plan("reboot", ILL, at="drain")
    assert ended(node, plan) is None


def test_a_plan_whose_cause_is_gone_is_taken_back_unless_it_has_disturbed() -> None:
    """Mutant: a node that was power cycled already is opened without its check."""
    node, plan = with_plan("reboot", ILL, at="drain")
    well = replace(node, conditions=())
    assert ended(well, plan) == (e.PlanUndoing("a", plan.id, "its cause is gone"),)
    assert ended(well, replace(plan, disturbed=True)) is None


@pytest.mark.parametrize(
    ("kind", "ends"), [(HoldKind.operator, True), (HoldKind.override, True), (HoldKind.cordon, False)]
)
def test_a_hold_ends_it_before_it_disturbs(kind: HoldKind, ends: bool) -> None:
    node, plan = with_plan("reboot", ILL, at="drain")
    found = ended(node, plan, None, kind)
    assert (found is not None) is ends
    assert ended(node, replace(plan, disturbed=True), None, HoldKind.operator) is None


def test_an_override_stops_it_even_after_work_was_ended_but_not_after_hardware_was_touched() -> None:
    node, plan = with_plan("reboot", ILL, at="reboot", disturbed=True)
    found = ended(node, plan, None, HoldKind.override)
    assert [type(event) for event in found or ()] == [e.PlanUndoing]
    assert ended(node, replace(plan, touched=True), None, HoldKind.override) is None


def test_a_graver_need_supersedes_and_never_between_power_off_and_on() -> None:
    node, plan = with_plan("power_cycle", ILL, at="drain")
    need = Need("triage", ActClass.immediate, plan.causes, "gpu.fallen_off_bus")
    found = ended(node, plan, need)
    assert found is not None
    assert isinstance(found[0], e.PlanEnded)
    assert (found[0].result, found[0].reason) == ("superseded", "triage is needed for gpu.fallen_off_bus")
    dark, between = with_plan("power_cycle", ILL, at="power_on", disturbed=True)
    assert ended(dark, between, need) is None


def test_no_need_of_a_fault_ends_easing() -> None:
    node, plan = with_plan("uncordon", ILL)
    assert ended(node, plan, Need("triage", ActClass.immediate, (), "x")) is None


@pytest.mark.parametrize(
    ("phase", "late", "condition", "fails"),
    [
        (Phase.seatrial, False, "", False),
        (Phase.seatrial, True, "", True),
        (Phase.seatrial, False, "gpu.fallen_off_bus", True),
        (Phase.seatrial, False, "agent.lost", False),
        (Phase.initializing, False, "gpu.fallen_off_bus", False),
    ],
)
def test_a_phases_own_work_fails_over_its_limit_or_by_a_grave_condition(
    phase: Phase, late: bool, condition: str, fails: bool
) -> None:
    """Mutants: silence of a node that is powered on fails its seatrial; a phase may last for ever."""
    stood = (a_condition(condition),) if condition else ()
    made = replace(a_node("a", pool="", phase=phase), conditions=stood, deadline=after(hours=1))
    node, plan = with_plan(phase.value, made)
    context = a_scene(node, now=after(hours=2) if late else after(minutes=1))
    assert bool(bring_up_fails(context, node, plan)) is fails
