"""Nodes of which it is certain that they need nothing."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.needs_nothing import candidates, needs_nothing
from hostler.core.policy.holds_and_pauses import scopes
from hostler.core.state.model import Attempt, HoldKind, Phase, Waiting
from tests.kit import NOW, a_hold, a_node, after
from tests.unit.planning.values import a_condition, a_context, a_fleet, a_plan, an_operation, held


def test_a_healthy_node_in_service_rests() -> None:
    node = a_node("a")
    assert needs_nothing(a_fleet(node), node)


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": Phase.test},
        {"conditions": (a_condition(),)},
        {"attempts": (Attempt("reboot", "", NOW),)},
        {"cordons": ("hostler",)},
        {"settling": (an_operation("reboot"),)},
        {"plan": a_plan()},
        {"operation": an_operation("run_checks")},
        {"aside": an_operation("cordon_uninvited")},
        {"waiting": Waiting("reboot", NOW, ())},
        {"deadline": after(hours=1)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_whatever_stands_on_it_keeps_it_from_resting(fields: dict[str, Any]) -> None:
    """Mutants: each line of `rests` left out."""
    node = replace(a_node("a"), **fields)
    assert not needs_nothing(a_fleet(node), node)


def test_a_hold_on_it_or_on_a_scope_that_may_be_its_own_keeps_it_from_resting() -> None:
    node, other = a_node("a"), a_node("b")
    fleet = held(a_context(node, other), HoldKind.cordon, node="b").fleet
    assert needs_nothing(fleet, node)
    assert not needs_nothing(fleet, other)
    hold = a_hold("rack:r1")
    fleet.put_hold(hold.id, hold)
    assert not needs_nothing(fleet, node)


def test_a_spare_rests_only_where_it_is_as_its_sku() -> None:
    spare = a_node("a", pool="")
    assert needs_nothing(a_fleet(spare), spare)
    unseen = a_node("a", pool="", inventory_at=None)
    assert not needs_nothing(a_fleet(unseen), unseen)


def test_a_sweep_looks_at_everybody_once_a_scope_is_held() -> None:
    fleet = a_fleet(a_node("a"), replace(a_node("b"), conditions=(a_condition(node="b"),)))
    assert list(candidates(fleet)) == ["b"]
    hold = a_hold("rack:r1")
    fleet.put_hold(hold.id, hold)
    assert sorted(candidates(fleet)) == ["a", "b"]


@pytest.mark.parametrize("scope", ["rack:r1", "pool:train", "cluster:k1", "fleet"])
def test_a_hold_on_what_a_node_is_part_of_keeps_that_node_alone_from_resting(scope: str) -> None:
    """Mutants: one of the scopes is left out; a hold anywhere keeps everybody from resting."""
    node = a_node("a")
    fleet = a_fleet(node)
    reached = scope in {one.text for one in scopes(fleet, node)}
    hold = a_hold(scope)
    fleet.put_hold(hold.id, hold)
    assert needs_nothing(fleet, node) is not reached
    fleet.put_hold(hold.id, None)
    fleet.merge()
    assert needs_nothing(fleet, node)
