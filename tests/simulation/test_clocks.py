"""The clocks of a simulated controller, and the time that it makes of them."""

from datetime import timedelta

import pytest

from hostler.core.state import events as e
from hostler.journal.memory import MemoryJournal
from hostler.sim.fault_injection.scenario import draw
from hostler.sim.hostile_worlds import build


@pytest.mark.parametrize("quiet_s", [5.0, 45.0, 4000.0])
@pytest.mark.parametrize("leap_s", [7200.0, -7200.0])
def test_a_leap_is_seen_as_one_however_quiet_it_was_before(quiet_s: float, leap_s: float) -> None:
    """Mutant: the readings of a quiet time see it first, and what they say is lost."""
    scenario = draw(3)
    stage = build(scenario.without(tuple(one.index for one in scenario.faults)), MemoryJournal())
    drive, leaps = stage.drive, list[float]()
    drive.watchers.append(
        lambda record: leaps.append(record.event.leap_s) if isinstance(record.event, e.ClockGap) else None
    )
    drive.run(drive.world.clock.now + timedelta(hours=1))
    drive.world.clock.after(quiet_s, lambda: drive.set_clock(timedelta(seconds=leap_s)))
    drive.run(drive.world.clock.now + timedelta(seconds=quiet_s))
    assert leaps == [pytest.approx(leap_s)]
