"""The step that compares a node with its SKU: passed, waited for, left open, or convicted by what is gone."""

from msgspec.structs import replace

from hostler.core.planning.inventory_step import verify_inventory
from hostler.core.state import events as e
from hostler.core.state.decisions import Act, Wait
from hostler.core.state.model import Node, Phase, Verdict
from hostler.core.state.packed_strings import pairs
from tests.kit import a_node, after
from tests.unit.planning.values import a_context, with_plan

SHORT = tuple((f"gpu{gpu}", f"a-G{gpu}") for gpu in range(7))


def a_bare_node(**fields: object) -> Node:
    return a_node("a", pool="", phase=Phase.seatrial, **fields)


def verdicts(answer: object) -> list[Verdict]:
    assert isinstance(answer, Act)
    return [event.check.verdict for event in answer.events if isinstance(event, e.CheckRecorded)]


def test_a_node_that_is_as_its_sku_passes_and_goes_on() -> None:
    node, plan = with_plan("seatrial", a_bare_node(), at="verify_inventory")
    answer = verify_inventory(a_context(node), node, plan)
    assert verdicts(answer) == [Verdict.passed]
    assert isinstance(answer, Act)
    assert answer.events[-1] == e.PlanAdvanced("a", plan.id, plan.index + 1)


def test_what_nobody_has_looked_at_is_waited_for_and_convicts_nobody() -> None:
    """Mutant: a node without an inventory fails its seatrial."""
    node, plan = with_plan("seatrial", a_bare_node(inventory_at=None, slots=()), at="verify_inventory")
    answer = verify_inventory(a_context(node), node, plan)
    assert isinstance(answer, Wait)
    assert (answer.blockers[0].kind, answer.until) == ("observation", after(seconds=900))
    late = verify_inventory(a_context(node, now=after(seconds=900)), node, plan)
    assert verdicts(late) == [Verdict.inconclusive]


def test_an_inventory_of_an_earlier_boot_is_none() -> None:
    node, plan = with_plan("seatrial", a_bare_node(inventory_boot="a-b0"), at="verify_inventory")
    assert isinstance(verify_inventory(a_context(node), node, plan), Wait)


def test_a_gpu_less_than_the_sku_leaves_the_step_open_for_a_person() -> None:
    """The node never showed more, so that the SKU may be wrong. Mutant: the node is convicted."""
    node, plan = with_plan("seatrial", a_bare_node(slots=SHORT), at="verify_inventory")
    answer = verify_inventory(a_context(node), node, plan)
    assert verdicts(answer) == [Verdict.failed]
    assert isinstance(answer, Act)
    assert not any(isinstance(event, e.PlanAdvanced | e.PlanEnded) for event in answer.events)


def test_in_triage_a_gpu_that_is_gone_convicts_once_nothing_more_has_come_for_the_steps_time() -> None:
    node = replace(a_node("a", pool="", phase=Phase.triage), slots=pairs(SHORT))
    node, plan = with_plan("examine", node, at="verify_inventory")
    waiting = verify_inventory(a_context(node), node, plan)
    assert isinstance(waiting, Wait)
    assert waiting.until == after(seconds=900)
    told_late = replace(node, inventory_at=after(seconds=600))
    longer = verify_inventory(a_context(told_late, now=after(seconds=900)), told_late, plan)
    assert isinstance(longer, Wait)
    assert longer.until == after(seconds=1500)
    answer = verify_inventory(a_context(node, now=after(seconds=900)), node, plan)
    assert verdicts(answer) == [Verdict.failed]
    assert isinstance(answer, Act)
    assert [event.after for event in answer.events if isinstance(event, e.PhaseChanged)] == [Phase.rma]
