"""A node that is not proved to be erased serves nobody else: what failed asks a technician until it is erased."""

from hostler.core.state import events as e
from hostler.core.state.model import Phase
from tests.kit import Drive, a_node, configuration, pool_document

BUDGET = {"count": 1, "percent": 100, "spares_floor": 1}
KEEPS_ONE = configuration({"train": pool_document(target=1, budget=BUDGET)})


def test_a_drive_that_defies_erasing_asks_a_technician_until_it_is_erased() -> None:
    """Mutants: the failure opens no ticket; each failure opens another; the ticket outlives the erasure."""
    drive = Drive(KEEPS_ONE, [a_node("a")])
    drive.script("sanitise", "failed", "failed")
    drive.checks.append(lambda drive, _: _asks_while_it_is_not_erased(drive))
    drive.ask("release-node", "a")
    drive.wait(hours=60)
    (opened,) = [one.ticket for one in drive.events(e.TicketOpened) if one.ticket.fault == "sanitise"]
    assert (opened.owner, "a tenant's data may be left" in opened.summary) == ("technician", True)
    assert "hostler node end-work a --did swapped --part drive" in opened.action
    assert [m.after for m in drive.events(e.PhaseChanged)].count(Phase.triage) == 2
    assert [t for t in drive.fleet.tickets_about("a") if t.fault == "sanitise"] == []
    assert drive.node("a").phase is Phase.production, drive.transcript("a")


def _asks_while_it_is_not_erased(drive: Drive) -> None:
    if drive.node("a").phase is Phase.triage:
        assert [t for t in drive.fleet.tickets_about("a") if t.fault == "sanitise"], "nobody was asked"
