"""Waits of phases whose work people do: each has acts that lead on, and no instance waits for a vendor."""

import pytest

from hostler.core.planning.person_waits import ACTS, waits_for_person, ways_on
from hostler.core.state.assets import PROVIDER, Binding
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import Phase
from hostler.core.state.ways_out import ByAct
from hostler.core.tables.phases import PHASES
from tests.kit import NOW, Drive, a_node, configuration

CONTEXT = DecisionContext(Drive(configuration(), []).fleet, LiveState(), NOW)


@pytest.mark.parametrize("phase", [phase for phase, row in PHASES.items() if not row.recipe and row.waits_for])
def test_each_phase_of_people_names_the_acts_that_lead_on(phase: Phase) -> None:
    """Mutant: a phase without an act, in which a node stands for ever."""
    wait = waits_for_person(CONTEXT, a_node("a", pool="", phase=phase))
    assert (wait.what, wait.until) == (phase.value, None)
    (blocker,) = wait.blockers
    assert (blocker.kind, blocker.text) == ("person", PHASES[phase].waits_for)
    asked = [way.act for way in blocker.ways if isinstance(way, ByAct)]
    assert asked == [act for act, _ in ACTS[phase]] if phase in ACTS else len(asked) == 1


def test_a_rented_machine_waits_for_its_provider_and_not_for_a_return() -> None:
    """Mutant: it waits for a vendor to send back what nobody has."""
    bound = (Binding(PROVIDER, "cloud/i-1", NOW),)
    node = a_node("a", pool="", phase=Phase.rma, bindings=bound)
    (blocker,) = waits_for_person(CONTEXT, node).blockers
    assert blocker.text == "another instance of provider cloud"
    first = ways_on(node)[0]
    assert isinstance(first, ByAct)
    assert first.text == "its provider gives another instance"
