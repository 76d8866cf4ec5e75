"""A rack stands before its nodes are certified: power shelves, then leak detectors, then switch trays."""

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import FellowsSeen, RackSeen
from hostler.core.conditions import rack_match
from hostler.core.state import events as e
from hostler.core.state.assets import Position
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.live_state import Fellow, Release
from hostler.core.state.model import Phase, Verdict
from hostler.core.state.racks import AssetLook
from hostler.polling.rack_rounds import awaited_racks
from tests.kit import NOW, Drive, a_node, configuration

MANIFEST: dict[str, Any] = {
    "power_shelves": 1,
    "supplies_needed": 4,
    "leak_detectors": 2,
    "switch_trays": 1,
    "switch_firmware": {"MGX_FW_BMC_0": "1.3"},
}
SUPPLIES = tuple((f"psu{n}", "ok") for n in range(6))
SHELF = AssetLook(NOW, serial="SH-1", health="ok", supplies=SUPPLIES)
TRAY = AssetLook(
    NOW, serial="TR-1", health="ok", leaks=(("leak_1", "ok"), ("leak_2", "ok")), firmware=(("MGX_FW_BMC_0", "1.3"),)
)
ASSETS = [
    {"id": "ps1", "kind": "power_shelf", "rack": "r1", "serial": "SH-1", "bmc": "https://ps1"},
    {"id": "sw1", "kind": "switch_tray", "rack": "r1", "serial": "TR-1", "bmc": "https://sw1"},
]


def at_onboard(looks: dict[str, AssetLook] | None = None, assets: list[dict[str, Any]] = ASSETS) -> Drive:
    nodes = [
        a_node("a", pool="", phase=Phase.onboard, position=Position("c1", rack="r1", u=3)),
        a_node("b", pool="", position=Position("c1", rack="r2")),
    ]
    drive = Drive(configuration({}, rack=MANIFEST), nodes)
    drive.step(FellowsSeen((Fellow("this", Release().reads),)))
    if assets:
        reply = drive.ask("register-assets", "fleet", assets=json.dumps(assets))
        assert reply.granted, reply.text
    for name, look in {"ps1": SHELF, "sw1": TRAY, **(looks or {})}.items():
        drive.step(RackSeen(name, replace(look, at=drive.now)))
    return drive


def refusal(drive: Drive) -> str:
    reply = drive.ask("certify", "a", "tess")
    return "" if reply.granted else reply.text


def test_a_node_is_certified_once_its_rack_stands() -> None:
    drive = at_onboard()
    assert refusal(drive) == ""
    assert drive.node("a").phase is Phase.seatrial


def supplies(**words: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, words.get(name, word)) for name, word in SUPPLIES)


LIES: dict[str, tuple[dict[str, AssetLook], str]] = {
    "a shelf says OK with a failed supply": (
        {"ps1": replace(SHELF, supplies=supplies(psu3="critical"))},
        "power shelves: ps1: psu3 critical",
    ),
    "a shelf says OK and a supply nothing": (
        {"ps1": replace(SHELF, supplies=supplies(psu3=""))},
        "power shelves: ps1: psu3 says nothing",
    ),
    "a shelf with too few": (
        {"ps1": replace(SHELF, supplies=supplies(psu1="critical", psu2="warning"))},
        "ps1: 4 supplies are well, 5 are needed (psu1 critical, psu2 warning)",
    ),
    "a shelf lists none": ({"ps1": replace(SHELF, supplies=())}, "ps1 lists no supplies"),
    "another shelf answers": ({"ps1": replace(SHELF, serial="SH-9")}, "ps1 shows serial SH-9, registered is SH-1"),
    "a shelf never answers": ({"ps1": AssetLook(NOW, why="no answer")}, "ps1 could not be read: no answer"),
    "a leak": ({"sw1": replace(TRAY, leaks=(("leak_1", "critical"), ("leak_2", "ok")))}, "sw1 leak_1 says critical"),
    "a detector is silent": (
        {"sw1": replace(TRAY, leaks=(("leak_1", ""), ("leak_2", "ok")))},
        "1 of 2 leak detectors say that they are dry; silent: sw1 leak_1",
    ),
    "a detector is gone": ({"sw1": replace(TRAY, leaks=(("leak_2", "ok"),))}, "1 of 2 leak detectors say"),
    "a tray runs the old firmware after all": (
        {"sw1": replace(TRAY, firmware=(("MGX_FW_BMC_0", "1.2"),))},
        "switch trays: sw1 MGX_FW_BMC_0: expected 1.3, found 1.2",
    ),
    "a tray shows no version": ({"sw1": replace(TRAY, firmware=())}, "MGX_FW_BMC_0: expected 1.3, found shows no"),
    "a tray is ill": ({"sw1": replace(TRAY, health="warning")}, "sw1 says warning of its health"),
}


@pytest.mark.parametrize("case", LIES)
def test_a_rack_that_does_not_stand_is_told_part_by_part_with_the_next_command(case: str) -> None:
    """Mutants: the word for the whole excuses a part; silence is dry; a version that was not seen is the right one."""
    looks, says = LIES[case]
    drive = at_onboard(looks)
    text = refusal(drive)
    assert says in text
    assert "hostler asset list --rack r1" in text
    assert drive.node("a").phase is Phase.onboard
    for name, look in (("ps1", SHELF), ("sw1", TRAY)):
        drive.step(RackSeen(name, replace(look, at=drive.now)))
    drive.run()
    for name in [asset.id for asset in drive.fleet.assets.values() if asset.state != "in_service"]:
        assert drive.ask("asset-sound", name).granted, "what leaked is not put right by drying alone"
    assert refusal(drive) == "", "put right, it is certified"


def test_detectors_of_another_coolant_unit_are_not_dry() -> None:
    """A coolant unit is judged by its detectors alone. Mutant: whoever answers at its address is dry."""
    unit = {"id": "cdu1", "kind": "bmc", "rack": "r1", "serial": "CDU-1", "bmc": "https://cdu1"}
    wet = AssetLook(NOW, serial="CDU-9", leaks=(("floor", "ok"), ("manifold", "ok")))
    silent = replace(TRAY, leaks=())
    drive = at_onboard({"sw1": silent, "cdu1": wet}, [*ASSETS, unit])
    assert "leak detectors: cdu1 shows serial CDU-9, registered is CDU-1" in refusal(drive)
    drive.step(RackSeen("cdu1", replace(wet, at=drive.now, serial="CDU-1")))
    assert refusal(drive) == ""


def test_the_first_stage_that_does_not_stand_is_told_and_what_nobody_saw_is_no_failure() -> None:
    """Mutants: a leak is told before the power is there; a shelf that nobody read has failed."""
    drive = at_onboard({"ps1": AssetLook(NOW, why="no answer"), "sw1": replace(TRAY, health="critical")})
    found = rack_match.verdicts(drive.fleet, drive.node("a"), drive.now)
    assert [(one.stage, one.verdict) for one in found] == [
        ("power shelves", Verdict.inconclusive),
        ("coolant units", Verdict.passed),
        ("leak detectors", Verdict.passed),
        ("switch trays", Verdict.failed),
        ("fabric managers", Verdict.passed),
    ]
    assert "power shelves" in refusal(drive)


def test_a_look_grows_old_and_what_is_not_registered_is_missing() -> None:
    """Mutants: yesterday's look counts; a rack with fewer shelves than it should have stands."""
    drive = at_onboard()
    drive.wait(hours=3)
    assert "ps1 was not looked at since" in refusal(drive)
    assert "0 of 1 power shelves are registered (hostler asset register)" in refusal(at_onboard(assets=[]))


def test_a_look_is_recorded_when_it_shows_anything_new_or_is_old() -> None:
    """Mutants: each look is a record; one that shows the same for hours is taken for stale."""
    drive = at_onboard()
    before = len(drive.events(e.AssetSeen))
    drive.step(RackSeen("ps1", replace(SHELF, at=drive.now)), RackSeen("gone", replace(SHELF, at=drive.now)))
    assert len(drive.events(e.AssetSeen)) == before
    drive.step(RackSeen("ps1", replace(SHELF, at=drive.now + timedelta(minutes=31))))
    drive.step(RackSeen("ps1", replace(SHELF, at=drive.now + timedelta(minutes=31), health="warning")))
    assert len(drive.events(e.AssetSeen)) == before + 2


def test_racks_are_looked_at_often_where_nodes_wait_for_them() -> None:
    assert awaited_racks(at_onboard().fleet) == {"r1"}


def test_a_sku_without_a_rack_manifest_asks_for_nothing() -> None:
    drive = Drive(configuration({}), [a_node("a", pool="", phase=Phase.onboard)])
    assert refusal(drive) == ""


@pytest.mark.parametrize(("field", "count"), [("power_shelves", -1), ("supplies_needed", 257), ("switch_trays", 9999)])
def test_counts_that_no_rack_has_are_refused_with_their_place(field: str, count: int) -> None:
    """Mutant: a count below 0 is one that is not judged."""
    with pytest.raises(InvalidInputError, match=field.replace("_", " ")):
        configuration({}, rack={field: count})
