"""Readings at equal conditions."""

import numpy as np

from hostler.core.statistics.equal_conditions import at_equal


def test_heat_by_power_is_taken_off_and_a_bad_paste_stays() -> None:
    rng = np.random.default_rng(1)
    power = rng.uniform(200, 700, (50, 30))
    heat = 0.06 * power + rng.normal(0, 0.5, power.shape)
    heat[7] += 6.0
    level = at_equal(heat, power)
    assert level[:7].std() < 0.8
    assert level[7].mean() - level[:7].mean() > 5.0


def test_where_the_condition_is_not_known_nothing_is_said() -> None:
    power = np.full((30, 30), 400.0)
    power[0] = np.nan
    found = at_equal(np.ones((30, 30)), power)
    assert np.isnan(found[0]).all()
    assert (found[1:] == 1.0).all()
