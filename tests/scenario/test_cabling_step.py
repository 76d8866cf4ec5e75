"""Seatrial's cabling step: a node passes by a validation of this bring-up that finds all its ports as designed."""

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from hostler.controller import inputs
from hostler.controller.inputs import FabricSeen
from hostler.core.fabric.design import Design
from hostler.core.fabric.design_csv import render_csv
from hostler.core.fabric.discovery import Discovery
from hostler.core.state import events as e
from hostler.core.state.model import Phase
from tests.fabric_cell import NAME, FabricCell
from tests.fabrics import Fabric, a_fabric, darken_host, miss, narrow, refit, rotate, slow, swap_at_host
from tests.kit import NOW, Drive, a_node, configuration, pool_document

HOST = "gpu-0001"


def of_this_host(seed: int) -> Fabric:
    """A network whose faults are this machine's."""
    cables = a_fabric(seed)
    cables.used = {name for name in cables.design.devices if name.startswith("gpu") and name != HOST}
    return cables


def bringing_up(seed: int = 0, node_id: str = HOST, **fields: object) -> FabricCell:
    """A machine that has just come to seatrial, in a cell that knows the network."""
    node = a_node(node_id, pool="", phase=Phase.onboard, **fields)
    drive = Drive(nodes=[node], quiet=True)
    cell = FabricCell(drive, of_this_host(seed))
    assert drive.ask("certify", node_id).granted
    return cell


def up(cell: FabricCell, node_id: str = HOST) -> FabricCell:
    """Have its agent heard, and it comes to its cabling step."""
    cell.drive.step(inputs.NodeSeen(node_id, "on"), inputs.AgentHeard(node_id, f"{node_id}-b1"))
    cell.drive.run()
    plan = cell.drive.node(node_id).plan
    assert plan is not None
    assert plan.steps[plan.index].operation == "verify_cabling"
    return cell


def said(cell: FabricCell, node_id: str = HOST) -> str:
    waiting = cell.drive.node(node_id).waiting
    return "; ".join(b.text for b in waiting.blockers) if waiting is not None else ""


def verdicts(cell: FabricCell) -> list[str]:
    checks = (record.check for record in cell.drive.events(e.CheckRecorded))
    return [check.verdict.value for check in checks if check.profile == "cabling"]


def has_gone_on(cell: FabricCell) -> bool:
    return "run_checks" in cell.drive.operations(HOST)


def test_a_node_passes_by_a_validation_and_not_before() -> None:
    """Mutant: no validation is as good as one that found nothing."""
    cell = up(bringing_up())
    assert not has_gone_on(cell)
    assert "no validation of ib0 has concluded anything" in said(cell)
    cell.look()
    cell.drive.run()
    assert verdicts(cell) == ["passed"]
    assert has_gone_on(cell)


@pytest.mark.parametrize("kind", ["hostname", "kubernetes", "slurm"])
def test_the_design_may_call_it_by_another_name(kind: str) -> None:
    node = a_node("n1")
    named = replace(node.bindings[0], kind=kind, value=HOST)
    cell = up(bringing_up(node_id="n1", bindings=(*node.bindings, named)), "n1")
    cell.look()
    assert verdicts(cell) == ["passed"]


def test_a_node_that_no_design_names_has_no_such_step() -> None:
    cell = bringing_up(node_id="other")
    cell.drive.step(inputs.NodeSeen("other", "on"), inputs.AgentHeard("other", "other-b1"))
    plan = cell.drive.node("other").plan
    assert plan is not None
    assert "verify_cabling" not in [step.operation for step in plan.steps]


@pytest.mark.parametrize("fault", [swap_at_host, rotate, miss, narrow, slow], ids=lambda fault: fault.__name__)
def test_wrong_cabling_names_the_port_its_far_end_and_what_is_there(fault: Callable[[Fabric], object]) -> None:
    """Mutants: a slow link passes; the node goes to triage; a second ticket asks for the same."""
    cell = up(bringing_up())
    fault(cell.cables)
    cell.look()
    wrong = next(link for link in cell.report().links.of(HOST) if link.condition.value != "as_designed")
    assert verdicts(cell) == ["failed"]
    assert wrong.a in said(cell)
    assert wrong.z in said(cell)
    assert (wrong.a_found or "no link") in said(cell)
    cell.drive.wait(days=2)
    assert cell.drive.node(HOST).phase is Phase.seatrial
    assert [ticket.kind for ticket in cell.drive.fleet.tickets.values()] == ["cabling"]
    assert not has_gone_on(cell)


def test_closing_the_ticket_asks_and_the_clean_run_lets_it_go_on() -> None:
    cell = up(bringing_up())
    whole = cell.cables.discovery()
    swap_at_host(cell.cables)
    cell.look()
    cell.close(cell.tickets[0])
    assert not has_gone_on(cell)
    cell.look()
    assert not has_gone_on(cell), "a word is no clean run"
    cell.look(whole)
    cell.drive.run()
    assert has_gone_on(cell)
    assert verdicts(cell)[-1] == "passed"
    assert not [c for c in cell.drive.node(HOST).conditions if c.type == "check.inconclusive"]


def test_a_look_from_before_the_phase_says_nothing() -> None:
    """Mutant: any look will do."""
    cell = bringing_up()
    report = cell.report()
    early = replace(report, look=replace(report.look, began=NOW - timedelta(seconds=1)))
    cell.drive.step(FabricSeen(early))
    up(cell)
    assert "from before the node came to seatrial" in said(cell)
    assert not has_gone_on(cell)


def test_a_look_from_before_the_node_was_up_passes_it_and_does_not_fail_it() -> None:
    """Mutant: the dark ports of a machine that is switched off convict it."""
    cell = bringing_up()
    darken_host(cell.cables)
    dark = cell.report()
    cell.drive.wait(seconds=30)
    up(cell)
    cell.drive.step(FabricSeen(dark))
    assert verdicts(cell) == []
    assert "before the node was up" in said(cell)
    cell.cables.silent.clear()
    cell.look()
    assert verdicts(cell) == ["passed"]


def test_partial_looks_leave_it_inconclusive_and_ask_a_person_in_the_end() -> None:
    cell = up(bringing_up())
    for _ in range(3):
        cell.look(Discovery({}, (), "the tool hung"))
    assert "the tool hung" in said(cell)
    assert verdicts(cell) == []
    cell.drive.wait(hours=2)
    assert verdicts(cell) == ["inconclusive"]
    assert [ticket.kind for ticket in cell.drive.fleet.tickets.values()] == ["check"]
    assert cell.drive.node(HOST).phase is Phase.seatrial
    cell.look()
    cell.drive.run()
    assert has_gone_on(cell)
    assert len(cell.drive.fleet.tickets) == 0


def test_a_rate_that_nobody_told_is_inconclusive() -> None:
    cell = up(bringing_up())
    whole = cell.cables.discovery()
    links = tuple(replace(link, rate=None) for link in whole.links)
    cell.look(Discovery(whole.devices, links))
    assert verdicts(cell) == []
    assert "did not say at which rate" in said(cell)


def test_an_adapter_that_calls_itself_otherwise_is_not_as_designed() -> None:
    cell = up(bringing_up())
    refit(cell.cables)
    cell.look()
    assert verdicts(cell) == ["failed"]


def test_a_restart_forgets_the_look_and_waits_for_another() -> None:
    cell = up(bringing_up())
    miss(cell.cables)
    cell.look()
    cell.drive.restart()
    assert "no validation of ib0 has concluded anything since the controller began" in said(cell)
    assert not has_gone_on(cell)


def test_a_network_that_is_removed_holds_nobody_up_and_proves_nothing() -> None:
    cell = up(bringing_up())
    assert cell.drive.ask("remove-fabric", NAME).granted
    cell.drive.wait(minutes=1)
    assert has_gone_on(cell)
    assert verdicts(cell) == []


def test_a_design_that_takes_over_without_the_node_lets_it_go_on_by_itself() -> None:
    """Mutant: the new design is taken over and its hosts are those of the old one."""
    cell = up(bringing_up())
    design = cell.cables.design
    rest = {name: device for name, device in design.devices.items() if name != HOST}
    cables = tuple(cable for cable in design.cables if HOST not in (cable.a.device, cable.z.device))
    spec = {"name": NAME, "design": render_csv(Design(rest, cables))}
    starts, ends = (cell.drive.now + timedelta(minutes=minutes) for minutes in (5, 15))
    window = {"starts": starts.isoformat(), "ends": ends.isoformat()}
    planned = cell.drive.ask("plan-recabling", NAME, fabric=msgspec.json.encode(spec).decode(), **window)
    assert planned.granted
    cell.drive.wait(minutes=16)
    assert cell.drive.events(e.DesignTakenOver)
    assert has_gone_on(cell)


def with_a_cable_in_hands(**said: str) -> FabricCell:
    """A spare of the network, validated as designed, that was dark while a technician was in it."""
    drive = Drive(configuration({"train": pool_document(target=0)}), [a_node(HOST, pool="")])
    cell = FabricCell(drive, of_this_host(0))
    cell.look()
    drive.power[HOST] = False
    drive.step(inputs.NodeSeen(HOST, "off"))
    assert drive.ask("start-work", HOST, person="tess", serial=drive.node(HOST).binding("serial")).granted
    drive.wait(minutes=5)
    assert drive.ask("end-work", HOST, person="tess", **said).granted
    drive.wait(minutes=10)
    return cell


def test_a_spare_whose_cable_was_drawn_is_a_spare_again_once_its_cabling_is_validated() -> None:
    """Mutants: a return has no such step; the look from before the repair passes it; a wrong port is let in."""
    cell = with_a_cable_in_hands(did="reseated", part="cable")
    assert "from before hands were in it" in said(cell)
    whole = cell.cables.discovery()
    swap_at_host(cell.cables)
    cell.look()
    assert verdicts(cell)[-1:] == ["failed"]
    cell.drive.wait(days=1)
    assert cell.drive.node(HOST).plan is not None, "it is no spare with its cable in the wrong port"
    cell.look(whole)
    cell.drive.wait(minutes=30)
    assert verdicts(cell)[-1] == "passed"
    assert cell.drive.node(HOST).plan is None, cell.drive.transcript(HOST)
    assert cell.drive.node(HOST).repairs == ()


def test_a_spare_whose_fan_was_exchanged_waits_for_no_validation() -> None:
    cell = with_a_cable_in_hands(did="swapped", part="fan")
    assert (cell.drive.node(HOST).plan, verdicts(cell)) == (None, [])
