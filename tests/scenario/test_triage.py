"""Triage sends to the vendor what it found faulty, and never what it could not examine."""

from datetime import timedelta

import pytest

from hostler.core.planning.triage import AGAIN_S
from hostler.core.state.model import Attempt, CheckResult, Phase, Verdict
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
    assert "the next try at" in blocker.ends_when
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
