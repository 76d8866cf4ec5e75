"""One world, one journal: in memory, in SQLite and in PostgreSQL the same seed gives the same digest."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from hostler.core.state.snapshot import state_of
from hostler.journal.memory import MemoryJournal
from hostler.journal.opening import open_journal
from hostler.journal.sql import SqlJournal
from hostler.sim.fault_injection.scenario import draw
from hostler.sim.hostile_worlds import WorldVerdict, trial
from hostler.sim.simulation_loop import restore

pytestmark = pytest.mark.nightly("whole worlds are lived through")

SEEDS = (3, 5, 9)
"""A cell, a brink and a rack."""
Told = Callable[[int], tuple[WorldVerdict, object]]


@pytest.fixture(scope="module")
def in_memory() -> Told:
    """Account of a seed's world in memory, where it lives once for each of the other journals."""
    return cache(_told)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_one_digest_in_memory_and_in_sqlite(in_memory: Told, seed: int, tmp_path: Path) -> None:
    assert _told(seed, str(tmp_path / "journal")) == in_memory(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_one_digest_in_memory_and_in_postgresql(
    in_memory: Told, seed: int, postgres_url: str
) -> None:
    assert _told(seed, postgres_url) == in_memory(seed)


def test_these_seeds_are_of_all_shapes() -> None:
    assert {draw(seed).shape.kind for seed in SEEDS} == {"cell", "brink", "rack"}


def _told(seed: int, place: str = "") -> tuple[WorldVerdict, object]:
    """The verdict, and what a fresh reader folds from the journal."""
    made: list[MemoryJournal | SqlJournal] = []

    def factory() -> MemoryJournal | SqlJournal:
        made.append(open_journal(place) if place else MemoryJournal())
        return made[0]

    verdict = trial(draw(seed), factory)
    assert verdict.violations == ()
    state = state_of(restore(made[0]))
    made[0].close()
    return verdict, state
