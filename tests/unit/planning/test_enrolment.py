"""The first step of a registered node."""

from typing import Any

import pytest

from hostler.core.planning.enrolment import enrol
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import Phase
from hostler.core.state.scopes import WHOLE_CELL
from tests.kit import a_node
from tests.unit.planning.values import a_context


def registered(**fields: Any) -> Any:
    return a_node("a", pool="", phase=Phase.registered, **fields)


@pytest.mark.parametrize(
    ("fields", "phase"),
    [
        ({}, Phase.initializing),
        ({"adopted": True}, Phase.production),
        ({"adopted": True, "inventory_at": None}, None),
        ({"provisioner": "none"}, None),
    ],
)
def test_it_is_brought_up_or_adopted_or_waits(fields: dict[str, Any], phase: Phase | None) -> None:
    """Mutants: an adopted node serves before it was seen; a node that somebody else powers on is powered on."""
    node = registered(**fields)
    answer = enrol(a_context(node), node)
    if phase is None:
        assert isinstance(answer, Wait)
        assert len(answer.blockers) == 1
    else:
        assert isinstance(answer, Act)
        assert [event.after for event in answer.events if isinstance(event, e.PhaseChanged)] == [phase]


def test_it_waits_while_as_many_are_brought_up_as_may_be_at_once() -> None:
    busy = [a_node(f"n{number}", pool="", phase=Phase.initializing) for number in range(99)]
    node = registered()
    context = a_context(node, *busy)
    answer = enrol(context, node)
    assert isinstance(answer, Wait)
    assert [b.name for b in answer.blockers] == ["bring_up"]


def test_a_pause_of_the_fleet_stops_it() -> None:
    node = registered()
    answer = enrol(a_context(node, paused=(WHOLE_CELL,)), node)
    assert isinstance(answer, Wait)
    assert [b.kind for b in answer.blockers] == ["pause"]
