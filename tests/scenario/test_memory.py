"""Memory: all that is kept there has a named limit: what is over leaves it, and years of life make it no larger."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from hostler.controller import agenda as agendas
from hostler.controller.agenda import Agenda
from hostler.controller.inputs import AgentHeard, AgentSilent, IntentAsked, NodeSeen, Observed
from hostler.controller.loop import Controller
from hostler.core.intents.ask import HOLDS_MAX
from hostler.core.state import events as e
from hostler.core.state import packed_strings
from hostler.core.state.configuration import STRIKES_KEPT_S
from hostler.core.state.events import intents, inventory, plans, tickets
from hostler.core.state.fleet import Fleet
from hostler.core.state.fold import evolve
from hostler.core.state.model import ActClass, Attempt, Observation, Part, Plan, Radius, Step
from hostler.core.state.operations import CordonNode
from hostler.core.state.overlay_table import Table
from hostler.core.state.requalification import has_proven_itself
from hostler.core.state.snapshot import dump, load, state_of
from tests.kit import (
    BAD_LINES,
    NOW,
    Drive,
    a_node,
    a_workload,
    after,
    configuration,
    fold,
    gpu_part,
    intent_of,
    pool_document,
)
from tests.weighing import weight

POOLS = {"train": pool_document(target=6, owner="", budget={"count": 6, "percent": 100, "removals_per_day": 100})}
DOMAINS = ("rack:r1", "leaf:l0")


def two_people_for_five(policy: dict[str, Any]) -> None:
    policy.setdefault("reach", {})["nodes"] = 4


def the_fleet() -> Drive:
    nodes = [a_node(f"n{number}", domains=DOMAINS, slots=(), inventory_at=None) for number in range(6)]
    drive = Drive(configuration(POOLS, two_people_for_five), nodes)
    for node in nodes:
        drive.observe(node.id, "inventory", parts=tuple(gpu_part(node.id, gpu) for gpu in range(8)))
    return drive


def a_fortnight(drive: Drive, turn: int) -> None:
    """Faults, an outage of all, people, swapped parts, operations that nobody answers, a node come and gone."""
    name = f"n{turn % 6}"
    drive.see_work(name, a_workload(f"w{turn}", kind="graceful"))
    drive.fault(name, "off_bus", gpu=turn % 8)
    drive.script("reboot", "unknown", "vanished", "busy", "mute")
    drive.ask("reboot", f"n{(turn + 1) % 6}")
    drive.wait(hours=12)
    _all_fall_silent(drive)
    drive.step(
        IntentAsked(turn, intent_of(f"k{turn}", "hold", name, "ann", "why", drive.now, {"hours": "2"}, key=f"k{turn}"))
    )
    drive.ask("schedule-maintenance", "pool:train", starts=_iso(drive, 1), ends=_iso(drive, 2))
    drive.ask("drain", f"n{(turn + 2) % 6}")
    drive.ask_two("power-cycle", "rack:r1")
    _swaps_a_part(drive, name, turn)
    drive.wait(hours=6)
    _comes_and_goes(drive, turn)
    assert drive.ask("uncordon", f"n{(turn + 2) % 6}").granted
    for ticket in list(drive.fleet.tickets):
        drive.ask("close-ticket", ticket)
    drive.wait(days=13)


def _iso(drive: Drive, hours: float) -> str:
    return str(drive.now + timedelta(hours=hours))


def _all_fall_silent(drive: Drive) -> None:
    everybody = [f"n{number}" for number in range(6)]
    drive.silent.update(everybody)
    drive.step(*(AgentSilent(n, drive.now - timedelta(seconds=40)) for n in everybody))
    drive.wait(minutes=30)
    drive.silent.difference_update(everybody)
    drive.step(*(AgentHeard(n, drive.boot_of(n)) for n in everybody))
    drive.wait(hours=1)


def _swaps_a_part(drive: Drive, name: str, turn: int) -> None:
    fresh = Part(f"spare-{turn}", "gpu", "H100", "gpu0")
    drive.observe(name, "inventory", parts=(fresh, *(gpu_part(name, gpu) for gpu in range(1, 8))))


def _comes_and_goes(drive: Drive, turn: int) -> None:
    """Makes a node known, lets it speak and fall silent, and retires it."""
    name = f"x{turn}"
    spec = f'[{{"id":"{name}","sku":"h100","serial":"S-{name}","bmc":"b{name}","provisioner":"none"}}]'
    assert drive.ask("register", "fleet", nodes=spec).granted
    drive.observe(name, "inventory", parts=tuple(gpu_part(name, gpu) for gpu in range(8)))
    line = BAD_LINES["ecc"].format(gpu=0)
    seen = Observation(name, "kernel_log", "agent", f"spool-{name}", 1, text=line, facility=0, received=drive.now)
    drive.step(Observed(0, name, (seen,)), NodeSeen(name, "off"), AgentHeard(name, f"{name}-b1"))
    drive.step(AgentSilent(name, drive.now))
    assert drive.ask("retire", name).granted, "nobody serves there"


def in_memory(controller: Controller) -> Iterator[tuple[str, int]]:
    """Returns a controller's tables by name: tables, the index, the cell's own, the live state, cursors, the agenda."""
    for name, table in vars(controller.fleet).items():
        if isinstance(table, Table):
            yield name, len(table.base)
    yield "index", sum(len(controller.fleet.index.committed(key)) for key in controller.fleet.index.base)
    for name in controller.fleet.cell.__struct_fields__:
        value = getattr(controller.fleet.cell, name)
        if isinstance(value, tuple):
            yield f"cell.{name}", len(value)
    for owner in (controller.live, controller, controller.agenda):
        for name, value in vars(owner).items():
            if isinstance(value, dict | list | set | tuple):
                yield f"{type(owner).__name__}.{name}", len(value)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits, reached within a test."""
    monkeypatch.setattr(intents, "ANSWERS_KEPT", 4)
    monkeypatch.setattr(inventory, "SHELF_KEPT", 20)
    monkeypatch.setattr(plans, "ATTEMPTS_KEPT", 8)
    monkeypatch.setattr(tickets, "CLOSURES_KEPT", 4)
    monkeypatch.setattr(packed_strings, "WORDS_KEPT", 16)
    monkeypatch.setattr(agendas, "TIDY_AT_LEAST", 16)


@pytest.mark.nightly("years of simulated life")
def test_years_of_life_make_the_memory_no_larger(small_limits: None) -> None:
    """A named limit for each thing kept; only ids that were used stay, for they are never used again.

    Mutants: a closed ticket, an ended hold or window, a closed incident or approval stays; answers are never forgotten;
    the shelf has no end; a retired node's cursor, power or silence stays; an operation that was given up is looked for
    ever after.
    """
    drive = the_fleet()
    for turn in range(20):
        a_fortnight(drive, turn)
    assert {type(r.event) for r in drive.journal} >= {
        e.TicketClosed,
        e.HoldReleased,
        e.WindowEnded,
        e.IncidentClosed,
        e.ApprovalEnded,
        e.PartMoved,
        e.OutcomeLate,
    }, "it was a year with everything in it"
    before, bytes_before = dict(in_memory(drive.controller)), weight(drive.controller)
    for turn in range(20, 80):
        a_fortnight(drive, turn)
    over = ("holds", "windows", "tickets", "approvals", "incidents")
    assert [name for name in over if getattr(drive.fleet, name).base] == [], "all of it has ended"
    drive.fleet.retired.base.clear()
    grown = {name: (before[name], n) for name, n in in_memory(drive.controller) if n > before[name] * 1.2 + 4}
    assert not grown
    assert weight(drive.controller) <= bytes_before * 1.2
    assert len(drive.journal) / 6 / (80 * 14) < 200, "records per node and day"


def test_attempts_are_forgotten_when_no_rung_counts_them_any_more() -> None:
    """Mutants: they stand for years; what no check has followed is forgotten, and an unproven node serves."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    drive.fault("a", "ecc")
    drive.wait(days=1)
    drive.fault("a", "ecc")
    drive.wait(seconds=STRIKES_KEPT_S - 3600)
    assert [a.remedy for a in drive.node("a").attempts] == ["gpu_reset"] * 2
    drive.wait(days=2)
    drive.script("run_checks", "failed")
    drive.ask("reboot", "a")
    drive.run()
    assert [a.remedy for a in drive.node("a").attempts][:3] == ["gpu_reset", "gpu_reset", "reboot"]
    drive.wait(days=2)
    assert not drive.node("a").conditions
    assert drive.node("a").attempts[0].remedy == "reboot"


def test_tries_in_vain_do_not_push_out_what_touched_the_node(small_limits: None) -> None:
    """Mutant: a node that was acted upon counts as proven once its cluster has refused often enough."""
    fleet = Fleet()
    fleet.put_node("a", a_node("a", attempts=(Attempt("reboot", "", NOW),)))
    for turn in range(20):
        at = after(minutes=turn)
        step = (Step(CordonNode(), 60.0),)
        plan = Plan(f"p{turn}", "a", "x", ActClass.immediate, step, ("",), (), "", "", Radius(("a",)), at)
        told: tuple[e.Event, ...] = e.PlanRecorded(plan), e.PlanEnded("a", plan.id, "failed", "cordon: refused")
        fold([e.Record(2 * turn + i, at, 1, "test", event) for i, event in enumerate(told, start=1)], fleet)
    node = fleet.nodes["a"]
    assert len(node.attempts) == 8
    assert node.attempts[-1].at == after(minutes=19)
    assert not has_proven_itself(node)


def test_of_the_parts_on_the_shelf_the_latest_are_remembered(small_limits: None) -> None:
    """Mutants: the earliest are; a part that goes back into a node still counts."""
    drive = the_fleet()
    for turn in range(60):
        drive.now += timedelta(minutes=1)
        _swaps_a_part(drive, "n0", turn)
    state = state_of(drive.fleet)
    loose = list(state.loose)
    assert sorted(loose) == drive.fleet.index.members("shelf")
    assert 18 <= len(loose) <= 20
    assert {f"spare-{turn}" for turn in range(45, 59)} <= set(loose)
    assert sum(len(row.layout.slots) for row in state.fitted.values()) == 6 * 8
    _swaps_a_part(drive, "n1", 58)
    assert drive.fleet.parts["spare-58"].node == "n1"
    assert "spare-58" not in drive.fleet.index.members("shelf")


def test_a_far_moment_is_entered_into_the_agenda_once() -> None:
    """A hold that ends in a year, and something nearer every minute. Mutant: doubled entries are never taken out."""
    agenda, now, year = Agenda(), NOW, NOW + timedelta(days=365)
    for _ in range(10_000):
        agenda.wake("a", year, now)
        now += timedelta(minutes=1)
        agenda.wake("a", now, now - timedelta(minutes=1))
        assert agenda.due(now) == ["a"]
    assert len(agenda._heap) <= 2 * agendas.TIDY_AT_LEAST  # noqa: SLF001 - what it holds
    agenda.due(year)
    assert agenda.next() is None


def test_a_person_cannot_pile_up_holds() -> None:
    """Mutant: a script that cordons every minute fills the memory."""
    drive = Drive(configuration({"train": pool_document(target=1)}), [a_node("a")])
    granted = sum(drive.ask("cordon", "a").granted for _ in range(2 * HOLDS_MAX))
    assert granted == HOLDS_MAX == len(drive.fleet.holds)
    refused = drive.ask("hold", "a")
    assert "release one first" in refused.text
    assert drive.ask("uncordon", "a").granted
    assert drive.ask("hold", "a").granted


def test_a_snapshot_taken_while_anything_stands_and_the_records_after_it_are_the_whole_journal() -> None:
    """A cut for each table, where something first stands in it. Mutant: a table is not in the snapshot."""
    drive = the_fleet()
    drive.ask("register-assets", "fleet", assets='[{"id":"r1","kind":"rack"}]')
    a_fortnight(drive, 0)
    cuts, growing = dict[str, int](), Fleet()
    for number, record in enumerate(drive.journal, 1):
        evolve(growing, record)
        growing.merge()
        cuts.update({name: number for name, base in _tables(growing).items() if base and name not in cuts})
    elsewhere = {
        "rollouts",
        "fabrics",
        "fabric_cases",
        "link_cases",
        "manual_tests",
        "rma_cases",
        "stock",
        "goldens",
        "racks",
    }
    assert set(_tables(growing)) - set(cuts) == elsewhere, "their snapshots are tested where they are"
    whole = fold(drive.journal)
    for cut in sorted({*cuts.values(), len(drive.journal) // 2}):
        resumed = fold(drive.journal[cut:], load(dump(state_of(fold(drive.journal[:cut])))))
        assert _tables(resumed) == _tables(whole)
        for key in {**whole.index.base, **resumed.index.base}:
            assert resumed.index.members(key) == whole.index.members(key), (cut, key)


def _tables(fleet: Fleet) -> dict[str, dict[str, object]]:
    return {name: dict(table.base) for name, table in vars(fleet).items() if isinstance(table, Table)}
