"""An NVL72 whose assets fail beside its compute trays: the laws hold, and what was healed comes to rest."""

from collections.abc import Iterator

import pytest

from hostler.core.intents import asset_leaks
from hostler.core.policy import rack_faults
from hostler.core.state import events as e
from hostler.sim.fault_injection.scenario import RACK_KINDS, again, draw_racked
from hostler.sim.hostile_worlds import judge, replay, trial

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_laws_hold_where_a_rack_s_assets_fail_beside_its_nodes(seed: int) -> None:
    verdict = judge(seed, racked=True)
    assert not verdict.violations, str(verdict)


def test_seeds_bring_every_kind_of_fault_and_are_drawn_again_alike() -> None:
    drawn = [draw_racked(seed) for seed in range(60)]
    assert {one.kind for scenario in drawn for one in scenario.faults} == set(RACK_KINDS)
    assert [again(scenario) for scenario in drawn] == drawn
    assert "--racked" in replay(drawn[0])


def _leaks(seed: int, kind: str) -> bool:
    return kind in {one.kind for one in draw_racked(seed).faults}


def _judged(kind: str) -> Iterator[str]:
    """Violations of a few small worlds in which nothing else than this goes wrong."""
    for seed in [seed for seed in range(40) if _leaks(seed, kind)][:2]:
        scenario = draw_racked(seed)
        others = tuple(one.index for one in scenario.faults if one.kind != kind)
        yield from (str(one) for one in trial(scenario.without(others)).violations)


def test_a_person_s_word_without_a_dry_detector_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: whoever says so is believed, and a wet tray is powered on."""
    monkeypatch.setattr(asset_leaks, "_wet", lambda _context, _asset: iter(()))
    assert any("does not show it dry" in text for text in _judged("tray_leaks"))


def test_a_unit_that_leaks_upon_nobody_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a coolant unit's leak is a ticket and no protection."""
    monkeypatch.setattr(rack_faults, "_protect", lambda *_about: iter(()))
    assert any("has no leak" in text for text in _judged("unit_leaks"))


def test_a_leak_that_nothing_notes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a dry look alone ends a leak."""
    monkeypatch.setattr(rack_faults, "LEAKED", "in_service")
    found = list(_judged("tray_leaks"))
    assert any("counts as sound" in text or "nothing tells that it leaked" in text for text in found), found


def test_an_asset_that_stays_off_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a tray that is sound again stays dark."""
    changed = e.AssetChanged("nvsw0", "in_service", "never powered on")
    monkeypatch.setattr(asset_leaks, "_powered_on", lambda _context, asset: e.AssetChanged(asset.id, *_of(changed)))
    assert any("off in the end" in text for text in _judged("tray_leaks"))


def _of(changed: e.AssetChanged) -> tuple[str, str]:
    return changed.state, changed.reason
