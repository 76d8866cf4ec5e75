"""Members that stay dark until a person comes: spares take their places, nobody is disturbed, a person sees why."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen, Tick
from hostler.core.policy import pool_places
from hostler.core.state import events as e
from hostler.core.state.model import Node
from hostler.sim.checkers.journal_reading import JournalReading
from hostler.sim.checkers.law import LawCase
from hostler.sim.checkers.policy_limit_laws import PolicyLimits
from tests.kit import Drive, a_node, configuration, digest, fold, pool_document

RACK = ["a0", "a1", "a2", "a3"]
OTHERS = [f"b{n}" for n in range(8)]
WAITS_S = 300


def spare(name: str, rack: str = "rack:rs") -> Node:
    return a_node(name, pool="", domains=(rack, "leaf:l0"))


def site(*spares: Node, **budget: Any) -> Drive:
    """A rack of four among twelve members, and spares in other racks."""
    members = [a_node(n, domains=("rack:ra", "leaf:l0")) for n in RACK]
    members += [a_node(n, domains=("rack:rb", "leaf:l0")) for n in OTHERS]
    budget = {"count": 100, "percent": 100, **budget}
    pools = {"train": pool_document(target=len(members), budget=budget)}
    return Drive(configuration(pools), [*members, *(spares or (spare("s0"), spare("s1")))])


def silent(drive: Drive, ids: Iterable[str], *, ready: bool | None = False) -> None:
    """The agents are not heard any more; the scheduler says what it says."""
    ids = list(ids)
    drive.silent.update(ids)
    seen = [NodeSeen(i, ready=ready) for i in ids] if ready is not None else []
    drive.step(*seen, *(AgentSilent(i, drive.now - timedelta(seconds=40)) for i in ids))
    drive.run()


def dark(drive: Drive, ids: Iterable[str]) -> None:
    """Makes the nodes fall silent, and their BMCs say that they are off."""
    ids = list(ids)
    drive.step(*(NodeSeen(i, power="off") for i in ids))
    silent(drive, ids, ready=None)


def back(drive: Drive, ids: Iterable[str]) -> None:
    ids = list(ids)
    drive.silent.difference_update(ids)
    seen = [NodeSeen(i, power="on", ready=True) for i in ids]
    drive.step(*seen, *(AgentHeard(i, drive.boot_of(i)) for i in ids))
    drive.run()


def pool(drive: Drive) -> list[str]:
    return drive.fleet.index.members("pool:train")


def delivered(drive: Drive) -> list[str]:
    return [event.node for event in drive.events(e.NodeAssigned)]


def sound(drive: Drive) -> None:
    """Asserts what is true of every history: the journal is the fleet, and a sweep finds nothing to do."""
    assert drive.sweep() == 0
    assert digest(drive.fleet) == digest(fold(drive.journal))


def test_spares_take_the_places_of_a_rack_without_power_at_once() -> None:
    """Mutants: who is held counts as a member that serves; the rack is treated; the delivery does not say for whom."""
    drive = site()
    dark(drive, RACK)
    (incident,) = drive.fleet.incidents.values()
    assert incident.scope.text == "rack:ra"
    assert delivered(drive) == ["s0", "s1"], "as many as there are"
    assert all(drive.plans(name) == [] for name in RACK)
    reasons = {event.reason for event in drive.events(e.NodeAssigned)}
    assert any("a0" in reason and f"incident {incident.id} (rack ra)" in reason for reason in reasons)
    assert "is dark in incident" in drive.transcript("s0") or "are dark in incident" in drive.transcript("s0")
    assert set(pool(drive)) == {*RACK, *OTHERS, "s0", "s1"}
    sound(drive)


def test_who_is_silent_and_not_ready_is_replaced_after_a_while_by_the_clock_alone() -> None:
    """A switch that restarts costs no spare. Mutants: at once; nothing wakes the pool; the scheduler is not asked."""
    drive = site()
    silent(drive, RACK)
    drive.wait(seconds=WAITS_S - 60)
    assert delivered(drive) == []
    drive.wait(seconds=61)
    assert delivered(drive) == ["s0", "s1"]
    sound(drive)


@pytest.mark.parametrize("ready", [True, None])
def test_silence_without_a_second_witness_replaces_nobody(ready: bool | None) -> None:
    """The management network may be all that is out, and the work goes on. Mutant: absence alone is enough."""
    drive = site()
    silent(drive, RACK, ready=ready)
    drive.wait(hours=2)
    assert len(drive.fleet.incidents) == 1
    assert delivered(drive) == []
    drive.step(*(NodeSeen(name, ready=False) for name in RACK))
    drive.run()
    assert delivered(drive) == ["s0", "s1"], "and does once the scheduler says so too"


def test_who_comes_late_to_an_incident_is_replaced_in_its_turn() -> None:
    """Mutant: only the opening of an incident is looked at."""
    drive = site()
    silent(drive, RACK[:3])
    drive.wait(seconds=200)
    assert delivered(drive) == []
    dark(drive, RACK[3:])
    assert delivered(drive) == ["s0"]
    drive.wait(seconds=WAITS_S)
    assert delivered(drive) == ["s0", "s1"]


def test_a_spare_behind_the_same_part_is_no_spare() -> None:
    """Mutant: every spare will do."""
    drive = site(spare("a8", rack="rack:ra"), spare("s1"))
    dark(drive, RACK)
    assert delivered(drive) == ["s1"]
    back(drive, RACK)
    drive.wait(hours=1)
    assert len(drive.fleet.incidents) == 0
    for name in OTHERS[:2]:
        assert drive.ask("request-replacement", name, now="true").granted
        drive.wait(hours=1)
    assert delivered(drive) == ["s1", "a8"], "the pool was one larger than its target, and has lost two"


def test_the_last_spare_is_kept_back() -> None:
    """Mutant: dark places pass the floor of spares."""
    drive = site(spares_floor=1)
    dark(drive, RACK)
    assert delivered(drive) == ["s0"]


@pytest.mark.parametrize("verb", ["pause", "hold"])
def test_a_person_who_stops_the_pool_stops_this_too(verb: str) -> None:
    """Mutant: guards are not asked."""
    drive = site()
    assert drive.ask(verb, "pool:train").granted
    dark(drive, RACK)
    drive.wait(hours=1)
    assert delivered(drive) == []


def test_who_comes_back_makes_the_pool_larger_until_it_loses_a_member() -> None:
    """A node that comes back was not replaced. Mutants: who was replaced is released; the surplus is not counted."""
    drive = site(spare("s0"), spare("s1"), spare("s2"))
    dark(drive, RACK[:3])
    assert delivered(drive) == ["s0", "s1", "s2"]
    back(drive, RACK[:3])
    drive.wait(hours=1)
    assert len(drive.fleet.incidents) == 0
    assert len(pool(drive)) == 15
    assert drive.fleet.index.count("serving:train") == 15
    dark(drive, RACK[:3])
    assert delivered(drive) == ["s0", "s1", "s2"], "twelve are left that serve"
    sound(drive)


def test_members_that_are_treated_one_by_one_are_no_incidents_any_more() -> None:
    """A person has said so: their remedies lead to replacements. Mutant: the incident's state is not looked at."""
    drive = site()
    silent(drive, RACK)
    (incident,) = drive.fleet.incidents.values()
    assert drive.ask("treat-individually", incident.id).granted
    drive.step()
    drive.now += timedelta(seconds=WAITS_S + 1)
    drive.step(Tick())
    assert delivered(drive) == []


def test_who_is_powered_off_to_protect_it_is_replaced() -> None:
    """Only a named person powers it on again. Mutants: only incidents count; a power-off that failed counts."""
    drive = site()
    drive.script("power_off", "failed", node="a0")
    drive.leak("a0")
    drive.run()
    assert delivered(drive) == []
    drive.wait(minutes=5)
    assert not drive.is_on("a0")
    assert delivered(drive) == ["s0"]
    (assigned,) = drive.events(e.NodeAssigned)
    assert assigned.reason == "a0 is dark under hold a0-power"
    sound(drive)


def test_a_takeover_delivers_nobody_twice_and_forgets_nobody() -> None:
    """Mutant: it is remembered in memory what was filled."""
    drive = site(spare("s0"), spare("s1"), spare("s2"), spare("s3"), spare("s4"))
    dark(drive, RACK)
    drive.restart(gap_s=30)
    drive.wait(hours=1)
    assert delivered(drive) == ["s0", "s1", "s2", "s3"]
    sound(drive)


# --- the law's watcher


def said(drive: Drive, *, works: bool) -> Iterator[str]:
    """Returns the findings of law 4's watcher on this journal where the rack's work went on, or did not."""
    hosts = {n: SimpleNamespace(severed=works, running=works, boot_id="", faults=()) for n in drive.fleet.nodes}
    world = SimpleNamespace(hosts=hosts, scheduler=SimpleNamespace(works=lambda _node: ()))
    limits, cache = PolicyLimits(), JournalReading()
    case = cast("LawCase", SimpleNamespace(reading=cache, world=world, met=Counter()))
    for record in drive.journal:
        yield from limits.record(case, record)
        cache.turn(record)


def anybody_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pool_places, "_runs_nothing", lambda _context, _node: True)


def any_spare(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pool_places, "suspected", lambda _fleet: frozenset())


@pytest.mark.parametrize(
    ("plant", "where", "works", "says"),
    [(anybody_held, "rs", True, "places are taken"), (any_spare, "ra", False, "suspects its rack:ra")],
)
def test_the_watcher_sees_who_is_replaced_wrongly_and_by_whom(
    plant: Callable[[pytest.MonkeyPatch], None],
    where: str,
    works: bool,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutants: those planted; the watcher asks the code under test."""
    drive = site(spare("s0", rack=f"rack:{where}"))
    silent(drive, RACK, ready=works)
    drive.wait(hours=1)
    assert list(said(drive, works=works)) == []
    plant(monkeypatch)
    planted = site(spare("s0", rack=f"rack:{where}"))
    silent(planted, RACK, ready=works)
    planted.wait(hours=1)
    assert any(says in text for text in said(planted, works=works))


def test_the_watcher_has_nothing_to_say_of_a_rack_that_is_dark() -> None:
    """Mutant: any delivery beyond the target is one too many."""
    drive = site()
    dark(drive, RACK)
    assert delivered(drive) == ["s0", "s1"]
    assert list(said(drive, works=False)) == []
