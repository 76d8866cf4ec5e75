"""Moments at which the clock alone may change an answer: each wait tells its own, and a rest does too."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from hostler.core.planning.execution import advance
from hostler.core.planning.next_step import next_step
from hostler.core.planning.rejoin_guard import beside
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state.cases import Ticket
from hostler.core.state.cell_record import Removal
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.model import ActClass, Attempt, HoldKind, Node, Operation, Phase
from hostler.core.state.operations import CordonUninvited
from tests.kit import CLUSTER, NOW, a_node, a_workload, after, configuration, pool_document
from tests.unit.planning.values import a_condition, a_context, held, idle, with_plan

ROOMY = configuration({"train": pool_document(target=2, budget={"count": 2, "percent": 100})})
FAULT = a_condition()
ILL = replace(a_node("a"), conditions=(FAULT,))


def context_of(node: Node, **cell: Any) -> DecisionContext:
    return idle(a_context(node, a_node("b"), config=ROOMY, **cell), "a", "b", workloads={CLUSTER: (a_workload("w1"),)})


def until(answer: object) -> datetime | None:
    assert isinstance(answer, Wait | Rest), answer
    return answer.until


def test_a_plan_is_asked_again_when_the_storm_ebbs_that_keeps_a_graver_one_away() -> None:
    """Mutants: the graver remedy's moment is not told by the plan's end, by the plan, or by the drain beside it."""
    node, plan = with_plan("reboot", ILL, at="drain", step_since=NOW)
    brake = ROOMY.policy.brake
    recent = tuple(
        Removal(NOW - timedelta(seconds=brake.window_s - 5 - i / 1000), f"n{i}", "train", "reboot")
        for i in reversed(range(brake.disruptions + 1))
    )
    need = Need("power_cycle", ActClass.immediate, plan.causes, FAULT.type)
    context = context_of(node, recent=recent)
    first = recent[0].at + timedelta(seconds=brake.window_s)
    assert until(advance(context, node, plan, need)) == first
    assert until(advance(context, node, plan, None)) == after(seconds=plan.steps[plan.index].deadline_s)


def test_a_plan_at_an_open_gate_is_asked_again_when_a_release_may_be_tried_again() -> None:
    """Mutant: who asks for the node waits for the check's next turn."""
    unanswered = replace(a_condition("check.inconclusive"), id="a/check.inconclusive/check:gate")
    request = a_condition("operator.release", remedy="release")
    tried = (Attempt("release", "", NOW, failed=True),)
    made = replace(a_node("a"), conditions=(FAULT, unanswered, request), attempts=tried)
    node, plan = with_plan("power_cycle", made, at="run_checks", touched=True, disturbed=True, causes=(FAULT.id,))
    assert until(advance(context_of(node), node, plan, None)) == after(minutes=5)


def test_protection_is_tried_again_though_another_plan_runs() -> None:
    """Mutant: its pause is told by nobody while the node has a plan."""
    tried = (Attempt("protective_power_off", "", NOW, failed=True),)
    wet = replace(a_node("a"), conditions=(a_condition("cooling.leak"),), attempts=tried)
    node, plan = with_plan("reboot", wet, at="drain", step_since=NOW, disturbed=True)
    need = Need("protective_power_off", ActClass.protective, plan.causes, "cooling.leak")
    context = held(context_of(node), HoldKind.power)
    assert until(advance(context, node, plan, need)) == after(minutes=1)


def test_a_phase_is_asked_again_at_its_limit() -> None:
    """Mutants: a plan is not looked at when its phase's time is over; a node without one that is held is."""
    made = replace(a_node("a", pool="", phase=Phase.seatrial), deadline=after(minutes=3))
    stopped = held(idle(a_context(made), "a"), HoldKind.operator)
    assert until(next_step(stopped, made)) is None
    node, plan = with_plan("seatrial", made, at="wait_agent", step_since=NOW)
    assert until(advance(idle(a_context(node), "a", heard=False), node, plan, None)) == after(minutes=3)


def test_an_owner_s_own_agreement_is_waited_for_behind_the_drains_deadline() -> None:
    """Mutant: the owner is asked, and nobody looks when the work may go by what was agreed."""
    node, plan = with_plan("power_cycle", ILL, at="drain", step_since=NOW)
    agreed = replace(a_workload("w1"), agreed_after_s=3 * 86_400.0)
    context = idle(a_context(node, now=after(days=2)), "a", workloads={CLUSTER: (agreed,)})
    asked = Ticket("t1", "a", "consent", "as asked", NOW, owner="pat")
    context.fleet.put_ticket("t1", asked)
    context.fleet.merge()
    plan = replace(plan, disturbed=True)
    assert until(advance(context, node, plan, None)) == after(days=3)


def test_an_act_against_an_uninvited_node_tells_its_moment_of_a_node_at_rest_too() -> None:
    """Mutant: the deadline of what is under way there is forgotten where the node itself needs nothing."""
    under_way = Operation("a-o1", CordonUninvited(CLUSTER), "a", "", 0, NOW, after(minutes=1), aside=True)
    node = replace(a_node("a", pool=""), aside=under_way, left_cluster=CLUSTER, left_pool="train")
    assert until(beside(idle(a_context(node), "a"), node, Rest(until=after(hours=1)))) == after(minutes=1)
    assert isinstance(beside(idle(a_context(node), "a"), node, Act(())), Act)


def test_a_rung_that_is_forgotten_is_a_moment_of_whatever_is_waited_for() -> None:
    """Mutant: the ladder's window ends, and a lesser remedy would do; nobody looks."""
    tried = (Attempt("reboot", "", NOW - timedelta(hours=23)),)
    node = replace(ILL, attempts=tried)
    context = held(context_of(node), HoldKind.operator)
    window_s = ROOMY.policy.rungs["reboot"].window_s
    assert until(next_step(context, node)) == tried[0].at + timedelta(seconds=window_s)
