"""Triage sends to the vendor what it found faulty, and never what it could not examine."""

from datetime import timedelta

import pytest

from hostler.core.planning.triage import AGAIN_S
from hostler.core.state import events as e
from hostler.core.state.model import Attempt, CheckResult, Phase, Verdict
from hostler.core.state.packed_strings import NO_PAIRS, Pairs, pairs
from tests.kit import NOW, Drive, a_node, configuration, pool_document

TRIES = len(AGAIN_S)


def in_triage(*, fails: str, times: int, attempts: tuple[Attempt, ...] = ()) -> Drive:
    """A node whose examination fails so often at this operation."""
    drive = Drive(configuration(), [a_node("a", pool="", phase=Phase.triage, attempts=attempts)])
    drive.script(fails, *["failed"] * times)
    return drive


def examinations(drive: Drive) -> int:
    return drive.plans("a").count("examine")


@pytest.mark.parametrize("operation", ["power_off", "power_on"])
def test_what_could_not_be_restarted_for_its_examination_is_tried_again_later_and_then_served(operation: str) -> None:
    """A BMC that restarts at that very moment says nothing of the node. Mutant: it goes to the vendor at once."""
    drive = in_triage(fails=operation, times=2)
    drive.wait(minutes=5)
    assert (drive.node("a").phase, examinations(drive)) == (Phase.triage, 1)
    waiting = drive.node("a").waiting
    assert waiting is not None
    (blocker,) = waiting.blockers
    assert blocker.name == "technician"
    assert "1 times" in blocker.text
    assert "the next try is at" in blocker.ends_when
    drive.wait(hours=6)
    assert examinations(drive) == 3
    assert drive.node("a").phase not in (Phase.triage, Phase.rma), "the third could be made, and found nothing"


def test_what_can_never_be_examined_is_a_technicians_and_no_vendors() -> None:
    """Power that cannot be switched convicts nobody. Mutants: the fourth try condemns it; nobody is ever asked."""
    drive = in_triage(fails="power_off", times=99)
    drive.wait(hours=4)
    assert not len(drive.fleet.tickets)
    drive.wait(hours=3)
    assert (drive.node("a").phase, examinations(drive)) == (Phase.triage, TRIES)
    (ticket,) = drive.fleet.tickets.values()
    assert (ticket.kind, ticket.owner, ticket.action) == ("stuck", "technician", "examine")
    assert "hostler node rma-send a" in ticket.summary
    drive.wait(days=30)
    assert drive.node("a").phase is Phase.triage
    assert len(drive.fleet.tickets) == 1


def test_once_its_ticket_is_closed_it_is_examined_anew() -> None:
    """Mutant: it waits for the day's end."""
    drive = in_triage(fails="power_off", times=TRIES)
    drive.wait(hours=7)
    drive.ask("close-ticket", next(iter(drive.fleet.tickets)))
    drive.wait(minutes=10)
    assert drive.node("a").phase not in (Phase.triage, Phase.rma)


def test_what_its_checks_find_is_believed_at_once() -> None:
    """Mutant: a failed check is tried again."""
    drive = in_triage(fails="run_checks", times=1)
    drive.wait(hours=1)
    assert (drive.node("a").phase, examinations(drive)) == (Phase.rma, 1)


def test_a_takeover_forgets_no_try() -> None:
    """Mutant: they are counted in memory."""
    drive = in_triage(fails="power_off", times=99)
    for _ in range(8):
        drive.wait(hours=1)
        drive.restart()
    assert (drive.node("a").phase, examinations(drive)) == (Phase.triage, TRIES)


def test_another_visit_has_all_its_tries() -> None:
    """Mutant: those of a visit before count."""
    before = tuple(Attempt("examine", "", NOW - timedelta(days=2, hours=n), failed=True) for n in range(TRIES))
    drive = in_triage(fails="power_off", times=99, attempts=before)
    drive.wait(hours=4)
    assert not len(drive.fleet.tickets)
    drive.wait(hours=3)
    assert (len(drive.fleet.tickets), examinations(drive)) == (1, TRIES)


def test_who_came_because_of_a_failed_gate_serves_again_after_its_burn_in() -> None:
    """Mutant: the gate's word stands for ever, so the node is neither healthy nor a spare, and nobody says why."""
    gate = (CheckResult("gate", Verdict.failed, NOW - timedelta(hours=1)),)
    node = a_node("a", pool="", phase=Phase.triage, checks=gate)
    drive = Drive(configuration({"train": pool_document(target=1)}), [node])
    drive.wait(days=7)
    back = drive.node("a")
    assert (back.phase, back.pool, back.waiting) == (Phase.production, "train", None)
    assert drive.fleet.index.count("healthy:train") == 1


BASELINE = {"BIOS": "1.1.0"}
OLD, RUNS, NEWER = (pairs((("BIOS", version),)) for version in ("1.0.0", "1.1.0", "1.2.0"))


@pytest.mark.parametrize(
    ("before", "versions", "after"),
    [
        (Phase.initializing, OLD, Phase.onboard),
        (Phase.seatrial, OLD, Phase.seatrial),
        (Phase.seatrial, RUNS, Phase.seatrial),
        (Phase.zap_fail, RUNS, Phase.zap),
        (Phase.test, RUNS, Phase.test),
        (Phase.test, OLD, Phase.zap),
        (Phase.production, OLD, Phase.zap),
        (Phase.production, NEWER, Phase.test),
        (Phase.production, NO_PAIRS, Phase.test),
    ],
)
def test_a_node_goes_on_after_its_examination_where_it_had_got_to(before: Phase, versions: Pairs, after: Phase) -> None:
    """Triage is no way round Seatrial, cables or firmware. Mutant: every examination that passed leads to test."""
    node = a_node("a", pool="", phase=Phase.triage, came_from=before, versions=versions)
    drive = Drive(configuration(firmware=BASELINE), [node])
    drive.wait(minutes=1)
    moved = [one.after for one in drive.events(e.PhaseChanged) if one.before is Phase.triage]
    assert moved[:1] == [after], drive.transcript("a")
    assert drive.node("a").came_from is None


def test_a_fault_in_seatrial_leaves_out_neither_the_rest_of_it_nor_firmware() -> None:
    """Mutant: nobody remembers where the node fell out, and it serves with what firmware it came with."""
    node = a_node("a", pool="", phase=Phase.seatrial, versions=OLD)
    drive = Drive(configuration({"train": pool_document(target=1)}, firmware=BASELINE), [node])
    drive.script("run_checks", "failed")
    drive.wait(days=3)
    way = [one.after.value for one in drive.events(e.PhaseChanged)]
    assert way == ["triage", "seatrial", "zap", "test", "production"], drive.transcript("a")
    assert "update_firmware" in drive.operations("a")


def test_firmware_that_holds_up_a_test_is_brought_to_the_baseline_on_a_persons_word() -> None:
    """Mutants: zap-again is for zap_fail alone; the wait names no command but to vouch for old firmware."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a", pool="", phase=Phase.test)])
    drive.script("sanitise", *["refused"] * 9)
    drive.wait(days=1)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert "(hostler node zap-again a --reason" in waiting.blockers[0].ends_when
    assert drive.ask("zap-again", "a").granted
    moves = [(one.before, one.after) for one in drive.events(e.PhaseChanged)]
    assert (Phase.test, Phase.zap) in moves
    assert not drive.fleet.tickets_about("a"), "the ticket that asked for the erasure"
