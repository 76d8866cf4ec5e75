"""A repaired node is tested as deep as its repair asks for, then watched; what fails again is proposed for return."""

from typing import Any

import pytest

from hostler.controller.inputs import FellowsSeen, NodeSeen
from hostler.core.planning.idle_checks import waits
from hostler.core.report.explain import probation_of
from hostler.core.state import events as e
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase
from tests.kit import Drive, a_node, after, configuration, pool_document

POOLS = {"train": pool_document(target=1)}


def in_triage_for_maintenance() -> Drive:
    drive = Drive(configuration(POOLS), [a_node("a")])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    drive.ask("return-for-maintenance", "a")
    drive.wait(minutes=30)
    assert drive.node("a").phase is Phase.triage
    return drive


def hands(drive: Drive, **said: str) -> None:
    serial = drive.node("a").binding("serial")
    if drive.controller.live.of("a").power != "off":
        assert drive.ask("power-off", "a").granted
        drive.wait(minutes=5)
    reply = drive.ask("start-work", "a", person="tess", serial=serial)
    assert reply.granted, reply.text
    drive.wait(minutes=5)
    reply = drive.ask("end-work", "a", person="tess", **said)
    assert reply.granted, reply.text


def profiles(drive: Drive) -> list[str]:
    """Profiles that the last plan of phase test asked for."""
    plans = [event.plan for event in drive.events(e.PlanRecorded, "a") if event.plan.name == "test"]
    return [getattr(step.act, "profile", "") for step in plans[-1].steps if step.operation == "run_checks"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"did": "swapped", "part": "fan"}, []),
        ({"did": "swapped", "part": "psu"}, ["gate"]),
        ({"did": "reseated", "part": "memory"}, ["suspect"]),
        ({"did": "swapped", "part": "gpu"}, ["burn_in"]),
        ({}, ["burn_in"]),
    ],
)
def test_the_depth_follows_from_what_the_technician_says(said: dict[str, str], expected: list[str]) -> None:
    """Mutants: every repair is tested alike; who says nothing is believed to have done nothing."""
    drive = in_triage_for_maintenance()
    hands(drive, **said)
    drive.wait(hours=4)
    assert drive.node("a").phase is Phase.production
    assert profiles(drive) == expected
    assert drive.node("a").repairs == (), "the next repair begins anew"


def test_half_a_word_is_refused() -> None:
    drive = in_triage_for_maintenance()
    drive.ask("power-off", "a")
    drive.wait(minutes=5)
    drive.ask("start-work", "a", serial=drive.node("a").binding("serial"))
    assert not drive.ask("end-work", "a", did="swapped").granted
    assert not drive.ask("end-work", "a", part="fan").granted
    assert not drive.ask("end-work", "a", did="swapped", part="moon").granted


def repaired() -> Drive:
    drive = in_triage_for_maintenance()
    hands(drive, did="swapped", part="psu")
    drive.wait(hours=4)
    assert drive.node("a").probation_until is not None
    return drive


def test_what_fails_again_on_probation_is_proposed_for_return_as_a_whole() -> None:
    """Mutants: it is examined and served as if for the first time; the part alone is returned."""
    drive = repaired()
    drive.fault("a", "off_bus")
    drive.wait(hours=1)
    assert drive.node("a").phase is Phase.triage
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "repeat"]
    waiting = drive.node("a").waiting
    assert waiting is not None
    assert waiting.blockers[0].kind == "person"
    assert drive.ask("rma-send", "a").granted
    (case,) = drive.fleet.rma_cases.values()
    assert (case.kind, case.component) == ("whole_node", "node")
    assert ticket.id not in drive.fleet.tickets
    assert drive.sweep() == 0


def test_a_person_may_have_it_examined_all_the_same() -> None:
    drive = repaired()
    drive.fault("a", "off_bus")
    drive.wait(hours=1)
    (ticket,) = [t for t in drive.fleet.tickets.values() if t.kind == "repeat"]
    drive.ask("close-ticket", ticket.id)
    drive.wait(hours=1)
    assert "examine" in drive.plans("a")[-3:]


def test_nobody_decides_and_it_is_examined_after_a_day() -> None:
    """Mutants: it waits for ever; the ticket outlives the visit."""
    drive = repaired()
    drive.fault("a", "off_bus")
    drive.wait(hours=23)
    assert drive.node("a").phase is Phase.triage
    drive.wait(days=2)
    assert drive.node("a").phase is not Phase.triage
    assert not [t for t in drive.fleet.tickets.values() if t.kind == "repeat"]


def test_a_person_who_takes_it_out_on_probation_convicts_nobody() -> None:
    """Mutant: every visit to triage on probation is a repeat."""
    drive = repaired()
    drive.ask("return-for-maintenance", "a")
    drive.wait(hours=1)
    assert not [t for t in drive.fleet.tickets.values() if t.kind == "repeat"]


def test_a_spare_on_probation_is_delivered_after_the_others() -> None:
    """Mutant: in the order of their ids."""
    nodes = [a_node("a", pool="", probation_until=after(days=3)), a_node("b", pool="")]
    drive = Drive(configuration(POOLS), nodes)
    drive.wait(hours=1)
    assert drive.node("b").pool == "train"
    assert drive.node("a").pool == ""
    assert "on probation until 2026-01-04" in probation_of(drive.node("a"), drive.now)
    assert probation_of(drive.node("a"), drive.now).endswith("this spare is delivered after all without probation")
    assert probation_of(drive.node("b"), drive.now) == probation_of(drive.node("a"), after(days=4)) == ""
    drive.activate(configuration({"train": pool_document(target=2)}))
    drive.wait(hours=1)
    reasons = [event.reason for event in drive.events(e.NodeAssigned, "a") + drive.events(e.NodeAssigned, "b")]
    assert [reason.partition(";")[0] for reason in reasons] == ["every spare without probation is taken", ""]


def test_a_member_on_probation_does_not_wait_for_its_slot() -> None:
    """Mutant: it is checked in its turn."""

    def due(**fields: Any) -> bool:
        pool = pool_document(target=1, modes={"*": "act", "idle_check": "act"})
        drive = Drive(configuration({"train": pool}), [a_node("a", **fields)])
        drive.wait(minutes=2)
        checked = [event for event in drive.events(e.OperationStarted, "a") if event.operation.kind == "idle_check"]
        return bool(checked) or waits(drive.controller._context, drive.node("a"))  # noqa: SLF001 - as it decides

    assert due(probation_until=after(days=3))
    assert not due()


MANIFEST: dict[str, Any] = {"pcie": {"gpu0": "x16 32 GT/s"}, "serials": True}


def worked_on_spare(wide: str, serial: str = "S-a", **said: str) -> Drive:
    """A spare that went dark by its button; then hands were in it, and its agent reports after the boot."""
    drive = Drive(configuration(POOLS | {"train": pool_document(target=0)}, hardware=MANIFEST), [a_node("a", pool="")])
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    drive.power["a"] = False
    drive.step(NodeSeen("a", "off"))
    hands(drive, **said)
    drive.wait(minutes=10)
    drive.observe("a", "inventory", facts={"pcie.gpu0": wide, "dmi.product_serial": serial})
    drive.wait(minutes=30)
    return drive


def returns(drive: Drive) -> list[list[str]]:
    """Steps of each return to service, checks by their profile."""
    plans = [event.plan for event in drive.events(e.PlanRecorded, "a") if event.plan.name == "return_to_service"]
    return [[getattr(step.act, "profile", step.operation) for step in plan.steps] for plan in plans]


@pytest.mark.parametrize(
    ("said", "deep"),
    [
        ({"did": "inspected", "part": "gpu"}, []),
        ({"did": "swapped", "part": "fan"}, []),
        ({"did": "reseated", "part": "memory"}, ["suspect"]),
        ({"did": "swapped", "part": "gpu"}, ["burn_in"]),
        ({}, ["burn_in"]),
    ],
)
def test_a_spare_with_hands_in_it_is_held_against_its_sku_and_tested_as_deep(
    said: dict[str, str], deep: list[str]
) -> None:
    """Mutants: a spare is gated alone; it is delivered meanwhile; the next return tests the same repair again."""
    drive = worked_on_spare("x16 32 GT/s", **said)
    (steps,) = returns(drive)
    assert steps[2:] == ["verify_inventory", "verify_hardware", *deep, "gate"]
    drive.wait(days=3)
    assert drive.node("a").plan is None, drive.transcript("a")
    assert drive.node("a").repairs == ()
    assert len(returns(drive)) == 1
    assert not drive.fleet.tickets


@pytest.mark.parametrize(
    ("wide", "serial", "says"),
    [("x8 32 GT/s", "S-a", "PCIe link in gpu0"), ("x16 32 GT/s", "S-b", "serial number in DMI")],
)
def test_a_spare_that_is_not_as_its_sku_after_hands_stays_with_a_ticket_until_it_is(
    wide: str, serial: str, says: str
) -> None:
    """Mutants: a badly seated GPU passes the gate and is delivered; who mends it has to ask for the step again."""
    drive = worked_on_spare(wide, serial, did="reseated", part="nic")
    plan = drive.node("a").plan
    assert plan is not None
    assert plan.steps[plan.index].operation == "verify_hardware", drive.transcript("a")
    (ticket,) = drive.fleet.tickets.values()
    assert says in ticket.summary
    drive.activate(configuration({"train": pool_document(target=1)}, hardware=MANIFEST))
    drive.wait(hours=1)
    assert drive.node("a").pool == "", "a spare at its return is delivered to nobody"
    drive.observe("a", "inventory", facts={"pcie.gpu0": "x16 32 GT/s", "dmi.product_serial": "S-a"})
    drive.wait(hours=1)
    assert drive.node("a").pool == "train"
    assert not drive.fleet.tickets
