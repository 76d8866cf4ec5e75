"""Days of one metric, from files to arrays."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hostler.core.statistics.metrics import METRICS
from hostler.journal.daily_medians import DailyMedians
from hostler.journal.reading_days import ReadingDays, days_of, series_of_a_node
from hostler.journal.readings import Reading, ReadingStore

METRIC = "gemm_perf.fp16_tflops"
TODAY = datetime(2026, 3, 30, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def kept(folder: Path, *readings: Reading) -> ReadingDays:
    store = ReadingStore(folder)
    store.add(readings)
    store.flush()
    return days_of(medians(folder), METRIC, METRICS[METRIC], TODAY.date())


def medians(folder: Path, first: datetime = TODAY - 9 * DAY, today: datetime = TODAY) -> DailyMedians:
    return DailyMedians(folder, first.date(), today.date())


def reading(node: str, at: datetime, value: float, stack: str = "a", part: str = "") -> Reading:
    return Reading(at, node, f"op {node} {at}", METRIC, part, value, "h100", stack)


def test_each_series_stands_in_its_row_and_each_day_in_its_column(tmp_path: Path) -> None:
    found = kept(
        tmp_path,
        reading("n2", TODAY - 2 * DAY, 7.0),
        reading("n1", TODAY, 5.0, part="cuda:1"),
        reading("n1", TODAY, 4.0, part="cuda:0"),
    )
    assert found.series == [("n1", "cuda:0"), ("n1", "cuda:1"), ("n2", "")]
    assert found.first == (TODAY - 2 * DAY).date()
    nan = np.nan
    assert np.array_equal(found.values, [[nan, nan, 4.0], [nan, nan, 5.0], [7.0, nan, nan]], equal_nan=True)
    assert found.stacks.tolist() == [[-1, -1, 0], [-1, -1, 0], [0, -1, -1]]


def test_a_day_has_the_median_of_its_readings_and_the_stack_of_the_last(tmp_path: Path) -> None:
    """Mutants: the first stack of the day; the mean."""
    runs = [
        reading("n1", TODAY + HOUR * at, value, stack) for at, value, stack in ((1, 1, "a"), (9, 2, "b"), (5, 9, "a"))
    ]
    found = kept(tmp_path, *runs)
    assert found.values.tolist() == [[2.0]]
    assert [found.stack_names[place] for place in found.stacks[0]] == ["h100 b"]


def test_a_reading_that_was_sent_twice_counts_once(tmp_path: Path) -> None:
    one, other = reading("n1", TODAY, 1.0), reading("n1", TODAY + HOUR, 3.0)
    assert kept(tmp_path, one, one, one, other).values.tolist() == [[2.0]]


def test_what_was_read_before_the_first_day_is_left_out(tmp_path: Path) -> None:
    found = kept(tmp_path, reading("n1", TODAY - 10 * DAY, 1.0), reading("n1", TODAY, 2.0))
    assert found.values.tolist() == [[2.0]]


def test_metrics_and_series_of_a_node_are_counted(tmp_path: Path) -> None:
    kept(tmp_path, *(reading(node, TODAY, 1.0, part=part) for node, part in (("n1", "0"), ("n1", "1"), ("n2", "0"))))
    assert medians(tmp_path).metrics() == [METRIC]
    assert medians(tmp_path, TODAY + DAY, TODAY + DAY).metrics() == []
    assert series_of_a_node(medians(tmp_path), [METRIC]) == pytest.approx(1.5)
    assert series_of_a_node(medians(tmp_path), []) == 1.0
