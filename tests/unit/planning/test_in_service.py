"""Plans for a node in production that needs no remedy."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.core.planning.in_service import serve
from hostler.core.policy.holds_and_pauses import keeping_away
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Answer, Rest, Wait
from hostler.core.state.model import HoldKind, Node
from hostler.core.state.scopes import WHOLE_CELL
from tests.kit import a_hold, a_node
from tests.unit.planning.values import a_context, held, idle


def served(node: Node, *holds: HoldKind, **cell: Any) -> Answer:
    return serve(held(idle(a_context(node, **cell), "a"), *holds), node)


def planned(answer: Answer) -> list[str]:
    assert isinstance(answer, Act)
    return [event.plan.name for event in answer.events if isinstance(event, e.PlanRecorded)]


def test_a_node_on_which_nothing_stands_rests() -> None:
    assert served(a_node("a")) == Rest()
    assert served(a_node("a", pool="")) == Rest()


def test_a_cordon_that_a_person_asked_for_is_laid_and_stays() -> None:
    """Mutants: the node is cordoned again and again; our own cordon is lifted under the person's."""
    assert planned(served(a_node("a"), HoldKind.cordon)) == ["cordon"]
    kept = served(replace(a_node("a"), cordons=("hostler",)), HoldKind.cordon)
    assert isinstance(kept, Wait)
    assert (kept.what, kept.blockers[0].name) == ("cordoned", "h-cordon-a")


def test_a_cordon_of_ours_that_nobody_wants_any_more_is_lifted() -> None:
    assert planned(served(replace(a_node("a"), cordons=("hostler",)))) == ["uncordon"]


def test_who_lifted_our_cordon_overrides_a_cordon_and_no_hands_in_the_machine() -> None:
    cordon, operations, override = (
        a_hold("a", kind) for kind in (HoldKind.cordon, HoldKind.physical_work, HoldKind.override)
    )
    assert keeping_away([cordon, override]) == []
    assert keeping_away([operations, override]) == [operations]
    assert keeping_away([cordon]) == [cordon]


def test_a_person_s_cordon_asks_no_guard() -> None:
    """Mutant: a cordon asks the guards as a remedy does, and a pause keeps the node open."""
    assert planned(served(a_node("a"), HoldKind.cordon, paused=(WHOLE_CELL,), brake="a storm")) == ["cordon"]


@pytest.mark.parametrize("pool", ["", "train"])
def test_only_a_spare_waits_for_an_inventory_that_nobody_has_seen(pool: str) -> None:
    node = a_node("a", pool=pool, slots=(), inventory_at=None, inventory_covers=())
    answer = served(node)
    assert isinstance(answer, Rest if pool else Wait)
    if isinstance(answer, Wait):
        assert (answer.what, answer.blockers[0].kind) == ("deliver", "inventory")
