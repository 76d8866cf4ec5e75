"""Small worlds in which everything goes wrong: the ten laws hold, and once healed the world comes to rest."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import cache

import pytest
from msgspec.structs import replace

from hostler.core.policy.blast_radius import blast_radius
from hostler.core.state.fabrics import FabricVerdict
from hostler.journal.memory import MemoryJournal
from hostler.sim.checkers.policy_limit_laws import MET
from hostler.sim.checkers.way_out_laws import PROVED
from hostler.sim.fault_injection.scenario import INJECTION_KINDS, NETWORK_KINDS, again, draw, draw_wired
from hostler.sim.hostile_worlds import START, WorldVerdict, build, judge

Judged = Callable[[int], WorldVerdict]


@pytest.fixture(scope="module")
def judged() -> Judged:
    """The verdict on a seed's world, which lives once for all tests that ask."""
    return cache(judge)


def test_every_law_holds(judged: Judged, seed: int) -> None:
    """Lost and late replies, failed commits, crashes between commit and send, lying logs, people in the way."""
    verdict = judged(seed)
    assert not verdict.violations, str(verdict)


def test_every_law_holds_at_a_network(seed: int) -> None:
    """Swapped, moved and missing cables, flaps, dirty optics, dead switches, spoilt discoveries, half a repair."""
    verdict = judge(seed, wired=True)
    assert not verdict.violations, str(verdict)


def test_every_law_holds_at_a_rack(seed: int) -> None:
    """Shelves, a coolant unit and trays that fail, leak, lie and are brought up, beside the nodes that need them."""
    verdict = judge(seed, racked=True)
    assert not verdict.violations, str(verdict)


def test_a_network_changes_nothing_of_the_world_that_it_is_added_to() -> None:
    """Mutant: what goes wrong in it is drawn from the world's own stream, so that each kept seed is another world."""
    for seed in range(50):
        plain, wired = draw(seed), draw_wired(seed)
        assert wired.faults[: len(plain.faults)] == plain.faults
        assert replace(wired.shape, wired=False, unmanaged=-1, resets=False) == plain.shape == again(plain).shape
    kinds = {one.kind for seed in range(200) for one in draw_wired(seed).faults}
    assert kinds == set(INJECTION_KINDS) | set(NETWORK_KINDS)
    assert {draw_wired(seed).shape.unmanaged >= 0 for seed in range(20)} == {True, False}
    assert {draw_wired(seed).shape.resets for seed in range(20)} == {True, False}


@pytest.mark.nightly("a network over many days")
def test_a_simulated_network_is_looked_at_and_misled() -> None:
    """Discoveries that conclude nothing come up beside those that do, and so does each way of repairing."""
    verdicts: Counter[str] = Counter()
    for seed in (0, 6, 9):
        injection = build(draw_wired(seed), MemoryJournal())
        injection.drive.run(START + timedelta(hours=12))
        assert injection.looks is not None
        verdicts.update(injection.looks.verdicts)
    assert set(verdicts) == {verdict.value for verdict in FabricVerdict}, verdicts


def test_ports_are_reset_in_simulated_networks_and_tools_leave_it_open_whether_they_were() -> None:
    """The driver is production's. Mutants: the simulated port is up at once; an unknown reset is repeated."""
    answers: list[list[str]] = []
    ends: set[bool] = set()
    for seed in (4, 17, 27, 35):
        injection = build(draw_wired(seed), MemoryJournal())
        injection.drive.run(START + timedelta(hours=12))
        hand, ledger = injection.world.actuators.ports, injection.world.site.ledger
        assert hand is not None
        effects = [effect for effect in ledger.effects if effect.kind == "reset_port"]
        assert len(effects) == len(hand.resets) == len({effect.operation for effect in effects}) > 0
        answers += [ledger.answers[effect.operation, effect.attempt] for effect in effects]
        ends |= {reset.port.device in injection.world.hosts for reset in hand.resets}
    assert all("unknown" in told for told in answers), answers
    assert sum("done" in told for told in answers) > 1, answers
    assert ends == {True, False}, "at a switch, and at a node's own end by its agent"


@pytest.mark.nightly("counts over many worlds")
def test_small_worlds_are_really_hostile(judged: Judged) -> None:
    """A world in which nothing happens proves nothing."""
    verdicts = [judged(seed) for seed in range(8)]
    assert sum(verdict.takeovers for verdict in verdicts) > 20, "controllers crash"
    assert sum(verdict.fenced for verdict in verdicts) > 10, "deposed controllers try"
    assert all(verdict.events > 50 for verdict in verdicts), "every world records something"
    kinds = Counter(kind for verdict in verdicts for kind in verdict.injected)
    assert len(kinds) > 30, kinds
    assert {verdict.scenario.shape.kind for verdict in verdicts} >= {"cell", "brink"}
    met = Counter(limit for verdict in verdicts for limit in verdict.met)
    assert set(met) == {*MET, *PROVED}, f"a watcher of a limit that stops nobody proves nothing: {met}"


def test_every_kind_of_injected_fault_is_drawn_somewhere() -> None:
    drawn = Counter(one.kind for seed in range(200) for one in draw(seed).faults)
    assert set(drawn) == set(INJECTION_KINDS)
    assert {draw(seed).shape.kind for seed in range(50)} == {"cell", "brink", "rack"}


def test_dropping_one_item_changes_no_other() -> None:
    """Each item keeps its index, its place, its time and its own chance."""
    whole = draw(7)
    some = tuple(one.index for one in whole.faults[::3])
    left = whole.without(some)
    assert set(left.faults) | {one for one in whole.faults if one.index in some} == set(whole.faults)
    assert left.dropped == some
    small = whole.smaller(4)
    assert set(small.faults) <= set(whole.faults)
    assert small.shape.roles == whole.shape.roles[:4]


@pytest.mark.nightly("whole worlds in processes of their own")
def test_one_seed_gives_one_journal_under_any_hash_seed() -> None:
    """No rule iterates over a set: strings that hash differently change nothing."""
    digests = [_digest(hash_seed) for hash_seed in ("1", "4711")]
    assert digests[0] == digests[1]


def _digest(hash_seed: str) -> str:
    code = "from hostler.sim.hostile_worlds import judge; print(judge(3).digest, judge(12).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_rack_is_an_nvl72() -> None:
    """18 trays of 4 GPUs and 9 switch trays in one domain: whoever resets a switch tray disturbs all 72 GPUs."""
    seed = next(seed for seed in range(200) if draw(seed).shape.kind == "rack")
    controller = build(draw(seed), MemoryJournal()).drive.controller
    assert controller is not None
    fleet = controller.fleet
    assert [fleet.assets[name].kind.value for name in fleet.assets].count("switch_tray") == 9
    for name in ("nvsw3", "d0"):
        radius = blast_radius(fleet, name)
        assert (len(radius.nodes), radius.gpus) == (18, 72)
