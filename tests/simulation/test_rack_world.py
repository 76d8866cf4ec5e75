"""A rack in seeded worlds: its laws hold under lies, late and missing answers and crashes, and then it comes up."""

from typing import Any

import pytest

from hostler.controller import rack_turns
from hostler.core.planning import asset_logins, asset_renewals, rack_bring_up
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.configuration import Configuration
from hostler.core.tables.rack_recipe import RACK_STEPS
from hostler.sim.rack_world import BUNDLE, RackWorld, lives
from tests.kit import configuration

pytestmark = pytest.mark.nightly("whole worlds are lived through")

IMAGE = {"image": "https://images.example/x.bin", "sha256": "ab" * 32, "activate": "none"}
SEEDS = range(24)


def a_configuration() -> Configuration:
    rack = {
        "bundle": "b2",
        "power_shelves": 2,
        "supplies_needed": 4,
        "coolant_units": 1,
        "leak_detectors": 1,
        "switch_trays": 2,
        "shelf_firmware": {"PMC": BUNDLE},
        "switch_firmware": {"FW": BUNDLE},
        "updates": {"PMC": IMAGE, "FW": IMAGE},
    }
    return configuration({}, every_day, rack=rack)


def every_day(policy: dict[str, Any]) -> None:
    policy["bmc_credentials"] = {"renew_every_s": 86_400.0}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_laws_hold_and_a_healed_rack_comes_up(seed: int) -> None:
    assert list(lives(seed, a_configuration())) == []


def test_the_worlds_meet_what_they_are_to_meet() -> None:
    """A world in which nothing fails, and no controller dies, proves nothing."""
    met: set[str] = set()
    crashes = 0
    for seed in SEEDS:
        world = RackWorld(seed, a_configuration())
        world.run(12.0)
        met |= world.laws.met
        crashes += world.crashes
    results = {f"{RENEW} {result}" for result in ("done", "failed", "refused", "timed_out")}
    assert met == {"done", "failed"} | results
    assert crashes > 20


def _found() -> list[str]:
    return [text for seed in SEEDS for text in lives(seed, a_configuration())]


def test_a_planted_order_of_steps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: switch trays are written before the leak detectors are asked."""
    trays = [step for step in RACK_STEPS if step.name.startswith("switch_tray")]
    others = [step for step in RACK_STEPS if step not in trays]
    monkeypatch.setattr(rack_bring_up, "RACK_STEPS", (*others[:3], *trays, *others[3:]))
    assert any("before the detectors were dry" in text for text in _found())


def test_a_planted_repetition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: what was observed not to have happened is always sent again."""
    honest = rack_turns.of_reply
    monkeypatch.setattr(
        rack_turns, "of_reply", lambda context, rack, outcome, **_: honest(context, rack, outcome, taken_over=True)
    )
    assert any("sent again by the controller that had sent it" in text for text in _found())


def test_a_planted_second_act_on_one_bmc_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a password is renewed while firmware is written to the same BMC."""
    monkeypatch.setattr(asset_renewals, "stops", lambda *_, **__: iter(()))
    assert any("began while" in text for text in _found())


def test_a_planted_try_after_giving_up_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a password that was refused is tried again and again, until the account is locked."""
    monkeypatch.setattr(asset_logins, "gives_up", lambda _: False)
    assert any("has given up" in text for text in _found())
