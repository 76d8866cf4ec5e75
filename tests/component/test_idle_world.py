"""The drawn fleet whose idle hours are checked, and the sites that look after it."""

import numpy as np
import pytest

from hostler.sim.degrading.idle_world import Decline, IdleFleet, IdleWorld, draw
from hostler.sim.degrading.sites import SITES, Removals

pytestmark = pytest.mark.xdist_group("idle_world")  # drawn and looked after once, by one worker
WORLD = IdleWorld(nodes=300, days=45, faulty=10, onset=(10, 14))


@pytest.fixture(scope="module")
def fleet() -> IdleFleet:
    return draw(WORLD, 3)


@pytest.fixture(scope="module")
def removed(fleet: IdleFleet) -> dict[str, Removals]:
    return {name: site(fleet) for name, site in SITES.items()}


def test_checks_run_in_idle_hours_alone(fleet: IdleFleet) -> None:
    assert abs(fleet.idle.mean() - (1 - WORLD.busy)) < 0.01
    assert np.isnan(fleet.gemm[~fleet.idle]).all()
    assert not fleet.wrong[~fleet.idle].any()


def test_the_same_seed_draws_the_same_fleet(fleet: IdleFleet) -> None:
    assert np.array_equal(draw(WORLD, 3).gemm, fleet.gemm, equal_nan=True)


def test_who_does_not_look_removes_nobody(removed: dict[str, Removals]) -> None:
    assert (removed["no checks"].day == WORLD.days).all()


@pytest.mark.parametrize("fault", [Decline.step_4, Decline.drift, Decline.paste])
def test_ours_removes_what_degrades(fleet: IdleFleet, removed: dict[str, Removals], fault: Decline) -> None:
    """Mutant: a series of heat judged as higher is better finds no paste."""
    ours = removed["ours (CUSUM, budget 0.3 %)"].day[fleet.of(fault)]
    assert (ours < WORLD.days).mean() >= 0.9


def test_paste_is_seen_by_its_heat_before_it_costs_throughput(fleet: IdleFleet, removed: dict[str, Removals]) -> None:
    rows = fleet.of(Decline.paste)
    ours, fixed = (removed[name].day[rows] for name in ("ours (CUSUM, budget 0.3 %)", "idle checks, fixed −5 %"))
    assert np.median(ours) < np.median(fixed)


def test_wrong_bits_that_no_check_shows_stay(fleet: IdleFleet, removed: dict[str, Removals]) -> None:
    """Mutant: every GPU with silent corruption shows it to every check."""
    rows = fleet.of(Decline.silent)
    assert all((one.day[rows] == WORLD.days).any() for one in removed.values())


def test_a_removed_node_is_checked_no_more(fleet: IdleFleet, removed: dict[str, Removals]) -> None:
    most = 20.0 * float(fleet.idle.sum())
    assert 0 < removed["ours (CUSUM, budget 0.3 %)"].spent_min < most
