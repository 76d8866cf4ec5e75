"""Protection of machines that no BMC switches off: a person is paged at once, and asked again while it runs."""

import pytest

from hostler.core.state import events as e
from hostler.core.state.cases import DUE_NOW, Ticket
from hostler.core.state.model import HoldKind, Phase
from tests.hint_walk import Kind, Machines, a_machine
from tests.kit import configuration, pool_document

ONE = configuration({"train": pool_document(target=1)})


def leaking(kind: Kind) -> Machines:
    drive = Machines(kind, ONE, [a_machine(kind)])
    drive.wait(minutes=5)
    drive.leak("a")
    drive.run()
    return drive


def asked(drive: Machines) -> list[Ticket]:
    return [event.ticket for event in drive.events(e.TicketOpened) if event.ticket.kind == "stuck"]


@pytest.mark.parametrize("kind", [Kind.none, Kind.bare, Kind.dead])
def test_a_person_is_paged_at_once_where_no_bmc_switches_it_off(kind: Kind) -> None:
    """Mutants: the page waits for three tries in vain; the node stays open to new work."""
    drive = leaking(kind)
    (ticket,) = asked(drive)
    assert ticket.due == DUE_NOW
    assert ticket.opened == drive.events(e.HoldPlaced)[0].hold.since
    assert "cut its power by hand NOW" in ticket.summary
    assert f"hostler ticket close {ticket.id} --reason …" in ticket.summary
    assert [hold.kind for hold in drive.fleet.holds_of("a")] == [HoldKind.power]
    drive.wait(minutes=5)
    assert "a" in drive.cordoned or kind is Kind.dead
    assert len(asked(drive)) == 1


def test_a_sound_bmc_pages_nobody_as_long_as_it_does_it() -> None:
    """Mutant: whoever protects pages."""
    drive = leaking(Kind.sound)
    assert asked(drive) == []
    assert not drive.is_on("a")


def test_a_node_that_runs_on_is_asked_about_again_and_one_that_is_dark_is_not() -> None:
    """Mutants: a closed ticket is believed against the agent; each look opens another."""
    drive = leaking(Kind.none)
    assert drive.ask("close-ticket", asked(drive)[0].id).granted
    drive.wait(minutes=10)
    assert len(asked(drive)) == 2
    drive.pull_cords()
    drive.wait(minutes=10)
    assert drive.ask("close-ticket", asked(drive)[1].id).granted
    drive.wait(days=1)
    assert len(asked(drive)) == 2
    assert drive.node("a").phase is Phase.production
    assert [hold.kind for hold in drive.fleet.holds_of("a")] == [HoldKind.power]
