"""Claims of tickets: who has it and until when; handed over to a person or the queue; lapsed with its shift."""

from hostler.controller.inputs import FellowsSeen
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.live_state import Fellow, Release
from tests.kit import Drive, after
from tests.scenario.test_condition_tickets import bmc, fleet_of, recorded, tickets


def with_ticket() -> tuple[Drive, str]:
    """A node with a dead supply, and the ticket that asks for another one."""
    drive = fleet_of("a")
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    bmc(drive, psu1="Critical")
    (ticket,) = tickets(drive)
    return drive, ticket.id


def the(drive: Drive) -> Ticket:
    (ticket,) = tickets(drive)
    return ticket


def test_a_claim_says_who_and_until_when_and_is_found_in_the_nodes_history() -> None:
    drive, name = with_ticket()
    reply = drive.ask("claim-ticket", name, person="tina")
    assert reply.granted, reply.text
    ticket = the(drive)
    assert (ticket.claimed_by, ticket.claimed_at) == ("tina", drive.now)
    assert ticket.holder(drive.now) == "tina"
    assert f"{ticket.claimed_until:%Y-%m-%d %H:%M}" in reply.text
    (claimed,) = drive.events(e.TicketClaimed)
    assert e.subjects_of(claimed) == (name, "a")


def test_anothers_claim_is_refused_with_their_name() -> None:
    """Mutants: the last one has it; the refusal names nobody; it goes on after its shift."""
    drive, name = with_ticket()
    assert drive.ask("claim-ticket", name, person="tina", hours="8").granted
    refused = drive.ask("claim-ticket", name, person="tom")
    assert not refused.granted
    assert f"tina has ticket {name} until" in refused.text
    assert the(drive).claimed_by == "tina"
    assert drive.ask("claim-ticket", name, person="tina", hours="10").granted, "longer, by who has it"
    drive.wait(hours=11)
    taken = drive.ask("claim-ticket", name, person="tom")
    assert taken.granted
    assert "no longer tina's" in taken.text
    assert drive.events(e.TicketClaimed)[-1].before == "tina"
    assert the(drive).claimed_by == "tom"


def test_a_ticket_is_handed_over_by_who_has_it_or_a_shift_lead() -> None:
    """Mutants: anybody hands over; who gets it has it for ever; what nobody has is handed over by anybody."""
    drive, name = with_ticket()
    assert not drive.ask("hand-over-ticket", name, person="tina").granted, "nobody has it"
    assert drive.ask("claim-ticket", name, person="tina").granted
    refused = drive.ask("hand-over-ticket", name, person="tom", to="tom")
    assert not refused.granted
    assert "tina has ticket" in refused.text
    assert drive.ask("hand-over-ticket", name, person="tina", to="tom", hours="4").granted
    assert (the(drive).claimed_by, the(drive).claimed_until) == ("tom", the(drive).claimed_at and after_hours(drive, 4))
    assert not drive.ask("hand-over-ticket", name, person="tina").granted, "it is tom's now"
    assert drive.ask("hand-over-ticket", name, person="lea", shift_lead="true").granted
    assert (the(drive).claimed_by, the(drive).claimed_at, the(drive).claimed_until) == ("", None, None)
    assert drive.ask("hand-over-ticket", name, person="lea", to="uma", shift_lead="true").granted, "assigned"
    assert [one.to for one in drive.events(e.TicketHandedOver)] == ["tom", "", "uma"]


def after_hours(drive: Drive, hours: float) -> object:
    return drive.now + (after(hours=hours) - after())


def test_what_is_no_persons_name_or_no_work_is_refused() -> None:
    drive, name = with_ticket()
    assert drive.ask("claim-ticket", name, person="tina").granted
    assert not drive.ask("hand-over-ticket", name, person="tina", to="<b>tom</b>").granted
    assert not drive.ask("hand-over-ticket", name, person="tina", to="tina").granted
    assert not drive.ask("claim-ticket", name, person="tina", hours="25").granted
    assert not drive.ask("claim-ticket", "none", person="tina").granted


def test_a_consent_is_asked_of_the_customer_and_claimed_by_nobody() -> None:
    drive, _ = with_ticket()
    consent = Ticket("c1", "another", "consent", "may the work end?", drive.now, action="power_cycle")
    recorded(drive, e.TicketOpened(consent))
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    refused = drive.ask("claim-ticket", "c1", person="tina")
    assert not refused.granted
    assert "asks for a consent, not for work" in refused.text


def test_a_claim_outlives_the_controller_and_what_is_said_of_the_ticket() -> None:
    """Mutants: a restart forgets; who says that it is done gives the ticket away."""
    drive, name = with_ticket()
    assert drive.ask("claim-ticket", name, person="tina").granted
    assert drive.ask("close-ticket", name, person="tina").granted
    drive.restart(gap_s=60)
    assert (the(drive).claimed_by, the(drive).done_by) == ("tina", "tina")
    bmc(drive, psu1="OK")
    assert not tickets(drive)
