"""Steps and drifts are found, forecast and ended; healthy series stay within the budget."""

import numpy as np
import pytest

from hostler.core.statistics import cusum
from hostler.core.statistics.drift import as_ratio, judge
from hostler.core.statistics.false_alarms import AlarmBudget, q_values
from hostler.core.statistics.series import Cohort, Scale
from hostler.core.statistics.slope import Slope, days_to, slope_of
from hostler.sim.degrading.readings import Degradation, ReadingWorld, draw
from hostler.sim.degrading.rules import fixed_limit, ours

BUDGET = AlarmBudget()


def fleet(fault: Degradation, seed: int = 1, **more: object) -> Cohort:
    drawn = draw(ReadingWorld(nodes=300, faulty=15), fault, seed, **more)  # type: ignore[arg-type]
    return Cohort(drawn.daily, drawn.stacks)


@pytest.mark.nightly("a fleet of series")
def test_a_step_of_two_percent_is_found_within_a_week_on_nearly_all() -> None:
    """Mutant: a slack of 4 standard deviations finds none; `make bench-trends` has the figures with intervals."""
    found = total = 0
    for seed in range(4):
        drawn = draw(ReadingWorld(), Degradation.step_2, seed)
        late = (ours(drawn.daily, drawn.stacks) - drawn.onset)[drawn.faulty]
        found, total = found + int((late <= 7).sum()), total + len(late)
    assert found >= 0.92 * total


def test_healthy_nodes_stay_within_the_budget() -> None:
    """Mutant: without the error of the baseline's own level (LEVEL_VARIANCE 0) ten times as many are flagged."""
    flags = [ours(d.daily, d.stacks) < 30 for d in (draw(ReadingWorld(), Degradation.none, 50 + s) for s in range(4))]
    assert sum(int(one.sum()) for one in flags) <= 0.003 * 4_000


def test_a_new_driver_flags_the_fleet_under_a_fixed_limit_and_nobody_here() -> None:
    drawn = draw(ReadingWorld(), Degradation.none, 3, shift=-0.06)
    assert (fixed_limit(drawn.daily, drawn.stacks) < 30).mean() > 0.9
    judged = judge(Cohort(drawn.daily, drawn.stacks), BUDGET)
    calm = draw(ReadingWorld(), Degradation.none, 3)
    assert {d.row for d in judged.drifts} <= {d.row for d in judge(Cohort(calm.daily, calm.stacks), BUDGET).drifts}
    assert [(s.before, s.stack) for s in judged.shifts] == [(0, 1)]


def test_a_step_has_its_day_and_its_size_and_no_forecast() -> None:
    rng = np.random.default_rng(4)
    values = 100 * np.exp(rng.normal(0, 0.005, (50, 30)))
    values[7, 18:] *= 0.97
    (drift,) = judge(Cohort(values, np.zeros((50, 30), dtype=np.int64)), BUDGET, floor=np.log(0.93)).drifts
    assert drift.row == 7
    assert abs(drift.onset - 18) <= 1
    assert as_ratio(drift.change, Scale.ratio) == pytest.approx(-0.03, abs=0.008)


def test_a_drift_says_when_it_reaches_the_floor() -> None:
    rng = np.random.default_rng(4)
    values = 100 * np.exp(rng.normal(0, 0.002, (50, 30)))
    values[7] *= np.exp(-0.002 * np.maximum(np.arange(30) - 10, 0))
    (drift,) = judge(Cohort(values, np.zeros((50, 30), dtype=np.int64)), BUDGET, floor=-0.06).drifts
    assert drift.forecast is not None
    assert drift.forecast.soonest <= drift.forecast.expected <= (drift.forecast.latest or np.inf)
    assert drift.forecast.soonest <= 11 <= (drift.forecast.latest or np.inf)


def test_a_drift_that_has_gone_is_flagged_no_more() -> None:
    rng = np.random.default_rng(4)
    values = 100 * np.exp(rng.normal(0, 0.005, (50, 60)))
    values[7, 12:22] *= 0.96
    stacks = np.zeros((50, 60), dtype=np.int64)
    assert [d.row for d in judge(Cohort(values[:, :22], stacks[:, :22]), BUDGET).drifts] == [7]
    assert not judge(Cohort(values, stacks), BUDGET).drifts


def test_each_judged_series_says_how_near_it_is_to_its_alarm() -> None:
    """Mutants: nearness by the highest sum ever, so that who has recovered stays near; without readings it is 0."""
    rng = np.random.default_rng(4)
    values = 100 * np.exp(rng.normal(0, 0.005, (50, 60)))
    values[7, 12:22] *= 0.96
    values[8, 50:] *= 0.99
    values[9] = np.nan
    stacks = np.zeros((50, 60), dtype=np.int64)
    then, now = judge(Cohort(values[:, :22], stacks[:, :22]), BUDGET).nearness, judge(Cohort(values, stacks), BUDGET)
    assert (then[7], now.nearness[7] < 0.5, np.isnan(now.nearness[9])) == (1.0, True, True)
    assert [drift.row for drift in now.drifts] == list(np.flatnonzero(now.nearness == 1.0))
    assert now.nearness[8] > np.nanmedian(now.nearness)
    assert np.nanmin(now.nearness) >= 0.0


def test_the_chain_says_how_often_noise_reaches_a_sum() -> None:
    """The chain beside a hundred thousand drawn series of the noise that it assumes."""
    rng = np.random.default_rng(5)
    count, days = 100_000, 23
    noise = rng.standard_t(12, (count, days)) + rng.normal(0, np.sqrt(1.1 / 7 + 0.1), count)[:, None]
    highest = cusum.sums(noise).highest
    for budget in (0.1, 0.01, 0.001):
        assert (highest >= cusum.limit(budget, days)).mean() == pytest.approx(budget, rel=0.3)


def test_one_bad_day_convicts_nobody() -> None:
    noise = np.zeros((1, 23))
    noise[0, 10] = 50.0
    assert cusum.sums(noise).highest[0] <= cusum.CLIP < cusum.limit(0.0023, 23)


def test_days_without_a_reading_neither_add_nor_forgive() -> None:
    noise = np.array([[3.0, np.nan, np.nan, 3.0]])
    assert cusum.sums(noise).last[0] == pytest.approx(2 * (3.0 - cusum.SLACK))


def test_heavy_tails_make_a_finding_less_likely() -> None:
    heavy = np.full(1_000, 0.0)
    heavy[:100] = 30.0
    assert cusum.heaviness(heavy, 23) < cusum.heaviness(np.zeros(1_000), 23) == 1.0


def test_a_budget_that_is_no_share_is_refused() -> None:
    for wrong in (0.0, 1.0, -1.0, 2.0):
        with pytest.raises(ValueError, match="must be above 0"):
            AlarmBudget(wrong)


def test_a_smaller_budget_flags_fewer() -> None:
    cohort = fleet(Degradation.step_1)
    counts = [len(judge(cohort, AlarmBudget(share)).drifts) for share in (1e-6, 1e-3, 0.2)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_q_values_are_those_of_benjamini_and_hochberg() -> None:
    chances = np.array([0.01, np.nan, 0.04, 0.03, 0.5])
    assert q_values(chances) == pytest.approx([0.04, np.nan, 0.16 / 3, 0.16 / 3, 0.5], nan_ok=True)
    assert np.isnan(q_values(np.full(3, np.nan))).all()


def test_a_level_series_has_no_trend() -> None:
    found = slope_of(np.random.default_rng(6).normal(0, 1, 30))
    assert found is not None
    assert not found.is_trend
    assert days_to(-10.0, found) is None
    assert slope_of(np.ones(30)) == Slope(0.0, 0.0, 0.0, 1.0, 1.0, 30)
    assert slope_of(np.array([1.0, np.nan, 2.0])) is None


@pytest.mark.parametrize(("floor", "expected"), [(-10.0, 5.0), (0.0, None), (-5.0, 0.0), (-1e6, None)])
def test_when_a_floor_is_reached(floor: float, expected: float | None) -> None:
    slope = Slope(-1.0, -2.0, -0.5, 0.001, -5.0, 20)
    found = days_to(floor, slope)
    assert (found.expected if found else None) == expected
    if expected:
        assert found is not None
        assert (found.soonest, found.latest) == (2.5, 10.0)
