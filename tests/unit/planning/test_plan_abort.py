"""Ends of a plan at a step boundary before its last step."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.plan_abort import abort_at_boundary, bring_up_fails
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state import events as e
from hostler.core.state.cell_record import Removal
from hostler.core.state.decisions import Act
from hostler.core.state.model import ActClass, Attempt, Condition, HoldKind, Node, Phase, Plan, Severity
from hostler.core.state.scopes import ActGroup
from tests.kit import NOW, a_node, after, configuration, pool_document
from tests.unit.planning.values import a_condition, a_context, held, idle, with_plan

ROOMY = configuration({"train": pool_document(target=2, budget={"count": 2, "percent": 100})})
ILL = replace(a_node("a"), conditions=(a_condition(),))


def ended(node: Node, plan: Plan, need: Need | None = None, *holds: HoldKind) -> tuple[e.Event, ...] | None:
    found = abort_at_boundary(
        held(idle(a_context(node, a_node("b"), config=ROOMY), "a", "b"), *holds), node, plan, need
    )
    return found.events if isinstance(found, Act) else None


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
    context = a_context(node, now=after(hours=2) if late else after(minutes=1))
    assert bool(bring_up_fails(context, node, plan)) is fails


FAULT = Need("reboot", ActClass.immediate, ("a/gpu.fallen_off_bus/",), "gpu.fallen_off_bus")


@pytest.mark.parametrize(
    ("running", "timing", "disturbed", "remedy", "at_once", "ends"),
    [
        ("reboot", ActClass.immediate, False, "power_cycle", True, True),  # a higher rung
        ("reboot", ActClass.immediate, True, "power_cycle", True, True),  # and after work was ended too
        ("power_cycle", ActClass.immediate, False, "reboot", True, False),  # a lower one
        ("reboot", ActClass.immediate, False, "reboot", True, False),  # the same
        ("reboot", ActClass.pending, False, "reboot", True, True),  # the same, at once instead of later
        ("reboot", ActClass.pending, True, "reboot", True, False),  # which is no sooner once work has ended
        ("reboot", ActClass.pending, False, "reboot", False, False),
    ],
)
def test_graver_is_a_higher_rung_or_the_same_sooner(
    running: str, timing: ActClass, disturbed: bool, remedy: str, at_once: bool, ends: bool
) -> None:
    """Mutants: `>=` of ranks; the same remedy at once ends a plan that has disturbed already."""
    node, plan = with_plan(running, ILL, at="drain", act_class=timing, disturbed=disturbed)
    need = replace(FAULT, remedy=remedy, act_class=ActClass.immediate if at_once else ActClass.pending)
    assert (ended(node, plan, need) is not None) is ends


def test_a_graver_need_that_would_wait_ends_nothing() -> None:
    """Mutant: the plan ends and its cordon stands, with nothing being done. A protective need has a way of its own."""
    node, plan = with_plan("reboot", ILL, at="drain", disturbed=True)
    graver = replace(FAULT, remedy="power_cycle")
    assert ended(node, plan, graver, HoldKind.operator) is None
    assert ended(node, plan, replace(graver, act_class=ActClass.protective)) is None
    whole = replace(plan, group=ActGroup.of("rack:r1/i-1"))
    assert ended(replace(node, plan=whole), whole, graver) is None


TOUCHED = Attempt("reboot", "", after(hours=-2))


@pytest.mark.parametrize(
    ("attempts", "requested", "ends"), [((), False, True), ((TOUCHED,), False, False), ((TOUCHED,), True, True)]
)
def test_a_release_of_a_node_that_has_not_proven_itself_ends_for_no_fault(
    attempts: tuple[Attempt, ...], requested: bool, ends: bool
) -> None:
    """Mutant: what the last remedy was for begins the next one, and the tenant keeps the node."""
    asked = a_condition("operator.release", remedy="release", timing="pending", clears="remedy")
    ill = replace(ILL, attempts=attempts, conditions=(*ILL.conditions, asked))
    node, plan = with_plan("release", ill, at="drain", act_class=ActClass.pending, disturbed=True)
    need = replace(FAULT, remedy="triage", requested=requested)
    assert (ended(node, plan, need) is not None) is ends


UNANSWERED = a_condition("check.inconclusive", severity=Severity.warning, id="a/check.inconclusive/check:gate")
ASKED = a_condition("operator.release", remedy="release", timing="pending", severity=Severity.warning, owner="ann")


def waiting(*conditions: Condition, **fields: Any) -> tuple[Node, Plan]:
    """A node behind its reboot, whose gate nobody answers."""
    return with_plan("reboot", replace(ILL, conditions=conditions), at="run_checks", disturbed=True, **fields)


def test_a_gate_that_nobody_answers_keeps_a_node_from_no_release() -> None:
    """Mutant: the tenant gets rid of the node only once a person has vouched for it."""
    node, plan = waiting(UNANSWERED, ASKED)
    found = ended(node, plan)
    assert found is not None
    first, laid = found[0], next(event for event in found if isinstance(event, e.PlanRecorded))
    assert isinstance(first, e.PlanEnded)
    assert (first.result, first.reason) == ("superseded", "operator.release is asked for")
    assert [step.operation for step in laid.plan.steps] == [
        "cordon",
        "drain",
        "leave_cluster",
        "stop_kubelet",
        "sanitise",
    ]


@pytest.mark.parametrize(
    ("conditions", "fields", "holds"),
    [
        ((UNANSWERED,), {}, ()),  # nobody asks for a release
        ((ASKED,), {}, ()),  # the gate may still answer
        ((UNANSWERED, replace(ASKED, group=ActGroup.of("rack:r1/i-1"))), {}, ()),  # a whole rack was asked for
        ((UNANSWERED, ASKED), {"group": ActGroup.of("rack:r1/i-1")}, ()),  # or a whole rack is being treated
        ((UNANSWERED, ASKED), {}, (HoldKind.operator,)),  # the release would wait
    ],
)
def test_no_release_begins_that_is_not_asked_for_or_could_not_go_on(
    conditions: tuple[Condition, ...], fields: dict[str, Any], holds: tuple[HoldKind, ...]
) -> None:
    """Mutants: any operand of the condition; the plan ends though nothing takes its place."""
    node, plan = waiting(*conditions, **fields)
    assert ended(node, plan, None, *holds) is None


def test_an_open_gate_is_asked_about_again_when_the_release_or_a_graver_remedy_may_begin() -> None:
    """Mutants: the release's moment is not told; it hides that of the graver remedy, or ends the look for one."""
    tried = Attempt("release", "", NOW, failed=True)
    node, plan = waiting(UNANSWERED, ASKED, *ILL.conditions)
    node = replace(node, attempts=(tried,))
    retried = after(minutes=5)
    assert abort_at_boundary(idle(a_context(node, a_node("b"), config=ROOMY), "a", "b"), node, plan, None) == retried
    brake = ROOMY.policy.brake
    recent = tuple(
        Removal(NOW - timedelta(seconds=brake.window_s - 5 - i / 1000), f"n{i}", "train", "reboot")
        for i in reversed(range(brake.disruptions + 1))
    )
    stormy = idle(a_context(node, a_node("b"), config=ROOMY, recent=recent), "a", "b")
    graver = replace(FAULT, remedy="triage")
    ebbs = recent[0].at + timedelta(seconds=brake.window_s)
    assert ebbs < retried
    assert abort_at_boundary(stormy, node, plan, graver) == ebbs


def test_a_release_that_was_asked_for_a_group_ends_no_plan_of_one_node() -> None:
    """Mutant: a grouped request counts; the plan ends, and the release begins on another node of the group alone."""
    asked = replace(ASKED, group=ActGroup.of("i-1"))
    other = replace(a_node("b"), conditions=(replace(asked, id="b/operator.release/", node="b"),))
    node, plan = waiting(UNANSWERED, asked)
    assert abort_at_boundary(idle(a_context(node, other, config=ROOMY), "a", "b"), node, plan, None) is None


@pytest.mark.parametrize(
    ("is_open", "requested", "ends"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_phases_own_work_that_waits_for_an_answer_makes_way_for_a_person(
    is_open: bool, requested: bool, ends: bool
) -> None:
    """Mutants: a fault ends a seatrial that waits; a person ends one that is being answered."""
    unanswered = replace(UNANSWERED, id="a/check.inconclusive/check:seatrial")
    fresh = replace(a_node("a", pool="", phase=Phase.seatrial), conditions=(unanswered,) if is_open else ())
    node, plan = with_plan("seatrial", fresh, at="run_checks")
    found = ended(node, plan, replace(FAULT, remedy="triage", rule="operator.replacement", requested=requested))
    assert (found is not None) is ends
    assert not ends or found == (e.PlanEnded("a", plan.id, "superseded", "triage is asked for"),)


@pytest.mark.parametrize(
    ("is_open", "lost", "power", "fails"),
    [
        (True, {}, "off", True),
        (True, {}, "on", False),  # one path alone convicts nobody
        (False, {}, "off", False),  # its gate is still being answered
        (True, {"unknown_since": after()}, "off", False),  # nobody can say so any more
        (True, None, "off", False),
    ],
)
def test_a_node_that_is_down_again_at_its_gate_has_failed_where_two_paths_say_so(
    is_open: bool, lost: dict[str, Any] | None, power: str, fails: bool
) -> None:
    """Mutants: silence alone fails the plan; a check that says nothing convicts."""
    standing = [UNANSWERED] if is_open else []
    if lost is not None:
        standing.append(a_condition("agent.lost", **lost))
    node, plan = waiting(*standing)
    found = abort_at_boundary(idle(a_context(node), "a", power=power), node, plan, None)
    told = [event.reason for event in found.events if isinstance(event, e.PlanEnded)] if isinstance(found, Act) else []
    assert told == (["it went down before its gate was answered: as seen"] if fails else [])
