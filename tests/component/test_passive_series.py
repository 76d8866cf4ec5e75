"""Passive series: what is folded into a window, what is no reading, and what the same statistics say of them."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.agent.collectors.gpu_state import GpuPoll, GpuReadings
from hostler.agent.collectors.passive_samples import WAITING_MOST, PassiveSamples
from hostler.core.state.model import Facts, Scalar
from hostler.core.state.passive_series import (
    COUNTERS,
    GAUGES,
    OBSERVED,
    SERIES_MOST,
    WINDOW_S,
    PassiveReading,
    PassiveWindows,
    grown,
    is_possible,
)
from hostler.core.state.trends import TrendReport
from hostler.core.statistics.false_alarms import AlarmBudget
from hostler.core.statistics.metrics import METRICS
from hostler.journal.readings import Reading, ReadingStore
from hostler.polling.bmc_series import inlet, samples
from hostler.runtime.trend_judging import judge_readings
from hostler.server.trend_archive import OVER_AMBIENT, TrendArchive
from tests.drawing import first_in_gate
from tests.kit import a_node

NOW = datetime(2026, 3, 30, 23, 0, tzinfo=UTC)
DAYS = 30


def gauge(value: float, **conditions: float) -> PassiveReading:
    return PassiveReading("gpu.temperature_c", "GPU-1", value, "driver=550", conditions)


def window(windows: PassiveWindows, now_s: float = WINDOW_S + 1) -> tuple[PassiveReading, ...]:
    ended = windows.finished(now_s)
    return ended[1] if ended else ()


def opened() -> PassiveWindows:
    windows = PassiveWindows()
    assert windows.finished(1.0) is None
    return windows


# windows


def test_a_gauge_is_the_mean_of_what_is_possible() -> None:
    """Mutants: NaN reaches the mean; a dead sensor's 255 or 0 counts; power is averaged over other samples."""
    windows = opened()
    for value in (math.nan, -5.0, 0.0, 255.0, math.inf):
        windows.gauge(gauge(value, power_w=300.0))
    windows.gauge(gauge(60.0, power_w=math.nan))
    windows.gauge(gauge(60.0, made_up=1.0))
    for n in range(20):
        windows.gauge(gauge(50.0 + n % 2, power_w=400.0 + n % 2))
    assert window(windows) == (PassiveReading("gpu.temperature_c", "GPU-1", 50.5, "driver=550", {"power_w": 400.5}),)


def test_a_gauge_that_was_hardly_read_has_no_mean() -> None:
    windows = opened()
    for _ in range(3):
        windows.gauge(gauge(50.0))
    assert window(windows) == ()


def test_a_new_driver_begins_the_window_anew() -> None:
    windows = opened()
    for stack in ["driver=550"] * 20 + ["driver=560"] * 10:
        windows.gauge(PassiveReading("gpu.temperature_c", "GPU-1", 50.0, stack))
    assert [one.stack for one in window(windows)] == ["driver=560"]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(5, 5, 0), (5, 9, 4), (900, 3, None), (2**32 - 10, 6, 16), (2**40, 3, None), (2**31, 1, None)],
    ids=["still", "grown", "reset", "wrapped", "reset of a long counter", "reset half way"],
)
def test_a_counter_that_falls_was_reset_or_has_wrapped(before: int, now: int, expected: int | None) -> None:
    assert grown(before, now) == expected


@given(st.lists(st.one_of(st.none(), st.booleans(), st.floats(), st.integers(-5, 2**70)), max_size=60))
def test_whatever_a_counter_says_its_reading_is_possible(looks: list[object]) -> None:
    windows = opened()
    for n, count in enumerate(looks):
        windows.counter("link.errors", "mlx5_0/1", count, 10.0 * n)
    assert all(one.value >= 0 and one.conditions[OBSERVED] > 0 for one in window(windows))


def test_the_time_around_a_reset_or_a_gap_is_not_watched() -> None:
    """Mutants: a reset counts as its new value, or as none in watched time; a gap of a day counts as watched."""
    windows = opened()
    for now_s, count in ((0, 100), (10, 104), (20, 2), (30, 3), (30 + 2 * WINDOW_S, 500)):
        windows.counter("link.errors", "mlx5_0/1", count, float(now_s))
    assert window(windows) == (PassiveReading("link.errors", "mlx5_0/1", 5.0, "", {OBSERVED: 20.0}),)


def test_series_of_a_node_are_bounded() -> None:
    windows = opened()
    for n in range(SERIES_MOST + 50):
        for count in (1, 2):
            windows.counter("link.errors", f"port{n}", count, float(count))
    assert len(window(windows)) == SERIES_MOST


@pytest.mark.parametrize(
    "reading",
    [
        gauge(math.nan),
        gauge(126.0),
        gauge(50.0, power_w=-1.0),
        gauge(50.0, anything=1.0),
        PassiveReading("link.errors", "p", 4.0),
        PassiveReading("link.errors", "p", -1.0, "", {OBSERVED: 60.0}),
        PassiveReading("gemm_perf.bf16_tflops", "p", 700.0),
    ],
    ids=["nan", "too hot", "power", "condition", "not watched", "negative", "a check's"],
)
def test_what_hardware_cannot_say_is_no_reading(reading: PassiveReading) -> None:
    assert not is_possible(reading)


# what collectors and BMCs read


def a_poll(**facts: Scalar) -> GpuPoll:
    told: Facts = {"uuid": "GPU-1", "temperature_c": 61, "power_w": 500.0, "ecc_corrected": 7, **facts}
    return GpuPoll("answers", (GpuReadings(0, told),), "550")


def test_gpus_memory_and_ports_of_an_agent() -> None:
    taken = PassiveSamples("n1")
    for n in range(int(2 * WINDOW_S / 60)):
        taken.gpus(a_poll(ecc_corrected=7 + n // 10, nvlink_crc_errors=n // 100, nvlink_replays=0), 60.0 * n)
        taken.host({"counter:edac_ce:DIMM_A1": 0, "counter:link_errors:mlx5_0/1": n // 50}, 60.0 * n + 5)
    (_, _, readings) = taken.waiting[0]
    assert {(one.metric, one.part) for one in readings} == {
        ("gpu.temperature_c", "GPU-1"),
        ("gpu.ecc_corrected", "GPU-1"),
        ("link.errors", "GPU-1/nvlink"),
        ("memory.ecc_corrected", "DIMM_A1"),
        ("link.errors", "mlx5_0/1"),
    }
    assert all(is_possible(one) for one in readings)


def test_windows_that_no_controller_takes_are_bounded() -> None:
    taken = PassiveSamples("n1")
    for n in range(2_000):
        taken.gpus(a_poll(), 600.0 * n)
    assert len(taken.waiting) == WAITING_MOST


@pytest.mark.parametrize("state", ["hung", "absent", "crashed", "busy"])
def test_a_poll_that_gave_nothing_is_no_sample(state: str) -> None:
    taken = PassiveSamples("n1")
    for n in range(1_000):
        taken.gpus(GpuPoll(state), 60.0 * n)
    assert taken.waiting == []


def test_a_bmc_that_changes_its_fans_unit_begins_another_series() -> None:
    """Mutant: 45 % after 8,200 rpm is one series, and every machine of that firmware drifts."""
    air: Facts = {"inlet_temp_c": 24.0, "inlet_temp_limit_c": 20.0, "outlet_temp_c": 40.0, "total_power_w": 1900.0}
    (rpm,) = samples({**air, "fan1_rpm": 8200.0, "fan2_rpm": 8400.0})
    (percent,) = samples({**air, "fan1_percent": 45.0, "fan2_percent": 47.0})
    assert (rpm.metric, rpm.value, rpm.conditions) == ("fan.speed_rpm", 8300.0, {"ambient_c": 24.0, "power_w": 1900.0})
    assert (percent.metric, percent.value) == ("fan.effort_percent", 46.0)


def test_a_sensor_that_cannot_be_believed_is_no_ambient() -> None:
    assert inlet({"inlet_temp_c": 127.0, "ambient_c": math.nan, "board_inlet_c": "n/a"}) == ("", None)
    assert samples({"inlet_temp_c": 255.0, "fan1_rpm": 8000.0})[0].conditions == {}


def test_heat_is_kept_above_ambient_where_the_bmc_tells_it_and_not_long_after(tmp_path: Path) -> None:
    """Mutant: one level for both makes every node drift on the day its BMC falls silent."""
    archive, node = TrendArchive(tmp_path), a_node("n1")
    archive.ambient("n1", NOW, 24.0, "inlet_temp_c")
    archive.take(node, "passive/b/1", (gauge(60.0),), NOW)
    archive.take(node, "passive/b/2", (gauge(60.0),), NOW + timedelta(days=1))
    told = archive.series("n1", NOW - timedelta(days=1))
    assert {(one.metric, one.days[0].value) for one in told} == {(OVER_AMBIENT, 36.0), ("gpu.temperature_c", 60.0)}


# the same statistics


def written(folder: Path, metric: str, readings: list[tuple[str, int, float, dict[str, float]]]) -> TrendReport:
    store = ReadingStore(folder)
    for node, day, value, conditions in readings:
        at = NOW - timedelta(days=DAYS - 1 - day)
        told = msgspec.json.encode(conditions).decode()
        store.add([Reading(at, node, f"passive/b/{day}", metric, "GPU-1", value, "h100", "driver=550", told)])
    store.flush()
    return judge_readings(folder, NOW, AlarmBudget()).report


def heats(onset: int, rise: float) -> list[tuple[str, int, float, dict[str, float]]]:
    """Forty nodes whose heat follows their power, which changes from day to day; on the first paste dries out."""
    rng = np.random.default_rng(5)
    told = []
    for n in range(40):
        for day in range(DAYS):
            power = float(rng.uniform(300, 700))
            worse = rise * max(day - onset, 0) / 10 if n == 0 else 0.0
            told.append((f"n{n:02}", day, 10 + 0.05 * power + worse + rng.normal(0, 0.4), {"power_w": power}))
    return told


def test_paste_that_dries_out_is_seen_at_equal_power(tmp_path: Path) -> None:
    """Mutant: without `at_equal` the swing of ±20 °C with the load hides 4 °C."""
    report = written(tmp_path, OVER_AMBIENT, heats(12, 4.0))
    assert [one.node for one in report.drifts] == ["n00"]
    assert report.drifts[0].change > 2


def test_heat_whose_power_nobody_knows_is_not_judged(tmp_path: Path) -> None:
    bare: dict[str, float] = {}
    readings = [(node, day, value, bare) for node, day, value, _ in heats(12, 4.0)]
    report = written(tmp_path, OVER_AMBIENT, readings)
    assert report.drifts == ()
    assert report.metrics[0].judged == 0


def test_errors_count_by_the_time_that_was_watched(tmp_path: Path) -> None:
    """Mutants: a sum of what was seen flags the node that was half watched in its first week; so does half a day."""
    rng = np.random.default_rng(6)
    told = []
    for n in range(40):
        for day in range(DAYS):
            watched = 45_000.0 if n == 1 and day < 10 else 86_000.0
            rate = 60.0 if n == 0 and day >= 14 else 20.0
            told.append((f"n{n:02}", day, float(rng.poisson(rate * watched / 86_400)), {OBSERVED: watched}))
    report = written(tmp_path, "gpu.ecc_corrected", told)
    assert [one.node for one in report.drifts] == ["n00"]


@pytest.mark.parametrize("value", first_in_gate([-3.0, math.nan, math.inf]), ids=str)
def test_readings_that_cannot_be_are_never_healthy(tmp_path: Path, value: float) -> None:
    readings = [(node, day, value if node == "n00" else heat, at) for node, day, heat, at in heats(12, 0.0)]
    report = written(tmp_path, "fan.speed_rpm", [(n, d, v, {"ambient_c": 24.0, **at}) for n, d, v, at in readings])
    looked = report.metrics[0]
    assert report.drifts == ()
    assert looked.judged == 39
    assert looked.too_short + looked.invalid == (value == -3.0)  # what is no number is not kept at all


def test_every_series_that_is_kept_is_judged() -> None:
    assert {*GAUGES, *COUNTERS} - {"inlet.temperature_c"} <= METRICS.keys()
