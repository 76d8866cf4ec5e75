"""The loop itself: who is asked again after what, in which order, and what it answers."""

from datetime import timedelta
from typing import Any

import pytest

from hostler.controller.inputs import AgentHeard, AgentSilent, NodeSeen, Observed
from hostler.core.state import events as e
from hostler.core.state.model import Observation, Phase
from tests.kit import NOW, Drive, a_node, a_workload, configuration, pool_document

ALONE = configuration({"train": pool_document(target=1)})


def told(drive: Drive, node: str) -> list[str]:
    waiting = drive.node(node).waiting
    return [blocker.kind for blocker in waiting.blockers] if waiting else []


def test_a_new_policy_reaches_nodes_that_rest() -> None:
    """Mutant: only who waits is asked again."""

    def reset_unknown_codes(policy: dict[str, Any]) -> None:
        policy["rules"]["gpu.xid_unknown"]["remedy"] = "gpu_reset"

    drive = Drive(ALONE, [a_node("a")])
    drive.observe("a", "kernel_log", "NVRM: Xid (PCI:0000:00:00): 999, pid=1, name=a, something new.")
    assert [c.type for c in drive.node("a").conditions] == ["gpu.xid_unknown"]
    assert drive.plans() == []
    drive.activate(configuration({"train": pool_document(target=1)}, reset_unknown_codes))
    assert drive.plans() == ["gpu_reset"]


def test_a_reason_that_has_gone_is_not_told_any_longer_and_one_that_stays_is_told_once() -> None:
    """Mutants: reasons are never told anew; every change of a number is a record."""
    drive = Drive(ALONE, [a_node("a")])
    drive.ask("hold", "a")
    drive.ask("pause", "fleet")
    drive.ask("reboot", "a")
    assert told(drive, "a") == ["pause", "hold"]
    drive.ask("resume", "fleet")
    assert told(drive, "a") == ["hold"]
    before = len(drive.journal)
    drive.wait(days=3)
    assert len(drive.journal) == before
    drive.ask("release", next(iter(drive.fleet.holds)))
    assert drive.plans("a") == ["reboot"]
    assert told(drive, "a") == []


def test_the_gravest_and_the_costliest_are_served_first() -> None:
    """Waiters rank by severity, GPU-hours at stake, age, id. Mutant: by id alone."""
    pools = {"train": pool_document(target=4, budget={"count": 1, "percent": 100, "reserve": 0})}
    drive = Drive(configuration(pools), [a_node(name) for name in "abcd"])
    drive.ask("hold", "fleet")
    drive.ask("reboot", "a")
    for name in "bcd":
        drive.fault(name, "ecc")
    cheap, dear = a_workload("cheap", [0]), a_workload("dear", [0])
    drive.see_work("b", cheap)
    drive.see_work(
        "d", type(dear)(**{**{f: getattr(dear, f) for f in dear.__struct_fields__}, "gpu_hours_at_stake": 9.0})
    )
    drive.ask("release", next(iter(drive.fleet.holds)))
    drive.run()
    begun = [p.plan.node for p in drive.events(e.PlanRecorded)]
    assert begun[0] == "d"
    assert begun[-1] == "a"


def test_observations_are_taken_once_in_order_and_a_gap_ends_the_batch() -> None:
    """Mutants: a resent observation counts again; what follows a gap is acknowledged."""
    drive = Drive(ALONE, [a_node("a")])

    def send(*numbers: int, spool: str = "s") -> int:
        line = "NVRM: Xid (PCI:0000:00:00): 13, pid=1, name=a, Graphics Exception"
        seen = tuple(
            Observation("a", "kernel_log", "agent", spool, n, "a-b1", text=line, facility=0, received=drive.now)
            for n in numbers
        )
        return drive.step(Observed(1, "a", seen)).replies[0].acknowledged

    assert send(1, 2) == 2
    assert send(1, 2, 3) == 3
    assert send(5, 6) == 3
    assert send(4, 5) == 5
    assert send(1, spool="t") == 1
    assert drive.node("a").conditions[0].count <= 6
    stranger = drive.step(Observed(2, "nobody", ())).replies[0]
    assert not stranger.granted


def test_a_second_step_before_the_commit_is_a_bug_of_the_caller() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.controller.step((), drive.now)
    with pytest.raises(AssertionError, match="neither committed nor been lost"):
        drive.controller.step((), drive.now)


def test_strangers_leave_nothing_behind() -> None:
    """Mutant: whoever is heard of takes memory for ever."""
    drive = Drive(ALONE, [a_node("a")])
    before = len(drive.controller.live.nodes)
    for number in range(50):
        drive.step(
            AgentSilent(f"x{number}", NOW),
            NodeSeen(f"x{number}", "on"),
            AgentHeard(f"x{number}", "b"),
        )
    assert len(drive.controller.live.nodes) == before
    assert drive.controller.silent == {}


def test_what_is_touched_while_a_sweep_looks_is_seen_to_in_the_next_step() -> None:
    drive = Drive(ALONE, [a_node("a")])
    drive.step(NodeSeen("a", ready=False))
    drive.controller.silent["a"] = drive.now - timedelta(seconds=40)
    drive.controller.sweep(["a"])
    drive.step()
    wake = drive.controller.agenda.next()
    assert wake is not None
    assert drive.plans("a") == ["power_cycle"]


def test_a_bring_up_s_limit_is_kept_by_the_clock_alone() -> None:
    """Mutant: nobody is woken at the limit."""
    fresh = a_node("n", pool="", phase=Phase.registered, boot_id="", boots=())
    drive = Drive(ALONE, [fresh], quiet=True)
    drive.script("power_on", *["mute"] * 20)
    drive.power["n"] = True
    drive.controller.sweep(["n"])
    drive.step()
    drive.wait(minutes=29)
    moved = [(m.before, m.after) for m in drive.events(e.PhaseChanged)]
    drive.wait(minutes=3)
    assert moved[0] == (Phase.registered, Phase.initializing)
    assert Phase.triage in [m.after for m in drive.events(e.PhaseChanged)]


def test_a_pool_that_a_new_configuration_makes_larger_gets_its_spare_at_once() -> None:
    """Mutant: `ConfigActivated` is taken out of `wakeups.EASING`, and the place is filled by the next sweep."""
    drive = Drive(ALONE, [a_node("a"), a_node("s", pool="")])
    drive.run()
    assert drive.node("s").assignment is None
    drive.activate(configuration({"train": pool_document(target=2)}))
    assert drive.plans("s") == ["deliver"]
