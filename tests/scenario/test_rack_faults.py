"""Faults of a rack's assets in service: a ticket, a hold on what depends on them, and protection from a leak."""

import asyncio
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import RackSeen
from hostler.core.policy import rack_faults
from hostler.core.policy.disruption_request import DisruptionRequest
from hostler.core.policy.guards import blockers
from hostler.core.policy.rack_faults import FAULT
from hostler.core.state import events as e
from hostler.core.state.assets import Asset, Position
from hostler.core.state.decision_context import DecisionContext
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import LiveState
from hostler.core.state.model import ActClass, HoldKind, Node, Phase
from hostler.core.state.racks import AssetLook
from hostler.core.state.scopes import Scope
from hostler.polling import rack_rounds
from hostler.polling.rack_rounds import (
    AWAITED_S,
    SELDOM_S,
    SERVING_S,
    WET_S,
    RackRounds,
    awaited_racks,
    is_wet,
    period_of,
)
from tests.kit import NOW, a_node
from tests.scenario.test_rack_recipe import LOOKS, RACK, SUPPLIES, RackDrive, seen, trays, up

PLACE = Position("c1", rack=RACK)
DOMAINS = (f"rack:{RACK}", "nvlink:n1")


def serving(**fields: Any) -> tuple[Node, ...]:
    return tuple(a_node(name, position=PLACE, domains=DOMAINS, **fields) for name in ("a", "b"))


def in_service() -> RackDrive:
    return seen(RackDrive(serving()))


FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a supply fails": ("ps1", {"supplies": (*SUPPLIES[:5], ("psu5", "critical"))}, "ps1: psu5 critical"),
    "a coolant unit is ill": ("cdu1", {"health": "critical"}, "cdu1 says critical of its health"),
    "a tray is ill": ("sw2", {"health": "warning"}, "sw2 says warning of its health"),
    "another tray answers": ("sw2", {"serial": "TR-9"}, "sw2 shows serial TR-9, registered is TR-2"),
    "a detector warns": ("cdu1", {"leaks": (("floor", "warning"), ("manifold", "ok"))}, "cdu1 floor says warning"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_in_service_opens_one_ticket_and_holds_what_depends_on_it_until_it_is_well(case: str) -> None:
    """Mutants: each look opens another; the hold stays behind; a rack in which nothing serves has tickets."""
    name, ill, says = FAULTS[case]
    drive = in_service()
    assert not [t for t in drive.fleet.tickets.values() if t.kind == FAULT], "ps2's old firmware is no fault in service"
    truth = drive.looks[name]
    drive.looks[name] = replace(truth, **ill)
    seen(drive)
    drive.looks[name] = replace(drive.looks[name], gaps=("a page was not read",))
    seen(drive)
    (ticket,) = (t for t in drive.fleet.tickets.values() if t.kind == FAULT)
    assert says in ticket.fault
    assert (ticket.node, ticket.hardware) == (name, LOOKS[name].serial)
    (hold,) = drive.fleet.holds.values()
    assert (hold.owner, hold.scope, hold.kind) == ("hostler", Scope.of(f"rack:{RACK}"), HoldKind.operator)
    drive.fault("a")
    assert says in str(drive.node("a").waiting), "its remedy waits, and says for whom"
    drive.looks[name] = truth
    seen(drive)
    assert not drive.fleet.holds
    assert drive.fleet.tickets.get(ticket.id) is None
    assert len(drive.events(e.HoldPlaced)) == 1
    idle = RackDrive(trays(Phase.debug))
    idle.looks[name] = replace(truth, **ill)
    seen(idle)
    assert not idle.fleet.holds


def test_who_cannot_be_read_is_looked_after_and_holds_nobody() -> None:
    """Mutant: a silent BMC stops all remedies of its rack."""
    drive = in_service()
    drive.looks["ps1"] = AssetLook(NOW, why="no answer")
    seen(drive)
    (ticket,) = (t for t in drive.fleet.tickets.values() if t.kind == FAULT)
    assert "ps1 cannot be read: no answer" in ticket.fault
    assert not drive.fleet.holds


def test_a_leak_of_a_coolant_unit_takes_the_power_off_every_node_that_it_cools() -> None:
    """Law 4: protection waits for nobody, whoever works there. Mutants: a hold or pause stops it; a node is left on."""
    drive = in_service()
    drive.ask("hold", f"rack:{RACK}")
    drive.ask("pause", "fleet")
    drive.looks["cdu1"] = replace(drive.looks["cdu1"], leaks=(("floor", "critical"), ("manifold", "ok")))
    seen(drive)
    assert [drive.power[name] for name in ("a", "b")] == [False, False]
    assert {c.type for c in drive.node("a").conditions} >= {"cooling.leak"}
    drive.looks["cdu1"] = LOOKS["cdu1"]
    seen(drive)
    assert [drive.power[name] for name in ("a", "b")] == [False, False], "dry again is no word to power on"


def test_a_leak_in_a_tray_switches_that_tray_off_once_and_no_node() -> None:
    """Mutants: it is sent again with every look; nodes lose their power for a tray's leak."""
    drive = in_service()
    drive.looks["sw2"] = replace(drive.looks["sw2"], leaks=(("leak_1", "critical"),))
    seen(drive)
    drive.looks["sw2"] = replace(drive.looks["sw2"], gaps=("a page was not read",))
    seen(drive)
    asked = [(one.operation.node, one.operation.kind) for one in drive.events(e.AssetOperationStarted)]
    assert asked == [("sw2", "power_off")]
    assert drive.fleet.assets["sw2"].state == "off"
    assert [drive.power[name] for name in ("a", "b")] == [True, True]


def test_a_tray_that_cannot_be_switched_off_is_tried_again_at_the_next_look_that_shows_anything() -> None:
    drive = in_service()
    drive.script("power_off", "failed", node="sw2")
    drive.looks["sw2"] = replace(drive.looks["sw2"], leaks=(("leak_1", "critical"),))
    seen(drive)
    assert drive.fleet.assets["sw2"].state == "leaked"
    drive.wait(minutes=31)
    seen(drive)
    assert drive.fleet.assets["sw2"].state == "off"


def test_a_fault_does_not_keep_the_bring_up_from_putting_the_asset_right() -> None:
    """Mutant: a hold of Hostler's own for ps2 keeps ps2's firmware from being written."""
    drive = RackDrive(tuple(replace(node, assignment=None) for node in serving()))
    drive.looks["ps2"] = replace(drive.looks["ps2"], supplies=(*SUPPLIES[:5], ("psu5", "critical")))
    seen(drive)
    assert drive.fleet.holds
    drive.looks["ps1"] = drive.looks["ps1"]
    drive.looks["ps2"] = replace(LOOKS["ps2"], serial="SH-2")
    assert up(drive).rack.ended is not None


def test_what_is_in_service_is_looked_at_more_often_and_what_is_wet_most() -> None:
    """Mutants: a rack is forgotten for an hour once its nodes serve; a leak counts at one look."""
    drive = in_service()
    fleet, awaited = drive.fleet, awaited_racks(drive.fleet)
    assert [period_of(fleet, fleet.assets[name], awaited) for name in ("cdu1", "ps1")] == [WET_S, SERVING_S]
    idle = seen(RackDrive(trays(Phase.debug)))
    assert period_of(idle.fleet, idle.fleet.assets["ps1"], set()) == SELDOM_S
    assert period_of(idle.fleet, idle.fleet.assets["ps1"], {RACK}) == AWAITED_S
    assert is_wet(replace(LOOKS["cdu1"], leaks=(("floor", "critical"),)))
    assert not is_wet(replace(LOOKS["cdu1"], leaks=(("floor", "warning"),)))


class _Watched:
    """The part of a cell that rounds need, and a reader that notes whom it looked at."""

    def __init__(self, drive: RackDrive) -> None:
        self.view, self.told, self.now = drive.fleet, list[str](), lambda: drive.now
        self.enough = asyncio.Event()

    def tell(self, seen: RackSeen) -> None:
        self.told.append(seen.asset)
        if len(self.told) == 10:
            self.enough.set()

    async def look(self, asset: Asset, now: datetime) -> AssetLook:
        return AssetLook(now, serial=asset.id)


async def test_each_asset_has_its_turn_though_more_are_due_than_are_looked_at_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutant: the first of the list are looked at again before the last have been."""
    monkeypatch.setattr(rack_rounds, "AT_ONCE", 2)
    monkeypatch.setattr(rack_rounds, "WET_S", 0.0)
    monkeypatch.setattr(rack_rounds, "SERVING_S", 0.0)
    cell = _Watched(in_service())
    rounds = asyncio.create_task(RackRounds(cell, cell, tick_s=0.0).run())  # type: ignore[arg-type]
    await asyncio.wait_for(cell.enough.wait(), 5.0)
    rounds.cancel()
    assert set(cell.told[:6]) == set(LOOKS), "five assets within three rounds of two"


async def test_who_depends_on_an_asset_is_asked_once_a_minute_and_not_with_each_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutant: 90,000 assets and their nodes are walked every second, and the controller does nothing else."""
    asked: list[str] = []

    def dependents(fleet: Fleet, asset: Asset) -> list[Node]:
        asked.append(asset.id)
        return rack_faults.dependents(fleet, asset)

    monkeypatch.setattr(rack_rounds, "rack_faults", SimpleNamespace(dependents=dependents, WET=rack_faults.WET))
    cell, clock = _Watched(in_service()), [0.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    rounds = RackRounds(cell, cell)  # type: ignore[arg-type]
    looked: list[tuple[float, str]] = []
    for second in range(1801):
        clock[0] = float(second)
        before = len(cell.told)
        await rounds._round()  # noqa: SLF001 - one turn by the test's clock
        looked += [(clock[0], name) for name in cell.told[before:]]
    at = {name: [moment for moment, other in looked if other == name] for name in LOOKS}
    assert at["ps1"] == [0.0, SERVING_S, 2 * SERVING_S, 3 * SERVING_S]
    assert at["cdu1"] == [WET_S * turn for turn in range(31)], "it has leak detectors"
    assert len(asked) <= len(LOOKS) * 31


async def test_a_rack_for_which_nodes_begin_to_wait_is_looked_at_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: it waits for the minute in which its assets are asked again."""
    drive = seen(RackDrive(trays(Phase.debug)))
    cell, clock = _Watched(drive), [0.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    rounds = RackRounds(cell, cell)  # type: ignore[arg-type]
    for second in range(151):
        clock[0] = float(second)
        await rounds._round()  # noqa: SLF001 - one turn by the test's clock
    assert sorted(cell.told) == sorted(LOOKS)
    node = drive.fleet.nodes[next(iter(drive.fleet.nodes))]
    drive.fleet.put_node(node.id, replace(node, phase=Phase.registered))
    clock[0] = 151.0
    await rounds._round()  # noqa: SLF001
    assert sorted(cell.told) == sorted([*LOOKS, *LOOKS])


# the budget of whole domains


def limited(policy: dict[str, Any]) -> None:
    policy["domains"] = {**policy.get("domains", {}), "nvlink": {"count": 99, "percent": 100, "at_once": 1}}


def asked(drive: RackDrive, nodes: tuple[Node, ...], remedy: str, act_class: ActClass, scope: str = "") -> list[str]:
    wanted = Scope.of(scope) if scope else None
    request = DisruptionRequest(remedy, act_class, nodes, scope=wanted)
    found = blockers(DecisionContext(drive.fleet, LiveState(), drive.now), request)
    return [b.text for b in found if b.name == "nvlink domains"]


def test_bring_up_firmware_and_remedies_of_whole_domains_are_counted_by_domain() -> None:
    """Mutants: eighteen nodes of one domain count as eighteen; a rack that is flashed counts as none."""
    far = [a_node(f"x{n}", pool="", phase=Phase.initializing, domains=("nvlink:n2",)) for n in range(18)]
    fresh = tuple(a_node(f"y{n}", pool="", phase=Phase.registered, domains=("nvlink:n2",)) for n in range(2))
    near = tuple(replace(node, assignment=None) for node in serving())
    drive = RackDrive((*near, *far, *fresh), policy=limited)
    assert asked(drive, fresh, "initializing", ActClass.bring_up) == [], "its own domain is taken already"
    says = ["1 nvlink domains are taken whole, 1 may be at once (nvlink:n2)"]
    assert asked(drive, near, "reboot", ActClass.pending, "nvlink:n1") == says
    assert asked(drive, near[:1], "reboot", ActClass.pending) == [], "one node takes no domain"
    drive.begin_run()
    drive.look()
    assert says[0] in drive.waits(), "the firmware of its rack waits too"


def test_a_rack_that_is_flashed_is_a_domain_that_is_taken() -> None:
    near = tuple(replace(node, assignment=None) for node in serving())
    other = (a_node("z", pool="", phase=Phase.onboard, domains=("nvlink:n9",)),)
    drive = RackDrive((*near, *other), policy=limited)
    drive.begin_run()
    drive.look()
    assert drive.rack.operations
    assert asked(drive, other, "initializing", ActClass.bring_up) == [
        "1 nvlink domains are taken whole, 1 may be at once (nvlink:n1)"
    ]
