"""Series that cannot be judged, and readings that move nobody's residual."""

import numpy as np
import pytest

from hostler.core.statistics.drift import judge
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.residuals import residuals
from hostler.core.statistics.series import Cohort, Scale, SeriesVerdict

NODES, DAYS = 40, 30
BUDGET = AlarmBudget()


def readings(seed: int = 1, nodes: int = NODES) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 100 * np.exp(rng.normal(0, 0.01, nodes)[:, None] + rng.normal(0, 0.005, (nodes, DAYS)))


def same(values: np.ndarray) -> np.ndarray:
    return np.zeros(values.shape, dtype=np.int64)


def verdict(values: np.ndarray, row: int = 0, **more: object) -> SeriesVerdict:
    stacks = more.pop("stacks", same(values))
    judged = judge(Cohort(values, stacks, **more), BUDGET)  # type: ignore[arg-type]
    assert row not in [drift.row for drift in judged.drifts]
    return SeriesVerdict(int(judged.verdicts[row]))


def test_a_series_of_nan_is_too_short() -> None:
    values = readings()
    values[0] = np.nan
    assert verdict(values) is SeriesVerdict.too_short


def test_a_fleet_of_nan_is_too_short_and_nothing_breaks() -> None:
    assert verdict(np.full((NODES, DAYS), np.nan)) is SeriesVerdict.too_short


@pytest.mark.parametrize("wrong", [-5.0, 0.0, np.inf, -np.inf], ids=["negative", "zero", "infinite", "minus infinite"])
def test_impossible_readings_make_a_series_invalid(wrong: float) -> None:
    """Mutant: taking them for a drift to nothing flags the node for its broken sensor."""
    values = readings()
    values[0, 12:] = wrong
    assert verdict(values) is SeriesVerdict.invalid


def test_a_few_impossible_readings_are_left_out() -> None:
    values = readings()
    values[0, 12] = -1.0
    assert verdict(values) is SeriesVerdict.judged


def test_a_series_that_never_changes_is_constant() -> None:
    values = readings()
    values[0] = 97.0
    assert verdict(values) is SeriesVerdict.constant


def test_a_count_of_nothing_is_no_stuck_counter() -> None:
    values = np.random.default_rng(3).poisson(2.0, (NODES, DAYS)).astype(float)
    values[0] = 0.0
    assert verdict(values, scale=Scale.count, higher_is_better=False) is SeriesVerdict.judged


def test_a_node_alone_in_its_cohort_has_no_peers() -> None:
    """Mutant: a cohort of one is its own median, and would be healthy for ever."""
    values = readings()
    stacks = same(values)
    stacks[0] = 7
    assert verdict(values, stacks=stacks) is SeriesVerdict.no_peers


def test_a_series_of_unknown_stack_has_no_peers() -> None:
    values = readings()
    stacks = same(values)
    stacks[0] = -1
    assert verdict(values, stacks=stacks) is SeriesVerdict.no_peers


def test_a_node_that_gets_a_new_driver_first_is_not_judged_on_it() -> None:
    """Mutant: comparing it with the old driver's nodes blames it for the driver's 6 %."""
    values, stacks = readings(), same(readings())
    values[:3, 15:] *= 0.94
    stacks[:3, 15:] = 1
    judged = judge(Cohort(values, stacks), BUDGET)
    assert not judged.drifts
    assert np.isnan(residuals(Cohort(values, stacks)).standard[:3, 15:]).all()


def test_a_rollout_in_stages_moves_nobody_and_is_one_finding() -> None:
    values, stacks = readings(2, 200), same(readings(2, 200))
    calm = {drift.row for drift in judge(Cohort(values, stacks), BUDGET).drifts}
    values, stacks = values.copy(), stacks.copy()
    for node in range(200):
        day = 12 + node // 25
        values[node, day:] *= 0.94
        stacks[node, day:] = 1
    judged = judge(Cohort(values, stacks), BUDGET)
    assert {drift.row for drift in judged.drifts} <= calm
    assert [(s.stack, s.before, round(s.size, 2), s.nodes) for s in judged.shifts] == [(1, 0, -0.06, 200)]


def test_a_cohort_that_moves_without_a_change_is_one_finding_too() -> None:
    values = readings()
    values[:, 20:] *= 0.96
    judged = judge(Cohort(values, same(values)), BUDGET)
    assert not judged.drifts
    assert [(s.stack == s.before, s.day) for s in judged.shifts] == [(True, 20)]


def test_a_quiet_cohort_has_no_shift() -> None:
    values = readings()
    assert not judge(Cohort(values, same(values)), BUDGET).shifts


def test_what_a_place_shows_on_a_day_is_no_nodes_fault() -> None:
    values = readings(nodes=400)
    places = np.arange(400) // 50
    values[places == 3, 18:] *= 0.985
    plain = judge(Cohort(values, same(values)), BUDGET)
    placed = judge(Cohort(values, same(values), places), BUDGET)
    assert len(plain.drifts) > 10
    assert not placed.drifts


def test_a_small_place_explains_less_than_a_large_one() -> None:
    """Mutant: without shrinkage a place of two nodes takes its bad node's drift upon itself."""
    values = readings(nodes=400)
    places = np.arange(400) // 2
    values[0, 12:] *= 0.96
    assert [d.row for d in judge(Cohort(values, same(values), places), BUDGET).drifts] == [0]


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="must be one"):
        Cohort(readings(), same(readings())[:, :5])
    with pytest.raises(ValueError, match="places"):
        Cohort(readings(), same(readings()), np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("higher", [True, False], ids=["higher is better", "lower is better"])
def test_better_is_never_a_drift(higher: bool) -> None:
    values = readings()
    values[0, 12:] *= 1.05 if higher else 0.95
    assert not judge(Cohort(values, same(values), higher_is_better=higher), BUDGET).drifts
