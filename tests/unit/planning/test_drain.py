"""Draining: what is ended, what is waited for, and who is asked at its end."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.drain import drain, empty, undrained
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import ActClass
from hostler.core.state.operations import Evict
from tests.kit import CLUSTER, a_workload, after, configuration, pool_document
from tests.unit.planning.values import a_context, idle, with_plan

WORK = a_workload("w1", range(8))
SOFT = a_workload("w2", range(8), kind="interruptible")


def test_an_empty_node_is_drained() -> None:
    node, plan = with_plan("reboot", at="drain")
    assert drain(idle(a_context(node), "a"), node, plan) == Act((e.PlanAdvanced("a", plan.id, plan.index + 1),))


def test_work_that_nobody_knows_is_waited_for() -> None:
    """Mutant: a node of which no scheduler has spoken counts as empty."""
    node, plan = with_plan("reboot", at="drain", act_class=ActClass.pending)
    answer = drain(a_context(node), node, plan)
    assert isinstance(answer, Wait)
    assert answer.what == "reboot"


def test_interruptible_work_is_ended_and_nothing_else_is() -> None:
    node, plan = with_plan("reboot", at="drain", act_class=ActClass.pending)
    answer = empty(idle(a_context(node), "a", workloads={CLUSTER: (WORK, SOFT)}), node, plan)
    assert isinstance(answer, Act)
    (event,) = answer.events
    assert isinstance(event, e.OperationStarted)
    assert event.operation.act == Evict(("w2",))


def test_the_rest_is_waited_for_until_the_steps_deadline() -> None:
    node, plan = with_plan("reboot", at="drain", act_class=ActClass.pending)
    answer = empty(idle(a_context(node), "a", workloads={CLUSTER: (WORK,)}), node, plan)
    assert isinstance(answer, Wait)
    assert [b.name for b in answer.blockers] == ["w1"]
    assert answer.until == after(seconds=plan.steps[plan.index].deadline_s)


@pytest.mark.parametrize(("disturbed", "undone"), [(False, True), (True, False)])
def test_past_the_deadline_a_person_is_asked_and_what_can_be_taken_back_is(disturbed: bool, undone: bool) -> None:
    """Mutants: the work is ended after all; a plan that has disturbed already is taken back."""
    node, plan = with_plan("reboot", at="drain", act_class=ActClass.pending, disturbed=disturbed)
    late = after(seconds=plan.steps[plan.index].deadline_s)
    answer = empty(idle(a_context(node, now=late), "a", workloads={CLUSTER: (WORK,)}), node, plan)
    assert isinstance(answer, Act)
    kinds = [type(event) for event in answer.events]
    assert kinds == ([e.TicketOpened, e.PlanUndoing] if undone else [e.TicketOpened])
    opened = answer.events[0]
    assert isinstance(opened, e.TicketOpened)
    assert (opened.ticket.kind, opened.ticket.owner, opened.ticket.action) == ("consent", "pat@acme", "reboot")


def test_a_pools_agreement_ends_work_at_its_moment() -> None:
    agreed = configuration({"train": pool_document(target=2, evict_after_deadline=True, drain_deadline_s=600)})
    node, plan = with_plan("reboot", at="drain", act_class=ActClass.pending)
    early, later = after(seconds=599), after(seconds=600)
    waits = empty(idle(a_context(node, now=early, config=agreed), "a", workloads={CLUSTER: (WORK,)}), node, plan)
    assert isinstance(waits, Wait)
    assert waits.until == later
    ends = empty(idle(a_context(node, now=later, config=agreed), "a", workloads={CLUSTER: (WORK,)}), node, plan)
    assert isinstance(ends, Act)
    assert [event.operation.kind for event in ends.events if isinstance(event, e.OperationStarted)] == ["evict"]


def test_protection_waits_for_nobodys_work() -> None:
    node, plan = with_plan("protective_power_off")
    assert empty(idle(a_context(node), "a", workloads={CLUSTER: (WORK,)}), node, plan) is None


def test_a_step_that_needs_an_empty_node_names_what_is_on_it() -> None:
    node, plan = with_plan("reboot", at="drain", act_class=ActClass.pending)
    assert [b.name for b in undrained(idle(a_context(node), "a", workloads={CLUSTER: (WORK,)}), node, plan)] == ["w1"]
    infrastructure = replace(WORK, work_class=a_workload("x", kind="infrastructure").work_class)
    assert undrained(idle(a_context(node), "a", workloads={CLUSTER: (infrastructure,)}), node, plan) == []
