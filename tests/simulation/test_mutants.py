"""Every law's watcher is seen to catch something: a bug is planted for it, and a seed is found that shows it."""

from collections.abc import Callable
from itertools import islice

import pytest

from tests.simulation.caught import FILE, REWRITE, caught_at
from tests.simulation.mutants import MUTANTS, SEEDS, Mutant, hunt, seeds_for

pytestmark = pytest.mark.nightly("whole worlds are lived through")

KNOWN = caught_at()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_planted_bug_is_caught(mutant: Mutant, record_property: Callable[[str, object], None]) -> None:
    """Caught where it was before, or else anywhere: the run's summary names seeds that show it no more.

    Mutants: those of `mutants.MUTANTS`.
    """
    catch = hunt(mutant, KNOWN.get(mutant.name))
    assert catch is not None, f"no watcher of law {mutant.law} noticed '{mutant.name}' in {SEEDS} seeds"
    if catch.tried > 1:
        record_property("note", f"{FILE.name} is out of date: '{mutant.name}' took {catch.tried} worlds; run {REWRITE}")


def test_a_hunt_begins_where_the_bug_was_caught_before_and_goes_on_from_the_first() -> None:
    """Mutants: only the known seed is tried, so that whatever changes worlds fails the suite; it is tried twice."""
    assert list(islice(seeds_for(MUTANTS[0], 1), 4)) == [1, 0, 2, 3]
    assert list(islice(seeds_for(MUTANTS[0], None), 3)) == [0, 1, 2]


@pytest.mark.smoke
def test_every_law_has_a_mutant() -> None:
    assert {mutant.law for mutant in MUTANTS} == set(range(1, 11))


@pytest.mark.smoke
def test_no_seed_is_kept_for_a_mutant_that_there_is_not() -> None:
    assert set(KNOWN) <= {mutant.name for mutant in MUTANTS}, REWRITE
