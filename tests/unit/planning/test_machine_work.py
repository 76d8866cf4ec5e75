"""Work of an Ironic on a machine: of whom it may be asked, when it begins, and how its end is kept."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, Replied
from hostler.core.planning.machine_work import beside
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.decisions import Act, Rest, Wait
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.machine_work import MachineWork
from hostler.core.state.model import HoldKind, Node, Outcome, Part, Phase
from hostler.core.state.operations import CleanMachine, DeployImage, InspectMachine
from tests.kit import NOW, Drive, a_node, configuration, pool_document
from tests.unit.planning.values import a_context, an_operation, held, idle

BMC = (Binding("bmc", "https://10.0.0.1", NOW), Binding("serial", "SN1", NOW))
SUM = "ab" * 32


def machine(phase: Phase = Phase.triage, **fields: Any) -> Node:
    made = replace(a_node("a", pool=""), bindings=BMC, phase=phase, provisioner="ironic", assignment=None)
    return replace(made, **fields)


def a_drive(node: Node, **sku: Any) -> Drive:
    drive = Drive(configuration({"train": pool_document(modes={"*": "observe"})}, **sku), (node,), quiet=True)
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    return drive


def test_what_is_asked_for_begins_once_and_its_end_is_kept_with_what_was_said() -> None:
    """Mutants: what failed begins again by itself; an inspection's findings are lost."""
    drive = a_drive(machine(Phase.debug))
    assert drive.ask("inspect", "a").granted
    operation = drive.node("a").aside
    assert operation is not None
    assert (operation.act, drive.node("a").machine_work.state) == (InspectMachine(), "begun")  # type: ignore[union-attr]
    assert not drive.ask("clean", "a", steps="deploy.erase_devices").granted
    drive.step(_reply(drive, "done", {"cpus": "64"}))
    kept = drive.node("a").machine_work
    assert kept is not None
    assert (kept.state, kept.told, drive.node("a").aside) == ("done", {"cpus": "64"}, None)
    assert drive.ask("deploy", "a", image="http://h/i.raw", checksum=SUM.upper()).granted
    assert drive.node("a").aside.act == DeployImage("http://h/i.raw", SUM)  # type: ignore[union-attr]
    drive.step(_reply(drive, "failed", {}, "Ironic has it in 'deploy failed': no room"))
    after = drive.node("a")
    assert (after.machine_work.state, after.aside) == ("failed", None)  # type: ignore[union-attr]
    assert "no room" in after.machine_work.detail  # type: ignore[union-attr]


def test_an_inspection_s_parts_are_recorded_and_take_nothing_back_that_the_agent_has_read() -> None:
    """Mutants: the sum of a BMC's memory hides a module that the host does not see; evidence names an observation that
    nobody stored; parts of an inspection are told and forgotten.
    """
    drive = a_drive(machine(Phase.debug), parts={"nic_port": 2})
    ports = (Part("aa:bb:cc:00:00:01", "nic_port"),)
    memory = (Part("M1", "memory", slot="A1"),)
    drive.observe("a", "inventory", parts=memory, facts={"covers": "memory", "memory_kib": 256 * 2**20})
    assert drive.ask("inspect", "a").granted
    drive.step(_reply(drive, "done", {"covers": "nic_port", "memory_kib": 512 * 2**20}, parts=ports))
    node = drive.node("a")
    assert node.memory_gib == 256
    assert ("aa:bb:cc:00:00:01", "aa:bb:cc:00:00:01") in node.slots
    assert "bmc:nic_port" in node.inventory_covers
    [told] = [one for c in node.conditions for one in c.evidence if one.path == "bmc"]
    assert ("1 of 2 nic_port seen" in told.text, told.observation) == (True, "")


def _reply(drive: Drive, result: str, facts: dict[str, Any], detail: str = "", parts: tuple[Part, ...] = ()) -> Any:
    operation = drive.node("a").aside
    assert operation is not None
    return Replied(Outcome(operation.id, "a", result, detail, facts, parts, attempt=operation.attempt))


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (machine(provisioner="direct"), "not an Ironic's machine"),
        (machine(Phase.production), "move it to triage first"),
        (machine(Phase.initializing), "move it to triage first"),
        (a_node("a", bindings=BMC, provisioner="ironic"), "move it to triage first"),
    ],
)
def test_a_machine_that_serves_or_is_not_ironics_is_refused(node: Node, says: str) -> None:
    """Mutants: a customer's machine is written over; a machine of Hostler's own is an Ironic's."""
    answer = a_drive(node).ask("deploy", "a", image="http://h/i.raw", checksum=SUM)
    assert not answer.granted
    assert says in answer.text


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("deploy", {"image": "http://h/i", "checksum": "abc"}),
        ("deploy", {"image": "ftp://h/i", "checksum": SUM}),
        ("deploy", {"image": "http://u:p@h/i", "checksum": SUM}),
        ("deploy", {"image": "http://h/i", "checksum": SUM, "configdrive": "data"}),
        ("clean", {"steps": " "}),
        ("clean", {"steps": "erase"}),
        ("clean", {"steps": "deploy.erase;rm"}),
    ],
)
def test_what_no_ironic_could_do_is_refused_before_it_is_asked(verb: str, args: dict[str, str]) -> None:
    assert not a_drive(machine()).ask(verb, "a", **args).granted


def test_it_waits_for_holds_and_for_what_is_done_at_the_bmc() -> None:
    """Mutants: a hold stops nobody; two things act on one machine."""
    steps = CleanMachine(("deploy.erase_devices",))
    work = MachineWork(steps, "ann", "why", NOW)
    node = machine(machine_work=work)
    context = idle(a_context(node), "a")
    answer = beside(context, node, Rest())
    assert isinstance(answer, Act)
    assert [type(event) for event in answer.events] == [e.OperationStarted]
    stopped = beside(held(context, HoldKind.operator), node, Rest())
    assert isinstance(stopped, Wait)
    assert [b.kind for b in stopped.blockers] == ["hold"]
    for busy in ({"operation": an_operation("power_on", "a")}, {"aside": an_operation("power_on", "a")}):
        assert beside(context, replace(node, **busy), Rest()) == Rest()
    done = replace(node, machine_work=replace(work, state="failed"))
    assert beside(context, done, Rest()) == Rest()
