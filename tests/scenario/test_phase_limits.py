"""A phase over its limit, or whose node falls gravely ill, fails at once, and never in the middle of a write."""

from typing import Any

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from tests.kit import Drive, a_node, after, configuration

LIMIT_S = 30.0
"""Shorter than any step, so that it is the phase which ends."""
CONFIG = configuration(firmware={"bios": "2"})


def at_work(phase: Phase, kind: str, answer: str = "mute", **fields: Any) -> Drive:
    """A node in a phase that ends in half a minute; what it is asked for (`kind`) never answers, or late."""
    node = a_node("a", pool="", phase=phase, deadline=after(seconds=LIMIT_S), **fields)
    drive = Drive(CONFIG)
    drive.script(kind, answer, answer)
    drive.step()
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.NodeRegistered(node)))
    drive.power["a"], drive.boots["a"], drive.work["a"] = True, 1, ()
    drive.restart(gap_s=0)
    drive.run()
    operation = drive.node("a").operation
    assert operation is not None
    assert operation.kind == kind
    return drive


def results(drive: Drive, kind: str) -> list[str]:
    return [event.result for event in drive.events(e.OperationFinished, "a") if event.kind == kind]


def test_firmware_that_is_being_written_outlives_its_phases_limit() -> None:
    """Mutant: it is called off, and a board is left between two versions."""
    drive = at_work(Phase.zap, "update_firmware")
    until_limit(drive, 600)
    assert drive.node("a").phase is Phase.zap
    assert results(drive, "update_firmware") == []
    assert "revoke" not in {send.how for send in drive.sent}
    drive.wait(hours=2)
    assert results(drive, "update_firmware") == ["timed_out"], "its own time is over"
    assert drive.node("a").phase is Phase.zap_fail


def test_firmware_that_is_being_written_outlives_a_grave_condition() -> None:
    """Mutant: the same by the other reason."""
    drive = at_work(Phase.zap, "update_firmware")
    drive.fault("a", "off_bus")
    drive.wait(minutes=10)
    assert results(drive, "update_firmware") == []
    assert drive.node("a").phase is Phase.zap


@pytest.mark.parametrize(
    ("phase", "kind"), [(Phase.seatrial, "collect_inventory"), (Phase.initializing, "set_boot_network")]
)
def test_what_is_no_check_is_called_off_when_its_phase_is_over(phase: Phase, kind: str) -> None:
    """To the second. Mutants: an hour late; a moment late; only what may not be interrupted is called off."""
    drive = at_work(phase, kind)
    until_limit(drive, -1)
    assert drive.node("a").phase is phase
    assert results(drive, kind) == []
    until_limit(drive, 0)
    assert results(drive, kind) == ["revoked"]
    moved = drive.events(e.PhaseChanged, "a")[0]
    assert (moved.after, moved.reason) == (Phase.triage, f"over the limit of {phase}")


def test_a_check_outlives_its_phases_limit() -> None:
    """A check without an answer so far is no failure. Mutant: the limit is a verdict."""
    drive = at_work(Phase.test, "run_checks")
    until_limit(drive, 600)
    assert results(drive, "run_checks") == []
    assert drive.node("a").phase is Phase.test


def test_a_check_is_called_off_when_the_node_falls_gravely_ill() -> None:
    """Mutant: two days of burn-in go on after the GPU has fallen off the bus."""
    drive = at_work(Phase.test, "run_checks")
    drive.fault("a", "off_bus")
    assert results(drive, "run_checks") == ["revoked"]
    assert drive.node("a").phase is Phase.triage


@pytest.mark.parametrize(("phase", "calls_off"), [(Phase.triage, False), (Phase.initializing, False)])
def test_what_examines_or_boots_a_node_does_not_mind_what_ails_it(phase: Phase, calls_off: bool) -> None:
    """Triage is there to look at it. Mutant: a grave condition ends every phase."""
    kind = "power_off" if phase is Phase.triage else "set_boot_network"
    drive = at_work(phase, kind)
    drive.fault("a", "off_bus")
    assert ("revoked" in results(drive, kind)) is calls_off


def until_limit(drive: Drive, beyond_s: float) -> None:
    limit = after(seconds=LIMIT_S + beyond_s)
    drive.wait(seconds=(limit - drive.now).total_seconds())


@pytest.mark.parametrize(
    ("phase", "kind", "after_it"),
    [
        (Phase.seatrial, "collect_inventory", Phase.triage),
        (Phase.zap, "power_off", Phase.zap_fail),
        (Phase.test, "run_checks", Phase.triage),
    ],
)
def test_a_grave_condition_ends_each_phase_that_builds_a_node_up(phase: Phase, kind: str, after_it: Phase) -> None:
    """Mutant: any of the three goes on with a GPU off the bus."""
    drive = at_work(phase, kind)
    drive.fault("a", "off_bus")
    assert results(drive, kind)[-1] == "revoked"
    moved = drive.events(e.PhaseChanged, "a")[-1]
    assert (moved.before, moved.after) == (phase, after_it)
    assert moved.reason.startswith("gpu.fallen_off_bus: ")


def test_a_hold_stops_a_phase_s_work_at_its_next_step_and_turns_nothing_back() -> None:
    """Mutant: a phase's own work is undone like a remedy."""
    drive = Drive(CONFIG, [a_node("a", pool="", phase=Phase.seatrial)])
    drive.script("collect_inventory", "late")
    drive.run()
    drive.sweep()
    drive.run()
    drive.ask("hold", "a")
    drive.land()
    drive.run()
    assert not drive.events(e.PlanUndoing, "a")
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert "ann holds a" in waiting.blockers[0].text
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.run()
    assert drive.node("a").phase is not Phase.seatrial


@pytest.mark.parametrize(("verb", "target", "release"), [("pause", "fleet", "resume"), ("hold", "a", "release")])
@pytest.mark.parametrize("phase", [Phase.seatrial, Phase.zap, Phase.test, Phase.initializing])
def test_time_in_which_others_keep_a_node_waiting_is_no_time_of_its_phase(
    phase: Phase, verb: str, target: str, release: str
) -> None:
    """A weekend's pause convicts nobody. Mutants: the limit ends the phase meanwhile, or once the pause is over."""
    node = a_node("a", pool="", phase=phase, deadline=after(hours=60))
    drive = Drive(configuration(), [node], quiet=True)
    drive.ask(verb, target)
    drive.wait(days=4)
    assert drive.events(e.PhaseChanged) == [], drive.transcript("a")
    stuck = [c for c in drive.node("a").conditions if c.type == "node.stuck"]
    assert len(stuck) == 1, "its age is visible"
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert f"hostler {'resume fleet' if verb == 'pause' else 'hold release h'}" in waiting.blockers[0].ends_when
    drive.ask(release, target if verb == "pause" else next(iter(drive.fleet.holds)))
    drive.wait(days=1)
    moves = [one.after for one in drive.events(e.PhaseChanged)]
    assert moves, "it goes on"
    assert not {Phase.triage, Phase.zap_fail} & set(moves), drive.transcript("a")
    assert drive.node("a").probation_until is None
    assert "node.stuck" not in {c.type for c in drive.node("a").conditions}


def test_a_hold_in_the_middle_of_a_phase_s_work_uses_up_none_of_its_time() -> None:
    """Mutants: a held node is over its limit; its limit is over in the moment in which the hold is released."""
    drive = at_work(Phase.seatrial, "collect_inventory", answer="late")
    drive.ask("hold", "a")
    drive.land()
    drive.wait(days=2)
    assert drive.node("a").phase is Phase.seatrial, drive.transcript("a")
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.wait(days=1)
    assert Phase.triage not in [one.after for one in drive.events(e.PhaseChanged)], drive.transcript("a")


def test_a_node_that_waited_for_hands_is_tested_anew_and_not_sent_to_triage() -> None:
    """Mutant: the technician has done what was asked for, and the node is over its limit for it."""
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.zap)])
    drive.script("sanitise", *["refused"] * 20)
    drive.wait(days=5)
    drive.ask("start-work", "a", serial="S-a", prepare="true")
    drive.wait(minutes=1)
    drive.ask("start-work", "a", serial="S-a", prepare="true")
    drive.wait(hours=1)
    drive.scripts.clear()
    assert drive.ask("end-work", "a", did="swapped", part="psu").granted
    drive.wait(days=1)
    assert [one.after for one in drive.events(e.PhaseChanged)] == [Phase.test, Phase.production], drive.transcript("a")
