"""Spares and the places of a pool that each fills."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.spares import balance
from hostler.core.state import events as e
from hostler.core.state.model import Attempt, HoldKind, Node, Profile
from tests.kit import NOW, a_node, configuration, pool_document
from tests.unit.planning.values import a_context, held


def delivered(*nodes: Node, dark: dict[str, str] | None = None, **pool: Any) -> list[str]:
    config = configuration({"train": pool_document(**{"target": 2, **pool})})
    context = a_context(*nodes, config=config)
    found = balance(context, context.fleet.pools["train"], dark or {})
    assert [type(event) for event in found] == [e.NodeAssigned, e.PlanRecorded] * (len(found) // 2)
    return [event.node for event in found if isinstance(event, e.NodeAssigned)]


A, B, S, T = a_node("a"), a_node("b"), a_node("s", pool=""), a_node("t", pool="")


def test_as_many_are_delivered_as_are_missing_in_id_order() -> None:
    """Mutants: one too many; all spares at once."""
    assert delivered(A, B, S) == []
    assert delivered(A, T, S) == ["s"]
    assert delivered(T, S) == ["s", "t"]


def test_a_member_that_stays_dark_leaves_a_place() -> None:
    assert delivered(A, B, S, dark={"a": "under hold h1"}) == ["s"]


def test_spares_that_are_kept_back_stay() -> None:
    floor = {"count": 1, "percent": 100, "spares_floor": 1}
    assert delivered(S, T, budget=floor) == ["s"]
    assert delivered(A, S, budget=floor) == []


def test_a_floor_is_of_spares_that_could_be_delivered() -> None:
    """Mutants: who is not fit counts for the floor, or takes the turn of one who is."""
    floor = {"count": 1, "percent": 100, "spares_floor": 1}
    unfit = replace(S, profile=Profile.unmanaged)
    assert delivered(A, unfit, T, budget=floor) == [], "the one fit spare is what the floor keeps back"
    assert delivered(A, unfit, T, a_node("u", pool=""), budget=floor) == ["t"]


@pytest.mark.parametrize(
    "fields",
    [
        {"inventory_at": None},
        {"provisioner": "none"},
        {"profile": Profile.unmanaged},
        {"attempts": (Attempt("reboot", "", NOW),)},
        {"sku": "b200"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_who_is_not_fit_is_passed_over(fields: dict[str, Any]) -> None:
    """Mutants: each condition of `_is_deliverable` left out."""
    assert delivered(A, replace(S, **fields)) == []
    assert delivered(A, replace(S, **fields), T) == ["t"]


def test_a_held_spare_is_passed_over() -> None:
    context = held(a_context(A, S), HoldKind.cordon, node="s")
    assert balance(context, context.fleet.pools["train"], {}) == ()


@pytest.mark.parametrize(("modes", "names"), [({"*": "act"}, ["s"]), ({"*": "observe"}, [])])
def test_an_adopted_spare_goes_only_where_the_pool_acts(modes: dict[str, str], names: list[str]) -> None:
    assert delivered(A, replace(S, adopted=True), modes=modes) == names
