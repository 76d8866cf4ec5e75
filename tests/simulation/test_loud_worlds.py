"""Worlds in which an agent, a BMC and a neighbour on the boot network say as much as they can, under small budgets."""

from collections import Counter

import pytest

from hostler.sim.fault_injection.scenario import LOUD_KINDS, again, draw_loud
from hostler.sim.hostile_worlds import judge, replay


def test_seeds_bring_every_kind_and_are_drawn_again_alike() -> None:
    drawn = [draw_loud(seed) for seed in range(60)]
    assert {one.kind for scenario in drawn for one in scenario.faults} == set(LOUD_KINDS)
    assert [again(scenario) for scenario in drawn] == drawn
    assert "--loud" in replay(drawn[0])


@pytest.mark.nightly("whole worlds are lived through")
def test_no_source_is_over_its_budget_and_none_lands_on_others() -> None:
    """Mutants: the budget of agents is not asked; that of boots; a pair of nodes is not damped."""
    met: Counter[str] = Counter()
    for seed in (2, 3, 5):
        verdict = judge(seed, loud=True)
        assert not verdict.violations, str(verdict)
        met.update(verdict.met)
    assert met["a source over its budget"] >= 2
    assert met["a node that spoke of another"] >= 2
