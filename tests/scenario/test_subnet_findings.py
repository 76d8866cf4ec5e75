"""A network's subnet from look to look: what is recorded of it, and findings only of what was read whole and twice."""

from typing import Any

from hostler.controller.inputs import SubnetSeen
from hostler.core.fabric.subnet import FOREIGN, PARTITIONS, TOO_FEW
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.snapshot import dump, load, state_of
from hostler.core.state.subnets import ManagerState, SubnetFacts, SubnetManager, SubnetReading
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric, swap_at_host
from tests.kit import Drive, digest, fold

A, B, C = "0000000000000301", "0000000000000401", "0000000000000501"
STATED: dict[str, Any] = {
    "subnet_manager": {"guids": ["0x301", "0x401"], "min_standby": 1},
    "partitions": ["0x7fff"],
}


def both(master: str = B) -> SubnetFacts:
    other = A if master == B else B
    return SubnetFacts((SubnetManager(master, 4, ManagerState.master), SubnetManager(other, 3, ManagerState.standby)))


ONE = SubnetFacts((SubnetManager(A, 3, ManagerState.master),))
"""The master is killed, and the one that stood by has taken over."""
NOTHING = SubnetFacts()


def a_cell(**stated: Any) -> FabricCell:
    return FabricCell(Drive(), a_fabric(), **(stated or STATED))


def look(cell: FabricCell, facts: SubnetFacts, why: str = "") -> list[e.Event]:
    """One look, a minute later; the events that it made."""
    cell.drive.wait(seconds=60)
    before = len(cell.drive.journal)
    cell.drive.step(SubnetSeen(SubnetReading(NAME, cell.drive.now, facts, (why,) if why else ())))
    return [record.event for record in cell.drive.journal[before:]]


def looks(cell: FabricCell, facts: SubnetFacts, minutes: int) -> None:
    """Looks of so many minutes after the first, one a minute."""
    for _ in range(minutes + 1):
        look(cell, facts)


def kinds(cell: FabricCell) -> list[str]:
    return [case.finding.kind for case in cell.cases]


def test_what_is_told_is_recorded_once_and_a_fail_over_says_who_was_master() -> None:
    cell = a_cell()
    assert [type(event) for event in look(cell, both())] == [e.SubnetChanged]
    assert look(cell, both()) == []
    (changed,) = look(cell, both(A))
    said = f"network {NAME}: subnet manager {A} is master, {B} in standby (before: {B})"
    assert sentence(changed) == said
    assert cell.fabric.subnet.master == SubnetManager(A, 4, ManagerState.master)
    assert cell.cases == []


def test_a_look_that_read_nothing_keeps_what_is_known_and_makes_no_finding() -> None:
    """A tool that hangs, garbage, two masters, none. Mutants: an empty reading is no manager; it is a clean run."""
    cell = a_cell()
    look(cell, both())
    assert [look(cell, NOTHING, "managers: `sminfo` did not end within 60 s") for _ in range(3)] == [[], [], []]
    assert (cell.fabric.subnet, cell.cases) == (both(), [])
    look(cell, ONE)
    for _ in range(4):
        look(cell, NOTHING)
    look(cell, ONE)
    (case,) = cell.cases
    look(cell, NOTHING)
    look(cell, NOTHING)
    assert cell.cases == [case]


def test_a_killed_master_is_a_finding_after_five_minutes_and_over_after_two_clean_looks() -> None:
    """Mutants: one look is enough, either way; the ticket stays open."""
    cell = a_cell()
    look(cell, both())
    looks(cell, ONE, 4)
    assert (kinds(cell), cell.fabric.subnet.master) == ([], SubnetManager(A, 3, ManagerState.master))
    look(cell, ONE)
    assert kinds(cell) == [TOO_FEW]
    (ticket,) = cell.tickets
    assert (ticket.owner, ticket.fault, ticket.node) == ("operator", TOO_FEW, f"fabric:{NAME}")
    assert f"not heard: {B}" in ticket.summary
    assert look(cell, ONE) == []
    look(cell, both(A))
    assert cell.tickets == [ticket]
    look(cell, both(A))
    assert (cell.cases, cell.tickets) == ([], [])


def test_a_restart_between_two_looks_is_no_finding() -> None:
    cell = a_cell()
    for facts in (both(), ONE, both(A), ONE, both()):
        look(cell, facts)
    assert cell.cases == []


def test_a_manager_that_the_master_lists_late_is_no_finding_and_each_absence_is_counted_anew() -> None:
    """Mutants: two looks are enough; absences are added up."""
    cell = a_cell()
    for _ in range(3):
        looks(cell, ONE, 4)
        look(cell, both(A))
    assert cell.cases == []
    looks(cell, ONE, 5)
    assert kinds(cell) == [TOO_FEW]


def test_a_look_that_tells_only_partitions_keeps_the_absence_running_and_a_foreign_manager_needs_two_looks() -> None:
    """Mutants: what could not be read counts as clean; patience is for all kinds."""
    cell = a_cell()
    looks(cell, ONE, 2)
    looks(cell, SubnetFacts(None, ("0x7fff",)), 1)
    look(cell, ONE)
    assert kinds(cell) == [TOO_FEW]
    foreign = a_cell()
    looks(foreign, SubnetFacts((SubnetManager(C, 15, ManagerState.master), *(both().managers or ())[1:])), 1)
    assert kinds(foreign) == [FOREIGN]


def test_a_foreign_master_and_other_partitions_are_one_finding_each() -> None:
    cell = a_cell()
    managers = (SubnetManager(C, 15, ManagerState.master), SubnetManager(A, 3, ManagerState.standby))
    facts = SubnetFacts(managers, ("0x0123", "0x7fff"))
    look(cell, facts)
    look(cell, facts)
    assert sorted(kinds(cell)) == [FOREIGN, PARTITIONS]
    look(cell, both())  # without partitions, which are read less often
    look(cell, both())
    assert kinds(cell) == [PARTITIONS]


def test_without_a_statement_all_is_shown_and_nothing_found_and_a_statement_taken_back_ends_its_finding() -> None:
    cell = a_cell(period_s=3600.0)
    look(cell, ONE)
    look(cell, ONE)
    assert (cell.cases, cell.fabric.subnet) == ([], ONE)
    cell.register(**STATED)
    assert cell.fabric.subnet == ONE
    looks(cell, ONE, 4)
    assert kinds(cell) == []
    look(cell, ONE)
    assert kinds(cell) == [TOO_FEW]
    cell.register()
    look(cell, ONE)
    look(cell, ONE)
    assert cell.cases == []


def test_cables_and_subnet_say_nothing_of_each_other_s_findings() -> None:
    """Mutants: a clean validation of cables ends a subnet's finding; a subnet as designed ends a swap."""
    cell = a_cell()
    swap_at_host(cell.cables)
    cell.look()
    looks(cell, ONE, 5)
    assert sorted(kinds(cell)) == [TOO_FEW, "swapped"]
    cell.look(a_fabric().discovery())
    cell.look(a_fabric().discovery())
    assert kinds(cell) == [TOO_FEW]


def test_a_ticket_closed_by_a_word_comes_back_while_it_is_found() -> None:
    cell = a_cell()
    looks(cell, ONE, 5)
    (ticket,) = cell.tickets
    cell.drive.ask("close-ticket", ticket.id)
    look(cell, ONE)
    (again,) = cell.tickets
    assert again.id != ticket.id
    assert "said that it was done, and it is still found" in again.summary


def test_a_look_that_comes_twice_or_late_or_of_an_unknown_network_says_nothing() -> None:
    cell = a_cell()
    look(cell, both())
    once = SubnetReading(NAME, cell.drive.now, ONE)
    for reading in (once, SubnetReading("ib9", cell.drive.now, ONE)):
        before = len(cell.drive.journal)
        cell.drive.step(SubnetSeen(reading))
        cell.drive.step(SubnetSeen(reading))
        assert len(cell.drive.journal) == before


def test_it_is_the_same_after_a_snapshot_and_a_replay() -> None:
    cell = a_cell()
    look(cell, both())
    looks(cell, ONE, 5)
    fleet = cell.drive.fleet
    read = load(dump(state_of(fleet)))
    assert (read.fabrics[NAME], digest(read)) == (cell.fabric, digest(fleet))
    assert digest(fold(cell.drive.journal)) == digest(fleet)
