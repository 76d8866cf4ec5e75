"""A leak, heat or hands that come after the plan stop its next act: each act is asked what it presupposes.

The judge reads the journal alone: once a look shows a rack wet, or a condition keeps a node dark, nothing there is
given power or written until that is over.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import RackSeen
from hostler.controller.reply_effect import last_look
from hostler.core.state import events as e
from hostler.core.state.model import HoldKind, Phase
from hostler.core.state.rack_runs import RACK_FAILED
from hostler.core.state.racks import AssetLook
from tests.kit import Drive, a_hold, a_node, configuration, digest, fold
from tests.scenario.test_rack_recipe import IMAGE, LOOKS, MANIFEST, RACK, RackDrive, seen, trays

POWERS = ("power_on", "update_firmware", "ac_cycle", "reset_bmc", "fetch_system_image", "install_system_image")
DRY = (("leak_1", "ok"), ("leak_2", "ok"))
CYCLED = {**MANIFEST["updates"], "MGX_FW_BMC_0": {**IMAGE, "activate": "ac_cycle"}}


def rack(**manifest: Any) -> RackDrive:
    """A new rack whose trays have detectors of their own, and both of them old firmware."""
    drive = RackDrive(trays(Phase.onboard), leak_detectors=6, updates=CYCLED, compute_trays=0, **manifest)
    for name in ("sw1", "sw2"):
        drive.looks[name] = replace(LOOKS[name], leaks=DRY, firmware=(("MGX_FW_BMC_0", "1.2"),))
    return drive


def given_in_the_wet(drive: RackDrive) -> Iterator[str]:
    """Acts that give power or write where the last look at the asset, or at any of its rack, does not show it dry."""
    looks: dict[str, AssetLook] = {}
    states: dict[str, str] = {}
    for record in drive.journal:
        match record.event:
            case e.AssetSeen(asset=name, look=look):
                looks[name] = look
            case e.AssetChanged(asset=name, state=state):
                states[name] = state
            case e.AssetOperationStarted(operation=operation) if operation.kind in POWERS:
                own = looks[operation.node]
                words = [word for look in looks.values() for _, word in look.leaks]
                if own.why or "" in dict(own.leaks).values() or not {"critical", "warning"}.isdisjoint(words):
                    yield f"{record.seq}: {operation.kind} of {operation.node}, and its rack is not seen dry"
                if states.get(operation.node, "in_service") != "in_service":
                    yield f"{record.seq}: {operation.kind} of {operation.node}, which is {states[operation.node]}"
            case _:
                pass


WETS: dict[str, tuple[str, dict[str, Any]]] = {
    "the tray itself": ("sw1", {"leaks": (("leak_1", "critical"), ("leak_2", "ok"))}),
    "the other tray": ("sw2", {"leaks": (("leak_1", "ok"), ("leak_2", "critical"))}),
    "the coolant unit": ("cdu1", {"leaks": (("floor", "critical"), ("manifold", "ok"))}),
    "a warning": ("sw1", {"leaks": (("leak_1", "warning"), ("leak_2", "ok"))}),
    "a warning elsewhere": ("cdu1", {"leaks": (("floor", "ok"), ("manifold", "warning"))}),
    "a detector says nothing": ("sw1", {"leaks": (("leak_1", ""), ("leak_2", "ok"))}),
    "a detector has vanished": ("sw1", {"leaks": (("leak_2", "ok"),)}),
    "all detectors have vanished": ("sw2", {"leaks": ()}),
    "its BMC is silent": ("sw1", {"why": "no answer"}),
    "another tray answers": ("sw1", {"serial": "TR-9"}),
}
ENDS = ("the tray itself", "the other tray", "the coolant unit")
"""Leaks, which a person has to call over: the bring-up ends with them; whatever may pass by itself is waited for."""


def wet_after(case: str, sends: int) -> RackDrive:
    """A bring-up whose rack is seen wet once so many acts are out or done."""
    name, shows = WETS[case]
    drive = rack()
    drive.begin_run()
    drive.look()
    drive.run_some(sends)
    drive.looks[name] = replace(drive.looks[name], **shows)
    drive.look(name)
    seen(drive)
    return drive


@pytest.mark.parametrize("sends", range(1, 12))
@pytest.mark.parametrize("case", WETS)
def test_a_rack_that_is_seen_wet_at_any_moment_of_its_bring_up_is_given_no_power(case: str, sends: int) -> None:
    """Mutants: a frozen step's acts are not asked for again; Hostler's own hold hides the leak; only the tray's own
    detectors count; one that has vanished is dry."""
    drive = wet_after(case, sends)
    assert not list(given_in_the_wet(drive))
    over = drive.rack.ended
    if case in ENDS and drive.rack.run is None and over is not None and over.result == "failed":
        (ticket,) = (t for t in drive.fleet.tickets_about(f"rack:{RACK}") if t.kind == RACK_FAILED)
        assert "leaked" in ticket.fault or "is off" in ticket.fault
    elif drive.rack.run is not None:
        assert drive.waits() or drive.rack.operations, "who waits says for what"
    assert digest(fold(drive.journal)) == digest(drive.fleet)


@pytest.mark.parametrize("sends", range(1, 12, 2))
@pytest.mark.parametrize("case", WETS)
def test_once_it_is_dry_and_called_sound_the_rack_comes_up_and_no_tray_is_left_dark(case: str, sends: int) -> None:
    """Mutant: a tray that the ended bring-up had switched off stays so, and the rack is certified."""
    drive = wet_after(case, sends)
    name, _ = WETS[case]
    drive.wait(minutes=31)
    drive.looks[name] = replace(LOOKS[name], leaks=DRY if name != "cdu1" else LOOKS[name].leaks)
    seen(drive)
    if drive.fleet.assets[name].state != "in_service":
        reply = drive.ask("asset-sound", name)
        assert reply.granted, reply.text
    for hold in [h for h in drive.fleet.holds.values() if h.kind is HoldKind.power]:
        assert drive.ask("release", hold.id).granted, "who kept the nodes dark for the unit's leak lets go"
    seen(drive)
    if drive.rack.run is None and (drive.rack.ended is None or drive.rack.ended.result != "done"):
        drive.begin_run()
    seen(drive)
    drive.wait(minutes=1)
    seen(drive)
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "done", drive.waits()
    dark = {one: lit for one, lit in drive.power.items() if one.startswith("sw") and not lit}
    assert not dark
    assert not list(given_in_the_wet(drive))


def test_protection_waits_for_no_act_on_the_tray_and_follows_one_that_may_light_it_late() -> None:
    """Mutants: the power-off waits for a firmware's hour and a half; what lands late leaves a wet tray on."""
    drive = rack()
    drive.script("update_firmware", "done", "mute")
    drive.begin_run()
    seen(drive)
    assert [one.node for one in drive.rack.operations] == ["sw1"]
    drive.looks["sw1"] = replace(drive.looks["sw1"], leaks=(("leak_1", "critical"), ("leak_2", "ok")))
    seen(drive)
    assert drive.fleet.assets["sw1"].state == "off"
    assert drive.rack.run is None

    late = rack()
    late.script("power_on", "late", node="sw1")
    late.begin_run()
    seen(late)
    assert [one.kind for one in late.rack.operations] == ["power_on"]
    late.looks["sw1"] = replace(late.looks["sw1"], leaks=(("leak_1", "critical"), ("leak_2", "ok")))
    seen(late)
    late.land()
    late.wait(minutes=2)
    assert not late.power["sw1"], "it was switched off behind what lit it"
    assert late.fleet.assets["sw1"].state == "off"


@pytest.mark.parametrize("case", ["the tray itself", "the other tray", "the coolant unit", "its BMC is silent"])
def test_what_was_recorded_and_is_not_sent_yet_is_looked_at_once_more(case: str) -> None:
    """Mutant: the fence asks whether the act stands recorded, and not whether what it presupposes does."""
    drive = rack()
    drive.begin_run()
    drive.look()
    for _ in range(40):
        if drive.pending and drive.pending[0].operation.kind == "power_on":
            break
        drive.run_some(1)
        drive.look()
    (sent,) = drive.pending
    assert last_look(drive.fleet, sent, drive.now) is None
    name, shows = WETS[case]
    drive.step(RackSeen(name, replace(drive.looks[name], at=drive.now, **shows)))
    kept = last_look(drive.fleet, sent, drive.now)
    assert kept is not None
    assert kept.result == "withheld"
    assert last_look(drive.fleet, replace(sent, how="observe"), drive.now) is None, "looking gives no power"


def test_an_act_that_was_observed_not_to_have_happened_is_not_sent_again_into_the_wet() -> None:
    """Mutant: a repeatable act is repeated whatever has come meanwhile."""
    drive = rack()
    drive.script("power_on", "vanished", node="sw1")
    drive.begin_run()
    for _ in range(40):
        if drive.rack.operations and drive.rack.operations[0].kind == "power_on":
            break
        drive.run_some(1)
        drive.look()
    drive.looks["sw1"] = replace(drive.looks["sw1"], why="no answer")
    drive.look("sw1")
    drive.wait(minutes=3)
    attempts = [
        one.operation.attempt for one in drive.events(e.AssetOperationStarted) if one.operation.kind == "power_on"
    ]
    assert attempts == [1]
    drive.looks["sw1"] = replace(drive.looks["sw1"], why="")
    seen(drive)
    drive.wait(minutes=1)
    seen(drive)
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "done"


# nodes

GIVES = ("power_on", "reboot", "update_firmware", "ac_cycle", "write_bios_settings", "reset_bmc")


def watched(tree: dict[str, Any]) -> None:
    """A site that answers leaks and heat itself."""
    for name in ("cooling.leak", "thermal.over_limit"):
        tree["rules"][name] = {"remedy": "", "dooms": "none"}


def given_in_danger(drive: Drive) -> Iterator[str]:
    """Acts on the node that give it power or write it while it leaks or is too hot."""
    danger: set[str] = set()
    for record in drive.journal:
        match record.event:
            case e.ConditionRaised(condition=c) if c.type in ("cooling.leak", "thermal.over_limit"):
                danger.add(c.id)
            case e.ConditionCleared(condition=name):
                danger.discard(name)
            case e.OperationStarted(operation=operation) if operation.kind in GIVES and danger:
                yield f"{record.seq}: {operation.kind} of {operation.node}, which has {sorted(danger)}"
            case _:
                pass


@pytest.mark.parametrize("sends", range(9))
@pytest.mark.parametrize("act", ["reboot", "power-cycle"])
@pytest.mark.parametrize("policy", [None, watched], ids=["protected", "watched"])
def test_a_node_that_leaks_in_the_middle_of_a_recipe_is_given_no_power(policy: Any, act: str, sends: int) -> None:
    """Mutants: a frozen plan powers on what has begun to leak; the danger of a site's own rule is none."""
    drive = Drive(configuration(policy=policy), [a_node(name) for name in "abcd"])
    assert drive.ask(act, "a").granted
    drive.run_some(sends)
    drive.leak("a")
    drive.run()
    drive.wait(minutes=40)
    assert not list(given_in_danger(drive))
    assert drive.ask("clear-condition", "a", condition="cooling.leak").granted
    for hold in [h for h in drive.fleet.holds.values() if h.kind is HoldKind.power]:
        assert drive.ask("release", hold.id).granted
    drive.wait(minutes=40)
    assert not list(given_in_danger(drive))
    assert drive.is_on("a") or (act, policy) == ("reboot", None), "an agent's reboot lights no node that was kept dark"
    assert drive.sweep() == 0


@pytest.mark.parametrize("sends", range(1, 9))
@pytest.mark.parametrize("kind", [HoldKind.physical_work, HoldKind.power])
def test_hands_that_come_between_plan_and_step_keep_the_node_as_it_is(kind: HoldKind, sends: int) -> None:
    """Mutant: a hold counts for plans that begin, and not for one that has begun."""
    drive = Drive(configuration(), [a_node(name) for name in "abcd"])
    assert drive.ask("power-cycle", "a").granted
    drive.run_some(sends)
    before = len(drive.journal)
    drive.controller._record_all((e.HoldPlaced(a_hold("a", kind)),), "test")  # noqa: SLF001 - at any moment
    ready = drive.controller.step((), drive.now + timedelta(seconds=1))
    drive._complete(ready)  # noqa: SLF001
    pending = [one for one in drive.pending if one.operation.kind in GIVES and one.how == "perform"]
    assert all(last_look(drive.fleet, one, drive.now) is not None for one in pending)
    drive.pending = [one for one in drive.pending if one not in pending]
    drive.wait(minutes=2)
    later = [r.event.operation.kind for r in drive.journal[before:] if isinstance(r.event, e.OperationStarted)]
    assert not set(later) & set(GIVES)
