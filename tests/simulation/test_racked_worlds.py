"""Worlds with an NVL72's assets: what they are drawn from, and that all of it comes about."""

from collections import Counter
from datetime import timedelta

import pytest

from hostler.journal.memory import MemoryJournal
from hostler.sim.fault_injection.scenario import RACK_KINDS, again, draw_racked, worlds_of
from hostler.sim.hostile_worlds import START, build, judge, replay
from hostler.sim.world.asset_firmware import FATES

pytestmark = pytest.mark.nightly("whole worlds are lived through")


def test_seeds_bring_every_kind_of_fault_and_are_drawn_again_alike() -> None:
    drawn = [draw_racked(seed) for seed in range(60)]
    assert {one.kind for scenario in drawn for one in scenario.faults} == set(RACK_KINDS)
    assert {one.shape.rising for one in drawn} == {True, False}
    assert [again(scenario) for scenario in drawn] == drawn
    assert "--racked" in replay(drawn[0])


def test_every_fifth_seed_has_a_rack_beside_its_other_world() -> None:
    """Mutant: a seed's rack takes the place of the world that the seed has had."""
    drawn = list(worlds_of(range(10)))
    assert [(one.seed, one.shape.racked) for one in drawn if one.shape.racked] == [(0, True), (5, True)]
    assert [one.seed for one in drawn if not one.shape.racked] == list(range(10))


def test_a_new_rack_is_lied_to_fails_and_comes_up_with_its_nodes() -> None:
    """Mutant: the twin is honest from the first moment, so that no bring-up ever fails."""
    met: Counter[str] = Counter()
    for seed in (0, 3):
        met.update(judge(seed, racked=True).met)
    assert met["bring-up done"] == met["rack certified"] == 2
    assert met["bring-up failed"] > 2


def test_each_fate_of_an_act_on_an_asset_is_met() -> None:
    fates: Counter[str] = Counter()
    for seed in (0, 3, 9):
        injection = build(draw_racked(seed), MemoryJournal())
        injection.drive.run(START + timedelta(hours=12))
        assert injection.world.rack_assets is not None
        fates.update(injection.world.rack_assets.fates)
    assert set(fates) == {name for name, _ in FATES}, fates


def test_a_bring_up_waits_for_the_work_of_a_rack_in_service() -> None:
    """A tray that came back with old firmware is not written while its nodes serve."""
    serving = (one for one in map(draw_racked, range(40)) if not one.shape.rising)
    drawn = next(one for one in serving if "tray_old" in {fault.kind for fault in one.faults})
    alone = drawn.without(tuple(one.index for one in drawn.faults if one.kind != "tray_old"))
    injection = build(alone, MemoryJournal())
    waits: set[str] = set()

    def told(_record: object) -> None:
        controller = injection.drive.controller
        rack = controller.fleet.racks.get("r0") if controller is not None else None
        if rack is not None and rack.run is not None and rack.run.waiting is not None:
            waits.update(blocker.kind for blocker in rack.run.waiting.blockers)

    injection.drive.watchers.append(told)
    injection.drive.run(START + timedelta(hours=12))
    assert "work" in waits, waits
