"""Medians of days that are over: the same verdicts as from the readings, and made again when readings come late."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.metrics import METRICS
from hostler.journal.daily_medians import FOLDER, KEPT_DAYS, DailyMedians
from hostler.journal.reading_days import days_of
from hostler.journal.reading_upkeep import tidy
from hostler.journal.readings import Reading, ReadingStore
from hostler.ports import JournalError
from hostler.runtime.trend_judging import judge_readings
from hostler.sim.degrading.readings import Degradation, ReadingWorld
from hostler.sim.degrading.written_readings import write

NOW = datetime(2026, 3, 30, 23, 59, tzinfo=UTC)
DAY = timedelta(days=1)
METRIC, COUNTER, HEAT = "gemm_perf.fp16_tflops", "link.errors", "gpu.over_ambient_c"


def put(folder: Path, *readings: Reading) -> None:
    store = ReadingStore(folder)
    store.add(readings)
    store.flush()


def reading(value: float, source: str = "op-1", metric: str = METRIC, conditions: str = "{}", **ago: int) -> Reading:
    return Reading(NOW - timedelta(**ago), "n1", source, metric, "0", value, "h100", "a", conditions)


def values(folder: Path, metric: str = METRIC) -> list[list[float]]:
    known = DailyMedians(folder, (NOW - 9 * DAY).date(), NOW.date())
    found: list[list[float]] = days_of(known, metric, METRICS[metric], NOW.date()).values.tolist()
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / FOLDER).glob("*"))


def test_a_judgement_from_medians_is_the_one_from_readings(tmp_path: Path) -> None:
    write(tmp_path, ReadingWorld(nodes=40, days=20, runs_a_day=3, faulty=3, onset=(8, 10)), Degradation.step_4, 5, NOW)
    before = judge_readings(tmp_path, NOW, AlarmBudget())
    tidy(tmp_path, NOW)
    assert len(names(tmp_path)) == 19
    assert judge_readings(tmp_path, NOW, AlarmBudget()) == before
    assert before.report.drifts


def test_what_comes_late_makes_the_days_median_anew(tmp_path: Path) -> None:
    """Mutant: `forget` does nothing."""
    put(tmp_path, reading(1.0, days=1))
    tidy(tmp_path, NOW)
    assert values(tmp_path)[0][0] == 1.0
    put(tmp_path, reading(3.0, "op-2", days=1))
    assert values(tmp_path)[0][0] == 2.0  # from its lines, before anybody tidied
    tidy(tmp_path, NOW)
    assert values(tmp_path)[0][0] == 2.0
    assert len(names(tmp_path)) == 1


def test_cut_off_after_the_readings_were_made_the_medians_are_made_by_the_next_call(tmp_path: Path) -> None:
    put(tmp_path, reading(1.0, days=1))
    tidy(tmp_path, NOW)
    (name,) = names(tmp_path)
    (tmp_path / FOLDER / name).unlink()
    tidy(tmp_path, NOW)
    assert names(tmp_path) == [name]


def test_counters_become_errors_a_day_and_conditions_are_kept(tmp_path: Path) -> None:
    for ago, watched in ((3, 43_200), (2, 40_000), (1, 86_400)):
        put(tmp_path, reading(4.0, metric=COUNTER, conditions=f'{{"observed_s": {watched}}}', days=ago))
    for source, power in (("op-1", 300), ("op-2", 500)):
        put(tmp_path, reading(power / 10, source, HEAT, f'{{"power_w": {power}}}', days=1))
    tidy(tmp_path, NOW)
    (errors,) = values(tmp_path, COUNTER)
    assert errors[0] == 8.0
    assert errors[2] == 4.0
    assert errors[1] != errors[1]  # watched for less than half of the day
    known = DailyMedians(tmp_path, (NOW - DAY).date(), NOW.date())
    heat = days_of(known, HEAT, METRICS[HEAT], (NOW - DAY).date())
    assert heat.values.tolist() == [[40.0]]
    assert heat.conditions["power_w"].tolist() == [[400.0]]


def test_medians_of_old_days_and_of_another_way_to_compute_are_removed(tmp_path: Path) -> None:
    put(tmp_path, reading(1.0, days=KEPT_DAYS + 1), reading(1.0, days=1))
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "2026-03-28.v0.parquet").write_text("")
    tidy(tmp_path, NOW)
    assert names(tmp_path) == ["2026-03-29.v1.parquet"]


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    put(tmp_path, reading(1.0, days=1))
    tidy(tmp_path, NOW)
    (name,) = names(tmp_path)
    (tmp_path / FOLDER / name).write_bytes(b"PAR1")
    with pytest.raises(JournalError, match=r"remove it, it is made again"):
        values(tmp_path)


def test_a_folder_without_readings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="holds no readings yet"):
        values(tmp_path)
