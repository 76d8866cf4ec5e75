"""A scan at the machine takes it out of service, has it switched off, and lets hands in: one step further each time."""

import pytest

from hostler.controller.inputs import FellowsSeen, NodeSeen
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import HoldKind, Phase
from tests.kit import Drive, a_node, a_workload, configuration, pool_document
from tests.scenario.test_condition_tickets import bmc, tickets


def serving() -> tuple[Drive, str]:
    """A node in service with a dead supply, its ticket, and a neighbour; a customer's work runs on it."""
    nodes = [a_node(name, domains=(f"rack:{name}",)) for name in ("a", "b")]
    drive = Drive(configuration({"train": pool_document(target=2)}), nodes)
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    bmc(drive, psu1="Critical")
    (ticket,) = tickets(drive)
    return drive, ticket.id


def scan(drive: Drive, ticket: str = "", person: str = "tina", serial: str = "S-a") -> tuple[bool, str]:
    drive.step(NodeSeen("a", "on" if drive.is_on("a") else "off"))
    reply = drive.ask("start-work", "a", person=person, serial=serial, ticket=ticket, prepare="true")
    drive.run()
    return reply.granted, reply.text


def test_scans_lead_from_service_to_hands_in_the_machine_and_back() -> None:
    """Mutants: it is switched off under the customer's work; the first scan is the last; work ends and it stays out."""
    drive, ticket = serving()
    drive.see_work("a", a_workload("w"))
    granted, text = scan(drive, ticket)
    assert granted
    assert "is to be drained and taken out of service first" in text
    assert drive.fleet.tickets[ticket].claimed_by == "tina"
    drive.wait(hours=2)
    assert drive.is_on("a"), "the customer's work runs"
    assert drive.node("a").phase is Phase.production
    granted, text = scan(drive, ticket)
    assert granted
    assert "is being drained and taken out of service" in text
    assert len([c for c in drive.node("a").conditions if c.type == "operator.maintenance"]) == 1
    drive.see_work("a")
    drive.wait(minutes=10)
    assert drive.node("a").phase is Phase.triage
    assert "is to be switched off first" in scan(drive, ticket)[1]
    drive.wait(minutes=5)
    assert not drive.is_on("a")
    assert scan(drive, ticket) == (True, "a stays dark until end-work")
    assert [h.kind for h in drive.fleet.holds_of("a")] == [HoldKind.physical_work]
    assert drive.ask("end-work", "a", person="tina").granted
    bmc(drive, psu1="OK")
    drive.wait(hours=6)
    assert drive.is_on("a")
    assert drive.node("a").phase is Phase.production, drive.transcript("a")


def test_running_work_is_named_as_what_is_waited_for() -> None:
    """Mutant: the technician stands before the machine and is not told for whom."""
    drive, ticket = serving()
    drive.see_work("a", a_workload("w"))
    granted, text = scan(drive, ticket)
    assert granted
    assert "which waits: " in text
    assert "w" in text.partition("which waits: ")[2]


def test_another_machine_begins_nothing_and_both_places_are_said() -> None:
    """Mutants: the neighbour is taken out of service; nobody says where to go."""
    drive, ticket = serving()
    granted, text = scan(drive, ticket, serial="S-b")
    assert not granted
    assert text.startswith("scanned serial 'S-b' is the serial of b, which stands in rack r1; it is not S-a")
    assert text.endswith("wrong machine; a stands in rack r1")
    assert not any(c.type == "operator.maintenance" for n in "ab" for c in drive.node(n).conditions)
    assert drive.fleet.tickets[ticket].claimed_by == ""


def test_what_somebody_else_has_claimed_is_not_begun() -> None:
    drive, ticket = serving()
    assert drive.ask("claim-ticket", ticket, person="tom").granted
    granted, text = scan(drive, ticket)
    assert not granted
    assert f"tom has ticket {ticket}" in text


def test_without_asking_for_it_nothing_is_prepared() -> None:
    """Mutant: a scan that only looks takes the node out of service."""
    drive, ticket = serving()
    reply = drive.ask("start-work", "a", person="tina", serial="S-a", ticket=ticket)
    assert not reply.granted
    assert not any(c.type == "operator.maintenance" for c in drive.node("a").conditions)


@pytest.mark.parametrize("drained", [False, True])
def test_who_does_not_begin_after_all_calls_it_off(drained: bool) -> None:
    """Mutants: only an operator can; another technician's request goes with it."""
    drive, ticket = serving()
    if not drained:
        drive.see_work("a", a_workload("w"))
    assert scan(drive, ticket)[0]
    drive.wait(minutes=10)
    assert not drive.ask("end-work", "a", person="tom").granted
    assert drive.ask("end-work", "a", person="tina").granted
    assert not any(c.type == "operator.maintenance" for c in drive.node("a").conditions)
    bmc(drive, psu1="OK")
    drive.see_work("a")
    drive.wait(hours=8)
    assert drive.node("a").phase is Phase.production, drive.transcript("a")
