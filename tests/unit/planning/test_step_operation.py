"""The operation of a step: its time, its boot, and what it does to the node."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.step_operation import start, step_deadline
from hostler.core.state.model import Step
from tests.acts import an_act
from tests.kit import NOW, after
from tests.unit.planning.values import a_context, with_plan


def test_a_step_is_given_up_its_time_after_the_plan_came_to_it() -> None:
    _, plan = with_plan("reboot", at="reboot", step_since=after(minutes=1))
    assert step_deadline(plan) == after(minutes=1, seconds=300)


@pytest.mark.parametrize(
    ("kind", "boot_id", "disturbs", "touches"),
    [
        ("reboot", "a-b2", True, True),
        ("power_off", "a-b1", True, True),
        ("cordon", "a-b1", False, False),
        ("collect_evidence", "a-b2", False, False),
    ],
)
def test_an_agents_operation_is_meant_for_the_boot_it_is_in_and_others_for_the_plans(
    kind: str, boot_id: str, disturbs: bool, touches: bool
) -> None:
    """Mutant: an agent that has restarted meanwhile does what was meant for the boot before."""
    node, plan = with_plan("reboot")
    later = replace(node, boot_id="a-b2")
    operation = start(a_context(later), later, plan, Step(an_act(kind), 60.0))
    assert (operation.act, operation.boot_id) == (an_act(kind), boot_id)
    assert (operation.started, operation.deadline) == (NOW, after(seconds=60))
    assert (operation.disturbs, operation.touches) == (disturbs, touches)
    assert (operation.plan, operation.step) == (plan.id, plan.index)
