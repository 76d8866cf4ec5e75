"""A provider's machine in the place of a return: when it is asked for, and what the new instance becomes."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, Replied, Tick
from hostler.core.report.next_actor import acts_next
from hostler.core.report.sentences import sentence
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Node, Outcome, Phase
from hostler.core.state.operations import ReplaceMachine
from hostler.core.state.provider import instance_of
from tests.kit import NOW, Drive, a_node, configuration, pool_document

NAMES = (Binding("provider", "cloud/i-1", NOW), Binding("serial", "SN1", NOW), Binding("hostname", "w1", NOW))
NEW = {"instance": "i-2", "hostname": "w1", "serial": "SN2", "macs": "52:54:00:00:00:01"}


def rented(phase: Phase = Phase.rma, bindings: tuple[Binding, ...] = NAMES) -> Node:
    made = a_node("a", pool="")
    return replace(made, bindings=bindings, phase=phase, provisioner="none", assignment=None, tags=(("env", "lab"),))


def a_drive(*nodes: Node) -> Drive:
    drive = Drive(configuration({"train": pool_document(modes={"*": "observe"})}), nodes, quiet=True)
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    return drive


def answered(drive: Drive, result: str, detail: str = "", **facts: Any) -> None:
    operation = drive.node("a").aside
    assert operation is not None
    drive.step(Replied(Outcome(operation.id, "a", result, detail, facts)))


def test_the_new_instance_is_a_node_of_its_own_and_the_old_one_is_retired() -> None:
    """Mutants: the old node gets the new instance's names, and with them its convictions; a name that both have is
    refused as taken; the history of neither tells of the other.
    """
    drive = a_drive(rented())
    told = drive.ask("replace-instance", "a")
    assert (told.granted, "i-1" in told.text) == (True, True)
    assert drive.node("a").aside.act == ReplaceMachine()  # type: ignore[union-attr]
    answered(drive, "done", **NEW)
    (new,) = drive.fleet.nodes.values()
    assert ("a" in drive.fleet.retired, new.id != "a", new.provisioner, new.sku) == (True, True, "provider", "h100")
    assert (instance_of(new).id, new.binding("hostname"), new.binding("serial")) == ("i-2", "w1", "SN2")  # type: ignore[union-attr]
    assert (new.position.rack, new.tags) == (rented().position.rack, (("env", "lab"),))
    (event,) = drive.events(e.InstanceReplaced)
    assert e.subjects_of(event) == ("a", new.id)
    assert "i-1" in sentence(event)
    assert "i-2" in sentence(event)


@pytest.mark.parametrize("result", ["failed", "refused"])
def test_what_came_to_nothing_leaves_the_node_as_it_was_and_may_be_asked_again(result: str) -> None:
    """Mutants: the node is retired before the provider names another; it is asked again by itself."""
    drive = a_drive(rented())
    assert drive.ask("replace-instance", "a").granted
    answered(drive, result, "no more of this kind")
    node = drive.node("a")
    assert (node.phase, node.machine_work.state, node.aside) == (Phase.rma, result, None)  # type: ignore[union-attr]
    assert "no more of this kind" in node.machine_work.detail  # type: ignore[union-attr]
    assert drive.ask("replace-instance", "a").granted


def test_an_instance_that_another_node_has_is_a_failure_to_be_read() -> None:
    """Mutants: the old node is retired all the same; the controller's step ends."""
    other = replace(a_node("b", pool=""), bindings=(Binding("serial", "SN2", NOW),))
    drive = a_drive(rented(), other)
    assert drive.ask("replace-instance", "a").granted
    answered(drive, "done", **NEW)
    assert set(drive.fleet.nodes) == {"a", "b"}
    work = drive.node("a").machine_work
    assert (work.state, "SN2 is bound to b" in work.detail, "i-2" in work.detail) == ("failed", True, True)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (rented(Phase.triage), "rma-send a"),
        (rented(Phase.production), "rma-send a"),
        (rented(bindings=NAMES[1:]), "rebind a --kind provider"),
    ],
    ids=("triage", "production", "no provider"),
)
def test_of_whom_it_is_not_asked(node: Node, said: str) -> None:
    drive = a_drive(node)
    told = drive.ask("replace-instance", "a")
    assert (told.granted, said in told.text) == (False, True)


def test_it_is_asked_once_at_a_time() -> None:
    drive = a_drive(rented())
    assert drive.ask("replace-instance", "a").granted
    assert not drive.ask("replace-instance", "a").granted


def test_a_pause_holds_it_up() -> None:
    """Mutant: work of a provider passes no guard."""
    drive = a_drive(rented())
    assert drive.ask("pause", "fleet").granted
    assert drive.ask("replace-instance", "a").granted
    drive.wait(minutes=11)
    assert drive.operations("a") == []
    assert drive.ask("resume", "fleet").granted
    drive.wait(minutes=11)
    assert drive.operations("a") == ["replace_machine"]


def test_the_wait_says_whose_turn_it_is_and_by_which_command() -> None:
    """Mutants: a rented machine waits for a technician to send it; what the provider refused is nobody's."""
    drive = a_drive(rented())
    drive.step(Tick())

    def shown() -> tuple[str, str, str]:
        (blocker,) = drive.node("a").waiting.blockers  # type: ignore[union-attr]
        return blocker.kind, acts_next(drive.fleet, drive.node("a")).who.value, f"{blocker.text}: {blocker.ends_when}"

    kind, who, text = shown()
    assert (kind, who, "hostler node replace-instance a --reason" in text) == ("person", "operator", True)
    assert drive.ask("replace-instance", "a").granted
    assert shown()[:2] == ("provider", "vendor")
    answered(drive, "refused", "quota exceeded")
    kind, who, text = shown()
    assert (kind, who, "refused, quota exceeded" in text, "replace-instance a" in text) == (
        "person",
        "operator",
        True,
        True,
    )
