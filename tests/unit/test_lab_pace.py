"""The pace of an emulated fleet: what it asks of the machine has an end, and nobody is lost for being heard seldom."""

import re
from importlib.resources import files

import pytest

from hostler.agent.main import HEARTBEAT_S
from hostler.core.policy.documents import parse
from hostler.sim.emulated.lab_pace import FULL_PACE, TOLD_S, Strain, lab_rows, pace_of

SIZES = (1, 64, FULL_PACE, 500, 2_000, 20_000)


def test_beats_a_second_have_an_end_and_a_small_fleet_keeps_the_pace_of_real_ones() -> None:
    """Mutant: two thousand agents beat four hundred times a second."""
    most = FULL_PACE / HEARTBEAT_S
    assert [pace_of(nodes) for nodes in SIZES[:3]] == [1.0, 1.0, 1.0]
    for nodes in SIZES:
        assert nodes / (HEARTBEAT_S * pace_of(nodes)) <= most * 1.001


@pytest.mark.parametrize("nodes", SIZES)
def test_the_policy_of_the_lab_is_one_and_waits_for_six_beats(nodes: int) -> None:
    """Mutants: a row of the shipped policy has another name by now; agents beat seldom and are lost as before."""
    policy = files("hostler.core.policy").joinpath("default_policy.yaml").read_text()
    for row, lab in lab_rows(nodes, 1440.0).items():
        policy, found = re.subn(rf"(?m)^  {row}: [^#\n]*", f"  {row}: {lab}  ", policy)
        assert found == 1, row
    active = parse({"policy.yaml": policy}).policy
    assert active.agent_silence_s >= 6 * HEARTBEAT_S * pace_of(nodes)
    assert active.time_scale == 1440.0
    assert active.brake.disruptions == 200


def test_a_machine_that_is_too_slow_is_said_once_a_minute_and_one_that_keeps_up_never() -> None:
    """Mutants: a line for each look; a single late look; nothing about agents that nobody hears."""
    calm = Strain(2_000)
    assert not any(calm.look(now, 5.0 if now == 10 else 0.0, 0) for now in range(300)), "one late look is none"
    slow = Strain(2_000)
    said = [facts for now in range(181) if (facts := slow.look(now, 3.0, 7))]
    assert len(said) == 181 // TOLD_S + 1
    assert said[1]["agents_unheard"] == 7 * TOLD_S
    assert said[0]["instead"] == "start fewer: --nodes 1000"
    lone = Strain(1)
    assert lone.look(0.0, 0.0, 1)["instead"] == "start fewer: --nodes 1"
