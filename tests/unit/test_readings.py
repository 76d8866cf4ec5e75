"""Readings in files: each once, whatever is sent again, cut short or full."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from msgspec.structs import replace

from hostler.core.state.model import Facts, Outcome
from hostler.journal.reading_files import KEEP_DAYS, POINTS, SERIES_MOST, drawn_of, opened, series_of
from hostler.journal.reading_upkeep import tidy
from hostler.journal.readings import MOST_WAITING, Reading, ReadingStore
from hostler.ports import JournalError
from hostler.server.check_readings import taken_out
from tests.kit import a_node

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def a_reading(value: float = 700.0, **fields: object) -> Reading:
    return replace(
        Reading(NOW, "n1", "op-1/1", "gemm_perf.bf16_tflops", "cuda:0", value, "h100", "driver=550"), **fields
    )


def count(folder: Path) -> int:
    with opened(folder) as database:
        (found,) = database.execute("SELECT count(*) FROM readings").fetchone() or (0,)
    return int(found)


def test_a_reading_that_is_sent_twice_counts_once(tmp_path: Path) -> None:
    """Mutant: without identity an agent that hears no answer moves a day's median."""
    store = ReadingStore(tmp_path)
    store.add([a_reading(), a_reading(), a_reading(source="op-2/1")])
    assert store.flush() == 3
    store.add([a_reading()])
    store.flush()
    assert count(tmp_path) == 2


def test_days_that_are_over_become_parquet_that_anybody_opens(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([a_reading(received=NOW - day * DAY, source=f"op-{day}") for day in range(3)])
    store.flush()
    tidy(tmp_path, NOW)
    assert sorted(path.name for path in tmp_path.glob("readings-*")) == [
        "readings-2026-03-03.parquet",
        "readings-2026-03-04.parquet",
        "readings-2026-03-05.jsonl",
    ]
    with duckdb.connect() as database:
        told = database.execute(f"SELECT node, value FROM '{tmp_path}/*.parquet'").fetchall()
    assert told == [("n1", 700.0)] * 2
    assert count(tmp_path) == 3


def test_what_comes_late_joins_its_day(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    for source in ("op-1", "op-2", "op-1"):
        store.add([a_reading(received=NOW - DAY, source=source)])
        store.flush()
        tidy(tmp_path, NOW)
    assert [path.name for path in tmp_path.glob("readings-*")] == ["readings-2026-03-04.parquet"]
    assert count(tmp_path) == 2


def test_cut_off_between_its_steps_tidying_loses_and_repeats_nothing(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([a_reading(received=NOW - DAY)])
    store.flush()
    (tmp_path / "readings-2026-03-04.jsonl").rename(tmp_path / "readings-2026-03-04.1.lines")
    assert count(tmp_path) == 1
    tidy(tmp_path, NOW)
    assert count(tmp_path) == 1


def test_a_line_cut_short_by_a_loss_of_power_is_passed_over(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([a_reading()])
    store.flush()
    with (tmp_path / "readings-2026-03-05.jsonl").open("ab") as file:
        file.write(b'{"received":"2026-03-05T12:')
    store.add([a_reading(source="op-2")])
    store.flush()
    assert count(tmp_path) == 2


def test_what_is_old_goes(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([a_reading(received=NOW - (KEEP_DAYS + 2) * DAY), a_reading()])
    store.flush()
    tidy(tmp_path, NOW)
    assert count(tmp_path) == 1


def test_a_folder_that_cannot_be_written_keeps_readings_waiting(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    store = ReadingStore(place)
    store.add([a_reading()])
    with pytest.raises(JournalError, match="cannot be written"):
        store.flush()
    place.unlink()
    assert store.flush() == 1


def test_too_many_are_dropped_and_counted(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([a_reading()] * (MOST_WAITING + 5))
    assert store.dropped == 5


def test_a_folder_without_readings_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="holds no readings yet"), opened(tmp_path):
        pass


def test_the_days_of_a_node(tmp_path: Path) -> None:
    store = ReadingStore(tmp_path)
    store.add([a_reading(value, source=f"op-{value}") for value in (1.0, 2.0, 9.0)])
    store.add([a_reading(5.0, node="n2")])
    store.flush()
    (series,) = series_of(tmp_path, "n1", NOW - DAY)
    assert [(day.day, day.value, day.count) for day in series.days] == [("2026-03-05", 2.0, 3)]


def test_an_outcomes_readings_are_taken_out_of_it() -> None:
    facts: Facts = {
        "reading:gemm_perf|cuda:0|bf16_tflops": 701.5,
        "stack:gemm_perf|cuda:0": "driver=550",
        "reading:bad|x": 3.0,
        "reading:a|b|nan": float("nan"),
        "reading:a|b|text": "fast",
        "reading:a|b|flag": True,
        "look:gemm_perf": "passed",
        "verdict": "passed",
    }
    bare, readings = taken_out(a_node("n1"), Outcome("op", "n1", "done", facts=facts), NOW)
    assert bare.facts == {"look:gemm_perf": "passed", "verdict": "passed"}
    assert [(one.metric, one.part, one.value, one.stack, one.source) for one in readings] == [
        ("gemm_perf.bf16_tflops", "cuda:0", 701.5, "driver=550", "op/1")
    ]


def test_an_outcome_without_readings_stays_as_it_is() -> None:
    outcome = Outcome("op", "n1", "done", facts={"verdict": "passed"})
    assert taken_out(a_node("n1"), outcome, NOW) == (outcome, ())


def kept(folder: Path, *readings: Reading) -> Path:
    store = ReadingStore(folder)
    store.add(readings)
    store.flush()
    return folder


def hourly(metric: str, hours: int, value: float = 50.0, **fields: object) -> list[Reading]:
    return [
        a_reading(value + hour, metric=metric, source=f"w/{hour}", received=NOW - timedelta(hours=hour), **fields)
        for hour in range(hours)
    ]


def test_a_drawing_has_few_steps_and_says_how_far_values_went_in_each(tmp_path: Path) -> None:
    """Mutants: the mean alone hides a peak; readings of before the first moment count; another node's do."""
    folder = kept(
        tmp_path, *hourly("gpu.temperature_c", 20 * 24), a_reading(9.0, node="n2", metric="gpu.temperature_c")
    )
    (one,) = drawn_of(folder, "n1", NOW - 10 * DAY, NOW).series
    assert len(one.value) <= POINTS + 1
    assert sum(one.count) == 241
    assert (min(one.low), max(one.high)) == (50.0, 290.0)
    assert all(low <= value <= high for low, value, high in zip(one.low, one.value, one.high, strict=True))
    assert one.value[-1] == one.low[-1] == 50.0, "the last step has the moment itself alone"
    assert one.after_s[-1] == 10 * 86_400.0


def test_a_counter_is_drawn_as_errors_an_hour_of_the_time_that_was_watched(tmp_path: Path) -> None:
    """Mutants: the sum of windows of any length; a window whose length nobody knows counts as an hour."""
    known = a_reading(6.0, metric="link.errors", source="a", conditions='{"observed_s": 7200}')
    short = a_reading(6.0, metric="link.errors", source="b", conditions='{"observed_s": 3600}')
    lost = [
        a_reading(9.0, metric="link.errors", source=f"c{n}", conditions=text) for n, text in enumerate(("{}", "{x"))
    ]
    (one,) = drawn_of(kept(tmp_path, known, short, *lost), "n1", NOW - DAY, NOW).series
    assert (one.value, one.low, one.high, one.count) == ((4.0,), (3.0,), (6.0,), (2,))


def test_where_nobody_looked_there_is_no_step(tmp_path: Path) -> None:
    """Mutant: an empty step is drawn as zero."""
    early, late = a_reading(received=NOW - 6 * DAY), a_reading(source="op-2/1", received=NOW)
    (one,) = drawn_of(kept(tmp_path, early, late), "n1", NOW - 7 * DAY, NOW).series
    assert one.after_s == (86_400.0, 7 * 86_400.0)
    assert drawn_of(tmp_path, "n1", NOW - 5 * DAY, NOW - 4 * DAY).series == ()
    assert drawn_of(tmp_path / "nothing", "n1", NOW - DAY, NOW).series == ()


def test_of_too_many_series_checks_are_left_out_first_and_counted(tmp_path: Path) -> None:
    """Mutant: a node with many checks shows no temperature."""
    checks = [a_reading(metric=f"a.check_{n}", source=f"s{n}") for n in range(SERIES_MOST)]
    found = drawn_of(kept(tmp_path, *checks, a_reading(60.0, metric="gpu.temperature_c")), "n1", NOW - DAY, NOW)
    assert found.series[0].metric == "gpu.temperature_c"
    assert (len(found.series), found.left_out) == (SERIES_MOST, 1)


def test_a_drawing_of_ages_reads_what_is_kept_at_most(tmp_path: Path) -> None:
    found = drawn_of(kept(tmp_path, a_reading()), "n1", NOW - 4_000 * DAY, NOW)
    assert found.step_s == KEEP_DAYS * 86_400 / POINTS
    assert len(found.series) == 1
