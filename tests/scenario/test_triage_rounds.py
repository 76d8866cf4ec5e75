"""A node whose visits to triage convict nobody does not go round for ever: a person is told the next command."""

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Operation, Phase
from hostler.core.state.operations import RunChecks
from tests.kit import Drive, a_node, configuration, pool_document


def going_round(times: int = 99, rounds: int | None = None) -> Drive:
    """A node whose Seatrial fails so often at what its BMC lists, and whose examinations find nothing."""
    chosen = None if rounds is None else {"triage_rounds": rounds}
    config = configuration(
        {"train": pool_document(target=1)}, policy=lambda tree: tree.update(chosen) if chosen else None
    )
    drive = Drive(config, [a_node("a", pool="", phase=Phase.seatrial)])
    drive.script("collect_inventory", *["failed"] * times)
    return drive


def visits(drive: Drive) -> int:
    return len([one for one in drive.events(e.PhaseChanged) if one.after is Phase.triage])


@pytest.mark.parametrize(("rounds", "examined"), [(None, 3), (1, 1)])
def test_after_so_many_rounds_a_person_is_asked(rounds: int | None, examined: int) -> None:
    """Mutants: it goes on for ever; the count is not the policy's; the vendor gets it; each look opens a ticket."""
    drive = going_round(rounds=rounds)
    drive.wait(days=3)
    assert (drive.node("a").phase, visits(drive)) == (Phase.triage, examined + 1), drive.transcript("a")
    assert drive.plans("a").count("examine") == examined
    (ticket,) = drive.fleet.tickets.values()
    assert (ticket.kind, ticket.action, ticket.owner, ticket.fault) == ("stuck", "rounds", "operator", "")
    for command in ("explain", "debug", "rma-send"):
        assert f"hostler node {command} a" in ticket.summary
    waiting = drive.node("a").waiting
    assert waiting is not None
    (blocker,) = waiting.blockers
    assert blocker.text == (
        f"it came to triage {examined + 1} times in a row, now from seatrial, and no examination found a faulty part"
    )
    assert f"hostler ticket close {ticket.id}" in blocker.ends_when
    drive.wait(days=30)
    assert (visits(drive), len(drive.fleet.tickets)) == (examined + 1, 1)


def test_once_its_ticket_is_closed_it_has_all_its_rounds_again() -> None:
    """Mutants: it is examined once, and the next fall asks again; it is not examined at all."""
    drive = going_round()
    drive.wait(days=3)
    drive.ask("close-ticket", next(iter(drive.fleet.tickets)))
    drive.wait(days=3)
    assert drive.plans("a").count("examine") == 7
    assert len(drive.fleet.tickets) == 1


def test_a_fault_that_is_put_right_meanwhile_holds_up_nobody() -> None:
    """Mutants: the count is kept into service, and a later visit is a person's at once."""
    drive = going_round(times=3)
    drive.wait(days=7)
    node = drive.node("a")
    assert (node.phase, node.rounds) == (Phase.production, 0), drive.transcript("a")
    assert not len(drive.fleet.tickets)


def test_a_takeover_forgets_no_round() -> None:
    """Mutant: they are counted in memory."""
    drive = going_round()
    for _ in range(12):
        drive.wait(hours=6)
        drive.restart()
    assert visits(drive) == 4


def test_engineers_and_the_vendor_end_the_wait_and_its_ticket() -> None:
    drive = going_round(times=4)
    drive.wait(days=3)
    assert drive.ask("debug", "a").granted
    drive.wait(hours=1)
    assert (drive.node("a").phase, drive.node("a").rounds) == (Phase.debug, 0)


def test_zero_leaves_it_to_the_node() -> None:
    drive = going_round(rounds=0)
    drive.wait(days=3)
    assert visits(drive) > 8


# by way of service: a site's own check


class SiteCheckDrive(Drive):
    """A node in service whose site's check fails by itself every day while it serves, and whenever it is asked.

    `finds`: what examinations find once the check is right about a bad node.
    """

    finds = "done"
    check = "train_replay"

    def _take_script(self, operation: Operation) -> str:
        if operation.act == RunChecks(self.check):
            return "failed"
        if operation.act == RunChecks("suspect"):
            return self.finds
        return super()._take_script(operation)

    def days(self, count: int) -> None:
        for _ in range(count):
            if self.node("a").phase is Phase.production:
                self.observe("a", "verdict", "digest differs", facts={"check": self.check, "verdict": "failed"})
            self.wait(days=1)


def by_check(rounds: int | None = None) -> SiteCheckDrive:
    chosen = {} if rounds is None else {"triage_rounds": rounds}
    config = configuration({"train": pool_document(target=1)}, policy=lambda tree: tree.update(chosen))
    return SiteCheckDrive(config, [a_node("a")])


@pytest.mark.parametrize(("rounds", "examined"), [(None, 3), (1, 1)])
def test_a_check_that_is_always_wrong_about_a_sound_node_is_a_person_s_after_so_many_rounds(
    rounds: int | None, examined: int
) -> None:
    """Mutants: service ends the count; the ticket does not name the check; it waits where nobody is asked."""
    drive = by_check(rounds)
    drive.days(40)
    assert (drive.node("a").phase, visits(drive)) == (Phase.triage, examined + 1), drive.transcript("a")
    assert drive.plans("a").count("examine") == examined
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "stuck"]
    assert "for the site's check train_replay alone, and no examination found" in ticket.summary
    assert f"hostler ticket close {ticket.id}" in ticket.summary
    waiting = drive.node("a").waiting
    assert waiting is not None
    (blocker,) = waiting.blockers
    assert (blocker.kind, "train_replay, or what it finds, is put right" in blocker.ends_when) == ("person", True)
    drive.days(100)
    assert visits(drive) == examined + 1, "it is not sent round again"


def test_the_check_is_put_right_and_its_ticket_closed() -> None:
    """Mutants: the node waits on; the next round is a person's at once; what stands open ends nothing."""
    drive = by_check()
    drive.days(40)
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "stuck"]
    drive.ask("close-ticket", ticket.id)
    drive.wait(days=4)
    assert drive.node("a").phase is Phase.production, drive.transcript("a")
    drive.days(40)
    assert visits(drive) == 8, "the check was not put right: it has all its rounds again, and no more"


def test_a_check_that_is_right_about_a_bad_node_leads_to_a_person_or_its_vendor() -> None:
    """First no examination sees it, then one does. Mutant: a node that is convicted waits for nobody's ticket."""
    drive = by_check()
    drive.days(2)
    assert 0 < visits(drive) < 4
    drive.finds = "failed"
    drive.days(6)
    assert drive.node("a").phase is Phase.rma, drive.transcript("a")
    unseen = by_check()
    unseen.days(40)
    assert [t.owner for t in unseen.fleet.tickets.values() if t.kind == "stuck"] == ["operator"]


def test_two_checks_are_counted_each_by_itself_and_hands_begin_anew() -> None:
    """Mutants: any check counts for any other; a debug between two visits is nothing."""
    drive = by_check()
    for number in range(6):
        drive.check = ("train_replay", "own_mount")[number % 2]
        drive.days(1)
        drive.wait(days=5)
    assert (drive.node("a").phase, visits(drive)) == (Phase.production, 6), drive.transcript("a")
    drive.check = "train_replay"
    drive.days(1)
    assert (drive.node("a").phase, visits(drive)) == (Phase.triage, 7)
    assert [t.kind for t in drive.fleet.tickets.values()] == ["stuck"]
    assert drive.ask("debug", "a").granted
    drive.wait(hours=1)
    assert drive.ask("onboard", "a").granted
    drive.ask("certify", "a")
    drive.wait(days=4)
    drive.days(1)
    drive.wait(days=5)
    assert drive.node("a").phase is Phase.production, "its fourth visit is the first since engineers had it"


def test_visits_of_another_quarter_count_no_more() -> None:
    """Mutant: three wrong verdicts in ten years and the fourth is a person's."""
    drive = by_check()
    for _ in range(6):
        drive.days(1)
        drive.wait(days=40)
    assert (visits(drive), len(drive.fleet.tickets)) == (6, 0)
