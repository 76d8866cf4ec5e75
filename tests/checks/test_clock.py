"""What the kernel's clocks may do while they are compared: leap, run fast, go backwards, stand still."""

from collections.abc import Iterator

import pytest

from hostler_checks.answers import Answer
from hostler_checks.checks import clock
from hostler_checks.device import Device, UnableError
from hostler_checks.work import Work

SECOND = 1_000_000_000


def answer(monkeypatch: pytest.MonkeyPatch, moments: list[tuple[int, int, int]], status: int = 0) -> Answer:
    """The check over these readings of wall, monotonic and raw clock, two for each window."""
    told: Iterator[tuple[int, int, int]] = iter(moments)
    monkeypatch.setattr(clock, "_now", lambda: next(told))
    monkeypatch.setattr(clock, "_kernel_state", lambda: (status, 1.0))
    return clock.sync(Work("clock_sync", Device("cpu"), {}, 0.0))


def windows(*moved: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Readings between which the clocks move so far; the first of each window is zero, to outrun no real clock."""
    return [moment for one in moved for moment in ((0, 0, 0), one)]


SOUND = (SECOND, SECOND, SECOND)


def test_clocks_that_agree_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(monkeypatch, windows(*[SOUND] * 4)).readings == {"drift_ppm": 0.0, "max_error_ms": 1.0}


def test_a_leap_of_the_wall_clock_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that takes the largest window convicts a node whose clock was set."""
    leap = (SECOND + 3600 * SECOND, SECOND, SECOND)
    with pytest.raises(UnableError, match="leapt during the check"):
        answer(monkeypatch, windows(SOUND, leap, SOUND, SOUND))


def test_a_clock_that_runs_fast_all_the_time_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = (int(SECOND * 1.04), SECOND, SECOND)
    assert answer(monkeypatch, windows(*[fast] * 4)).readings["drift_ppm"] == pytest.approx(40_000)


def test_a_clock_that_stands_still_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    said = answer(monkeypatch, windows(SOUND, (SECOND, SECOND, 0), SOUND, SOUND))
    assert said.faults == ("a clock stood still: raw moved by 0 ns, monotonic by 1000000000 ns",)


def test_a_clock_that_nobody_disciplines_is_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnableError, match="nobody disciplines the clock"):
        answer(monkeypatch, windows(*[SOUND] * 4), status=0x40)
