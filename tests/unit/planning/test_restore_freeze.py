"""After a restore only protection, easing that reality agrees to, and what a person has begun since goes on."""

from datetime import datetime

import pytest
from msgspec.structs import replace

from hostler.core.planning.restore_freeze import standing_still
from hostler.core.policy.remedy_escalation import Need
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Answer, Rest, Wait
from hostler.core.state.model import ActClass, Difference, Node
from tests.kit import NOW, a_node, after
from tests.unit.planning.values import a_condition, a_context, a_plan, an_operation, with_plan

REBOOT = Act((e.OperationStarted(an_operation("reboot")),))
UNCORDON = Act((e.PlanRecorded(a_plan("uncordon")),))


def frozen(node: Node, answer: Answer, need: Need | None = None, restored: datetime | None = NOW) -> Answer:
    return standing_still(a_context(node, now=after(hours=1), restored=restored), node, need, answer)


def test_without_a_restore_nothing_stands_still() -> None:
    assert frozen(a_node("a"), REBOOT, restored=None) == REBOOT


def test_what_would_act_waits_and_says_why() -> None:
    """Mutants: what was under way goes on; a wait of the node is overwritten."""
    node, plan = with_plan("reboot")
    answer = frozen(node, REBOOT)
    assert isinstance(answer, Wait)
    assert (answer.what, answer.blockers[0].kind) == (plan.name, "restored")
    waits = Wait("reboot", (), until=None)
    assert frozen(node, waits) == waits
    assert frozen(node, Rest()) == Rest()


def test_protection_goes_on() -> None:
    wet = replace(a_node("a"), conditions=(a_condition("cooling.leak"),))
    need = Need("protective_power_off", ActClass.protective, (wet.conditions[0].id,), "cooling.leak")
    assert frozen(wet, REBOOT, need) == REBOOT


@pytest.mark.parametrize(("recorded", "goes_on"), [(NOW, True), (after(seconds=-1), False)])
def test_easing_that_a_person_has_begun_since_goes_on_and_the_copys_own_does_not(
    recorded: datetime, goes_on: bool
) -> None:
    node, _ = with_plan("uncordon", recorded_at=recorded)
    assert (frozen(node, REBOOT) == REBOOT) is goes_on


@pytest.mark.parametrize(
    ("compared", "differences", "lifted"),
    [(NOW, (), True), (None, (), False), (NOW, (Difference("cordon", "none", "hostler"),), False)],
)
def test_a_cordon_is_lifted_only_where_reality_was_seen_to_agree(
    compared: datetime | None, differences: tuple[Difference, ...], lifted: bool
) -> None:
    node = replace(a_node("a"), cordons=("hostler",), compared=compared, differences=differences)
    assert (frozen(node, UNCORDON) == UNCORDON) is lifted
