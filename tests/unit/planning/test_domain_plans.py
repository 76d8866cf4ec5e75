"""How far the members of a domain act have come, and what one of them waits for."""

import pytest
from msgspec.structs import replace

from hostler.core.planning.domain_plans import (
    DomainStage,
    acts,
    behind,
    going_on,
    has_disturbed,
    stage_of,
    stands,
    turned_back,
)
from hostler.core.state.model import Node
from hostler.core.state.scopes import ALONE, ActGroup
from tests.kit import a_node
from tests.unit.planning.values import a_condition, a_fleet, a_plan, with_plan

GROUP = ActGroup.of("rack:r1/i1")


def a_member(name: str, at: str, **fields: object) -> Node:
    node, _ = with_plan("reboot", a_node(name), at=at, group=GROUP, **fields)
    return node


@pytest.mark.parametrize(("group", "scope"), [("rack:r1/i1", "rack:r1"), ("i1", ""), ("nodes/i1", ""), ("", "")])
def test_only_a_domains_group_has_a_scope(group: str, scope: str) -> None:
    assert str(ActGroup.of(group).scope or "") == scope
    assert ActGroup.of(group).text == group


@pytest.mark.parametrize(
    ("at", "stage"),
    [
        ("cordon", DomainStage.cordon),
        ("drain", DomainStage.drain),
        ("collect_evidence", DomainStage.act),
        ("reboot", DomainStage.act),
        ("run_checks", DomainStage.act),
        ("uncordon", DomainStage.open),
    ],
)
def test_the_stage_is_that_of_the_next_step(at: str, stage: DomainStage) -> None:
    plan = a_plan("reboot", at=at)
    assert stage_of(plan) == stage
    assert stage_of(replace(plan, index=len(plan.steps))) == DomainStage.done


def test_who_has_come_further_waits_for_who_has_not_by_name() -> None:
    """Mutants: the first waits for the last; members that turned back are waited for."""
    first, last = a_member("a", "reboot"), a_member("b", "drain")
    fleet = a_fleet(first, last)
    assert first.plan is not None
    assert last.plan is not None
    (blocker,) = behind(fleet, first, first.plan)
    assert (blocker.kind, blocker.name) == ("domain", "b")
    assert blocker.text == "rack:r1 is treated as a whole, and b is still at drain"
    assert behind(fleet, last, last.plan) == ()
    turned = a_fleet(first, a_member("b", "drain", state="undoing"))
    assert behind(turned, first, first.plan) == ()


def test_when_one_turns_back_the_others_do_and_open_together() -> None:
    first, last = a_member("a", "reboot"), a_member("b", "drain", state="undoing", reason="it is held")
    fleet = a_fleet(first, last)
    assert turned_back(fleet, first) == "b turned back: it is held"
    assert turned_back(fleet, last) == ""
    assert [b.name for b in going_on(fleet, last)] == ["a"]
    assert going_on(fleet, first) == ()


def test_what_one_member_has_disturbed_all_have() -> None:
    first = a_member("a", "reboot")
    assert has_disturbed(a_fleet(first, a_member("b", "reboot", disturbed=True)), first)
    assert not has_disturbed(a_fleet(first, a_member("b", "reboot")), first)


def test_the_plan_stands_with_a_cause_on_any_member_and_falls_with_the_last() -> None:
    """Mutant: a member without a fault of its own drops out of the act for another's."""
    cause = a_condition(node="b")
    here = a_member("a", "drain", causes=(cause.id,))
    assert here.plan is not None
    ill = replace(a_member("b", "drain"), conditions=(cause,))
    assert stands(a_fleet(here, ill), here, here.plan)
    assert not stands(a_fleet(here, a_node("b")), here, here.plan)
    alone = replace(here.plan, group=ALONE)
    assert not stands(a_fleet(here, ill), here, alone), "without a group only its own conditions count"


def test_the_act_is_what_stands_on_its_members() -> None:
    (act,) = acts(a_fleet(a_member("a", "reboot"), a_member("b", "drain"), a_node("c")))
    assert (act.scope.text, act.remedy, act.state) == ("rack:r1", "reboot", "running")
    assert [(m.node.id, m.stage) for m in act.members] == [("a", DomainStage.act), ("b", DomainStage.drain)]
    (undoing,) = acts(a_fleet(a_member("a", "reboot"), a_member("b", "drain", state="undoing")))
    assert undoing.state == "undoing"
