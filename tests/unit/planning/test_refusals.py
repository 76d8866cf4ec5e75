"""Refusals: what waiting may change is tried later, unless hardware was touched or a person has a desk for it."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.refusals import is_requested, is_tried_later, mend_of
from hostler.core.state.model import LASTING, ActClass, Outcome
from hostler.core.state.plan_rules import OnFailure, PlanRules
from tests.kit import a_node
from tests.unit.planning.values import a_condition, a_context, a_plan, an_operation

WORK = replace(a_plan("seatrial"), act_class=ActClass.bring_up, disruptive=False, touched=False)


@pytest.mark.parametrize(
    ("fields", "lasts", "later"),
    [
        ({}, False, True),
        ({}, True, True),
        ({"touched": True}, False, False),
        ({"disruptive": True}, False, False),
        ({"act_class": ActClass.immediate}, False, False),
        ({"failed_phase": "zap_fail"}, False, False),
        ({"failed_phase": "zap_fail"}, True, True),
        ({"to_phase": "retired"}, False, False),
        ({"rules": PlanRules(on_failure=OnFailure.undoes)}, False, False),
    ],
)
def test_which_work_is_tried_later(fields: dict[str, object], lasts: bool, later: bool) -> None:
    """Mutants: hardware that was touched counts as it was; what a person corrects is tried for ever."""
    assert is_tried_later(replace(WORK, **fields), lasts=lasts) is later


def test_a_refusal_that_lasts_says_what_to_do() -> None:
    """Mutant: the words of an old agent are not known, and its refusal is taken for one that waiting changes."""
    node, operation = a_node("a"), an_operation("reboot")
    said = Outcome(operation.id, "a", "refused", "no", facts={LASTING: "see to it"})
    assert mend_of(a_context(node), node, operation, said) == "see to it"
    old = replace(said, facts={}, detail="this agent was started without --allow-actions")
    assert "--allow-actions" in mend_of(a_context(node), node, operation, old)


def test_a_plan_is_requested_where_people_alone_asked_for_it() -> None:
    """Mutant: a fault beside the request is forgotten, and the node goes back with it."""
    asked, fault = replace(a_condition("operator.reboot"), remedy="reboot"), a_condition("gpu.off_bus")
    node = replace(a_node("a"), conditions=(asked, fault))
    assert is_requested(node, replace(WORK, causes=(asked.id,)))
    assert not is_requested(node, replace(WORK, causes=(asked.id, fault.id)))
    assert not is_requested(node, replace(WORK, causes=()))
