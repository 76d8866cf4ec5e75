"""Hands go into a machine only where it is known to be dark, drained and left alone."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import IntentAsked, NodeSeen
from hostler.controller.step_output import Reply
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Node, Operation, Phase
from hostler.core.state.operations import PowerOn
from tests.kit import NOW, Drive, a_node, a_workload, after, configuration, intent_of, pool_document
from tests.scenario.test_ticket_claims import with_ticket

ONE = configuration({"train": pool_document(target=1)})


def dark(**fields: Any) -> Drive:
    """A node in debug, on which nothing runs and whose BMC says that it is off."""
    node = a_node("a", **{"pool": "", "phase": Phase.debug, **fields})
    drive = Drive(ONE, [node])
    drive.power["a"] = False
    drive.step(NodeSeen("a", "off"))
    return drive


def answer(drive: Drive) -> str:
    """Why work may not start, "" where it did."""
    reply = drive.ask("start-work", "a", person="tina", serial="S-a")
    held = any(hold.kind is HoldKind.physical_work for hold in drive.fleet.holds.values())
    assert held is reply.granted
    return "" if reply.granted else reply.text


def an_operation() -> Operation:
    return Operation("o", PowerOn(), "a", "p", 0, NOW, after(hours=1))


def test_work_starts_on_a_dark_node_that_is_left_alone() -> None:
    assert answer(dark()) == ""


@pytest.mark.parametrize("power", ["on", "unknown", "powering_on", "powering_off", ""])
def test_work_starts_only_where_the_power_is_seen_off(power: str) -> None:
    """A BMC that does not answer says nothing. Mutants: only "on" is refused; the power is not asked for."""
    drive = dark()
    drive.step(NodeSeen("a", power))
    drive.controller.live.entry("a").power = power
    assert "is not seen powered off" in answer(drive)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"operation": an_operation()}, "an operation is under way or may still take effect"),
        ({"settling": (replace(an_operation(), settling=True),)}, "an operation is under way or may still take effect"),
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
        drive.step(NodeSeen("a", "off"))
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


# --- kept powered off


def at_its_seatrial() -> Drive:
    """A node that waits in a check of its Seatrial that nobody answers."""
    drive = Drive(ONE, [a_node("a", pool="", phase=Phase.seatrial, deadline=after(hours=6))])
    drive.script("run_checks", *["inconclusive"] * 40)
    drive.step()
    drive.wait(minutes=10)
    assert drive.node("a").phase is Phase.seatrial
    assert drive.is_on("a")
    return drive


def powered_off(person: str = "tina") -> Drive:
    """The same, and a person has powered it off."""
    drive = at_its_seatrial()
    assert drive.ask("power-off", "a", person=person).granted
    drive.wait(hours=2)
    assert not drive.is_on("a"), "its phase would power it on"
    return drive


def blockers(drive: Drive) -> list[tuple[str, str]]:
    waiting = drive.node("a").waiting
    return [(b.text, b.ends_when) for b in waiting.blockers] if waiting else []


def test_what_a_person_powers_off_stays_off_until_the_work_on_it_is_done() -> None:
    """Mutants: its phase powers it on again; the hold outlives the work; nobody says which command ends it."""
    drive = powered_off()
    (hold,) = drive.fleet.holds_of("a")
    ends = (
        'work begins (hostler node start-work a --serial "…" --reason "…"), or '
        f'the hold is released (hostler hold release {hold.id} --reason "…")'
    )
    assert blockers(drive) == [("tina keeps a powered off: because", ends)]
    assert answer(drive) == ""
    assert [h.kind for h in drive.fleet.holds_of("a")] == [HoldKind.physical_work]
    drive.wait(hours=2)
    assert not drive.is_on("a")
    assert drive.ask("end-work", "a", person="tina").granted
    drive.wait(hours=1)
    assert drive.is_on("a")


def test_who_had_a_node_powered_off_lets_it_go_without_working_on_it() -> None:
    """A controller that takes over keeps it off as well. Mutant: the hold is the memory of one controller."""
    drive = powered_off()
    drive.restart(gap_s=60)
    drive.wait(hours=1)
    assert not drive.is_on("a")
    (hold,) = drive.fleet.holds_of("a")
    assert drive.ask("release", hold.id, person="tina").granted
    drive.wait(hours=1)
    assert drive.is_on("a")


def test_what_is_kept_off_and_was_switched_on_at_the_rack_is_powered_off_again() -> None:
    """Mutants: its own hold stands in the way; each power-off leaves another hold."""
    drive = powered_off()
    drive.power["a"] = True
    drive.step(NodeSeen("a", "on"))
    assert drive.ask("power-off", "a", person="ann").granted
    drive.wait(minutes=5)
    assert not drive.is_on("a")
    assert [h.owner for h in drive.fleet.holds_of("a")] == ["tina"]
    drive.wait(hours=2)
    assert not drive.is_on("a")


def test_work_begun_by_another_than_had_it_powered_off_ends_in_a_node_that_runs() -> None:
    """The operator powers it off, the technician works. Mutant: the operator's hold stays behind."""
    drive = powered_off("olga")
    assert answer(drive) == ""
    assert drive.ask("end-work", "a", person="tina").granted
    drive.wait(hours=1)
    assert drive.is_on("a")


# --- whose machine it is


def of_technician(drive: Drive, person: str = "tina", *, dry_run: bool = False) -> Reply:
    """The answer to a power-off that a technician's token asks for."""
    words = (f"t{drive.fleet.cell.seq}{dry_run}", "power-off", "a", person, "fans", drive.now)
    intent = intent_of(*words, own_work=True, dry_run=dry_run)
    return drive.step(IntentAsked(99, intent)).replies[0]


def refused(drive: Drive, person: str = "tina") -> str:
    """Why a technician may not switch it off, which a dry run says in the same words; "" where they may."""
    tried, reply = of_technician(drive, person, dry_run=True), of_technician(drive, person)
    assert tried.granted is reply.granted
    assert reply.granted or tried.text == reply.text
    return "" if reply.granted else reply.text


def test_a_technician_switches_off_no_machine_that_is_not_theirs() -> None:
    """An operator does. Mutants: nobody's is anybody's; the dry run promises what is refused."""
    drive = Drive(ONE, [a_node("a", pool="", phase=Phase.debug)])
    drive.step()
    why = refused(drive)
    assert "you have claimed no ticket about a and begun no work on it" in why
    assert "hostler node start-work a --serial SERIAL --prepare" in why
    drive.wait(minutes=10)
    assert drive.is_on("a")
    assert drive.ask("power-off", "a", person="olga").granted


def test_a_technician_switches_off_what_they_have_claimed_until_their_shift_ends() -> None:
    """Mutants: another's claim will do; one that has lapsed; any free ticket."""
    drive, ticket = with_ticket()
    drive.fleet.put_node("a", replace(drive.node("a"), phase=Phase.debug, assignment=None))
    assert f"hostler ticket claim {ticket}" in refused(drive)
    assert drive.ask("claim-ticket", ticket, "tom", hours="1").granted
    assert f"ask tom to hand it over first (hostler ticket hand-over {ticket} --reason …)" in refused(drive)
    assert refused(drive, "tom") == ""
    drive.wait(hours=2)
    assert f"hostler ticket claim {ticket}" in refused(drive, "tom")


def test_a_technician_switches_off_again_what_they_work_on() -> None:
    """Mutant: who works on a machine without a ticket has to ask an operator."""
    drive = dark()
    assert answer(drive) == ""
    assert refused(drive) == ""
    assert "begun no work" in refused(drive, "tom")


# --- several people


def test_hands_that_are_out_leave_the_node_dark_for_those_that_are_in() -> None:
    """Mutant: whoever ends their work ends everybody's, and the server is powered on under somebody's hands."""
    drive = powered_off()
    assert answer(drive) == ""
    drive.run()
    assert drive.ask("start-work", "a", person="tom", serial="S-a").granted
    said = drive.ask("end-work", "a", person="tina")
    assert said.granted
    assert said.text == "your work on a is ended; it stays dark, for tom works on it still"
    drive.wait(days=1)
    assert not drive.is_on("a")
    assert not drive.ask("end-work", "a", person="tina").granted
    assert drive.ask("end-work", "a", person="tom").granted
    drive.wait(hours=1)
    assert drive.is_on("a")


def test_a_shift_lead_ends_the_work_of_all() -> None:
    drive = powered_off()
    assert answer(drive) == ""
    drive.run()
    assert drive.ask("start-work", "a", person="tom", serial="S-a").granted
    assert drive.ask("end-work", "a", person="lea", shift_lead="true").granted
    drive.wait(hours=1)
    assert drive.is_on("a")


def test_who_starts_work_twice_ends_it_once() -> None:
    """Mutant: a scan that was made twice leaves a second hold."""
    drive = powered_off()
    assert answer(drive) == ""
    assert drive.ask("start-work", "a", person="tina", serial="S-a").granted
    assert not drive.ask("start-work", "a", person="tina", serial="S-b").granted, "another machine than before"
    assert len(list(drive.fleet.holds_of("a"))) == 1


def test_a_node_out_of_production_is_powered_off_whatever_its_neighbours_do() -> None:
    """The node takes no capacity from its domain. Mutant: it waits for a budget or a window, as a remedy in service."""
    nodes = [a_node(name, domains=("rack:r1",)) for name in ("b", "c")]
    at_seatrial = a_node("a", pool="", phase=Phase.seatrial, deadline=after(hours=6), domains=("rack:r1",))
    drive = Drive(configuration({"train": pool_document(target=2)}), [at_seatrial, *nodes])
    drive.script("run_checks", *["inconclusive"] * 40)
    drive.see_work("b", a_workload("w"))
    drive.fault("b", "off_bus", gpu=1)
    window = {"starts": after(days=9).isoformat(), "ends": after(days=10).isoformat()}
    assert drive.ask("schedule-maintenance", "rack:r1", **window).granted
    drive.wait(minutes=10)
    assert drive.node("b").plan is not None, "its rack has its one disturbed node"
    assert drive.ask("power-off", "a", person="tina").granted
    drive.wait(minutes=5)
    assert not drive.is_on("a"), drive.transcript("a")


def test_a_power_off_that_was_still_waited_for_is_answered_by_the_work() -> None:
    """A technician pressed the button meanwhile. Mutant: the node is powered off once the work on it is done."""
    drive = at_its_seatrial()
    assert drive.ask("pause", "fleet").granted
    assert drive.ask("power-off", "a", person="tina").granted
    drive.wait(hours=1)
    assert drive.is_on("a")
    drive.power["a"] = False
    drive.step(NodeSeen("a", "off"))
    assert answer(drive) == ""
    assert drive.ask("resume", "fleet").granted
    drive.wait(hours=1)
    assert drive.ask("end-work", "a", person="tina").granted
    drive.wait(hours=1)
    assert drive.is_on("a"), drive.transcript("a")
