"""A leak, heat or hands that come after the plan stop its next act: each act is asked what it presupposes.

The judge reads the journal alone: once a look shows a rack wet, or a condition keeps a node dark, nothing there is
given power or written until that is over.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import RackSeen, Replied, Tick
from hostler.controller.reply_effect import last_look
from hostler.core.policy import presuppositions
from hostler.core.state import events as e
from hostler.core.state.model import Condition, Evidence, HoldKind, Outcome, Phase, Severity
from hostler.core.state.rack_runs import RACK_FAILED
from hostler.core.state.racks import AssetLook
from hostler.core.tables.conditions import CONDITIONS
from hostler.runtime.runner import Cell
from hostler.sim.checkers.danger_laws import Dangers
from hostler.sim.checkers.journal_reading import JournalReading
from hostler.sim.checkers.law import LawCase
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
    for _ in range(sends):
        drive.run_some(1)
        drive.look()
    drive.looks[name] = replace(drive.looks[name], **shows)
    drive.look(name)
    seen(drive)
    return drive


@pytest.mark.parametrize("sends", range(2, 13))
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


@pytest.mark.parametrize("sends", [4, 6, 8, 9, 11])
@pytest.mark.parametrize("case", WETS)
def test_once_it_is_dry_and_called_sound_the_rack_comes_up_and_no_tray_is_left_dark(case: str, sends: int) -> None:
    """Mutant: a tray that the ended bring-up had switched off stays so, and the rack is certified."""
    drive = wet_after(case, sends)
    name, _ = WETS[case]
    drive.wait(minutes=31)
    leaks = DRY if name != "cdu1" else LOOKS[name].leaks
    drive.looks[name] = replace(drive.looks[name], leaks=leaks, why="", serial=LOOKS[name].serial)
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


def _lit(drive: RackDrive) -> list[e.AssetOperationStarted]:
    return [one for one in drive.events(e.AssetOperationStarted) if one.operation.kind == "power_on"]


async def test_the_fence_answers_for_what_it_does_not_send() -> None:
    """Mutants: the act is sent all the same; it is dropped without a word, and waits for its deadline."""
    drive = rack()
    drive.begin_run()
    drive.look()
    (sent,) = drive.pending
    told: list[Outcome] = []
    cell: Any = SimpleNamespace(
        view=drive.fleet,
        now=lambda: drive.now,
        may_send=lambda: True,
        replied=told.append,
        _is_current=lambda _send: True,
        _quiet_until=0.0,
    )
    assert await Cell.passes(cell, sent)
    drive.step(RackSeen(sent.node.id, replace(drive.looks[sent.node.id], at=drive.now, why="no answer")))
    assert not await Cell.passes(cell, sent)
    (kept,) = told
    drive.pending.clear()
    drive.step(Replied(kept))
    assert not drive.rack.operations, "its end is recorded"
    assert drive.events(e.AssetOperationFinished)[-1].detail.startswith("not sent: nobody knows whether")
    assert drive.rack.run is not None, "the step waits for a look, and names it"
    assert [sent.node.id in text for text in drive.waits()] == [True]
    seen(drive)
    assert drive.rack.ended is not None
    assert drive.rack.ended.result == "done"


def test_two_controllers_withhold_alike_and_the_next_goes_on_from_the_record() -> None:
    """Mutant: who takes over sends again what was recorded before the leak, as it was never sent."""
    for case in ENDS:
        drive = rack()
        drive.begin_run()
        drive.look()
        for _ in range(40):
            if drive.pending and drive.pending[0].operation.kind == "power_on":
                break
            drive.run_some(1)
            drive.look()
        name, shows = WETS[case]
        drive.looks[name] = replace(drive.looks[name], **shows)
        drive.restart()
        drive.look(name)
        seen(drive)
        drive.wait(minutes=10)
        assert [one.operation.attempt for one in _lit(drive)] == [1], "recorded before the leak, and never again"
        assert not list(given_in_the_wet(drive)), case
        assert drive.rack.run is None, case


def test_a_detector_that_was_wet_has_to_say_itself_that_it_is_dry() -> None:
    """Mutants: one that is listed no more is dry; another machine's word, or a look that failed, counts for it."""
    drive = RackDrive(trays())
    dry = replace(LOOKS["sw2"], leaks=DRY)
    for leaks in (DRY, (("leak_1", "critical"), ("leak_2", "ok"))):
        drive.looks["sw2"] = replace(dry, leaks=leaks)
        seen(drive)
    assert drive.fleet.assets["sw2"].state == "off"
    for shown in (replace(dry, serial="TR-9"), replace(dry, why="no answer"), replace(dry, leaks=(("leak_2", "ok"),))):
        drive.looks["sw2"] = shown
        seen(drive)
        assert not drive.ask("asset-sound", "sw2").granted
    reply = drive.ask("asset-sound", "sw2")
    assert "sw2 leak_1 was wet and is not listed any more" in reply.text
    assert "hostler asset rebind sw2 --kind serial" in reply.text
    drive.looks["sw2"] = dry
    seen(drive)
    assert drive.ask("asset-sound", "sw2").granted
    assert digest(fold(drive.journal)) == digest(drive.fleet)


def test_no_tray_is_powered_on_beside_another_that_is_wet_and_each_can_be_called_sound_in_its_turn() -> None:
    """Mutants: only its own detectors count; two trays that leaked wait for each other's word."""
    drive = RackDrive(trays())
    wet = (("leak_1", "critical"), ("leak_2", "ok"))
    for leaks in (DRY, wet):
        for name in ("sw1", "sw2"):
            drive.looks[name] = replace(LOOKS[name], leaks=leaks)
        seen(drive)
    drive.looks["sw1"] = replace(LOOKS["sw1"], leaks=DRY)
    seen(drive)
    assert "sw1 is not powered on: sw2 leak_1 says critical" in drive.ask("asset-sound", "sw1").text
    drive.looks["sw2"] = replace(LOOKS["sw2"], leaks=DRY)
    seen(drive)
    for name in ("sw1", "sw2"):
        assert drive.ask("asset-sound", name).granted
        drive.run()
    assert drive.power["sw1"]
    assert drive.power["sw2"]


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


def happens(drive: Drive, event: e.Event) -> None:
    """Record what comes from outside at this moment, and let the controller decide on it."""
    drive.now += timedelta(seconds=1)
    controller = drive.controller
    controller._begin(drive.now)  # noqa: SLF001 - a hold or a doubt at any moment, by no particular way
    controller._record_all((event,), "test")  # noqa: SLF001
    controller._decide()  # noqa: SLF001
    drive._complete(controller._finish())  # noqa: SLF001


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
    happens(drive, e.HoldPlaced(a_hold("a", kind)))
    pending = [one for one in drive.pending if one.operation.kind in GIVES and one.how == "perform"]
    assert all(last_look(drive.fleet, one, drive.now) is not None for one in pending)
    drive.pending = [one for one in drive.pending if one not in pending]
    drive.wait(minutes=2)
    later = [r.event.operation.kind for r in drive.journal[before:] if isinstance(r.event, e.OperationStarted)]
    assert not set(later) & set(GIVES)


@pytest.mark.parametrize("kind", [HoldKind.physical_work, HoldKind.power])
def test_a_step_that_hands_kept_from_being_sent_is_sent_when_their_hold_is_released(kind: HoldKind) -> None:
    """The node is dark and its power-on waits. Mutant: the release wakes nobody in the midst of a plan."""
    drive = Drive(configuration(), [a_node(name) for name in "abcd"])
    assert drive.ask("power-cycle", "a").granted
    while not any(one.operation.kind == "power_off" for one in drive.pending):
        drive.run_some(1)
    happens(drive, e.HoldPlaced(a_hold("a", kind)))
    drive.run()
    node = drive.node("a")
    assert node.waiting is not None
    assert [b.kind for b in node.waiting.blockers] == ["hold"]
    assert not drive.is_on("a")
    before, now = len(drive.journal), drive.now
    happens(drive, e.HoldReleased(a_hold("a", kind).id, node.scope, "tina", "done"))
    sent = [r for r in drive.journal[before:] if isinstance(r.event, e.OperationStarted)]
    assert [r.event.operation.kind for r in sent if isinstance(r.event, e.OperationStarted)] == ["power_on"]
    assert drive.now - now <= timedelta(seconds=1), "the clock may have woken it"
    drive.wait(minutes=20)
    assert drive.is_on("a")
    assert drive.node("a").plan is None
    assert drive.sweep() == 0


FIRMWARE = {"BMC": "2.0"}


def in_danger(kind: str, *, unknown: bool, now: datetime) -> Condition:
    """A condition that keeps node a dark, with its detector heard or silent by now."""
    told = Evidence(now, "bmc", f"{kind} in a test")
    grave, since = Severity.catastrophic, now if unknown else None
    clears = CONDITIONS[kind].clears
    return Condition(f"a/{kind}", kind, "a", grave, now, now, clears, "hostler", evidence=(told,), unknown_since=since)


@pytest.mark.parametrize("unknown", [False, True], ids=["known", "unknown"])
@pytest.mark.parametrize("policy", [None, watched], ids=["protected", "watched"])
@pytest.mark.parametrize("kind", ["cooling.leak", "thermal.over_limit"])
@pytest.mark.parametrize(
    "work", [Phase.initializing, Phase.seatrial, Phase.zap, Phase.triage, "power-cycle", "firmware", "reboot"], ids=str
)
def test_no_recipe_gives_power_to_what_is_in_danger_wherever_it_stands(
    work: Phase | str, kind: str, policy: Any, unknown: bool
) -> None:
    """Mutants: what is unknown is over; a phase's own work asks its holds alone; a write needs no dry node."""
    for sends in (0, 2, 3, 5):
        phase = work if isinstance(work, Phase) else Phase.production
        pool = "train" if phase is Phase.production else ""
        nodes = [a_node("a", pool=pool, phase=phase), *(a_node(name) for name in "bcd")]
        wanted = FIRMWARE if work in ("firmware", Phase.zap) else None
        drive = Drive(configuration(policy=policy, firmware=wanted), nodes)
        if work in ("power-cycle", "reboot"):
            assert drive.ask(str(work), "a").granted
        drive.step(Tick())
        drive.run_some(sends)
        happens(drive, e.ConditionRaised(in_danger(kind, unknown=unknown, now=drive.now)))
        looked = [(one, last_look(drive.fleet, one, drive.now)) for one in drive.pending]
        drive.pending = [one for one, kept in looked if kept is None]
        drive.step(*(Replied(kept) for _, kept in looked if kept is not None))
        drive.run()
        drive.wait(minutes=25)
        assert not list(given_in_danger(drive)), (sends, drive.transcript("a"))
        assert drive.sweep() == 0, sends


def judged(drive: Drive) -> list[str]:
    """The verdict of the simulated worlds' watcher of power says of the journal."""
    world: Any = None
    law, case, found = Dangers(), LawCase(world, JournalReading()), list[str]()
    for record in drive.journal:
        case.reading.clock = record.at
        found += law.record(case, record)
        case.reading.turn(record)
    return found


@pytest.mark.parametrize("what", ["leak", "hands"])
def test_the_law_of_power_sees_a_plan_that_is_asked_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a watcher that sees neither conditions nor holds."""
    for planted in (False, True):
        if planted:
            monkeypatch.setattr(presuppositions, "missing", lambda *_about: ())
        drive = Drive(configuration(policy=watched), [a_node(name) for name in "abcd"])
        assert drive.ask("power-cycle", "a").granted
        drive.run_some(2)
        placed = e.HoldPlaced(a_hold("a", HoldKind.physical_work))
        danger = e.ConditionRaised(in_danger("cooling.leak", unknown=False, now=drive.now))
        happens(drive, danger if what == "leak" else placed)
        drive.wait(minutes=2)
        assert bool(judged(drive)) is planted
