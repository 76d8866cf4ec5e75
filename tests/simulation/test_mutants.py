"""Every law's watcher is seen to catch something: a bug is planted for it, and a seed is found that shows it."""

import pytest

from tests.simulation.mutants import MUTANTS, SEEDS, Mutant, hunt


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_planted_bug_is_caught(mutant: Mutant) -> None:
    """Mutants: those of `mutants.MUTANTS`."""
    assert hunt(mutant) is not None, f"no watcher of law {mutant.law} noticed '{mutant.name}' in {SEEDS} seeds"


def test_every_law_has_a_mutant() -> None:
    assert {mutant.law for mutant in MUTANTS} == set(range(1, 10))
