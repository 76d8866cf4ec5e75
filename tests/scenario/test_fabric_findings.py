"""Findings of a registered network: each with one ticket, ended by validations and by nobody's word."""

from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.discovery import Discovery
from hostler.core.fabric.findings import Kind
from hostler.core.intents.fabrics import by_size, prepared
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.cases import Incident
from hostler.core.state.fabrics import FabricVerdict, PlannedWork
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import HoldKind, Phase
from hostler.core.state.snapshot import dump, load, state_of
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import FAULTS, LARGE, Fabric, a_fabric, exchange_hosts, miss, swap_at_host
from tests.kit import Drive, a_hold, a_node, after, digest, fold


def a_cell(seed: int = 0, *nodes: object) -> FabricCell:
    return FabricCell(Drive(nodes=nodes), a_fabric(seed))  # type: ignore[arg-type]


def incidents(cell: FabricCell) -> list[Incident]:
    return list(cell.drive.fleet.incidents.values())


PARTIAL = Discovery({}, (), "the tool hung")


def test_a_validation_as_designed_is_recorded_once_and_the_same_again_writes_nothing() -> None:
    cell = a_cell()
    assert cell.look() == 1
    assert cell.fabric.look is not None
    assert (cell.fabric.look.verdict, cell.cases, cell.tickets) == (FabricVerdict.as_designed, [], [])
    assert [cell.look(), cell.look()] == [0, 0]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_one_finding_with_one_ticket_and_two_clean_runs_end_both(fault: Callable[[Fabric], Kind]) -> None:
    """Mutants: a finding is opened anew by each look; one clean look is enough; the ticket stays open."""
    cell = a_cell(7)
    whole = a_fabric(7).discovery()
    kind = fault(cell.cables)
    cell.look()
    (ticket,) = cell.tickets
    assert (ticket.fault, ticket.id) == (kind.value, cell.cases[0].ticket)
    assert "1. " in ticket.action
    assert cell.look() == 0
    cell.look(whole)
    assert cell.tickets == [ticket]
    cell.look(whole)
    assert (cell.cases, cell.tickets) == ([], [])


def test_84_faults_are_84_tickets_and_half_a_repair_leaves_the_rest() -> None:
    cables, rng = a_fabric(84, LARGE), Random(84)
    cell = FabricCell(Drive(), cables)
    planted = Counter(rng.choice(FAULTS)(cables).value for _ in range(84))
    cell.look()
    assert Counter(ticket.fault for ticket in cell.tickets) == planted
    keys = {case.finding.key for case in cell.cases}
    report = cell.report()
    left = tuple(finding for number, finding in enumerate(report.findings) if number % 2)
    for turn in ("half", "again"):
        cell.drive.wait(seconds=60)
        look = replace(report.look, began=cell.drive.now, digest=turn)
        cell.drive.step(FabricSeen(replace(report, look=look, findings=left)))
    assert {case.finding.key for case in cell.cases} == {finding.key for finding in left} < keys
    assert len(cell.tickets) == len(left) == 42


def test_a_finding_whose_device_does_not_answer_is_not_taken_for_repaired() -> None:
    """Mutants: what nobody sees counts as repaired; the dark device is taken for the same finding."""
    cell = a_cell(7)
    whole = a_fabric(7).discovery()
    miss(cell.cables)
    cell.look()
    (case,) = cell.cases
    cell.close(cell.tickets[0])
    host = next(name for name in case.finding.devices if name not in case.finding.switches)
    cell.cables.silent.add(host)
    for _ in range(3):
        cell.look()
        cell.drive.wait(seconds=60)
    (known,) = [one for one in cell.cases if one.finding.key == case.finding.key]
    assert (known.finding.kind, known.clean) == ("missing", 0)
    assert known.waits == f"{host} does not answer: how its cables lie is seen when it does"
    assert [ticket.fault for ticket in cell.tickets] == ["dark_device"]
    cell.look(whole)
    cell.look(whole)
    assert (cell.cases, cell.tickets) == ([], [])


def test_a_link_that_comes_back_between_two_looks_starts_the_count_anew() -> None:
    cell = a_cell()
    whole = cell.cables.discovery()
    swap_at_host(cell.cables)
    cell.look()
    cell.look(whole)
    assert [case.clean for case in cell.cases] == [1]
    cell.look()
    assert [case.clean for case in cell.cases] == [0]
    cell.look(whole)
    assert len(cell.cases) == 1


def test_half_a_repair_is_the_same_finding_with_the_same_ticket() -> None:
    cell = a_cell()
    exchange_hosts(cell.cables)
    swap_at_host(cell.cables)
    cell.look()
    before = {case.finding.key: case.ticket for case in cell.cases}
    (swap,) = (case for case in cell.cases if case.finding.kind == "swapped")
    cell.cables.pull(next(p for p in cell.cables.links if str(p) == swap.finding.ports[0]))
    cell.look()
    assert {case.finding.key: case.ticket for case in cell.cases} == before
    updated = cell.drive.fleet.tickets[swap.ticket]
    assert updated.updated is not None


@pytest.mark.parametrize("named_after", ["the first", "the second", "neither"])
@pytest.mark.parametrize("asked", ["the first", "the second", "both", "neither"])
def test_findings_that_have_become_one_repair_are_asked_for_once(asked: str, named_after: str) -> None:
    """A technician plugs the cable of one finding into a port of the other.

    Mutants: the one whose key it has goes on with a ticket of its own beside the other's; both tickets stay; the one
    that nobody asks for goes on; what was given up counts as repaired.
    """
    cell = a_cell(7)
    miss(cell.cables)
    swap_at_host(cell.cables)
    report = cell.report()
    names = ("the first", "the second")
    told = {
        name: replace(one, planned=PlannedWork.none if asked in (name, "both") else PlannedWork.under_way)
        for name, one in zip(names, report.findings, strict=True)
    }
    cell.tell(report, *told.values())
    before = {case.finding.key: case.ticket for case in cell.cases}
    assert sum(bool(ticket) for ticket in before.values()) == {"both": 2, "neither": 0}.get(asked, 1)
    one, other = report.findings
    key = {**{name: told[name].key for name in names}, "neither": "port:another"}[named_after]
    merged = replace(other, key=key, ports=(*one.ports, *other.ports), devices=(*one.devices, *other.devices))
    cell.tell(report, merged)
    (case,) = cell.cases
    assert case.finding.ports == merged.ports
    assert [ticket.id for ticket in cell.tickets] == [case.ticket]
    if asked in names:
        assert case.ticket == before[told[asked].key], "nobody is sent there twice"
    assert cell.tickets[0].summary == f"{merged.headline}."
    cell.tell(report)
    cell.tell(report)
    assert (cell.cases, cell.tickets) == ([], [])


def test_a_repair_that_comes_apart_keeps_its_ticket_for_one_part() -> None:
    """Mutant: two open findings are told of the same ports."""
    cell = a_cell(7)
    miss(cell.cables)
    swap_at_host(cell.cables)
    report = cell.report()
    one, other = report.findings
    cell.tell(report, replace(other, ports=(*one.ports, *other.ports)))
    (known,) = cell.tickets
    cell.tell(report, one, other)
    assert sorted(case.finding.ports for case in cell.cases) == sorted([one.ports, other.ports])
    assert known.id in {case.ticket for case in cell.cases}
    assert len(cell.tickets) == 2


@pytest.mark.parametrize("seen", ["hang", "shrunken"])
def test_a_look_that_saw_part_of_it_is_recorded_tickets_nothing_and_says_so(seen: str) -> None:
    """Mutant: what a partial discovery lacks counts as a clean run."""
    cell = a_cell()
    swap_at_host(cell.cables)
    cell.look()
    before = cell.cases
    cell.cables.silent = {"spine-001", "spine-002", "spine-003", "gpu-0001", "gpu-0002", "gpu-0003", "gpu-0004"}
    bad = PARTIAL if seen == "hang" else None
    assert cell.look(bad) == 1
    assert cell.fabric.look is not None
    assert not cell.fabric.look.verdict.concludes
    assert cell.fabric.look.why
    assert "nothing is concluded" in cell.drive.transcript()
    assert [cell.look(bad), cell.cases] == [0, before]


def test_done_without_a_clean_run_ends_nothing_and_asks_at_once() -> None:
    """Mutant: closing the ticket closes the finding."""
    cell = a_cell()
    swap_at_host(cell.cables)
    cell.look()
    (ticket,) = cell.tickets
    cell.close(ticket)
    assert len(cell.tickets) == 0
    assert cell.fabric.asked is not None
    assert "tess" in cell.cases[0].waits
    cell.look(PARTIAL)  # it says nothing, so the question stands
    assert (cell.fabric.asked is not None, cell.tickets) == (True, [])
    cell.look()
    assert cell.drive.fleet.fabrics[NAME].asked is None
    (again,) = cell.tickets
    assert again.id != ticket.id
    assert "tess said that it was done, and it is still found" in again.summary


def test_a_report_of_an_older_design_says_nothing() -> None:
    cell = a_cell()
    swap_at_host(cell.cables)
    old = cell.report()
    cell.register(design=cell.fabric.design.replace("4xHDR", "2xHDR"))
    assert len(cell.fabric.versions) == 2
    before = len(cell.drive.journal)
    cell.drive.step(FabricSeen(old))
    assert len(cell.drive.journal) == before


@pytest.mark.parametrize("why", ["hold", "window", "phase", "rack hold"])
def test_what_stands_in_maintenance_is_expected_and_ticketed_when_that_is_over(why: str) -> None:
    node = a_node("gpu-0001", phase=Phase.onboard if why == "phase" else Phase.production)
    cell = a_cell(0, node)
    cell.cables.used = {d for d in cell.cables.design.devices if d.startswith("gpu") and d != "gpu-0001"}
    miss(cell.cables)
    ask = cell.drive.ask
    if why == "hold":
        assert ask("hold", "gpu-0001").granted
    elif why == "rack hold":
        assert ask("hold", "rack:r1").granted
    elif why == "window":
        window = {"starts": after(minutes=0).isoformat(), "ends": after(hours=1).isoformat()}
        assert ask("schedule-maintenance", "gpu-0001", **window).granted
    cell.look()
    (case,) = cell.cases
    assert (case.ticket, cell.tickets) == ("", [])
    assert "gpu-0001" in case.waits
    if why in ("hold", "rack hold"):
        for hold in list(cell.drive.fleet.holds.values()):
            assert ask("release", hold.id).granted
    elif why == "window":
        cell.drive.wait(hours=2)
    if why != "phase":
        cell.look()
        assert len(cell.tickets) == 1


@pytest.mark.parametrize("verb", ["hold", "schedule-maintenance"])
def test_a_switch_is_in_maintenance_by_its_name(verb: str) -> None:
    """Mutants: what is found there is ticketed all the same; any word is a switch."""
    cell = a_cell()
    leaf = "leaf-001-1"
    cell.cables.pull(cell.cables.ports(leaf)[0])
    ask, span = cell.drive.ask, {"starts": after(minutes=0).isoformat(), "ends": after(hours=1).isoformat()}
    args = span if verb == "schedule-maintenance" else {}
    for unknown in ("switch:leaf-1", "switch:", "switch:gpu-0001", "switch:r01", "switch:leaf.001.1", "switch:a_node"):
        refused = ask(verb, unknown, **args)
        assert not refused.granted, unknown
        assert "design names a switch" in refused.text
    assert ask(verb, f"switch:{leaf}", **args).granted
    cell.look()
    assert (cell.tickets, f"switch {leaf} is" in cell.cases[0].waits) == ([], True)
    if verb == "hold":
        assert ask("release", next(iter(cell.drive.fleet.holds.values())).id).granted
    else:
        cell.drive.wait(hours=2)
    cell.look()
    assert len(cell.tickets) == 1


def test_several_findings_of_one_switch_are_one_incident_that_ends_with_the_last() -> None:
    cell = a_cell(0, *(a_node(f"gpu-000{n}") for n in range(1, 7)))
    whole = cell.cables.discovery()
    leaf = "leaf-001-1"
    for port in list(cell.cables.ports(leaf))[:3]:
        cell.cables.pull(port)
    cell.look()
    assert len(cell.tickets) == 3
    (incident,) = incidents(cell)
    assert (incident.scope.text, incident.ticket, incident.holds) == (f"switch:{leaf}", "", False)
    assert len(incident.members) == 3
    said = f"incident {incident.id} opened: switch:{leaf} suspected by its cabling, it concerns 3 nodes"
    assert sentence(e.IncidentOpened(incident)) == said
    cell.drive.fault("gpu-0001")  # what else happens to a member is no business of this incident
    assert [i.id for i in incidents(cell)] == [incident.id]
    cell.look(whole)
    cell.look(whole)
    assert incidents(cell) == []
    assert cell.tickets == []


def test_a_removed_network_takes_its_findings_tickets_and_incidents_along() -> None:
    cell = a_cell()
    for port in list(cell.cables.ports("leaf-001-1"))[:3]:
        cell.cables.pull(port)
    cell.look()
    assert cell.drive.ask("remove-fabric", NAME).granted
    assert (cell.tickets, incidents(cell), list(cell.drive.fleet.fabrics)) == ([], [], [])


def test_a_snapshot_and_the_journal_hold_the_same() -> None:
    cell = a_cell()
    swap_at_host(cell.cables)
    cell.look()
    again = load(dump(state_of(cell.drive.fleet)))
    assert again.cases_of(NAME) == cell.cases
    assert again.fabrics[NAME] == cell.fabric
    assert digest(fold(cell.drive.journal)) == digest(cell.drive.fleet)


BAD: dict[str, tuple[dict[str, object], str]] = {
    "no name": ({"name": ""}, "small letters"),
    "a name with a slash": ({"name": "a/b"}, "small letters"),
    "an adapter that is an option": ({"source": {"adapter": "-C"}}, "ibstat"),
    "an adapter with a newline": ({"source": {"adapter": "mlx5_0\n"}}, "ibstat"),
    "a port beyond": ({"source": {"port": 256}}, "1 to 255"),
    "a tool of nobody": ({"source": {"tool": "sh"}}, "ibnetdiscover"),
    "UFM without an address": ({"source": {"tool": "ufm"}}, "UFM's address"),
    "an address without UFM": ({"source": {"url": "https://ufm"}}, "UFM's address"),
    "an address that is read in the clear": ({"source": {"tool": "ufm", "url": "http://ufm"}}, "https://HOST"),
    "an address with a path": ({"source": {"tool": "ufm", "url": "https://ufm/x?y"}}, "https://HOST"),
    "a secret with no place": ({"source": {"tool": "ufm", "url": "https://ufm", "secret": "../x"}}, "folder:ufm"),
    "an agent that asks UFM": ({"source": {"tool": "ibdiagnet", "nodes": ["a"]}}, "agents have no ibdiagnet"),
    "a node with a slash": ({"source": {"nodes": ["a/b"]}}, "names of nodes"),
    "nodes without end": ({"source": {"nodes": ["a"] * 9}}, "names of nodes"),
    "an authority without end": ({"source": {"ca": "x" * 20_000}}, "PEM of up to"),
    "a period of nothing": ({"period_s": 0}, "300 to"),
    "not a number": ({"period_s": "x"}, "float"),
    "neither design nor rule": ({"design": ""}, "no design"),
    "both": ({"rule": {"hosts": 4}}, "both"),
    "a design of nothing": ({"design": "a_node,a_port,z_node,z_port\n"}, "no cable"),
    "a cable to itself": ({"design": "a_node,a_port,z_node,z_port\nx,1,x,1\n"}, "to itself"),
    "a manager that is no GUID": ({"subnet_manager": {"guids": ["sm-1"]}}, "port's GUID"),
    "more in standby than there are": (
        {"subnet_manager": {"guids": ["0x1", "0x01"], "min_standby": 1}},
        "one of them is",
    ),
    "less than none in standby": ({"subnet_manager": {"min_standby": -1}}, "min_standby from 0"),
    "managers without end": ({"subnet_manager": {"guids": ["0x1"] * 17}}, "up to 16 GUIDs"),
    "a manager with a field that is none": ({"subnet_manager": {"guid": "0x1"}}, "guid"),
    "a partition that is none": ({"partitions": ["tenant1"]}, "partition key"),
    "the partition of nobody": ({"partitions": ["0x8000"]}, "partition key"),
    "partitions without end": ({"partitions": ["0x7fff"] * 1001}, "up to 1,000"),
    "a routing engine with a blank": ({"routing": "ft ree"}, "opensm names it"),
    "a subnet of an Ethernet network": ({"source": {"tool": "lldp"}, "routing": "ftree"}, "tell of a subnet"),
    "routing by an agent": ({"source": {"nodes": ["a"]}, "routing": "ftree"}, "controller's host"),
    "what nobody knows": ({"speed": 4}, "speed"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_registration_is_refused_whole(name: str) -> None:
    spec, said = BAD[name]
    cell = a_cell()
    before = cell.fabric
    with pytest.raises(AssertionError, match=said):
        cell.register(**spec)
    assert list(cell.drive.fleet.fabrics.values()) == [before]


def test_a_hold_of_somebody_else_than_hands_expects_nothing() -> None:
    """A cordon keeps work away; the cables stay."""
    cell = a_cell(0, a_node("gpu-0001"))
    record = e.HoldPlaced(a_hold("gpu-0001", HoldKind.cordon))
    cell.drive.journal.append(e.Record(len(cell.drive.journal) + 1, cell.drive.now, 1, "test", record))
    cell.drive.begin(2)
    cell.cables.used = {d for d in cell.cables.design.devices if d.startswith("gpu") and d != "gpu-0001"}
    miss(cell.cables)
    cell.look()
    assert len(cell.tickets) == 1


def test_a_discovery_has_longer_where_its_design_is_large_and_a_time_that_is_given_holds() -> None:
    """Mutants: a large network has the time of a small one; a given time is overruled; 0 is recorded."""
    small = FabricCell(Drive(), a_fabric(3))
    assert small.fabric.source.timeout_s == 300.0
    small.register(source={"timeout_s": 77.0})
    assert small.fabric.source.timeout_s == 77.0
    assert [by_size(cables) for cables in (24_576, 98_304, 10_000_000)] == [300, 900, 3600]
    spec = {"name": NAME, "design": small.fabric.design, "source": {"timeout_s": 0.5}}
    with pytest.raises(InvalidInputError, match="or 0 for the design's size"):
        prepared(msgspec.json.encode(spec).decode())
