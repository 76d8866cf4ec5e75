"""Hands go into a machine only where it is known to be dark, drained and left alone."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller import intake
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Node, Operation, Phase
from tests.kit import NOW, Drive, a_node, a_workload, after, configuration, pool_document

ONE = configuration({"train": pool_document(target=1)})


def dark(**fields: Any) -> Drive:
    """A node in debug, on which nothing runs and whose BMC says that it is off."""
    node = a_node("a", **{"pool": "", "phase": Phase.debug, **fields})
    drive = Drive(ONE, [node])
    drive.power["a"] = False
    drive.step(intake.NodeSeen("a", "off"))
    return drive


def answer(drive: Drive) -> str:
    """Why work may not start, "" where it did."""
    reply = drive.ask("start-work", "a", person="tina", serial="S-a")
    held = any(hold.kind is HoldKind.physical_work for hold in drive.fleet.holds.values())
    assert held is reply.granted
    return "" if reply.granted else reply.text


def an_operation() -> Operation:
    return Operation("o", "power_on", "a", "p", 0, NOW, after(hours=1))


def test_work_starts_on_a_dark_node_that_is_left_alone() -> None:
    assert answer(dark()) == ""


@pytest.mark.parametrize("power", ["on", "unknown", "powering_on", "powering_off", ""])
def test_work_starts_only_where_the_power_is_seen_off(power: str) -> None:
    """A BMC that does not answer says nothing. Mutants: only "on" is refused; the power is not asked for."""
    drive = dark()
    drive.step(intake.NodeSeen("a", power))
    drive.controller.present.of("a").power = power
    assert "is not seen powered off" in answer(drive)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"operation": an_operation()}, "an operation is under way or may still land"),
        ({"settling": (replace(an_operation(), settling=True),)}, "an operation is under way or may still land"),
    ],
)
def test_work_waits_for_what_may_still_power_the_node(change: dict[str, Any], why: str) -> None:
    """Mutants: either is not looked for."""
    drive = dark()
    node: Node = replace(drive.node("a"), **change)
    drive.fleet.put_node("a", node)
    assert why in answer(drive)


def test_work_waits_for_the_pool_to_let_its_node_go() -> None:
    """Dark, and nothing runs on it: it is its pool's all the same. Mutant: only work counts."""
    drive = dark(pool="train", phase=Phase.production)
    assert "serves pool train" in answer(drive)


@pytest.mark.parametrize("known", [True, False])
def test_work_waits_for_customers_work_and_for_knowing_of_it(known: bool) -> None:
    """Mutants: unknown work is none; what is listed on a dark node does not count."""
    drive = dark(pool="train", phase=Phase.production)
    if known:
        drive.see_work("a", a_workload("w"))
    else:
        drive.begin(2, quiet=True)
        drive.step(intake.NodeSeen("a", "off"))
    assert "is not drained" in answer(drive)


def test_the_platforms_own_work_is_in_nobodys_way() -> None:
    """Mutant: a DaemonSet's pod keeps the technician waiting."""
    drive = dark(pool="train", phase=Phase.production)
    drive.see_work("a", a_workload("ds", kind="infrastructure"))
    assert "serves pool train" in answer(drive), "which is another answer than: not drained"


def test_the_serial_at_the_rack_is_the_nodes_or_the_tickets() -> None:
    """Mutants: any serial is right; the ticket of another node is."""
    drive = dark()
    assert not drive.ask("start-work", "a", person="tina", serial="S-b").granted
    assert not drive.ask("start-work", "a", person="tina").granted
    assert answer(drive) == ""
    assert [h.hold.kind for h in drive.events(e.HoldPlaced)] == [HoldKind.physical_work]
