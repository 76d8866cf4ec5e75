"""A node whose visits to triage convict nobody does not go round for ever: a person is told the next command."""

import pytest

from hostler.core.state import events as e
from hostler.core.state.model import Phase
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
