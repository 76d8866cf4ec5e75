"""One ticket for a rack's findings: in the order of the way, none asked for twice, closed by what validations find."""

from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.discovery import Discovery
from hostler.core.state.cases import Ticket
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import a_fabric, miss, swap_at_host
from tests.kit import Drive


def a_hall() -> FabricCell:
    """A network in which each host of the first rack has one cable pulled, and another rack's has two exchanged."""
    cell = FabricCell(Drive(), a_fabric(3))
    for number in (4, 1, 3):
        port = next(p for p in cell.cables.links if p.device == f"gpu-{number:04d}")
        cell.cables.pull(port)
    cell.cables.used |= {f"gpu-{number:04d}" for number in range(1, 5)}
    swap_at_host(cell.cables)
    return cell


def hold_leaves(cell: FabricCell) -> None:
    """Work at the switches keeps the findings from being ticketed one by one."""
    for name in {cable.z.device for cable in cell.cables.design.cables}:
        assert cell.drive.ask("hold", f"switch:{name}", hours="1").granted


def walk_of(cell: FabricCell) -> Ticket:
    (walk,) = (ticket for ticket in cell.drive.fleet.tickets.values() if ticket.kind == "cabling_walk")
    return walk


def test_a_rack_s_findings_are_one_ticket_from_the_lowest_unit_up_and_link_what_has_a_ticket() -> None:
    """Mutants: findings of another rack are on the way; U17 comes before U9; a finding is ticketed twice."""
    cell = a_hall()
    cell.look()
    own = {case.id: case.ticket for case in cell.cases}
    assert len(cell.tickets) == 4
    reply = cell.drive.ask("walk-findings", NAME, person="tess", rack="r01")
    assert reply.granted, reply.text
    walk = walk_of(cell)
    assert [(stop.rack, stop.unit) for stop in walk.walk] == [("r01", "1"), ("r01", "17"), ("r01", "25")]
    assert all(stop.ticket == own[stop.finding] and stop.steps for stop in walk.walk)
    assert "3 findings on one walk; 3 of them have tickets of their own" in walk.summary
    assert {case.id: case.ticket for case in cell.cases} == own
    cell.look()
    assert len(cell.tickets) == 4
    again = cell.drive.ask("walk-findings", NAME, rack="r01")
    assert not again.granted
    assert f"ticket {walk.id} is a walk of rack r01 already" in again.text


def test_what_has_no_ticket_is_asked_for_by_the_walk_and_stays_open_until_it_is_found_no_more() -> None:
    """Mutants: a finding on an open walk gets a ticket besides; closing forgets what stays."""
    cell = a_hall()
    hold_leaves(cell)
    cell.look()
    assert cell.tickets == []
    assert cell.drive.ask("walk-findings", NAME, rack="r01").granted
    walk = walk_of(cell)
    assert [stop.ticket for stop in walk.walk] == ["", "", ""]
    cell.drive.wait(seconds=2 * 3600)
    cell.look()
    assert [ticket.fault for ticket in cell.tickets] == ["swapped"], "the holds are over, and the rest is on the walk"
    waits = [case.waits for case in cell.cases if not case.ticket]
    assert waits == [f"ticket {walk.id} asks for it on a walk of rack r01"] * 3
    repaired = {"gpu-0001", "gpu-0003"}
    whole = a_fabric(3).links
    for port, far in whole.items():
        if port.device in repaired:
            cell.cables.join(port, far)
    assert cell.drive.ask("close-ticket", walk.id, person="tess").granted
    assert cell.fabric.asked is not None
    cell.look()
    cell.look()
    left = [ticket for ticket in cell.tickets if ticket.fault == "missing"]
    assert len(left) == 1
    assert "tess said that it was done, and it is still found" in left[0].summary
    assert {case.finding.kind for case in cell.cases} == {"missing", "swapped"}


def test_a_walk_ends_by_itself_when_none_of_its_findings_is_open() -> None:
    """Mutants: the first finding that closes takes the walk along; the walk outlives its network."""
    cell = a_hall()
    cell.look()
    assert cell.drive.ask("walk-findings", NAME, rack="r01").granted
    walk = walk_of(cell)
    for port, far in a_fabric(3).links.items():
        if port.device == "gpu-0001":
            cell.cables.join(port, far)
    cell.look()
    cell.look()
    assert len(cell.cases) == 3
    assert walk.id in cell.drive.fleet.tickets
    for port, far in a_fabric(3).links.items():
        if port.device in ("gpu-0003", "gpu-0004"):
            cell.cables.join(port, far)
    cell.look()
    cell.look()
    assert walk.id not in cell.drive.fleet.tickets
    assert [case.finding.kind for case in cell.cases] == ["swapped"]
    assert cell.drive.ask("walk-findings", NAME, rack=cell.cases[0].finding.places[0][0]).granted
    assert cell.drive.ask("remove-fabric", NAME).granted
    assert not cell.drive.fleet.tickets


def test_a_walk_of_nothing_is_refused_and_says_why() -> None:
    cell = FabricCell(Drive(), a_fabric(3))
    miss(cell.cables)
    cell.look()
    for given, said in (
        ({}, "name a rack or a row"),
        ({"rack": "r01", "row": "a"}, "name a rack or a row"),
        ({"rack": "r99"}, "no open finding of network ib0 is at rack r99"),
        ({"row": "a"}, "no open finding of network ib0 is at row a"),
    ):
        reply = cell.drive.ask("walk-findings", NAME, **given)
        assert not reply.granted
        assert said in reply.text


def test_stops_are_ticked_one_by_one_and_validations_prove_them_or_take_the_tick_back() -> None:
    """Mutants: a tick alone closes the walk; what is still found stays ticked; a tick asks for no validation."""
    cell = a_hall()
    cell.look()
    own = {case.id: case.ticket for case in cell.cases}
    assert cell.drive.ask("walk-findings", NAME, rack="r01").granted
    walk = walk_of(cell).id
    assert cell.drive.ask("tick-stop", walk, person="tess", stop="1").granted
    reply = cell.drive.ask("tick-stop", walk, person="tess", stop="2")
    assert reply.granted, reply.text
    assert "1 stops are left" in reply.text
    stops = walk_of(cell).walk
    assert [stop.done_by for stop in stops] == ["tess", "tess", ""]
    assert cell.fabric.asked is not None
    assert own[stops[0].finding] not in cell.drive.fleet.tickets, "its own ticket is closed by the tick"
    assert own[stops[2].finding] in cell.drive.fleet.tickets
    repair(cell, "gpu-0001")
    cell.look()
    first, second, _ = walk_of(cell).walk
    assert (first.done_by, first.proved) == ("tess", None), "one validation proves nothing yet"
    assert (second.done_by, second.found_again) == ("", cell.drive.now), "it is still found"
    cell.look()
    first, second, _ = walk_of(cell).walk
    assert first.proved == cell.drive.now
    again = next(case for case in cell.cases if case.id == second.finding)
    assert (again.ticket, again.waits) == ("", f"ticket {walk} asks for it on a walk of rack r01")
    repair(cell, "gpu-0003", "gpu-0004")
    for number in (2, 3):
        assert cell.drive.ask("tick-stop", walk, person="tess", stop=str(number)).granted
    cell.look()
    assert walk_of(cell).walk[1].done_by == "tess"
    cell.look()
    assert walk not in cell.drive.fleet.tickets
    told = cell.drive.transcript()
    assert f"tess ticked stop 1 of ticket {walk}" in told
    assert f"stop 2 of ticket {walk}" in told
    assert "is still found: it was ticked, and is not repaired" in told


def test_a_stop_that_is_none_is_not_ticked_and_a_partial_validation_takes_no_tick_back() -> None:
    """Mutants: stop 0 is the last one; another ticket is ticked; a partial look judges; a look from before it does."""
    cell = a_hall()
    cell.look()
    assert cell.drive.ask("walk-findings", NAME, rack="r01").granted
    walk = walk_of(cell).id
    early = cell.report()
    for target, number, said in (
        (walk, "4", f"walk {walk} has 3 stops, and no 4"),
        (cell.tickets[0].id, "1", f"no open walk {cell.tickets[0].id}"),
        ("t-0", "1", "no open walk t-0"),
    ):
        reply = cell.drive.ask("tick-stop", target, stop=number)
        assert not reply.granted
        assert said in reply.text
    cell.drive.wait(seconds=60)
    assert cell.drive.ask("tick-stop", walk, person="tess", stop="1").granted
    cell.look(Discovery({}, (), "the tool hung"))
    assert walk_of(cell).walk[0].done_by == "tess"
    cell.drive.step(FabricSeen(early))
    assert walk_of(cell).walk[0].done_by == "tess"


def repair(cell: FabricCell, *hosts: str) -> None:
    """Put these hosts' cables where the design has them."""
    for port, far in a_fabric(3).links.items():
        if port.device in hosts:
            cell.cables.join(port, far)


def test_a_stop_whose_finding_has_become_part_of_another_is_proved_with_that_one() -> None:
    """Mutants: the stop counts as repaired when its finding is closed; the walk ends with it."""
    cell = a_hall()
    cell.look()
    assert cell.drive.ask("walk-findings", NAME, rack="r01").granted
    report, (first, *others) = cell.report(), walk_of(cell).walk
    gone = next(case for case in cell.cases if case.id == first.finding)
    assert cell.drive.ask("close-ticket", gone.ticket).granted, "nobody is asked for it now: the other one goes on"
    heir = next(case for case in cell.cases if case.finding.kind == "swapped")
    by_key = {finding.key: finding for finding in report.findings}
    lost = by_key.pop(gone.finding.key)
    by_key[heir.finding.key] = replace(heir.finding, ports=(*heir.finding.ports, *lost.ports))
    cell.tell(report, *by_key.values())
    assert gone.id not in cell.drive.fleet.fabric_cases
    stop = walk_of(cell).walk[0]
    assert (stop.finding, stop.proved) == (heir.id, None)
    cell.tell(report)
    cell.tell(report)
    assert cell.cases == []
    assert not any(ticket.kind == "cabling_walk" for ticket in cell.drive.fleet.tickets.values())
    assert others
