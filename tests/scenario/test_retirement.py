"""A node is retired once its BMC has lost the password that was made for it, or a person says why it has not.

Mutants: the node is gone before the wipe is done; a failed wipe retires it; a hold or pause does not stop it; a restart
begins it anew, or forgets it; the reason for what is left is not recorded.
"""

from datetime import timedelta

import pytest

from hostler.core.planning.bmc_logins import cannot_begin
from hostler.core.state import events as e
from hostler.core.state.bmc_login import BmcLogin
from hostler.core.state.model import Phase
from tests.kit import NOW, Drive, a_node, configuration

OURS = BmcLogin(renewed_at=NOW - timedelta(days=1), username="root")
WIPE = "wipe_bmc_login"
OUTSIDE = [p for p in Phase if p not in (Phase.retired, Phase.production)]


def one(phase: Phase = Phase.onboard, login: BmcLogin | None = OURS) -> Drive:
    """A node that waits in its phase for a person."""
    return Drive(configuration(), [a_node("a", pool="", phase=phase, bmc_login=login)], quiet=True)


def retired(drive: Drive) -> bool:
    return "a" not in drive.fleet.nodes and "a" in drive.fleet.retired


def wipes(drive: Drive) -> int:
    return sum(event.operation.kind == WIPE for event in drive.events(e.OperationStarted))


def granted(drive: Drive, **args: str) -> str:
    reply = drive.ask("retire", "a", **args)
    assert reply.granted, reply.text
    return reply.text


def refused(drive: Drive, **args: str) -> str:
    reply = drive.ask("retire", "a", **args)
    assert not reply.granted, reply.text
    return reply.text


def test_the_password_is_wiped_and_then_the_node_is_retired() -> None:
    drive = one()
    assert drive.ask("hold", "a").granted
    assert "is retired once the password of account 'root' on its BMC https://bmc/a" in granted(drive)
    assert drive.node("a").phase is Phase.onboard
    for hold in list(drive.fleet.holds_of("a")):
        assert drive.ask("release", hold.id).granted
    drive.run()
    assert retired(drive)
    (ended,) = drive.events(e.PlanEnded)
    assert ended.result == "done"
    kinds = [type(r.event) for r in drive.journal]
    assert kinds.index(e.PlanEnded) < kinds.index(e.PhaseChanged)


@pytest.mark.parametrize("phase", OUTSIDE)
def test_it_is_so_in_every_phase_but_production(phase: Phase) -> None:
    """Mutant: the phase's own work takes the plan's place, or its limit ends it."""
    drive = one(phase)
    drive.now += timedelta(days=3)
    reply = drive.ask("retire", "a")
    if "is under way" in reply.text:
        drive.run()
        reply = drive.ask("retire", "a")
    assert reply.granted, reply.text
    drive.run()
    assert retired(drive)
    assert wipes(drive) == 1


def test_in_production_it_is_refused() -> None:
    assert "is in production" in refused(one(Phase.production))


@pytest.mark.parametrize("login", [None, BmcLogin(failed_at=NOW, failures=1)], ids=["none", "never proved"])
def test_one_without_a_password_of_ours_is_retired_at_once(login: BmcLogin | None) -> None:
    drive = one(login=login)
    assert granted(drive) == "a retired; its BMC keeps the login that it has: none was made for it here"
    assert retired(drive)
    assert not wipes(drive)


def test_a_password_that_was_made_and_not_proved_is_wiped_too() -> None:
    drive = one(login=BmcLogin(pending=True, username="root"))
    granted(drive)
    drive.run()
    assert retired(drive)
    assert wipes(drive) == 1


@pytest.mark.parametrize("answer", ["refused", "failed"])
def test_what_is_not_wiped_stays_and_asks_a_person(answer: str) -> None:
    drive = one()
    drive.script(WIPE, answer, answer)
    granted(drive)
    drive.run()
    assert not retired(drive)
    assert drive.node("a").phase is Phase.onboard
    (ticket,) = drive.fleet.tickets_about("a")
    assert (ticket.kind, ticket.component) == ("retire", "bmc")
    assert "--credentials-left" in ticket.action
    granted(drive)
    drive.run()
    assert len(drive.fleet.tickets_about("a")) == 1
    granted(drive)
    drive.run()
    assert retired(drive)
    assert not drive.fleet.tickets_about("a")


def test_a_bmc_that_never_answers_ends_in_its_time_and_a_person_says_what_is_left() -> None:
    """Mutants: the plan waits for ever; the machine that is dead cannot be retired."""
    drive = one()
    drive.script(WIPE, *["vanished"] * 9_999)
    granted(drive)
    drive.run_some(3)
    assert "is under way" in refused(drive, credentials_left="its BMC is dead")
    drive.wait(minutes=12)
    assert not retired(drive)
    assert [t.kind for t in drive.fleet.tickets_about("a")] == ["retire"]
    assert "left behind is" in granted(drive, credentials_left="its BMC is dead")
    assert retired(drive)


def test_an_answer_that_is_lost_is_observed() -> None:
    drive = one()
    drive.script(WIPE, "unknown")
    granted(drive)
    drive.wait(minutes=2)
    assert retired(drive)
    assert len(drive.performed) == 1


def test_what_is_left_behind_is_said_and_recorded() -> None:
    drive = one()
    drive.script(WIPE, *["vanished"] * 99)
    told = granted(drive, credentials_left="its BMC is dead")
    assert told.startswith("a retired; left behind is the password of account 'root' on its BMC https://bmc/a")
    assert retired(drive)
    assert not wipes(drive)
    (moved,) = drive.events(e.PhaseChanged)
    assert "is left: its BMC is dead" in moved.reason


def test_nothing_is_left_where_nothing_was_made() -> None:
    assert "leaves nothing" in refused(one(login=None), credentials_left="dead")


def test_asked_twice_it_is_done_once() -> None:
    drive = one()
    assert drive.ask("pause", "fleet").granted
    granted(drive)
    assert "is being retired" in refused(drive)
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].kind == "pause"
    assert not wipes(drive)
    assert drive.ask("resume", "fleet").granted
    drive.run()
    assert retired(drive)
    assert wipes(drive) == 1


@pytest.mark.parametrize("happens", [False, True])
def test_a_crash_amid_the_wipe_is_gone_on_from(happens: bool) -> None:
    """The next controller observes first. Mutant: it is sent anew though it was done."""
    drive = one()
    granted(drive)
    drive.restart(out_happens=happens)
    assert not retired(drive)
    drive.run()
    drive.wait(minutes=1)
    assert retired(drive)
    assert len(drive.performed) == 1


def test_no_renewal_begins_while_it_waits() -> None:
    drive = one()
    assert drive.ask("pause", "fleet").granted
    assert not cannot_begin(drive.node("a"))
    granted(drive)
    assert cannot_begin(drive.node("a"))
