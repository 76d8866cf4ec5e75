"""Worlds that broke a law once, run for good; and new ones, which nobody has run before, beside them."""

from pathlib import Path

import pytest

from hostler.sim.checkers.law import Violation
from hostler.sim.fault_injection.scenario import draw, worlds_of
from hostler.sim.hostile_worlds import WorldVerdict, trial
from tests.simulation.fresh import replay_of_fresh
from tests.simulation.kept import Kept, keep, kept

pytestmark = pytest.mark.nightly("whole worlds are lived through")


@pytest.mark.parametrize("one", kept(), ids=str)
def test_a_world_that_broke_a_law_once_breaks_none(one: Kept) -> None:
    """`pytest tests/simulation/test_kept.py -k SEED` runs one of them."""
    verdict = trial(one.scenario)
    assert not verdict.violations, f"{one.why}\n{verdict}"


def test_no_law_is_broken_in_a_fresh_world(fresh_seed: int) -> None:
    """Each run draws worlds of its own (`--fresh`, `--fresh-first`); one that fails is kept."""
    for scenario in worlds_of((fresh_seed,)):
        verdict = trial(scenario)
        assert not verdict.violations, f"{verdict}\n{keep(verdict)}\n{replay_of_fresh(fresh_seed)}"


@pytest.mark.smoke
def test_a_world_that_fails_is_kept_once_and_whole(tmp_path: Path) -> None:
    """Mutants: only its seed is kept, so that the next kind of fault redraws it; it is kept with each run."""
    file = tmp_path / "kept_seeds.jsonl"
    scenario = draw(17).without((1, 2)).smaller(4)
    verdict = WorldVerdict(scenario, (Violation(4, 9, "too many are out"),), "", 0, 0, 0, 0, 0.0, {})
    assert "commit" in keep(verdict, file)
    assert keep(verdict, file) == ""
    assert kept(file) == (Kept("law 4 after record 9: too many are out", scenario),)
