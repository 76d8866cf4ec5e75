"""An asset that leaked is sound once a person says so and its detectors are dry: ticket, hold, conditions and power."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import RackSeen
from hostler.core.policy.rack_faults import FAULT
from hostler.core.state import events as e
from hostler.core.state.cases import Ticket
from hostler.core.state.model import HoldKind
from tests.kit import digest, fold
from tests.scenario.test_rack_faults import in_service
from tests.scenario.test_rack_recipe import LOOKS, RackDrive, seen, up

WET_TRAY = {"leaks": (("leak_1", "critical"),)}
DRY_TRAY = {"leaks": (("leak_1", "ok"),)}


def leaked(name: str = "sw2", wet: Any = None) -> RackDrive:
    """A rack in service whose asset leaked, was acted upon and shows itself dry by now."""
    drive = in_service()
    truth = drive.looks[name]
    drive.looks[name] = replace(truth, **(wet or WET_TRAY))
    seen(drive)
    drive.looks[name] = replace(truth, leaks=tuple((one, "ok") for one, _ in (wet or WET_TRAY)["leaks"]))
    seen(drive)
    return drive


def tickets(drive: RackDrive) -> list[Ticket]:
    return [t for t in drive.fleet.tickets.values() if t.kind == FAULT]


def test_a_tray_that_leaked_is_powered_on_and_its_ticket_and_hold_end_once_a_person_says_that_it_is_sound() -> None:
    """Mutants: a dry look alone ends the ticket of a tray that is off; the tray stays dark; the person is not named."""
    drive = leaked()
    assert drive.fleet.assets["sw2"].state == "off"
    (ticket,) = tickets(drive)
    assert "sw2 is off since it leaked, and nobody has said that it is sound" in ticket.fault
    assert "hostler asset sound sw2" in ticket.action
    assert drive.fleet.holds
    reply = drive.ask("asset-sound", "sw2", "tess")
    assert reply.granted, reply.text
    drive.run()
    assert drive.fleet.assets["sw2"].state == "in_service"
    assert not tickets(drive)
    assert not drive.fleet.holds
    asked = [one.operation.kind for one in drive.events(e.AssetOperationStarted)]
    assert asked == ["power_off", "power_on"]
    assert drive.events(e.AssetChanged)[-1].reason == "tess says that it is sound: because"
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_a_second_leak_of_a_tray_switches_it_off_again() -> None:
    """Mutant: a tray that was switched off once is never protected again."""
    drive = leaked()
    assert drive.ask("asset-sound", "sw2").granted
    drive.run()
    drive.looks["sw2"] = replace(drive.looks["sw2"], **WET_TRAY)
    seen(drive)
    assert [one.operation.kind for one in drive.events(e.AssetOperationStarted)][-1] == "power_off"
    assert drive.fleet.assets["sw2"].state == "off"


STILL: dict[str, tuple[dict[str, Any], str]] = {
    "it is wet": (WET_TRAY, "sw2 still tells a leak: leak_1 says critical"),
    "it warns": ({"leaks": (("leak_1", "warning"),)}, "sw2 still tells a leak: leak_1 says warning"),
    "its detector is silent": ({"leaks": (("leak_1", ""),)}, "leak_1 says nothing"),
    "its detector is gone": ({"leaks": ()}, "sw2 lists no leak detector"),
    "it cannot be read": ({"why": "no answer", **DRY_TRAY}, "sw2 could not be read: no answer"),
    "another tray answers": ({"serial": "TR-9", **DRY_TRAY}, "sw2 shows serial TR-9"),
}


@pytest.mark.parametrize("case", STILL)
def test_nobody_can_say_that_an_asset_is_sound_whose_detectors_do_not_say_that_it_is_dry(case: str) -> None:
    """Mutants: a person's word outdoes the detector; a silent one is dry; another machine's dry look counts."""
    shows, says = STILL[case]
    drive = leaked()
    drive.looks["sw2"] = replace(LOOKS["sw2"], **shows)
    seen(drive)
    reply = drive.ask("asset-sound", "sw2")
    assert not reply.granted
    assert says in reply.text
    assert drive.fleet.assets["sw2"].state == "off"
    assert tickets(drive)
    assert [one.operation.kind for one in drive.events(e.AssetOperationStarted)] == ["power_off"]


def test_an_old_look_says_nothing_about_now_and_a_sound_asset_needs_no_word() -> None:
    drive = leaked()
    drive.wait(minutes=121)
    assert "was not looked at since" in drive.ask("asset-sound", "sw2").text
    assert "nothing says that it leaked" in drive.ask("asset-sound", "ps1").text
    assert "no asset sw9" in drive.ask("asset-sound", "sw9").text


def test_a_coolant_unit_s_leak_ends_on_every_node_that_it_cooled_and_no_node_is_powered_on() -> None:
    """Mutants: the conditions of its nodes stay; leaks that a node's own detector shows end too; nodes come on."""
    drive = leaked("cdu1", {"leaks": (("floor", "critical"), ("manifold", "ok"))})
    assert drive.fleet.assets["cdu1"].state == "leaked"
    assert [c.part for c in drive.node("a").conditions if c.type == "cooling.leak"] == ["cdu1/floor"]
    reply = drive.ask("asset-sound", "cdu1", "tess")
    assert reply.granted, reply.text
    assert "2 nodes" in reply.text
    drive.run()
    assert drive.fleet.assets["cdu1"].state == "in_service"
    for name in ("a", "b"):
        assert not [c for c in drive.node(name).conditions if c.type == "cooling.leak"]
        assert not drive.power[name], "only a named person powers a node on again"
    assert not tickets(drive)
    who = {one.by for one in drive.events(e.ConditionCleared) if "cooling.leak" in one.condition}
    assert who == {"tess"}


@pytest.mark.parametrize("answer", ["failed", "mute"])
def test_a_tray_that_cannot_be_powered_on_is_off_again_and_asked_for_anew(answer: str) -> None:
    """Mutant: the list shows a dark tray as in service."""
    drive = leaked()
    drive.script("power_on", answer, node="sw2")
    assert drive.ask("asset-sound", "sw2").granted
    drive.run()
    drive.wait(minutes=6)
    assert drive.fleet.assets["sw2"].state == "off"
    drive.wait(minutes=31)
    seen(drive)
    assert tickets(drive)
    assert drive.ask("asset-sound", "sw2").granted
    drive.run()
    assert drive.fleet.assets["sw2"].state == "in_service"


def test_a_tray_that_leaks_again_while_it_is_powered_on_is_switched_off_by_the_next_look() -> None:
    drive = leaked()
    drive.script("power_on", "mute", node="sw2")
    assert drive.ask("asset-sound", "sw2").granted
    again = drive.ask("asset-sound", "sw2")
    assert not again.granted
    drive.step(RackSeen("sw2", replace(drive.looks["sw2"], at=drive.now, **WET_TRAY)))
    assert drive.fleet.assets["sw2"].state == "leaked"


def test_hands_in_the_rack_and_a_restored_copy_keep_the_tray_dark() -> None:
    """Mutant: a tray is powered on under somebody's hands."""
    drive = leaked()
    (own,) = drive.fleet.holds.values()
    hands = replace(own, id="h-hands", kind=HoldKind.physical_work, owner="tom", reason="hose in hand", ticket="")
    drive.journal.append(e.Record(len(drive.journal) + 1, drive.now, 1, "seed", e.HoldPlaced(hands)))
    drive.begin(2)
    reply = drive.ask("asset-sound", "sw2", "ann")
    assert not reply.granted
    assert "tom holds rack:r7: hose in hand" in reply.text


def test_a_bring_up_waits_for_a_person_s_word_where_an_asset_leaked() -> None:
    """Mutant: a detector that dries by itself lets the trays behind it be written."""
    drive = RackDrive()
    drive.looks["cdu1"] = replace(LOOKS["cdu1"], leaks=(("floor", "critical"), ("manifold", "ok")))
    up(drive)
    drive.looks["cdu1"] = LOOKS["cdu1"]
    seen(drive)
    assert drive.at == "leak_detectors"
    assert ["cdu1 leaked, and nobody has said that it is sound" in text for text in drive.waits()] == [True]
    assert drive.ask("asset-sound", "cdu1", "tess").granted
    drive.wait(minutes=1)
    seen(drive)
    assert drive.at != "leak_detectors"
