"""Canonical stories, cut at every boundary of every step: whatever dies, fails or stands still, they end alike."""

import pytest

from hostler.journal.memory import MemoryJournal
from hostler.ports import Batch
from hostler.sim.crash_points import FATES, each, pairs
from hostler.sim.stories import SHORT, STORIES, tell
from hostler.sim.world.message_faults import APPEND, APPENDED, BOUNDARIES, CRASH

pytestmark = pytest.mark.nightly("whole worlds are lived through")

FEW = 8
"""Of how many first boundaries one is paired in this suite; `make soak` pairs all."""
OF_LONG = 2
"""Of how many boundaries of a long story one is cut in a run; which ones is drawn, and `make soak` cuts all."""


@pytest.mark.smoke
@pytest.mark.parametrize("name", STORIES)
def test_a_story_that_is_left_alone_ends_well(name: str) -> None:
    told = tell(STORIES[name])
    assert not told.violations
    assert {APPEND, APPENDED} <= set(told.boundaries)
    assert not told.tickets
    assert all(end.phase == "production" and not end.busy and not end.conditions for end in told.ends), told.ends
    # a spare that came for a member that was dark stays beside it, so there may be one more
    assert sum(end.serves for end in told.ends) >= STORIES[name].shape.roles.count("alpha"), "the pool is whole"


@pytest.mark.smoke
def test_stories_are_what_they_are_called() -> None:
    """A story in which nothing of the kind happens proves nothing."""
    assert {"incident_opened", "incident_closed"} <= set(tell(STORIES["incident"]).events)
    assert "work_consented" in tell(STORIES["drain_with_consent"]).events
    assert "hold_placed" in tell(STORIES["protective_power_off"]).events
    assert "node_assigned" in tell(STORIES["deliver"]).events
    assert set(BOUNDARIES) == set(tell(STORIES["power_cycle"]).boundaries)


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("name", STORIES)
def test_a_story_cut_at_any_boundary_ends_as_if_it_had_not_been(
    name: str, fate: str, pytestconfig: pytest.Config
) -> None:
    """Crash, failed commit, or a pause in which another takes over, once at each boundary of a short story.

    Of a long one at every other boundary: at the even or at the odd ones, as the run's fresh seed is.
    """
    every = 1 if name in SHORT else OF_LONG
    cuts = list(each(STORIES[name], fate, every, pytestconfig.option.fresh_first % every))
    assert len(cuts) >= 1
    wrong = [str(cut) for cut in cuts if cut.wrong]
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.parametrize("name", SHORT)
def test_a_short_story_cut_twice_ends_as_if_it_had_not_been(name: str) -> None:
    wrong = [str(cut) for cut in pairs(STORIES[name], every=FEW) if cut.wrong]
    assert not wrong, "\n".join(wrong[:5])


@pytest.mark.smoke
def test_a_cut_that_changes_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a journal that says that it has appended, and has not."""
    append = MemoryJournal.append

    def forgets(self: MemoryJournal, batch: Batch, epoch: int) -> None:
        if epoch == 1:
            append(self, batch, epoch)

    monkeypatch.setattr(MemoryJournal, "append", forgets)
    assert any(cut.wrong for cut in each(STORIES["gpu_reset"], CRASH))
