"""Readings in files: each once, whatever is sent again, cut short or full."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from msgspec.structs import replace

from hostler.core.state.model import Facts, Outcome
from hostler.journal.reading_files import KEEP_DAYS, opened, series_of, tidy
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
