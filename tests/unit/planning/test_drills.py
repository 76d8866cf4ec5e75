"""A drill's next step: nothing where none runs, and its end where its node or its time is gone."""

from msgspec.structs import replace

from hostler.core.planning.drills import beside, ended, ending
from hostler.core.state import events as e
from hostler.core.state.decisions import Rest
from hostler.core.state.drills import Drill
from tests.contract.journal_samples import sample
from tests.kit import a_node
from tests.unit.planning.values import a_condition, a_context


def test_without_a_drill_an_answer_stands_as_it_is() -> None:
    """Mutant: a node without a drill is asked to show a fault."""
    node = a_node("a")
    assert beside(a_context(node), node, Rest()) == Rest()
    assert ended(a_context(node), node) == ()


def test_an_end_is_recorded_with_its_conditions() -> None:
    """Mutant: the drill ends and what it has raised stays, as if it were a fault."""
    drill: Drill = sample(Drill)
    node = a_node("a", drill=drill)
    raised = replace(a_condition("gpu.off_bus"), drill=drill.id)
    node = replace(node, conditions=(raised, a_condition("gpu.ecc_uncontained")))
    found = ending(node, drill, ("ended", "a person ended it"), "ann")
    assert [event.condition for event in found if isinstance(event, e.ConditionCleared)] == [raised.id]
    assert [(event.node, event.result) for event in found if isinstance(event, e.DrillEnded)] == [("a", "ended")]
