"""Time while a check runs: clocks that leap, run fast or stand still, and a CPU that others have taken."""

from collections.abc import Iterator

import pytest

from hostler_checks.answers import Answer
from hostler_checks.checks import clock, soak
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


@pytest.mark.parametrize(("waited_s", "verdict"), [(0.0, "measured"), (60.0, "taken")])
def test_a_fade_under_others_work_proves_nothing(
    waited_s: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant without the look at the run queues convicts a node's cooling for its neighbour's work."""
    told = iter((0.0, waited_s))
    monkeypatch.setattr(soak, "_waited_s", lambda: next(told))
    work = Work("thermal_soak", Device("cpu"), {"n": 32}, 0.0)
    if verdict == "taken":
        with pytest.raises(UnableError, match="a fade proves nothing"):
            soak.thermal(work)
    else:
        assert "fade_percent" in soak.thermal(work).readings


def test_the_kernel_tells_how_long_threads_waited() -> None:
    assert soak._waited_s() > 0.0  # noqa: SLF001 - what the kernel shows of this very process
